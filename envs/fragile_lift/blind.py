"""The best that can be done without touch: one grip force for every object."""

from __future__ import annotations

from functools import cache

import numpy as np

from envs.fragile_lift import scene
from envs.fragile_lift.expert import FragileLiftExpert

POINTS = 1000
"""Points of the quadrature along mass and along friction."""


def slip_forces() -> np.ndarray:
    """(N,) ascending, equally likely slip forces of the objects that `scene.draw_hidden` draws [N]."""
    share = (np.arange(POINTS) + 0.5) / POINTS
    low, high = np.log([scene.MASS, scene.FRICTION]).T[..., None]
    masses, frictions = np.exp(low + share * (high - low))
    forces = np.sort(scene.slip_force(masses[:, None], frictions), axis=None)
    return forces[(forces >= scene.SLIP_FORCE[0]) & (forces <= scene.SLIP_FORCE[1])]


def success_rate(grip: np.ndarray) -> np.ndarray:
    """Share of objects that a constant grip force [N] neither lets slip nor crushes."""
    forces = slip_forces()
    held = np.searchsorted(forces, grip, side="right")
    crushed = np.searchsorted(forces, np.asarray(grip) / scene.CRUSH)
    return (held - crushed) / len(forces)


@cache
def best_constant_grip() -> tuple[float, float]:
    """The constant grip force [N] that lifts the largest share of objects, and that share.

    Forces over a wide span are equally good; it is the middle one.
    """
    grips = np.geomspace(scene.SLIP_FORCE[0], scene.CRUSH * scene.SLIP_FORCE[1], 2000)
    rates = success_rate(grips)
    best = float(rates.max())
    return float(np.median(grips[rates > best - 1e-3])), best


class BlindGrip(FragileLiftExpert):
    """The expert's motion with the best constant grip and a middling object in mind: it knows no object's secret."""

    def grip_force(self) -> float:
        """The best constant grip [N]."""
        return best_constant_grip()[0]

    def weight(self) -> float:
        """The middle of all weights [N]."""
        return float(np.sqrt(scene.MASS[0] * scene.MASS[1])) * scene.GRAVITY

    def friction(self) -> float:
        """The middle of all friction coefficients."""
        return float(np.sqrt(scene.FRICTION[0] * scene.FRICTION[1]))
