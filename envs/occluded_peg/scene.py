"""The hooded peg and the post with the hole, in boxes.

The gripper holds a holder by its stem. A hood on the holder reaches below the tip of the square peg inside, so that no
camera sees where the peg sits. The hole is in the top of a post that the hood goes around, and has a chamfer. The peg
sits on a hinge about the vertical with a spring, so that the chamfer can turn it a little. Lengths in mm.
"""

from __future__ import annotations

import mujoco
import numpy as np

from envs.cell import boxes
from envs.cell.boxes import Span

PEG, CLEARANCE = 5.0, 0.5
"""Half the side of the peg, and by how much the hole is wider than the peg."""

HOLE = PEG + CLEARANCE / 2
CHAMFER = 0.75
POST, POST_TOP, HOLE_FLOOR = 14.0, 30.0, 8.0
PLATE, PLATE_TOP = 55.0, 6.0
HOOD, HOOD_WALL, HOOD_BOTTOM, HOOD_TOP = 25.0, 2.0, -3.0, 19.0
"""Half the outer side of the hood; heights above the tip of the peg."""

STEM, STEM_TOP, GRASP = 5.0, 60.0, 48.0

HINGE_STIFFNESS, HINGE_DAMPING = 1.0, 0.01
"""Of the peg's hinge [N·m/rad, N·m s/rad]."""

Z_STIFFNESS, Z_DAMPING = 2000.0, 180.0
"""Of the arm along z [N/m, N s/m]: twice the cell's."""

STEEL = (0.45, 0.47, 0.5, 1.0)
BLUE = (0.15, 0.35, 0.8, 1.0)
ORANGE = (0.9, 0.5, 0.15, 1.0)
BLACK = (0.0, 0.0, 0.0, 1.0)

CONTACT_DAMPING = 1.5
"""Damping ratio of all contacts."""


def add_post(spec: mujoco.MjSpec) -> None:
    """Adds body `post`; its origin is on the table, below the middle of the hole."""
    post = spec.worldbody.add_body(name="post", pos=[0.5, 0, 0])
    _box(post, ((-PLATE, PLATE), (-PLATE, PLATE), (0, PLATE_TOP)), STEEL)
    _box(post, ((-POST, POST), (-POST, POST), (PLATE_TOP, HOLE_FLOOR)), ORANGE)
    for span in boxes.ring(HOLE, POST, (HOLE_FLOOR, POST_TOP - CHAMFER)):
        _box(post, span, ORANGE)
    for span in boxes.ring(HOLE + CHAMFER, POST, (POST_TOP - CHAMFER, POST_TOP)):
        _box(post, span, ORANGE)
    _add_chamfer(post)


def _add_chamfer(post: mujoco.MjsBody) -> None:
    """Four slopes of 45 degrees from the hole's walls to the top of the post."""
    half, thick = CHAMFER / np.sqrt(2), 0.5
    inward = thick / np.sqrt(2)
    middle = np.array([HOLE + CHAMFER / 2 + inward, 0.0, POST_TOP - CHAMFER / 2 - inward])
    reach = HOLE + CHAMFER
    span = ((-half, half), (-reach, reach), (-thick, thick))
    boxes.slope_all_round([_box(post, span, BLACK) for _ in range(4)], middle, np.pi / 4)


def add_holder(spec: mujoco.MjSpec) -> None:
    """Adds the free body `holder` and in it body `peg`, on hinge `peg_yaw`.

    The origin of `holder` is where the middle of the tip is when the peg sits straight; the origin of `peg` is the
    middle of its tip.
    """
    holder = spec.worldbody.add_body(name="holder", gravcomp=1.0)
    holder.add_freejoint(name="holder")
    stem = _box(holder, ((-STEM, STEM), (-STEM, STEM), (HOOD_TOP, STEM_TOP)), BLUE)
    lid = _box(holder, ((-HOOD, HOOD), (-HOOD, HOOD), (HOOD_TOP, HOOD_TOP + 2)), BLUE)
    stem.mass, lid.mass = 0.1, 0.06
    for span in boxes.ring(HOOD - HOOD_WALL, HOOD, (HOOD_BOTTOM, HOOD_TOP)):
        _box(holder, span, BLUE).mass = 0.01
    peg = holder.add_body(name="peg", gravcomp=1.0)
    hinge = peg.add_joint(name="peg_yaw", type=mujoco.mjtJoint.mjJNT_HINGE, axis=[0, 0, 1])
    hinge.armature = 1e-5
    _box(peg, ((-PEG, PEG), (-PEG, PEG), (0, HOOD_TOP)), BLACK).mass = 0.02
    for body in (holder, peg):
        for geom in body.geoms:
            geom.priority = 0


def soften_hinge(model: mujoco.MjModel) -> None:
    """Gives the peg's hinge its spring and damper."""
    joint = model.joint("peg_yaw")
    joint.stiffness[0], joint.damping[0] = HINGE_STIFFNESS, HINGE_DAMPING


def stiffen(spec: mujoco.MjSpec) -> None:
    """Makes the arm stiff along z."""
    actuator = spec.actuator("z")
    actuator.gainprm[0] = Z_STIFFNESS
    actuator.biasprm[1:3] = [-Z_STIFFNESS, -Z_DAMPING]


def solve_exactly(spec: mujoco.MjSpec) -> None:
    """Solver settings with which the holder does not slip in the gripper for want of iterations."""
    spec.option.tolerance = 1e-10
    spec.option.iterations = spec.option.ls_iterations = 50


def _box(body: mujoco.MjsBody, span: Span, rgba: tuple[float, ...]) -> mujoco.MjsGeom:
    return boxes.box(body, span, rgba, CONTACT_DAMPING)
