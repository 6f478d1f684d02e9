"""The fragile object on its foot, and what a gripper needs to hold it gently. Lengths in metres."""

from __future__ import annotations

import mujoco
import numpy as np

HALF = (0.015, 0.020, 0.037)
"""Half the sides of the object's body [m]; the fingers press on the sides across y."""

FOOT = (0.011, 0.016, 0.003)
"""Half the sides of the foot [m]. It slides easily, so that a finger that touches first pushes and does not crush."""

GRASP = 0.052
"""Height of the fingertips' grasp above the object's underside [m]."""

GRIP_STIFFNESS = 600.0
"""Of each finger [N/m]; the damping of its joint stays as it is: a change of the grip command by 0.01 changes the grip force by 0.12 N."""

LIFT_STIFFNESS, LIFT_DAMPING = 3000.0, 270.0
"""Of the arm along z [N/m, N s/m]: three times the cell's, so that a load of 4 N costs 1.3 mm of command, not 4 mm."""

BEIGE = (0.80, 0.70, 0.52, 1.0)


def add_object(spec: mujoco.MjSpec) -> None:
    """Adds body and free joint `object` (origin: centre of its underside) with geoms `object` and `foot`."""
    body = spec.worldbody.add_body(name="object", pos=[0.5, 0, 0])
    body.add_freejoint(name="object")
    middle = 2 * FOOT[2] + HALF[2]
    body.add_geom(
        name="object",
        type=mujoco.mjtGeom.mjGEOM_BOX,
        size=HALF,
        pos=[0, 0, middle],
        mass=0.1,
        rgba=BEIGE,
        priority=1,  # its friction counts, not the pads'
        friction=[0.5, 0.01, 0.0001],
        condim=4,
        solref=[0.01, 1.0],
        solimp=[0.95, 0.99, 0.001, 0.5, 2],
    )
    body.add_geom(
        name="foot",
        type=mujoco.mjtGeom.mjGEOM_BOX,
        size=FOOT,
        pos=[0, 0, FOOT[2]],
        mass=0.0,
        rgba=BEIGE,
        priority=2,
        friction=[0.15, 0.005, 0.0001],
        solref=[0.01, 1.0],
    )


def add_grip_sensors(spec: mujoco.MjSpec) -> None:
    """Adds sensors `left_grip` and `right_grip`: the force of each pad on the object [N], base frame."""
    for pad in ("left", "right"):
        sensor = spec.add_sensor(name=f"{pad}_grip", type=mujoco.mjtSensor.mjSENS_CONTACT)
        sensor.objtype, sensor.objname = mujoco.mjtObj.mjOBJ_GEOM, f"{pad}_pad"
        sensor.reftype, sensor.refname = mujoco.mjtObj.mjOBJ_GEOM, "object"
        sensor.intprm = [1 << int(mujoco.mjtConDataField.mjCONDATA_FORCE), 3, 1]  # the force alone, summed over contacts


def soften(spec: mujoco.MjSpec) -> None:
    """Makes the fingers compliant, so that the grip command is a fine force command, and the arm stiff along z."""
    for name, stiffness, damping in (
        ("left_grip", GRIP_STIFFNESS, 0.0),  # the finger joints have their own damping
        ("right_grip", GRIP_STIFFNESS, 0.0),
        ("z", LIFT_STIFFNESS, LIFT_DAMPING),
    ):
        actuator = spec.actuator(name)
        actuator.gainprm[0] = stiffness
        actuator.biasprm[1:3] = [-stiffness, -damping]


def set_hidden(model: mujoco.MjModel, data: mujoco.MjData, mass: float, friction: float) -> None:
    """Gives the object a mass [kg] and the friction coefficient between it and the pads; `data` is spoilt."""
    body = model.body("object")
    body.inertia[:] *= mass / body.mass[0]
    body.mass[0] = mass
    model.geom("object").friction[0] = friction
    mujoco.mj_setConst(model, data)


def slip_force(mass: float | np.ndarray, friction: float | np.ndarray) -> float | np.ndarray:
    """The least grip force of each of two fingers that holds a mass [N]: m g / (2 mu)."""
    return mass * 9.81 / (2 * friction)


def grip_command(force: float) -> float:
    """The grip action whose fingers press with `force` [N] on the object."""
    opening = HALF[1] - force / GRIP_STIFFNESS
    return float(np.clip(1 - opening / 0.02, -1, 1))
