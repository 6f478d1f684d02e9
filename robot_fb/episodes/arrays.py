"""The arrays of a cache, and their files."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import numpy as np

from robot_fb.episodes.schema import meta_from_json
from robot_fb.types import EpisodeMeta

LAYOUT = 2
"""Rises when the arrays' form changes; older caches are then built anew."""

ABOUT = "about.json"


@dataclass(frozen=True)
class EpisodeArrays:
    """Steps of E episodes one after the other, N in all.

    Attributes:
        streams: (N, ...) each, memory-mapped, read-only; row i is the observation of decision step i.
        actions: (N, action_dim) float32, what the robot was sent.
        proposed: (N, action_dim) float32, what the policy asked for.
        rewards: (N,) float32.
        sources: (N,) uint8, index into `types.SOURCES`.
        terminated: (N,) bool.
        episode_ends: (E,) int64, exclusive.
        ids: of the episodes.
        metas: of the episodes.
        success: (E,) bool.
    """

    streams: Mapping[str, np.ndarray]
    actions: np.ndarray
    proposed: np.ndarray
    rewards: np.ndarray
    sources: np.ndarray
    terminated: np.ndarray
    episode_ends: np.ndarray
    ids: tuple[str, ...]
    metas: tuple[EpisodeMeta, ...]
    success: np.ndarray

    def __len__(self) -> int:
        return len(self.actions)


def file_of(folder: Path, column: str) -> Path:
    """Where a column lies."""
    return folder / f"{quote(column, safe='')}.npy"


def open_arrays(folder: Path, touch: bool = True) -> EpisodeArrays | None:
    """The arrays of a finished cache; None where there is none or it is damaged, so that it is built anew."""
    try:
        about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
        arrays = {name: np.load(file_of(folder, name), mmap_mode="r", allow_pickle=False)
                  for name in about["arrays"]}
        ends = np.array(about["episode_ends"], np.int64)
        metas = tuple(meta_from_json(meta) for meta in about["metas"])
        success = np.array(about["success"], bool)
        if any(len(a) != ends[-1] for a in arrays.values()):
            return None
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return None
    if touch:
        with suppress(OSError):
            os.utime(folder)  # keeps the caches in use from being cleared away
    streams = {name.removeprefix("stream:"): a for name, a in arrays.items() if name.startswith("stream:")}
    return EpisodeArrays(
        streams, arrays["actions"], arrays["proposed"], arrays["rewards"], arrays["sources"], arrays["terminated"],
        ends, tuple(about["ids"]), metas, success,
    )
