"""A gymnasium environment as a robot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np

from robot_fb.errors import ActionError
from robot_fb.types import ActionSpec, Obs, StepOutcome, StreamSpec


class GymRobot:
    """`interfaces.Robot` over an environment with `Dict` observations, `unwrapped.stream_specs` and `unwrapped.dt`.

    Args:
        env: as a task's `make` gives it.
        close: whether leaving the context closes the environment.
    """

    def __init__(self, env: gym.Env, close: bool = True) -> None:
        self.env, self._close = env, close
        unwrapped: Any = env.unwrapped
        self.streams: Mapping[str, StreamSpec] = dict(unwrapped.stream_specs)
        self.dt: float = unwrapped.dt
        space: Any = env.action_space
        names = getattr(unwrapped, "action_names", ())
        self.action = ActionSpec(tuple(map(float, space.low)), tuple(map(float, space.high)), tuple(names))
        self._obs: Obs = {}
        self._outcome = StepOutcome()

    def __enter__(self) -> GymRobot:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()
        if self._close:
            self.env.close()

    def reset(self, seed: int | None = None) -> Obs:
        """Starts an episode."""
        self._obs, info = self.env.reset(seed=seed)
        self._outcome = StepOutcome(info=info)
        return self._obs

    def read(self) -> Obs:
        """What the last reset or write showed."""
        return self._obs

    def write(self, action: np.ndarray) -> np.ndarray:
        """Steps the environment; returns the action within its bounds.

        Raises:
            ActionError: a wrong shape or a NaN; nothing moves.
        """
        action = np.asarray(action, np.float32)
        if action.shape != (self.action.dim,) or not np.isfinite(action).all():
            raise ActionError("unusable action", expected=f"{self.action.dim} finite numbers", found=action.tolist())
        executed = np.clip(action, *np.array([self.action.low, self.action.high], np.float32))
        self._obs, reward, terminated, truncated, info = self.env.step(executed)
        self._outcome = StepOutcome(
            float(reward), bool(terminated), bool(truncated), bool(info.get("success", False)), info
        )
        return executed

    def outcome(self) -> StepOutcome:
        """What the last write led to."""
        return self._outcome

    def still(self) -> np.ndarray:
        """What the environment's `still` says; zeros within the bounds where it has none."""
        still = getattr(self.env.unwrapped, "still", None)
        action = np.zeros(self.action.dim) if still is None else still()
        return np.clip(action, self.action.low, self.action.high).astype(np.float32)

    def stop(self) -> None:
        """Nothing: a simulation moves only while it is stepped."""
