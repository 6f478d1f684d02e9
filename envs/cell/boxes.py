"""Fixtures out of boxes, as the contact tasks need them. Lengths in mm."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np

Span = tuple[tuple[float, float], tuple[float, float], tuple[float, float]]
"""Lowest and highest x, y and z."""


def ring(inner: float, outer: float, z: tuple[float, float]) -> list[Span]:
    """Four spans around a square opening; `inner` and `outer` are half the sides."""
    return [
        ((-outer, -inner), (-outer, outer), z),
        ((inner, outer), (-outer, outer), z),
        ((-inner, inner), (-outer, -inner), z),
        ((-inner, inner), (inner, outer), z),
    ]


def box(body: mujoco.MjsBody, span: Span, rgba: tuple[float, ...], damping: float) -> mujoco.MjsGeom:
    """Adds a slippery box with soft contacts; `damping` is their damping ratio."""
    low, high = np.array(span).T * 1e-3
    return body.add_geom(
        type=mujoco.mjtGeom.mjGEOM_BOX,
        pos=(low + high) / 2,
        size=(high - low) / 2,
        rgba=rgba,
        friction=[0.2, 0.005, 0.0001],
        priority=1,
        solref=[0.02, damping],
    )


def slope_all_round(slopes: list[Any], middle: np.ndarray, angle: float) -> None:
    """Leans four boxes towards the vertical through the body's origin.

    Args:
        slopes: made around the origin, one for each quarter turn.
        middle: (3,) where the middle of the first one goes, on the x side [mm].
        angle: of the lean [rad].
    """
    for quarter, slope in enumerate(slopes):
        yaw = quarter * np.pi / 2
        turn, tilt, quat = np.array([np.cos(yaw / 2), 0, 0, np.sin(yaw / 2)]), np.zeros(4), np.zeros(4)
        mujoco.mju_axisAngle2Quat(tilt, np.array([0.0, 1.0, 0.0]), -angle)
        mujoco.mju_mulQuat(quat, turn, tilt)
        where = np.zeros(3)
        mujoco.mju_rotVecQuat(where, middle * 1e-3, turn)
        slope.pos, slope.quat = where, quat


def add_contact_sensor(spec: mujoco.MjSpec, body: str) -> None:
    """Adds sensor `contact_force`: the net force between a body and whatever touches it [N], base frame."""
    sensor = spec.add_sensor(name="contact_force", type=mujoco.mjtSensor.mjSENS_CONTACT)
    sensor.objtype, sensor.objname = mujoco.mjtObj.mjOBJ_XBODY, body
    sensor.intprm = [1 << int(mujoco.mjtConDataField.mjCONDATA_FORCE), 3, 1]  # the force alone, summed over contacts
