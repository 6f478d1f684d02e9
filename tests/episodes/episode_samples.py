"""An episode with one stream of every kind."""

from __future__ import annotations

import numpy as np

from robot_fb.types import SOURCES, ActionSpec, EpisodeMeta, Step, StreamSpec

STREAMS = {
    "camera/scene": StreamSpec((64, 64, 3), "uint8"),
    "camera/wrist": StreamSpec((48, 64, 3), "uint8"),
    "camera/depth": StreamSpec((8, 9), "float32", "m"),
    "tcp/pose": StreamSpec((7,), unit="m, quaternion xyzw"),
    "tcp/velocity": StreamSpec((6,), unit="m/s, rad/s"),
    "gripper/width": StreamSpec((1,), unit="m"),
    "command/last": StreamSpec((5,)),
    "joint/position": StreamSpec((7,), unit="rad"),
    "joint/velocity": StreamSpec((7,), unit="rad/s"),
    "wrench/wrist": StreamSpec((16, 6), unit="N, N·m", rate_hz=100.0),
    "tactile/left": StreamSpec((3, 8, 6), unit="N"),
    "odd/matrix": StreamSpec((2, 3, 4), "float64"),
    "odd/half": StreamSpec((3,), "float16"),
    "odd/counts": StreamSpec((2,), "int64"),
    "odd/flag": StreamSpec((), "bool"),
}
META = EpisodeMeta("keyed_socket", "expert", STREAMS, ActionSpec((-1.0,) * 5, (1.0,) * 5), dt=0.05, seed=3)


def value(rng: np.random.Generator, spec: StreamSpec) -> np.ndarray:
    """A random value of a stream."""
    if spec.dtype.startswith("float"):
        return rng.normal(size=spec.shape).astype(spec.dtype)
    return rng.integers(0, 2 if spec.dtype == "bool" else 200, spec.shape).astype(spec.dtype)


def make_steps(count: int, seed: int = 0, streams: dict[str, StreamSpec] = STREAMS) -> list[Step]:
    """Random steps; the wrench window slides by five rows a step."""
    rng = np.random.default_rng(seed)
    forces = rng.normal(size=(5 * count + 16, 6)).astype(np.float32)
    steps = []
    for i in range(count):
        obs = {name: value(rng, spec) for name, spec in streams.items()}
        if "wrench/wrist" in obs:
            obs["wrench/wrist"] = forces[5 * i : 5 * i + 16].copy()
        last = i == count - 1
        steps.append(Step(
            t=i * 0.05, obs=obs, proposed=rng.normal(size=5).astype(np.float32),
            executed=rng.normal(size=5).astype(np.float32), source=SOURCES[i % len(SOURCES)], reward=i / 7,
            terminated=last, success=last, scores={"distance": i / 3},
        ))
    return steps


def assert_same_step(found: Step, added: Step) -> None:
    """Bit for bit."""
    assert set(found.obs) == set(added.obs)
    for name, expected in added.obs.items():
        assert found.obs[name].dtype == expected.dtype, name
        assert found.obs[name].shape == expected.shape, name
        assert found.obs[name].tobytes() == expected.tobytes(), name
    assert found.proposed.tobytes() == added.proposed.tobytes()
    assert found.executed.tobytes() == added.executed.tobytes()
    for what in ("t", "source", "reward", "terminated", "truncated", "success", "scores"):
        assert getattr(found, what) == getattr(added, what), what
