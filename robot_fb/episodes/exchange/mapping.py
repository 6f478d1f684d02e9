"""The mapping file: which topic or array of a foreign recording becomes which stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from robot_fb.config import from_mapping, read_yaml
from robot_fb.errors import ConfigError


@dataclass(frozen=True)
class Take:
    """Where numbers come from.

    Attributes:
        topic: of a bag.
        array: of a numpy archive; the only array of a .npy file is called "data".
        field: path inside the message, e.g. "pose.position"; by default what the message type is about.
        columns: first and last-but-one column of the last axis, when only a part is wanted.
    """

    topic: str = ""
    array: str = ""
    field: str = ""
    columns: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.columns and len(self.columns) != 2:
            raise ConfigError("columns", expected="[first, last + 1]", found=list(self.columns))

    def cut(self, value: np.ndarray) -> np.ndarray:
        """The wanted columns."""
        return value[..., self.columns[0] : self.columns[1]] if self.columns else value


@dataclass(frozen=True)
class StreamMap(Take):
    """One stream.

    Attributes:
        unit: e.g. "N, N·m".
        size: pictures are scaled to (height, width).
        window: the last so many samples make one value, (window, ...); 0 takes the newest alone.
        dtype: numpy name; float32 for real numbers and unchanged for whole ones when empty.
    """

    unit: str = ""
    size: tuple[int, ...] = ()
    window: int = 0
    dtype: str = ""

    def value(self, raw: np.ndarray) -> np.ndarray:
        """A sample in the form that is logged."""
        value = self.cut(raw)
        if self.dtype:
            return value.astype(self.dtype)
        return value.astype(np.float32) if value.dtype.kind == "f" else value


@dataclass(frozen=True)
class ActionMap(Take):
    """What the robot was sent.

    Attributes:
        low, high: bounds; what was found in the recording when empty.
        names: of the dimensions.
    """

    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Boundaries:
    """Where an episode ends and the next begins; a whole file is one episode by default.

    Attributes:
        array: one number a row; a change begins an episode.
        ends: array of row numbers, each one behind the last row of an episode.
        topic: each message on it begins an episode.
        gap_s: a pause of the action topic longer than this ends an episode.
    """

    array: str = ""
    ends: str = ""
    topic: str = ""
    gap_s: float = 0.0


@dataclass(frozen=True)
class ImportMapping:
    """A mapping file.

    Attributes:
        task: name of the task that the episodes are of.
        rate_hz: decision steps a second; a bag is sampled at this rate, an archive's rows come at it.
        streams: by the names that they get.
        action: what the robot was sent.
        by: who acted.
        robot: which robot.
        reward: per step; zero when left out.
        episodes: where they begin.
        success: whether the episodes are successes.
        success_array: array that says so for each row; the last row of an episode counts.
        extra: kept with each episode.
    """

    task: str
    rate_hz: float
    streams: Mapping[str, StreamMap]
    action: ActionMap
    by: str = "human"
    robot: str = "unknown"
    reward: Take = field(default_factory=Take)
    episodes: Boundaries = field(default_factory=Boundaries)
    success: bool = True
    success_array: str = ""
    extra: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.rate_hz > 0:
            raise ConfigError("rate_hz", expected="steps a second, above 0", found=self.rate_hz)
        if not self.streams:
            raise ConfigError("streams", expected="at least one stream")

    @property
    def dt(self) -> float:
        """Decision period [s]."""
        return 1.0 / self.rate_hz


def read_mapping(path: Path) -> ImportMapping:
    """A mapping from its YAML file.

    Raises:
        ConfigError: unreadable, or with unknown or missing keys.
    """
    return from_mapping(ImportMapping, read_yaml(path))
