"""The scripted expert: knows how hard to grip, and shows the careful motion that a person would."""

from __future__ import annotations

import gymnasium as gym
import numpy as np

from envs.fragile_lift import scene
from envs.fragile_lift.env import FragileLiftEnv

GAIN, TOP_SPEED = 0.8, 0.020
"""Action per metre of error on the way to the object, and its largest size along each axis [m]."""

HOVER, SLOPE = 0.055, 6.0
"""Height above the grasp at which it looks for the middle [m], and how steeply it comes down towards it."""

LIGHT_N = 1.0
"""Grip force of the first touch [N]: breaks nothing."""

TIGHTEN = 1.16
"""Growth of the grip force in a decision, while the fingers creep up along the object."""

MARGIN = 1.25
"""Grip force of the lift over the slip force."""

CREEP, CARRY, HASTE = 0.003, 0.06, 4.0
"""Speed of the lift at the table and at the most [m/s], and how it grows with height [1/s]."""

LAG_S = scene.LIFT_DAMPING / scene.LIFT_STIFFNESS + 0.025
"""Command along z per speed [s]: the damper, and half a decision on which the spring relaxes."""


class FragileLiftExpert:
    """Comes down around the object, grips lightly, tightens while it creeps up, and lifts faster once the object rises.

    Until the grip holds, the fingers slide by two millimetres or so: that is where friction, and what it takes to hold,
    can be felt. Every action follows from the present state alone.
    """

    def __init__(self, env: gym.Env) -> None:
        self._env: FragileLiftEnv = env.unwrapped  # type: ignore[assignment]

    def reset(self) -> None:
        """Start of an episode; nothing is remembered."""

    def grip_force(self) -> float:
        """What to lift with [N]."""
        return MARGIN * self._env.slip_force()

    def weight(self) -> float:
        """The weight to expect [N]."""
        return self._env.mass * scene.GRAVITY

    def friction(self) -> float:
        """The friction coefficient to expect."""
        return self._env.friction

    def act(self) -> np.ndarray:
        """(5,) action for this tick."""
        held = float(self._env.grip_forces().min())
        if held < 0.6 * LIGHT_N:
            return self._reach()
        grip = scene.grip_command(min(self.grip_force(), max(held, LIGHT_N) * TIGHTEN))
        load = min(self.weight(), 2 * self.friction() * held)
        speed = min(CREEP + HASTE * max(self._env.height(), 0.0), CARRY)
        return np.array([0, 0, load / scene.LIFT_STIFFNESS + LAG_S * speed, 0, grip], np.float32)

    def _reach(self) -> np.ndarray:
        offset = self._env.offset()
        aside = float(np.linalg.norm(offset[:2]))
        around = aside < 0.003 and abs(offset[2]) < 0.003
        rise = offset[2] + np.clip(SLOPE * (aside - 0.003), 0, HOVER)
        move = np.clip(GAIN * np.append(offset[:2], rise), -TOP_SPEED, TOP_SPEED)
        return np.array([*move, 0, scene.grip_command(LIGHT_N) if around else -1.0], np.float32)
