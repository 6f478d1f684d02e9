"""A recorded episode in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from robot_fb.episodes.schema import Outcome
from robot_fb.types import SOURCES, EpisodeMeta, Feedback, Step


@dataclass(frozen=True)
class Columns:
    """All decision steps of an episode, column by column; row i belongs to step i.

    Attributes:
        streams: (N, ...) each.
        t, rewards: (N,) float64.
        proposed, executed: (N, action_dim) float32.
        sources: (N,) uint8 index into `types.SOURCES`.
        terminated, truncated, success: (N,) bool.
        missing: (N,) bool, a picture of the step was dropped and the one before stands in its place.
        scores: what each monitor said, NaN where it said nothing.
    """

    streams: Mapping[str, np.ndarray]
    t: np.ndarray
    rewards: np.ndarray
    proposed: np.ndarray
    executed: np.ndarray
    sources: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    success: np.ndarray
    missing: np.ndarray
    scores: tuple[Mapping[str, float], ...]

    def __len__(self) -> int:
        return len(self.t)

    def step(self, i: int) -> Step:
        """Step `i` as it was added."""
        return Step(
            t=float(self.t[i]), obs={name: values[i] for name, values in self.streams.items()},
            proposed=self.proposed[i], executed=self.executed[i], source=SOURCES[self.sources[i]],
            reward=float(self.rewards[i]), terminated=bool(self.terminated[i]), truncated=bool(self.truncated[i]),
            success=bool(self.success[i]), scores=self.scores[i],
        )


@dataclass(frozen=True)
class Episode:
    """One recorded episode.

    Attributes:
        id: of the episode.
        meta: what was known before.
        outcome: what was known after; `outcome.unfinished` says why it ended early.
        columns: its steps, with the streams that were asked for.
        streams: names of all streams that its steps hold.
        feedback: events that came while it ran.
        start_ns: wall clock at t = 0, since the Unix epoch.
    """

    id: str
    meta: EpisodeMeta
    outcome: Outcome
    columns: Columns
    streams: tuple[str, ...] = ()
    feedback: tuple[Feedback, ...] = ()
    start_ns: int = 0

    @property
    def success(self) -> bool:
        """Of the whole episode, as it was closed."""
        return self.outcome.success

    @property
    def info(self) -> Mapping[str, str]:
        """Task facts."""
        return self.outcome.info

    @property
    def steps(self) -> list[Step]:
        """All steps; arrays are shared with `columns`."""
        return [self.columns.step(i) for i in range(len(self.columns))]

    def __len__(self) -> int:
        return len(self.columns)


@dataclass(frozen=True)
class Samples:
    """A stream at its own rate: `t` (M,) [s] and `values` (M, ...)."""

    t: np.ndarray
    values: np.ndarray
