"""Specs of made-up tasks."""

from __future__ import annotations

import numpy as np
import pytest

from robot_fb.types import ActionSpec, PolicySpec, StreamSpec


@pytest.fixture
def visual_spec() -> PolicySpec:
    """Two small cameras, pose and velocity; three actions."""
    obs = {
        "camera/scene": StreamSpec((32, 32, 3), "uint8"),
        "camera/wrist": StreamSpec((32, 32, 3), "uint8"),
        "tcp/pose": StreamSpec((7,), unit="m, quaternion xyzw"),
        "tcp/velocity": StreamSpec((6,), unit="m/s, rad/s"),
    }
    return PolicySpec("toy", obs, ActionSpec((-1.0,) * 3, (1.0,) * 3), 0.05, horizon=8, execute=4)


@pytest.fixture
def state_spec() -> PolicySpec:
    """One number in, one action out, no history: for toys whose right answer is known."""
    action = ActionSpec((-1.0,), (1.0,))
    return PolicySpec("toy", {"state": StreamSpec((1,))}, action, 0.05, horizon=4, execute=2, obs_horizon=1)


@pytest.fixture
def look():
    """A random observation of a spec, with or without a leading lane axis."""

    def make(spec: PolicySpec, seed: int = 0, lanes: tuple[int, ...] = ()) -> dict[str, np.ndarray]:
        rng = np.random.default_rng(seed)
        return {
            key: rng.integers(0, 256, (*lanes, *s.shape)).astype(np.uint8) if s.dtype == "uint8"
            else rng.normal(size=(*lanes, *s.shape)).astype(np.float32)
            for key, s in spec.obs.items()
        }

    return make
