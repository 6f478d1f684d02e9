"""What can be had without touch: a search along a path that was chosen beforehand, and how much the best one finds."""

from __future__ import annotations

import gymnasium as gym
import numpy as np

from envs.occluded_peg import scene
from envs.occluded_peg.env import ENTERED, MAX_DRAG, OFFSET, TURN
from envs.occluded_peg.expert import INSERT_N, PRESS_N, PRESS_STEPS, SIDEWAYS, OccludedPegExpert, action

STRIDE = 0.0004
"""How far the search moves on in a decision [m]: slowly enough to fall into the hole."""

OVERSHOOT = 0.0015
"""How much longer the path is, since friction holds the tip back [m]."""

POINTS = 1000
"""Points of the average over the peg's yaw."""


def capture(yaw: np.ndarray) -> np.ndarray:
    """How far aside along x and y the tip of a peg turned by `yaw` [rad] may be for the chamfer to catch it [m]."""
    turned = scene.PEG * (np.abs(np.cos(yaw)) + np.abs(np.sin(yaw)) - 1.0)
    return np.clip(scene.HOLE + scene.CHAMFER - scene.PEG - turned, 0.0, None) * 1e-3


def best_search() -> float:
    """The largest share of pegs that a path over the post of `MAX_DRAG` can find.

    A path finds the offsets within the capture square of one of its points. A path of length L sweeps at most
    w² + L d, w being the side and d the diagonal of the square; a straight path along the diagonal does.
    """
    side = 2 * capture(TURN * (np.arange(POINTS) + 0.5) / POINTS)
    found = (side**2 + MAX_DRAG * np.sqrt(2) * side) / (2 * OFFSET) ** 2
    return float(np.minimum(found, 1.0).mean())


class Sweep(OccludedPegExpert):
    """The expert's motion along a straight diagonal path: it knows no peg's secret. The best blind search."""

    def __init__(self, env: gym.Env) -> None:
        self._path = self.path()
        super().__init__(env)

    def path(self) -> np.ndarray:
        """(N,2) where to press one after the other, as `OccludedPegEnv.aim` [m]."""
        steps = np.arange(0.0, MAX_DRAG + OVERSHOOT, STRIDE) - MAX_DRAG / 2
        return np.stack([steps, steps], axis=1) / np.sqrt(2)

    def _landing(self) -> np.ndarray:
        return self._path[0]

    def _correct(self) -> np.ndarray:
        aim = self._env.aim()
        if self._env.tip()[2] < -ENTERED:  # the arm's height tells it, too
            return action(np.zeros(2), INSERT_N, 0.0)
        goal = self._path[min(self._pressed - PRESS_STEPS, len(self._path) - 1)]
        return action(np.clip(4 * (goal - aim[:2]), -SIDEWAYS, SIDEWAYS), PRESS_N, 0.0)


class SpiralSearch(Sweep):
    """The same along a spiral around the middle."""

    def path(self) -> np.ndarray:
        """(N,2) an Archimedean spiral whose turns are as far apart as the capture square is wide [m]."""
        pitch = 2 * float(capture(np.array(TURN / 2))) / (2 * np.pi)
        angle, points = 0.0, []
        while pitch * angle < np.sqrt(2) * OFFSET:
            points.append([pitch * angle * np.cos(angle), pitch * angle * np.sin(angle)])
            angle += STRIDE / (pitch * np.sqrt(1 + angle**2))
        return np.array(points)
