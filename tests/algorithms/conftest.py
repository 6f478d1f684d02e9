"""Recorded episodes of a made-up task, and what is read of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pytest

from robot_fb.types import ActionSpec, EpisodeMeta, StreamSpec

STREAMS = {
    "camera/scene": StreamSpec((16, 16, 3), "uint8"),
    "state": StreamSpec((2,)),
    "wrench/wrist": StreamSpec((2, 6), unit="N, N·m"),
}


@dataclass(frozen=True)
class ToyArrays:
    """The fields of `episodes.cache.EpisodeArrays` that learning reads."""

    streams: Mapping[str, np.ndarray]
    actions: np.ndarray
    episode_ends: np.ndarray
    metas: tuple[EpisodeMeta, ...]
    success: np.ndarray
    sources: np.ndarray


@pytest.fixture
def toy_arrays():
    """Episodes in which the action is the state's first number halved."""

    def make(lengths=(9, 5, 12), task="toy", seed=0, success=None) -> ToyArrays:
        rng, count = np.random.default_rng(seed), sum(lengths)
        state = rng.uniform(-1, 1, (count, 2)).astype(np.float32)
        streams = {
            "camera/scene": rng.integers(0, 256, (count, 16, 16, 3)).astype(np.uint8),
            "state": state,
            "wrench/wrist": rng.normal(size=(count, 2, 6)).astype(np.float32),
        }
        meta = EpisodeMeta(task, "expert", STREAMS, ActionSpec((-1.0,), (1.0,)), 0.05)
        good = np.ones(len(lengths), bool) if success is None else np.array(success, bool)
        metas, sources = (meta,) * len(lengths), np.zeros(count, np.uint8)
        return ToyArrays(streams, state[:, :1] / 2, np.cumsum(lengths), metas, good, sources)

    return make
