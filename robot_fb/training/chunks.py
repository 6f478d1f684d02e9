"""Windows over recorded episodes: a short history of observations and the chunk of actions that followed."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from robot_fb.errors import EpisodeError
from robot_fb.registry import closest
from robot_fb.types import SOURCES, EpisodeMeta, PolicySpec, is_touch

CELL_STREAMS = ("tcp/pose", "gripper/width")
"""Measurements that a base policy of the cell reads beside the cameras. The last command is left out on purpose: a
policy that sees it learns to repeat it (de Haan et al. 2019)."""


class Arrays(Protocol):
    """What is read of `episodes.cache.EpisodeArrays`."""

    @property
    def streams(self) -> Mapping[str, np.ndarray]: ...
    @property
    def actions(self) -> np.ndarray: ...
    @property
    def sources(self) -> np.ndarray: ...
    @property
    def episode_ends(self) -> np.ndarray: ...
    @property
    def metas(self) -> Sequence[EpisodeMeta]: ...
    @property
    def success(self) -> np.ndarray: ...


NOBODY = tuple(SOURCES.index(source) for source in ("hold", "rewind"))
"""Sources of decisions that nobody should learn: the robot waited, or undid what it had done."""


class ChunkSource:
    """Every decision of the chosen episodes as one row, but for those in which the robot held still or went back.

    A window never reaches across such a gap: before it and after it are, to a policy, two episodes.

    Args:
        arrays: recorded episodes.
        spec: streams, history and chunk length.
        episodes: which episodes, by position; all if not given.
    """

    def __init__(self, arrays: Arrays, spec: PolicySpec, episodes: Sequence[int] | None = None) -> None:
        self._arrays, self._spec = arrays, spec
        ends = np.asarray(arrays.episode_ends, int)
        starts = np.concatenate([[0], ends[:-1]])
        chosen = range(len(ends)) if episodes is None else episodes
        rows = np.concatenate([np.zeros(0, int), *(np.arange(starts[e], ends[e]) for e in chosen)])
        idle = np.isin(arrays.sources, NOBODY)
        self.rows = rows[~idle[rows]]
        breaks = np.union1d(np.flatnonzero(np.diff(idle)) + 1, np.concatenate([[0], ends])).astype(int)
        self._start, self._end = (np.repeat(side, np.diff(breaks)) for side in (breaks[:-1], breaks[1:]))

    def __len__(self) -> int:
        return len(self.rows)

    def only(self, chosen: np.ndarray) -> ChunkSource:
        """The same windows, drawn at fewer decisions.

        Args:
            chosen: (decisions,) bool, over all episodes.
        """
        found = copy.copy(self)
        found.rows = self.rows[chosen[self.rows]]
        return found

    def sample(self, rng: np.random.Generator, n: int) -> dict[str, Any]:
        """`n` windows, drawn evenly; see `windows`."""
        return self.windows(self.rows[rng.integers(len(self.rows), size=n)])

    def windows(self, rows: np.ndarray) -> dict[str, Any]:
        """The windows at given decisions.

        Returns:
            "obs": streams (n, obs_horizon, ...), the first observation repeated before its start;
            "actions": (n, horizon, action_dim), the last action repeated after its end.
        """
        back = np.arange(1 - self._spec.obs_horizon, 1)
        seen = np.maximum(rows[:, None] + back, self._start[rows][:, None])
        ahead = np.minimum(rows[:, None] + np.arange(self._spec.horizon), self._end[rows][:, None] - 1)
        obs = {key: self._arrays.streams[key][seen] for key in self._spec.obs}
        return {"obs": obs, "actions": np.asarray(self._arrays.actions[ahead], np.float32)}


def choose_streams(meta: EpisodeMeta, asked: Sequence[str] = ()) -> tuple[str, ...]:
    """Which streams a base policy reads: `asked`, or all cameras and the arm's own measurements, never touch.

    Raises:
        EpisodeError: an asked stream was not recorded.
    """
    for key in asked:
        if key not in meta.streams:
            raise EpisodeError(f"stream {key!r} is not in these episodes", do=closest(key, list(meta.streams)))
    if asked:
        return tuple(asked)
    seen = [key for key in meta.streams if not is_touch(key)]
    if all(key in seen for key in CELL_STREAMS):
        seen = [key for key in seen if key.startswith("camera/") or key in CELL_STREAMS]
    return tuple(seen)


def make_spec(arrays: Arrays, streams: Sequence[str] = (), **lengths: int) -> PolicySpec:
    """The spec of a policy that learns from these episodes.

    Args:
        arrays: recorded episodes, all of one task.
        streams: what it reads; `choose_streams` if empty.
        lengths: `horizon`, `execute`, `obs_horizon`.

    Raises:
        EpisodeError: no episodes, several tasks, or streams of several shapes.
    """
    if not len(arrays.metas):
        raise EpisodeError("there are no episodes to learn from", do="record some: robot-fb record")
    first = arrays.metas[0]
    keys = choose_streams(first, streams)
    for meta in arrays.metas:
        if meta.task != first.task or meta.action.dim != first.action.dim:
            raise EpisodeError("episodes are of several tasks", expected=first.task, found=meta.task)
        for key in keys:
            if key not in meta.streams or tuple(meta.streams[key].shape) != tuple(first.streams[key].shape):
                shape = tuple(first.streams[key].shape)
                found = tuple(meta.streams[key].shape) if key in meta.streams else "no such stream"
                raise EpisodeError(f"stream {key!r} differs between episodes", expected=shape, found=found)
    return PolicySpec(first.task, {key: first.streams[key] for key in keys}, first.action, first.dt, **lengths)


def refuse_bad_values(arrays: Arrays, streams: Sequence[str]) -> None:
    """Raises EpisodeError, naming the place, where a stream or an action holds a NaN or an infinity."""
    for key, values in {**{key: arrays.streams[key] for key in streams}, "action": arrays.actions}.items():
        if values.dtype.kind != "f":
            continue
        bad = ~np.isfinite(values.reshape(len(values), -1)).all(1)
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            episode = int(np.searchsorted(arrays.episode_ends, row, side="right"))
            step = row - (int(arrays.episode_ends[episode - 1]) if episode else 0)
            raise EpisodeError(
                f"{key!r} holds a NaN or an infinity", found=f"episode {episode}, step {step}",
                do="leave that episode out, or mend its source",
            )
