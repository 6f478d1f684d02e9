"""Press, read the torque, slide: the open side of the socket can only be felt."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np

from envs.cell import boxes, control
from envs.cell.env import CellEnv, Judgement
from envs.keyed_socket import scene

TIME_LIMIT = 90
"""Decisions in an episode: 4.5 s."""

SIDES = ("+x", "+y", "-x", "-y")
DIRECTIONS = np.array([[1, 0], [0, 1], [-1, 0], [0, -1]], float)

COMMITMENTS = 2
"""How often the plug may be pushed to a side in one episode; pushed into a corner it tries two sides."""

COMMITTED, WITHDRAWN = 0.0055, 0.0045
"""A side counts as tried beyond 5.5 mm towards it, just before its wall, and again only after a return to within
4.5 mm. The opening itself leaves 3 mm."""

WASTED = 0.3
"""What a push to a closed side takes from the progress."""

SEATED = 0.0085
"""How far towards the open side a seated plug is [m]."""

OVER_THE_EDGE = 0.0105
"""Where no part of the foot rests on the floor any more [m]: it drops into the pocket."""


class KeyedSocketEnv(CellEnv):
    """The plug starts in the gripper above the socket. Success: seated, within 2 commitments, at most 15 N.

    `info` gives the hidden side ("hidden", one of `SIDES`), "commitments" and "peak_force" [N].
    """

    force_cap_n = 15.0
    careful_n = 12.0
    time_limit = TIME_LIMIT

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._side = 0
        self._commitments = self._wasted = 0
        self._tried = np.zeros(4, bool)

    def build(self, spec: mujoco.MjSpec) -> None:
        """Adds socket, plug and the contact sensor."""
        scene.add_socket(spec)
        scene.add_plug(spec)
        boxes.add_contact_sensor(spec, "socket")

    def place(self) -> None:
        """Draws the open side, the socket's place (±25 mm) and the start of the arm (±15 mm, 30 to 50 mm above)."""
        rng = self.np_random
        self._side = int(rng.integers(4))
        self._commitments, self._wasted, self._tried = 0, 0, np.zeros(4, bool)
        centre = np.array([0.5, 0.0]) + rng.uniform(-0.025, 0.025, 2)
        self.model.body("socket").pos[:2] = centre
        half = self._side * np.pi / 4
        self.model.body("key").quat = [np.cos(half), 0, 0, np.sin(half)]
        height = (scene.LIP_TOP + scene.GRASP) * 1e-3 + rng.uniform(0.03, 0.05)
        control.solve_pose(self.model, self.data, np.append(centre + rng.uniform(-0.015, 0.015, 2), height))
        self.data.qpos[7:9] = scene.STEM * 1e-3
        self.data.ctrl[6:8] = 0.0
        plug = self.data.joint("plug")
        plug.qpos[:3] = self.data.site("tcp").xpos - [0, 0, scene.GRASP * 1e-3]
        plug.qpos[3:] = [1, 0, 0, 0]
        self.settle(4)

    def displacement(self) -> np.ndarray:
        """(3,) where the plug's foot is from the centre of the socket's floor [m], base frame."""
        floor = np.array([0.0, 0.0, scene.FLOOR * 1e-3])
        return self.data.body("plug").xpos - self.data.body("socket").xpos - floor

    def judge(self) -> Judgement:
        """Counts commitments, and asks whether the plug is seated."""
        offset = self.displacement()
        along = float(offset[:2] @ DIRECTIONS[self._side])
        self._count_commitments(offset)
        seated = along > SEATED and offset[2] < -0.0025
        failure = ""
        if self._commitments > COMMITMENTS:
            failure = "third commitment"
        elif offset[2] < 0.01 and np.abs(offset[:2]).max() > 0.04:
            failure = "missed the socket"
        info = {"hidden": SIDES[self._side], "commitments": self._commitments}
        return Judgement(self._progress(offset, along), seated and not failure, failure, info)

    def out_of_time(self) -> str:
        """Not seated."""
        return "not seated"

    def _count_commitments(self, offset: np.ndarray) -> None:
        inside = offset[2] < (scene.LIP_BOTTOM - scene.FLOOR) * 1e-3
        reach = DIRECTIONS @ offset[:2]
        trying = inside & (reach > COMMITTED) & ~self._tried
        self._commitments += int(trying.sum())
        self._wasted += int(np.delete(trying, self._side).sum())
        self._tried = inside & (reach > WITHDRAWN) & (self._tried | trying)

    def _progress(self, offset: np.ndarray, along: float) -> float:
        """0 far away, 0.3 on the floor at the centre, 1 over the pocket; less for every closed side that was tried."""
        above = np.clip(offset[2] / 0.05, 0, 1)
        aside = np.clip(np.linalg.norm(offset[:2]) / 0.04, 0, 1)
        slid = np.clip(along / OVER_THE_EDGE, -0.5, 1) if offset[2] < 0.01 else 0.0
        return float(0.3 * (1 - 0.5 * above - 0.5 * aside * (above > 0.2)) + 0.7 * slid - WASTED * self._wasted)
