"""The fragile object on its foot, and what a gripper needs to hold it gently. Lengths in metres."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np

from envs.cell import control

MASS, FRICTION = (0.05, 0.4), (0.3, 1.0)
"""Lowest and highest mass [kg] and friction coefficient."""

SLIP_FORCE = (0.8, 3.2)
"""Only objects are drawn whose slip force [N] is between these: what a correction of a guessed grip can reach."""

CRUSH = 1.6
"""Crush force over slip force."""

GRAVITY = 9.81
"""[m/s²]"""

HALF = (0.015, 0.020, 0.037)
"""Half the sides of the object's body [m]; the fingers press on the sides across y."""

FOOT = (0.011, 0.016, 0.003)
"""Half the sides of the foot [m]. It slides easily, so that a finger that touches first pushes and does not crush."""

GRASP = 0.052
"""Height of the fingertips' grasp above the object's underside [m]."""

GRIP_STIFFNESS = 600.0
"""Of each finger [N/m]: a change of the grip command by 0.01 changes its force by 0.12 N."""

SKIN_STIFFNESS = 17_000.0
"""Of the object's skin under a pad [N/m], about: follows from its `solref` and `solimp`, and a little from its mass."""

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
        solref=[-10_000.0, -30.0],  # with more damping, sliding drives the pads apart
        solimp=[0.7, 0.7, 0.001, 0.5, 2],
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
        sensor.intprm = [1 << int(mujoco.mjtConDataField.mjCONDATA_FORCE), 3, 1]  # the force alone, summed


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


def make_contacts_hold(spec: mujoco.MjSpec) -> None:
    """Solver settings with which an object gripped just above its slip force does not creep, and no force spikes."""
    spec.option.noslip_iterations = 10
    spec.option.impratio = 1.0


def draw_hidden(rng: np.random.Generator) -> tuple[float, float]:
    """Mass [kg] and friction, log-uniform over `MASS` and `FRICTION` among those with a slip force in `SLIP_FORCE`."""
    while True:
        mass, friction = np.exp(rng.uniform(*np.log([MASS, FRICTION]).T))
        if SLIP_FORCE[0] <= slip_force(mass, friction) <= SLIP_FORCE[1]:
            return float(mass), float(friction)


def set_hidden(model: mujoco.MjModel, data: mujoco.MjData, mass: float, friction: float) -> None:
    """Gives the object a mass [kg] and the friction coefficient between it and the pads; spoils the state `data`."""
    body = model.body("object")
    body.inertia[:] *= mass / body.mass[0]
    body.mass[0] = mass
    model.geom("object").friction[0] = friction
    mujoco.mj_setConst(model, data)
    mujoco.mj_resetData(model, data)


def slip_force(mass: Any, friction: Any) -> Any:
    """The least grip force of each of two fingers that holds a mass [kg] at rest: m g / (2 mu) [N]."""
    return mass * GRAVITY / (2 * friction)


def grip_command(force: float) -> float:
    """The grip action (-1 to 1) with which each finger presses the object with `force` [N]."""
    opening = HALF[1] - force / GRIP_STIFFNESS - force / SKIN_STIFFNESS
    return float(np.clip(1 - 2 * opening / (control.MAX_WIDTH / 2), -1, 1))
