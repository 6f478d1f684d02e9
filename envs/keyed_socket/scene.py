"""The plug and the keyed socket, in boxes.

Seen from above the socket is a square lip with a funnel and a square opening. Underneath, in the black, the floor
reaches under three sides and walls close them; on the open side the floor ends in a pocket 8 mm deeper, and there is no
wall. A plug pressed on the floor is not carried on the open side, so it pushes back with a torque that points there.
Lengths in mm.
"""

from __future__ import annotations

import mujoco
import numpy as np

FOOT, FOOT_HEIGHT = 12.0, 8.0
STEM, STEM_TOP, GRASP = 5.0, 60.0, 48.0
LIP_BOTTOM, LIP_TOP, OPENING, OUTER = 19.0, 23.0, 15.0, 55.0
FUNNEL_REACH, FUNNEL_SLOPE = 16.0, 0.7
FLOOR, POCKET_FLOOR, POCKET_EDGE, WALL, FAR_WALL = 9.0, 1.0, -3.0, 18.2, 24.5

BLACK = (0.0, 0.0, 0.0, 1.0)
GREY = (0.45, 0.47, 0.5, 1.0)
LIGHT = (0.75, 0.77, 0.8, 1.0)

Span = tuple[tuple[float, float], tuple[float, float], tuple[float, float]]


def add_socket(spec: mujoco.MjSpec) -> None:
    """Adds body `socket` (the lip) and, inside it, body `key` (what is hidden; its yaw chooses the open side)."""
    socket = spec.worldbody.add_body(name="socket", pos=[0.5, 0, 0])
    for span in _ring(OPENING + 1, OUTER, (LIP_BOTTOM, LIP_TOP)):  # the funnel ends inside: no ledge
        _box(socket, span, GREY)
    for span in _ring(OUTER - 2, OUTER, (0, LIP_BOTTOM)):
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
    for quarter in range(4):
        yaw = quarter * np.pi / 2
        turn, tilt, quat = np.array([np.cos(yaw / 2), 0, 0, np.sin(yaw / 2)]), np.zeros(4), np.zeros(4)
        mujoco.mju_axisAngle2Quat(tilt, np.array([0.0, 1.0, 0.0]), -FUNNEL_SLOPE)
        mujoco.mju_mulQuat(quat, turn, tilt)
        where = np.zeros(3)
        mujoco.mju_rotVecQuat(where, middle * 1e-3, turn)
        slope = _box(socket, ((-half, half), (-OPENING - 8, OPENING + 8), (-thick, thick)), LIGHT)
        slope.pos, slope.quat = where, quat


def add_plug(spec: mujoco.MjSpec) -> None:
    """Adds the free body `plug`; its origin is the centre of the foot's underside."""
    plug = spec.worldbody.add_body(name="plug")
    plug.add_freejoint(name="plug")
    blue = (0.15, 0.35, 0.8, 1.0)
    foot = _box(plug, ((-FOOT, FOOT), (-FOOT, FOOT), (0, FOOT_HEIGHT)), blue)
    stem = _box(plug, ((-STEM, STEM), (-STEM, STEM), (FOOT_HEIGHT, STEM_TOP)), blue)
    foot.mass, stem.mass = 0.03, 0.03
    foot.priority = stem.priority = 0


def add_contact_sensor(spec: mujoco.MjSpec) -> None:
    """Adds sensor `contact_force`: the net force between the socket and whatever touches it [N], base frame."""
    sensor = spec.add_sensor(name="contact_force", type=mujoco.mjtSensor.mjSENS_CONTACT)
    sensor.objtype, sensor.objname = mujoco.mjtObj.mjOBJ_XBODY, "socket"
    sensor.intprm = [1 << int(mujoco.mjtConDataField.mjCONDATA_FORCE), 3, 1]  # the force alone, summed over contacts


def _ring(inner: float, outer: float, z: tuple[float, float]) -> list[Span]:
    return [
        ((-outer, -inner), (-outer, outer), z),
        ((inner, outer), (-outer, outer), z),
        ((-inner, inner), (-outer, -inner), z),
        ((-inner, inner), (inner, outer), z),
    ]


def _box(body: mujoco.MjsBody, span: Span, rgba: tuple[float, ...]) -> mujoco.MjsGeom:
    low, high = np.array(span).T * 1e-3
    return body.add_geom(
        type=mujoco.mjtGeom.mjGEOM_BOX,
        pos=(low + high) / 2,
        size=(high - low) / 2,
        rgba=rgba,
        friction=[0.2, 0.005, 0.0001],
        priority=1,
        solref=[0.02, 2.0],  # soft and well damped: a stiff plug rocks in the gripper when it is pressed
    )
