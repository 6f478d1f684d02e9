"""The plug and the keyed socket, in boxes.

Seen from above the socket is a square lip with a funnel and a square opening. Underneath, in the black, the floor
reaches under three sides and walls close them; on the open side the floor ends in a pocket 8 mm deeper, and there is no
wall. A plug pressed on the floor is not carried on the open side, so it pushes back with a torque that points there.
Lengths in mm.
"""

from __future__ import annotations

import mujoco
import numpy as np

from envs.cell import boxes
from envs.cell.boxes import Span

FOOT, FOOT_HEIGHT = 12.0, 8.0
STEM, STEM_TOP, GRASP = 5.0, 60.0, 48.0
LIP_BOTTOM, LIP_TOP, OPENING, OUTER = 19.0, 23.0, 15.0, 55.0
FUNNEL_REACH, FUNNEL_SLOPE = 16.0, 0.7
FLOOR, POCKET_FLOOR, POCKET_EDGE, WALL, FAR_WALL = 9.0, 1.0, -3.0, 18.2, 24.5

BLACK = (0.0, 0.0, 0.0, 1.0)
GREY = (0.45, 0.47, 0.5, 1.0)
LIGHT = (0.75, 0.77, 0.8, 1.0)

CONTACT_DAMPING = 2.0
"""Damping ratio of all contacts. A stiff plug rocks in the gripper when it is pressed."""


def add_socket(spec: mujoco.MjSpec) -> None:
    """Adds body `socket` (the lip) and, inside it, body `key` (what is hidden; its yaw chooses the open side)."""
    socket = spec.worldbody.add_body(name="socket", pos=[0.5, 0, 0])
    for span in boxes.ring(OPENING + 1, OUTER, (LIP_BOTTOM, LIP_TOP)):  # the funnel ends inside: no ledge
        _box(socket, span, GREY)
    for span in boxes.ring(OUTER - 2, OUTER, (0, LIP_BOTTOM)):
        _box(socket, span, GREY)
    _add_funnel(socket)
    key = socket.add_body(name="key")
    reach = OUTER - 2
    _box(key, ((-reach, reach), (-reach, reach), (0, POCKET_FLOOR)), BLACK)
    _box(key, ((-reach, POCKET_EDGE), (-reach, reach), (POCKET_FLOOR, FLOOR)), BLACK)
    _box(key, ((-reach, -WALL), (-reach, reach), (FLOOR, LIP_BOTTOM)), BLACK)
    _box(key, ((-WALL, reach), (WALL, reach), (POCKET_FLOOR, LIP_BOTTOM)), BLACK)
    _box(key, ((-WALL, reach), (-reach, -WALL), (POCKET_FLOOR, LIP_BOTTOM)), BLACK)
    _box(key, ((FAR_WALL, reach), (-WALL, WALL), (POCKET_FLOOR, LIP_BOTTOM)), BLACK)


def _add_funnel(socket: mujoco.MjsBody) -> None:
    """Four slopes (`FUNNEL_SLOPE` rad) that lead a plug which comes down beside the opening into it."""
    along, up = np.cos(FUNNEL_SLOPE), np.sin(FUNNEL_SLOPE)
    thick = 1.5
    half = FUNNEL_REACH / 2
    middle = np.array([OPENING + along * half + up * thick, 0.0, LIP_TOP + up * half - along * thick])
    span = ((-half, half), (-OPENING - 8, OPENING + 8), (-thick, thick))
    boxes.slope_all_round([_box(socket, span, LIGHT) for _ in range(4)], middle, FUNNEL_SLOPE)


def add_plug(spec: mujoco.MjSpec) -> None:
    """Adds the free body `plug`; its origin is the centre of the foot's underside."""
    plug = spec.worldbody.add_body(name="plug")
    plug.add_freejoint(name="plug")
    blue = (0.15, 0.35, 0.8, 1.0)
    foot = _box(plug, ((-FOOT, FOOT), (-FOOT, FOOT), (0, FOOT_HEIGHT)), blue)
    stem = _box(plug, ((-STEM, STEM), (-STEM, STEM), (FOOT_HEIGHT, STEM_TOP)), blue)
    foot.mass, stem.mass = 0.03, 0.03
    foot.priority = stem.priority = 0


def _box(body: mujoco.MjsBody, span: Span, rgba: tuple[float, ...]) -> mujoco.MjsGeom:
    return boxes.box(body, span, rgba, CONTACT_DAMPING)
