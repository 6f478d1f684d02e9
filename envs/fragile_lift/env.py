"""Lift gently: how hard to grip can only be felt."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np

from envs.cell import control
from envs.cell.env import CellEnv, Judgement
from envs.fragile_lift import scene

TIME_LIMIT = 160
"""Decisions in an episode: 8 s."""

LIFT = 0.10
"""Height of a lifted object's underside [m]."""

MAX_SLIP = 0.005
"""How far the object may slide in the fingers, all in all [m]."""

TOUCH_N = 0.05
"""A pad that presses harder than this touches the object [N]."""

IN_THE_AIR = 0.002
"""An object this high no longer stands on the table [m]."""

UPRIGHT, NEAR = 0.9, 0.1
"""Cosine of the tilt, and distance from the start [m], beyond which an object is knocked over."""


class FragileLiftEnv(CellEnv):
    """The object stands below the open gripper. Success: 10 cm up, slid less than 5 mm in the fingers, not crushed.

    Every object breaks at `scene.CRUSH` times the grip force that just holds it. `peak_force` is the largest force of
    either finger across the object [N], at 100 Hz. `info` gives "hidden" (mass [kg] and friction), "slip_force" and
    "crush_force" [N], "slip" [m] and "failure":

    - "crushed": a finger pressed harder than the crush force.
    - "slipped": it slid 5 mm or more while both fingers pressed on it, to and fro added up.
    - "dropped": it was in the air and a finger let go.
    - "knocked over": tilted or pushed away.
    - "not lifted": none of these, but time was up.
    """

    time_limit = TIME_LIMIT

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.mass, self.friction = 0.1, 0.5
        self.slip = 0.0
        self._place = np.zeros(2)
        self._grasp_depth: float | None = None
        self._in_the_air = False

    def build(self, spec: mujoco.MjSpec) -> None:
        """Adds the object and the grip sensors; fingers become compliant, the arm stiff along z."""
        scene.add_object(spec)
        scene.add_grip_sensors(spec)
        scene.soften(spec)
        scene.make_friction_exact(spec)

    def place(self) -> None:
        """Draws mass and friction, the object's place (±30 mm) and the start of the arm (±15 mm, 50 to 80 mm above)."""
        rng = self.np_random
        self.mass, self.friction = scene.draw_hidden(rng)
        scene.set_hidden(self.model, self.data, self.mass, self.friction)
        self.slip = 0.0
        self._grasp_depth, self._in_the_air = None, False
        self._place = np.array([0.5, 0.0]) + rng.uniform(-0.03, 0.03, 2)
        start = np.append(self._place + rng.uniform(-0.015, 0.015, 2), scene.GRASP + rng.uniform(0.05, 0.08))
        control.solve_pose(self.model, self.data, start)
        self.data.qpos[7:9] = self.data.ctrl[6:8] = control.MAX_WIDTH / 2
        self.data.joint("object").qpos = [*self._place, 0, 1, 0, 0, 0]
        mujoco.mj_forward(self.model, self.data)
        self.settle(2)

    def slip_force(self) -> float:
        """The grip force of each finger that just holds the object [N]."""
        return float(scene.slip_force(self.mass, self.friction))

    def crush_force(self) -> float:
        """The grip force that breaks the object [N]."""
        return scene.CRUSH * self.slip_force()

    def grip_forces(self) -> np.ndarray:
        """(2,) how hard the left and the right finger press across the object [N]."""
        across = self.data.site("tcp").xmat.reshape(3, 3)[:, 1]
        return np.abs([self.data.sensor(f"{pad}_grip").data @ across for pad in ("left", "right")])

    def contact_force(self) -> float:
        """The force of the harder pressing finger across the object right now [N]."""
        return float(self.grip_forces().max())

    def offset(self) -> np.ndarray:
        """(3,) from the tcp to where the object should be gripped [m], base frame."""
        return self.data.body("object").xpos + np.array([0, 0, scene.GRASP]) - self.data.site("tcp").xpos

    def height(self) -> float:
        """Of the object's underside above the table [m]."""
        return float(self.data.body("object").xpos[2])

    def judge(self) -> Judgement:
        """Adds up the slip, and asks whether the object is lifted, crushed or lost."""
        gripped = bool(self.grip_forces().min() > TOUCH_N)
        self._add_slip(gripped)
        dropped = self._in_the_air and not gripped
        self._in_the_air = gripped and self.height() > IN_THE_AIR
        failure = self._failure(dropped)
        success = not failure and self._in_the_air and self.height() >= LIFT
        info = {
            "hidden": {"mass": round(self.mass, 4), "friction": round(self.friction, 3)},
            "slip_force": self.slip_force(),
            "crush_force": self.crush_force(),
            "slip": self.slip,
        }
        return Judgement(self._progress(gripped), success, failure, info)

    def out_of_time(self) -> str:
        """Neither lifted nor broken."""
        return "not lifted"

    def _failure(self, dropped: bool) -> str:
        body = self.data.body("object")
        aside = np.linalg.norm(body.xpos[:2] - self._place)
        if self.peak_force > self.crush_force():
            return "crushed"
        if self.slip >= MAX_SLIP:
            return "slipped"
        if dropped:
            return "dropped"
        return "knocked over" if body.xmat[8] < UPRIGHT or aside > NEAR else ""

    def _add_slip(self, gripped: bool) -> None:
        depth = float(self.offset()[2]) if gripped else None
        if depth is not None and self._grasp_depth is not None:
            self.slip += abs(depth - self._grasp_depth)
        self._grasp_depth = depth

    def _progress(self, gripped: bool) -> float:
        """0 far away, 0.3 around the object, up to 0.5 in a grip between slip and crush force, 1 lifted in one."""
        if not gripped:
            return 0.3 * (1 - min(float(np.linalg.norm(self.offset())) / 0.1, 1.0))
        off = np.log(self.grip_forces().mean() / self.slip_force()) / np.log(scene.CRUSH) - 0.5
        return 0.3 + 0.2 * float(np.clip(1 - 2 * abs(off), 0, 1)) + 0.5 * float(np.clip(self.height() / LIFT, 0, 1))
