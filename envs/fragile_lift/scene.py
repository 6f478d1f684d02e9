"""The fragile object on its foot, and what a gripper needs to hold it gently. Lengths in metres."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np

from envs.cell import control

MASS, FRICTION = (0.05, 0.4), (0.3, 1.0)
"""Lowest and highest mass [kg] and friction coefficient."""

SLIP_FORCE = (1.0, 4.0)
"""Only objects are drawn whose slip force [N] is between these: what a correction of a guessed grip can reach."""

CRUSH = 1.6
"""Crush force over slip force."""

GRAVITY = 9.81
"""[m/s²]"""

HALF = (0.015, 0.020, 0.037)
"""Half the sides of the object's body [m]; the fingers press on the sides across y."""

FOOT = (0.011, 0.016, 0.003)
"""Half the sides of the foot [m]. It slides easily, so that a finger that touches first pushes and does not crush."""

INERTIA = np.array([HALF[1] ** 2 + HALF[2] ** 2, HALF[0] ** 2 + HALF[2] ** 2, HALF[0] ** 2 + HALF[1] ** 2]) / 3
"""Of the body, per mass [m²]."""

GRASP = 0.052
"""Height of the fingertips' grasp above the object's underside [m]."""

GRIP_STIFFNESS, GRIP_DAMPING = 600.0, 60.0
"""Of each finger [N/m, N s/m], the damping on top of its joint's: fingers close without a knock, and a change of the
grip command by 0.01 changes the force by 0.12 N."""

SKIN_STIFFNESS = 1_144.0
"""Of the object's skin under a pad [N/m], as it follows from `SKIN`. Who looks at the gripper sees its own grip (1.7 mm
of width for a newton), and no object's secret."""

SKIN = np.array([200.0, 1.8])
"""Stiffness and damping of a contact times its inverse mass give `solref`. Soft and lightly damped, or else sliding
drives the pads apart; the same for every mass, or else the width of the closed gripper would tell it."""

LIFT_STIFFNESS, LIFT_DAMPING, LIFT_FORCE = 3000.0, 540.0, 60.0
"""Of the arm along z [N/m, N s/m, N]: more than the cell's, so that speed and position hardly tell the weight."""

BEIGE = (0.80, 0.70, 0.52, 1.0)


def add_object(spec: mujoco.MjSpec) -> None:
    """Adds body and free joint `object` (origin: centre of its underside) with geoms `object` and `foot`."""
    body = spec.worldbody.add_body(name="object", pos=[0.5, 0, 0])
    body.add_freejoint(name="object")
    middle = 2 * FOOT[2] + HALF[2]
    body.explicitinertial, body.ipos, body.mass, body.inertia = True, [0, 0, middle], 0.1, 0.1 * INERTIA
    body.add_geom(
        name="object",
        type=mujoco.mjtGeom.mjGEOM_BOX,
        size=HALF,
        pos=[0, 0, middle],
        rgba=BEIGE,
        priority=1,  # its friction counts, not the pads'
        friction=[0.5, 0.01, 0.0001],
        condim=4,
        solimp=[0.3, 0.3, 0.001, 0.5, 2],
    )
    body.add_geom(
        name="foot",
        type=mujoco.mjtGeom.mjGEOM_BOX,
        size=FOOT,
        pos=[0, 0, FOOT[2]],
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
        ("left_grip", GRIP_STIFFNESS, GRIP_DAMPING),
        ("right_grip", GRIP_STIFFNESS, GRIP_DAMPING),
        ("z", LIFT_STIFFNESS, LIFT_DAMPING),
    ):
        actuator = spec.actuator(name)
        actuator.gainprm[0] = stiffness
        actuator.biasprm[1:3] = [-stiffness, -damping]
    spec.actuator("z").forcerange = [-LIFT_FORCE, LIFT_FORCE]


def make_friction_exact(spec: mujoco.MjSpec) -> None:
    """Solver settings with which friction holds without creep up to the friction cone, and slides at its border."""
    spec.option.impratio = 1000.0
    spec.option.tolerance = 1e-10
    spec.option.iterations = spec.option.ls_iterations = 50


def draw_hidden(rng: np.random.Generator) -> tuple[float, float]:
    """Mass [kg] and friction, log-uniform over `MASS` and `FRICTION` among those with a slip force in `SLIP_FORCE`."""
    while True:
        mass, friction = np.exp(rng.uniform(*np.log([MASS, FRICTION]).T))
        if SLIP_FORCE[0] <= slip_force(mass, friction) <= SLIP_FORCE[1]:
            return float(mass), float(friction)


def set_hidden(model: mujoco.MjModel, data: mujoco.MjData, mass: float, friction: float) -> None:
    """Gives the object a mass [kg] and the friction coefficient between it and the pads; spoils the state `data`."""
    body = model.body("object")
    body.mass[0], body.inertia[:] = mass, mass * INERTIA
    mujoco.mj_setConst(model, data)
    inverse_mass = body.invweight0[0] + model.body("left_finger").invweight0[0]
    model.geom("object").friction[0] = friction
    model.geom("object").solref = -SKIN * inverse_mass
    mujoco.mj_resetData(model, data)


def slip_force(mass: Any, friction: Any) -> Any:
    """The least grip force of each of two fingers that holds a mass [kg] at rest: m g / (2 mu) [N]."""
    return mass * GRAVITY / (2 * friction)


def grip_command(force: float) -> float:
    """The grip action (-1 to 1) with which each finger presses the object with `force` [N]."""
    opening = HALF[1] - force / GRIP_STIFFNESS - force / SKIN_STIFFNESS
    return float(np.clip(1 - 2 * opening / (control.MAX_WIDTH / 2), -1, 1))
