"""The scripted expert: knows how the peg sits, and shows the careful motion that a person would."""

from __future__ import annotations

import gymnasium as gym
import numpy as np

from envs.occluded_peg import scene
from envs.occluded_peg.env import ENTERED, OccludedPegEnv

HOVER = 0.010
"""Height of the tip above the post while it looks for the hole [m]."""

SIDEWAYS, DESCENT, LANDING = 0.004, 0.004, 0.0010
"""Largest sideways and downward commands in the air, and the downward one near the post [m]."""

PRESS_N, PRESS_STEPS = 2.2, 9
"""Force and length [decisions] of the press that reads the touch."""

SLIDE = 0.002
"""Sideways command when it corrects [m]: 2 N, of which friction takes about 0.6 N."""

BRAKE = 0.0012
"""Distance from the hole below which it slides more slowly [m]."""

TURN = 0.010
"""Largest change of yaw in a command [rad]."""

INSERT_N = 3.0
"""Force of the insertion [N]."""


class OccludedPegExpert:
    """Holds the hood over the post, comes down, presses, slides the tip to the hole while pressing, inserts."""

    def __init__(self, env: gym.Env) -> None:
        self._env: OccludedPegEnv = env.unwrapped  # type: ignore[assignment]
        self.reset()

    def reset(self) -> None:
        """Start of an episode."""
        self._pressed = 0

    def act(self) -> np.ndarray:
        """(5,) action for this tick."""
        if not self._env.touched:
            return self._approach()
        self._pressed += 1
        if self._pressed <= PRESS_STEPS:
            return action(np.zeros(2), PRESS_N, 0.0)
        return self._correct()

    def _landing(self) -> np.ndarray:
        """(2,) where to touch the post, as `OccludedPegEnv.aim`: over the hole."""
        return np.zeros(2)

    def _approach(self) -> np.ndarray:
        """Looks for the hole at a height, and goes down in the measure that it is above it."""
        aim = self._env.aim()
        aim[:2] -= self._landing()
        centred = np.clip(1.5 - np.abs(aim[:2]).max() / 0.002, 0.0, 1.0)
        down = -LANDING if aim[2] < 0.005 else -DESCENT
        hover = np.clip(0.5 * (HOVER - aim[2]), -0.006, 0.006)
        sideways = np.clip(-aim[:2], -SIDEWAYS, SIDEWAYS)
        return np.array([*sideways, centred * down + (1 - centred) * hover, 0.0, 1.0], np.float32)

    def _correct(self) -> np.ndarray:
        tip = self._env.tip()
        turn = float(np.clip(-self._env.yaw(), -TURN, TURN))
        if tip[2] < -ENTERED:
            return action(np.clip(-tip[:2], -0.001, 0.001), INSERT_N, turn)
        distance = float(np.linalg.norm(tip[:2]))
        return action(-tip[:2] * SLIDE / max(distance, BRAKE), PRESS_N, turn)


def action(sideways: np.ndarray, force: float, turn: float) -> np.ndarray:
    """(5,) an action that presses down.

    Args:
        sideways: (2,) command along x and y [m].
        force: downward [N].
        turn: change of yaw [rad].
    """
    return np.array([*sideways, -force / scene.Z_STIFFNESS, turn, 1.0], np.float32)
