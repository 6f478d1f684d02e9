"""A scripted expert in a policy's place."""

from __future__ import annotations

import numpy as np

from robot_fb.interfaces import Expert
from robot_fb.types import ActionChunk, Obs, PolicySpec


class ExpertPolicy:
    """`interfaces.Policy` around an expert that looks at the simulation itself."""

    def __init__(self, expert: Expert, spec: PolicySpec) -> None:
        self._expert, self.spec = expert, spec

    def reset(self, seed: int | None = None) -> None:
        """Start of an episode."""
        self._expert.reset()

    def act(self, obs: Obs) -> ActionChunk:
        """One action."""
        return ActionChunk(np.asarray(self._expert.act(), np.float32)[None], self.spec.dt)

    def embed(self, obs: Obs) -> np.ndarray:
        """Nothing: an expert has no features."""
        return np.zeros(0, np.float32)
