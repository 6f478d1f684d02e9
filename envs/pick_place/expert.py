"""The scripted expert: every action follows from the present state alone, so that a policy can imitate it."""

from __future__ import annotations

import gymnasium as gym
import numpy as np

from envs.pick_place import scene
from envs.pick_place.env import RESTING_HEIGHT, PickPlaceEnv

GAIN, TOP_SPEED = 0.6, 0.018
"""Action per metre of error, and its largest length [m]."""

YAW_GAIN, YAW_SPEED = 0.5, 0.08
"""Action per radian of error, and its largest size [rad]."""

HOVER, CARRY = 0.12, 0.07
"""Height above the grasp on the way to the block, and of the block's underside above the plate on the way there [m]."""

SLOPE = 3.0
"""Descent funnel: the height rises with the distance aside, up to `HOVER` or `CARRY`."""

FIRM_N = 8.0
"""Both pads press this hard before the block is lifted [N]."""


class PickPlaceExpert:
    """Goes down a funnel onto the block, grips, lifts, goes down a funnel onto the plate, lets go.

    A grasp that missed leaves the block outside of the closed fingers: it opens them, rises in the funnel and tries
    again, by the same rules.
    """

    def __init__(self, env: gym.Env) -> None:
        self._env: PickPlaceEnv = env.unwrapped  # type: ignore[assignment]

    def reset(self) -> None:
        """Start of an episode; nothing is remembered."""

    def act(self) -> np.ndarray:
        """(5,) action for this tick."""
        env = self._env
        if env.above_plate() < RESTING_HEIGHT:
            return _action(np.array([0.0, 0.0, 0.0 if env.grips() else 0.004]), 0.0, -1.0)
        if env.grips("distractor"):
            return _action(np.zeros(3), 0.0, -1.0)
        if env.pad_forces().min() > FIRM_N:
            return self._carry()
        return self._pick()

    def _pick(self) -> np.ndarray:
        block, tcp = self._env.block(), self._env.tcp()
        error = block - tcp
        aside, turn = np.linalg.norm(error[:2]), abs(error[3])
        funnel = np.clip(SLOPE * (aside - 0.005), 0, HOVER) + np.clip(0.15 * (turn - 0.1), 0, 0.05)
        between = aside < 0.010 and abs(error[2]) < 0.010
        shut = self._env.width() < scene.BLOCK + 0.017
        if shut and not between:  # closed on nothing: get out of the way first
            return _action(np.array([0.0, 0.0, 0.012]), 0.0, -1.0)
        move = np.append(error[:2], error[2] + funnel)
        closing = (shut and between) or (aside < 0.006 and abs(error[2]) < 0.006)
        return _action(GAIN * move, YAW_GAIN * error[3], 1.0 if closing else -1.0)

    def _carry(self) -> np.ndarray:
        offset = self._env.plate() - self._env.block()[:3]
        height = -offset[2] - scene.BLOCK / 2
        aside = np.linalg.norm(offset[:2])
        rise = np.clip(SLOPE * (aside - 0.012), -0.002, CARRY) - height
        freedom = np.clip(height / (0.6 * CARRY), 0.05, 1.0) if aside > 0.03 else 1.0
        along = GAIN * offset[:2]
        along *= freedom * min(1.0, TOP_SPEED / max(np.linalg.norm(along), 1e-9))
        return _action(np.append(along, GAIN * rise), 0.0, 1.0)


def _action(move: np.ndarray, turn: float, grip: float) -> np.ndarray:
    """Limits the speed and keeps the direction."""
    length = np.linalg.norm(move[:2])
    aside = move[:2] * min(1.0, TOP_SPEED / max(length, 1e-9))
    rise = np.clip(move[2], -0.014, 0.016)
    return np.array([*aside, rise, np.clip(turn, -YAW_SPEED, YAW_SPEED), grip], np.float32)
