"""What stands in an episode file besides its messages: format version, meta at the start, outcome at the end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from robot_fb.config import from_mapping
from robot_fb.errors import BrokenFileError, ConfigError, NewerFormatError
from robot_fb.types import SOURCES, ActionSpec, EpisodeMeta, StreamSpec

FORMAT = 1
"""Rises when an older robot_fb could no longer read what a newer one writes."""

EPISODE_RECORD = "robot_fb.episode"
OUTCOME_RECORD = "robot_fb.outcome"
GAP_RECORD = "robot_fb.gap"
"""Left by a repair where something was lost: what comes after does not follow on what came before."""

DECISION_TOPIC = "/decision"
DECISION_TYPE = "std_msgs/msg/Float64MultiArray"
FEEDBACK_TOPIC = "/feedback"
FEEDBACK_TYPE = "std_msgs/msg/String"
SCORE_TYPE = "std_msgs/msg/Float64"

TERMINATED, TRUNCATED, SUCCESS, PICTURE_MISSING = 1, 2, 4, 8
"""Bits of a decision's flags."""

HEAD = ("t", "reward", "flags", "source")
"""What a decision row begins with; then come `proposed` and `executed`. float64 holds float32 actions exactly."""


@dataclass(frozen=True)
class Outcome:
    """What is known after the last step.

    Attributes:
        success: of the whole episode.
        info: task facts.
        steps: decisions logged, -1 where the file does not say.
        dropped: what the disk could not keep up with, by stream.
        unfinished: why the recording ended early; empty for an episode that was closed.
    """

    success: bool = False
    info: Mapping[str, str] = field(default_factory=dict)
    steps: int = -1
    dropped: Mapping[str, int] = field(default_factory=dict)
    unfinished: str = ""


def episode_record(id: str, meta: EpisodeMeta, start_ns: int) -> dict[str, str]:
    """Content of the metadata record at the start of a file."""
    return {"format": str(FORMAT), "id": id, "start_ns": str(start_ns), "meta": json.dumps(asdict(meta))}


def parse_episode_record(data: Mapping[str, str]) -> tuple[str, EpisodeMeta, int]:
    """(id, meta, start_ns).

    Raises:
        NewerFormatError: written by a newer robot_fb.
        BrokenFileError: damaged.
    """
    try:
        check_format(int(data["format"]), "the episode")
        return data["id"], meta_from_json(json.loads(data["meta"])), int(data["start_ns"])
    except (KeyError, ValueError, TypeError, ConfigError) as error:
        raise BrokenFileError("the episode's description is damaged", found=str(error)) from error


def check_format(found: int, what: str) -> None:
    """Raises NewerFormatError where `found` is beyond what this version reads."""
    if found > FORMAT:
        raise NewerFormatError(
            f"{what} was written by a newer robot_fb", expected=f"format {FORMAT} or older", found=f"format {found}",
            do="upgrade: pip install -U robot-fb",
        )


def meta_from_json(data: Mapping[str, Any]) -> EpisodeMeta:
    """EpisodeMeta from its plain form."""
    data = dict(data)
    streams = {str(k): from_mapping(StreamSpec, v) for k, v in data.pop("streams").items()}
    action = from_mapping(ActionSpec, data.pop("action"))
    return EpisodeMeta(streams=streams, action=action, **data)


def outcome_record(outcome: Outcome) -> dict[str, str]:
    """Content of the metadata record at the end of a file."""
    return {
        "success": str(outcome.success).lower(), "info": json.dumps(dict(outcome.info)), "steps": str(outcome.steps),
        "dropped": json.dumps(dict(outcome.dropped)), "unfinished": outcome.unfinished,
    }


def parse_outcome_record(data: Mapping[str, str]) -> Outcome:
    """The outcome.

    Raises:
        BrokenFileError: damaged.
    """
    try:
        info = {str(k): str(v) for k, v in json.loads(data["info"]).items()}
        dropped = {str(k): int(v) for k, v in json.loads(data["dropped"]).items()}
        return Outcome(data["success"] == "true", info, int(data["steps"]), dropped, data.get("unfinished", ""))
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise BrokenFileError("the episode's outcome is damaged", found=str(error)) from error


def decision_row(
    t: float, reward: float, flags: int, source: str, proposed: np.ndarray, executed: np.ndarray
) -> np.ndarray:
    """(4 + 2 * action_dim,) float64."""
    return np.concatenate(([t, reward, flags, SOURCES.index(source)], proposed, executed))  # type: ignore[arg-type]


def decision_labels(action_dim: int) -> list[tuple[str, int]]:
    """Segments of a decision row, for its layout."""
    return [*((name, 1) for name in HEAD), ("proposed", action_dim), ("executed", action_dim)]
