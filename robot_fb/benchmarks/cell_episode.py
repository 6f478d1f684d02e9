"""An episode as the simulated cell gives it, made of random numbers: what the benchmarks of the log write."""

from __future__ import annotations

import numpy as np

from robot_fb.types import ActionSpec, EpisodeMeta, Step, StreamSpec

STREAMS = {
    "camera/scene": StreamSpec((64, 64, 3), "uint8"),
    "camera/wrist": StreamSpec((64, 64, 3), "uint8"),
    "tcp/pose": StreamSpec((7,), unit="m, quaternion xyzw"),
    "tcp/velocity": StreamSpec((6,), unit="m/s, rad/s"),
    "gripper/width": StreamSpec((1,), unit="m"),
    "command/last": StreamSpec((5,)),
    "wrench/wrist": StreamSpec((16, 6), unit="N, N·m", rate_hz=100.0),
    "tactile/left": StreamSpec((3, 8, 8), unit="N"),
    "tactile/right": StreamSpec((3, 8, 8), unit="N"),
}
DT = 0.05
META = EpisodeMeta("synthetic", "benchmark", STREAMS, ActionSpec((-1.0,) * 5, (1.0,) * 5), DT)


class CellEpisode:
    """Steps of one episode, one after the other.

    Pictures are smooth with a little noise, like rendered ones: pure noise would not compress at all.

    Args:
        seed: of all numbers.
    """

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._window = np.zeros((16, 6), np.float32)
        self._count = 0

    def step(self) -> Step:
        """The next step, 0.05 s after the one before."""
        rng, i = self._rng, self._count
        self._window = np.concatenate([self._window[5:], rng.normal(size=(5, 6)).astype(np.float32)])
        obs = {
            name: self._window.copy() if name == "wrench/wrist" else self._value(spec) for name, spec in STREAMS.items()
        }
        self._count += 1
        action = rng.normal(size=5).astype(np.float32)
        return Step(i * DT, obs, action, action, reward=float(rng.normal()), scores={"distance": float(rng.random())})

    def _value(self, spec: StreamSpec) -> np.ndarray:
        if spec.dtype == "uint8":
            return picture(self._rng, *spec.shape[:2])
        return self._rng.normal(size=spec.shape).astype(np.float32)


def picture(rng: np.random.Generator, height: int, width: int) -> np.ndarray:
    """(height, width, 3) uint8: a gradient with a box on it and noise of one level."""
    rows, columns = np.mgrid[0:height, 0:width]
    shade = (rows * rng.uniform(0, 1) + columns * rng.uniform(0, 1)) * (180 / (height + width)) + 20
    image = np.repeat(shade[:, :, None], 3, axis=2).astype(np.uint8)
    top, left = rng.integers(0, height // 2), rng.integers(0, width // 2)
    image[top : top + height // 4, left : left + width // 4] = rng.integers(0, 200, 3)
    return image + rng.integers(0, 2, image.shape).astype(np.uint8)
