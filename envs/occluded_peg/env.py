"""Press, feel where the rim pushes back, correct, insert: where the peg sits in its hood can only be felt."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np

from envs.cell import boxes, control
from envs.cell.env import CellEnv, Judgement
from envs.occluded_peg import scene

TIME_LIMIT = 90
"""Decisions in an episode: 4.5 s."""

OFFSET, TURN = 0.003, np.deg2rad(8.0)
"""The peg sits up to this far aside, along x and along y [m], and turned by up to this much [rad]."""

PLACES = 0.02
"""The post is bolted down this far from (0.5, 0) along x and y, to either side [m]. A pixel is 4 to 7 mm wide: sight
tells the four places apart, and could not find the hole to a millimetre if it were anywhere."""

TOUCHED_N = 0.2
"""Force from which the tip has touched [N]."""

DEPTH = 0.008
"""How deep an inserted tip is below the top of the post [m]."""

ENTERED = 0.0015
"""A tip this far below the top of the post is in the hole, past the chamfer [m]."""

MAX_DRAG = 0.006
"""How far aside the tip may move in all, from its first touch until it is in the chamfer [m]."""

LIFTED = 0.002
"""A tip that has touched and is this far above the top again has been lifted [m]."""

BESIDE = (scene.POST - scene.PEG) * 1e-3
"""A tip this far aside is not wholly above the post [m]."""

LOST = 0.01
"""The holder slid this far out of the grasp [m]."""


class OccludedPegEnv(CellEnv):
    """The hooded peg starts in the gripper above the post. Success: 8 mm deep in the hole, at most 12 N, one attempt.

    `info` gives "hidden" (how the peg sits in its hood: x, y [m], yaw [rad]), "drag" [m], "peak_force" [N], "failure":

    - "force cap": the post was pressed with more than 12 N.
    - "dragged": after the first touch the tip moved aside by more than `MAX_DRAG` in all without finding the hole.
    - "lifted": after the first touch the tip left the top without having been inserted.
    - "missed": the touch, or the way down, was beside the post.
    - "dropped": the gripper lost the holder.
    - "jammed": time was up with the tip in the hole, but not deep enough.
    - "not inserted": time was up with the tip elsewhere.
    """

    force_cap_n = 12.0
    careful_n = 9.0
    time_limit = TIME_LIMIT

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        scene.soften_hinge(self.model)
        self.hidden = np.zeros(3)
        self.touched = False
        self.drag = 0.0
        self._last_tip = np.zeros(2)

    def build(self, spec: mujoco.MjSpec) -> None:
        """Adds the post, the hooded peg and the contact sensor; the arm becomes stiff along z."""
        scene.add_post(spec)
        scene.add_holder(spec)
        boxes.add_contact_sensor(spec, "post")
        scene.stiffen(spec)
        scene.solve_exactly(spec)

    def place(self) -> None:
        """Draws how the peg sits, the post's place and the start of the arm (±15 mm aside, 25 to 40 mm above)."""
        rng = self.np_random
        self.hidden = rng.uniform(-1.0, 1.0, 3) * [OFFSET, OFFSET, TURN]
        self.touched, self.drag = False, 0.0
        centre = np.array([0.5, 0.0]) + PLACES * rng.choice([-1.0, 1.0], 2)
        self.model.body("post").pos[:2] = centre
        self.model.body("peg").pos[:2] = self.hidden[:2]
        self.model.body("peg").quat = [np.cos(self.hidden[2] / 2), 0, 0, np.sin(self.hidden[2] / 2)]
        height = (scene.POST_TOP + scene.GRASP) * 1e-3 + rng.uniform(0.025, 0.040)
        control.solve_pose(self.model, self.data, np.append(centre + rng.uniform(-0.015, 0.015, 2), height))
        self.data.qpos[7:9] = scene.STEM * 1e-3
        self.data.ctrl[6:8] = 0.0
        holder = self.data.joint("holder")
        holder.qpos[:3] = self.data.site("tcp").xpos - [0, 0, scene.GRASP * 1e-3]
        holder.qpos[3:] = [1, 0, 0, 0]
        self.settle(4)

    def tip(self) -> np.ndarray:
        """(3,) where the middle of the tip is from the middle of the hole's upper edge [m], base frame."""
        return self.data.body("peg").xpos - self._hole()

    def aim(self) -> np.ndarray:
        """(3,) where the tip would be if the peg sat straight [m], as `tip`: all that is seen from outside."""
        return self.data.body("holder").xpos - self._hole()

    def yaw(self) -> float:
        """How the peg is turned against the hole [rad]."""
        axis = self.data.body("peg").xmat.reshape(3, 3)[:, 0]
        return float(np.arctan2(axis[1], axis[0]))

    def judge(self) -> Judgement:
        """Adds up the drag, and asks whether the tip is in the hole or has no attempt left."""
        tip = self.tip()
        self._add_drag(tip)
        failure = self._failure(tip)
        success = not failure and bool(tip[2] < -DEPTH)
        x, y, yaw = (round(float(value), 6) for value in self.hidden)
        info = {"hidden": {"x": x, "y": y, "yaw": yaw}, "drag": self.drag}
        return Judgement(self._progress(tip), success, failure, info)

    def out_of_time(self) -> str:
        """How far it came."""
        return "jammed" if self.tip()[2] < -ENTERED else "not inserted"

    def _hole(self) -> np.ndarray:
        return self.data.body("post").xpos + np.array([0.0, 0.0, scene.POST_TOP * 1e-3])

    def _add_drag(self, tip: np.ndarray) -> None:
        outside = tip[2] > -scene.CHAMFER * 1e-3
        if self.touched and outside:
            self.drag += float(np.linalg.norm(tip[:2] - self._last_tip))
        self.touched = self.touched or self.force > TOUCHED_N
        self._last_tip = tip[:2].copy()

    def _failure(self, tip: np.ndarray) -> str:
        grasp = self.data.body("holder").xpos - self.data.site("tcp").xpos + [0, 0, scene.GRASP * 1e-3]
        if np.linalg.norm(grasp) > LOST:
            return "dropped"
        if (self.touched or tip[2] < -ENTERED) and np.abs(tip[:2]).max() > BESIDE:
            return "missed"
        if self.drag > MAX_DRAG:
            return "dragged"
        return "lifted" if self.touched and tip[2] > LIFTED else ""

    def _progress(self, tip: np.ndarray) -> float:
        """0 far away, 0.2 on the post, 0.4 there above the hole, 1 inserted."""
        above = np.clip(tip[2] / 0.04, 0, 1)
        aside = np.clip(np.linalg.norm(tip[:2]) / 0.006, 0, 1)
        return float(0.2 * (1 - above) + 0.2 * (1 - aside) + 0.6 * np.clip(-tip[2] / DEPTH, 0, 1))
