"""The scripted expert: sees the hidden side, and shows the careful motion that a person would."""

from __future__ import annotations

import gymnasium as gym
import numpy as np

from envs.cell import control
from envs.keyed_socket import scene
from envs.keyed_socket.env import DIRECTIONS, KeyedSocketEnv

PRESS_N = 5.0
PRESS_STEPS = 5
"""Decisions spent pressing before the slide: long enough to read the torque."""

SIDEWAYS = 0.004
"""Sideways command when looking for the centre [m]: 30 mm/s in the air."""

SLIDE = 0.003
"""Sideways command when sliding [m]: 3 N, of which friction takes about 1 N."""

LIP = (scene.LIP_TOP - scene.FLOOR) * 1e-3
HOVER = LIP + 0.018
"""Height of the foot above the socket's floor while it looks for the centre [m]."""


BESIDE = (0.0045, 0.011)
"""A foot that rests so far off the centre, and so far above the floor [m], rests on the lip or the funnel."""

LIFT = 0.006
"""Upward command to come off the lip [m]."""


class KeyedSocketExpert:
    """Centre above the opening, lower until the foot rests, press, slide to the open side while pressing.

    If something left the foot on the lip, it comes off that first.
    """

    def __init__(self, env: gym.Env) -> None:
        self._env: KeyedSocketEnv = env.unwrapped  # type: ignore[assignment]
        self.reset()

    def reset(self) -> None:
        """Start of an episode."""
        self._pressed = 0

    def act(self) -> np.ndarray:
        """(5,) action for this tick."""
        offset = self._env.displacement()
        touches = self._env.contact_force() >= 1.0
        if touches and offset[2] > BESIDE[1] and np.abs(offset[:2]).max() > BESIDE[0]:
            self._pressed = 0
            return np.array([0.0, 0.0, LIFT, 0.0, 1.0], np.float32)
        if self._pressed == 0 and not touches:
            return self._approach(offset)
        self._pressed += 1
        return self._press(offset)

    def _approach(self, offset: np.ndarray) -> np.ndarray:
        """Looks for the centre at a height, and goes down in the measure that it is found."""
        centred = np.clip(1.5 - np.abs(offset[:2]).max() / 0.005, 0.0, 1.0)
        down = -0.003 if offset[2] < LIP else -0.005
        hover = np.clip(0.5 * (HOVER - offset[2]), -0.006, 0.006) if offset[2] > LIP else 0.0
        sideways = np.clip(-offset[:2], -SIDEWAYS, SIDEWAYS)
        return np.array([*sideways, centred * down + (1 - centred) * hover, 0.0, 1.0], np.float32)

    def _press(self, offset: np.ndarray) -> np.ndarray:
        force = PRESS_N * min(1.0, 0.4 + 0.2 * self._pressed)
        sideways = np.zeros(2)
        if self._pressed > PRESS_STEPS:
            along = self._towards(offset)
            across = offset[:2] - (offset[:2] @ along) * along
            sideways = SLIDE * along - np.clip(across, -0.003, 0.003)
        return np.array([*sideways, -force / control.STIFFNESS, 0.0, 1.0], np.float32)

    def _towards(self, offset: np.ndarray) -> np.ndarray:
        """(2,) where to slide: the open side."""
        return DIRECTIONS[self._env._side]


class BlindSearch(KeyedSocketExpert):
    """The same motion to sides in a random order: pushes to one, and if it stays closed, goes on to the next."""

    PATIENCE = 20
    """Decisions spent on a side; the open one takes about 10."""

    def __init__(self, env: gym.Env) -> None:
        self._rng = np.random.default_rng(0)
        super().__init__(env)

    def reset(self) -> None:
        """Start of an episode; draws another order."""
        super().reset()
        self._order = self._rng.permutation(len(DIRECTIONS))

    def _towards(self, offset: np.ndarray) -> np.ndarray:
        slid = self._pressed - PRESS_STEPS
        side, spent = divmod(slid, 2 * self.PATIENCE)
        if spent < self.PATIENCE:
            return DIRECTIONS[self._order[side % len(DIRECTIONS)]]
        return -np.clip(offset[:2] / SLIDE, -1.0, 1.0)  # back to the centre first
