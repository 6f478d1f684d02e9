"""Put the block onto the plate of its colour."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np

from envs.cell import boxes, control
from envs.cell.env import CellEnv, Judgement
from envs.pick_place import scene
from envs.pick_place.failure import FailureWatch, Glimpse

TIME_LIMIT = 180
"""Decisions in an episode: 9 s."""

WORKSPACE = np.array([[0.38, -0.14], [0.60, 0.14]])
"""Low and high corner of where things stand [m]: within reach and in view."""

APART = 0.11
"""Least distance between the centres of blocks and plate [m], so that the open gripper fits between."""

BLOCK_YAW, ARM_YAW = np.pi / 6, 0.2
"""Blocks are turned by up to 30 degrees, the gripper starts turned by up to 0.2 rad."""

LOST = np.array([[0.25, -0.3], [0.75, 0.3]])
"""Beyond these corners the arm does not get a block back [m]."""

GRIP_N = 1.0
"""Both pads press on a gripped block at least this hard [N]."""

OPEN_WIDTH = 0.055
"""A gripper this wide has let go [m]."""

ON_PLATE = 0.040
"""Largest distance of a placed block's centre from the plate's [m]."""

RESTING_HEIGHT, RESTING_SPEED = 0.003, 0.05
"""A resting block is this near to the plate [m] and this slow [m/s]."""

RESTED = 4
"""Decisions in a row for which the block rests and the gripper is open."""


class PickPlaceEnv(CellEnv):
    """Two blocks of different colours and one plate. Success: the block of the plate's colour rests on it, let go.

    `info` gives "target" (its colour), "event" (a kind of failure at the decision at which it happens, else empty),
    "events" (all so far, as (time [s], kind)) and "failure" (the kind in force, else empty). `failure.FailureWatch`
    defines the kinds; an episode without success always ends with one of them. No failure but a block out of reach
    ends an episode early. "onset" [s] is when that one happened.
    """

    time_limit = TIME_LIMIT

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._target = "red"
        self._watch = FailureWatch()
        self._rested = 0
        self._geoms = {name: self.model.geom(name).id for name in (*scene.BLOCKS, "left_pad", "right_pad")}

    def build(self, spec: mujoco.MjSpec) -> None:
        """Adds blocks, plate and the contact sensor."""
        scene.add_objects(spec)
        boxes.add_contact_sensor(spec, "hand")  # everything that touches hand and fingers

    def place(self) -> None:
        """Draws the colours, the places and turns of blocks and plate, and the start of the open gripper."""
        rng = self.np_random
        self._watch, self._rested = FailureWatch(), 0
        colours = rng.permutation(list(scene.COLOURS))
        self._target = str(colours[0])
        scene.paint(self.model, self._target, str(colours[1]))
        places = self._draw_places()
        self.model.body("plate").pos[:2] = places[0]
        start = rng.uniform([0.42, -0.1, 0.14], [0.56, 0.1, 0.20])
        control.solve_pose(self.model, self.data, start, rng.uniform(-ARM_YAW, ARM_YAW))
        self.data.qpos[7:9] = self.data.ctrl[6:8] = control.MAX_WIDTH / 2
        for name, place in zip(scene.BLOCKS, places[1:], strict=True):
            half = rng.uniform(-BLOCK_YAW, BLOCK_YAW) / 2
            self.data.joint(name).qpos = [*place, scene.BLOCK / 2, np.cos(half), 0, 0, np.sin(half)]
        mujoco.mj_forward(self.model, self.data)
        self.settle(2)

    def tcp(self) -> np.ndarray:
        """(4,) position [m] and yaw [rad] of the tcp, base frame."""
        site = self.data.site("tcp")
        return np.append(site.xpos, np.arctan2(site.xmat[3], site.xmat[0]))

    def block(self, name: str = "target") -> np.ndarray:
        """(4,) centre [m] and yaw [rad] of a block, base frame; the yaw of the side that the gripper would turn to."""
        body = self.data.body(name)
        yaw = np.arctan2(body.xmat[3], body.xmat[0])
        quarter = np.pi / 2
        return np.append(body.xpos, (yaw + quarter / 2) % quarter - quarter / 2)

    def plate(self) -> np.ndarray:
        """(3,) centre of the plate's top [m], base frame."""
        return self.data.body("plate").xpos + np.array([0, 0, scene.PLATE_HEIGHT])

    def width(self) -> float:
        """Gripper opening [m]."""
        return float(self.data.qpos[7] + self.data.qpos[8])

    def pad_forces(self, name: str = "target") -> np.ndarray:
        """(2,) how hard the left and the right pad press on a block [N]."""
        forces, wrench = np.zeros(2), np.zeros(6)
        for i, pad in enumerate(("left_pad", "right_pad")):
            pair = {self._geoms[name], self._geoms[pad]}
            for j in np.flatnonzero((self.data.contact.geom == self._geoms[pad]).any(axis=1)):
                if set(self.data.contact[j].geom.tolist()) == pair:
                    mujoco.mj_contactForce(self.model, self.data, j, wrench)
                    forces[i] += wrench[0]
        return forces

    def grips(self, name: str = "target") -> bool:
        """Whether both pads press on a block."""
        return bool(self.pad_forces(name).min() > GRIP_N)

    def above_plate(self) -> float:
        """How far the target's underside is above the plate [m]; infinite where the plate is not beneath its centre."""
        offset = self.block()[:3] - self.plate()
        return float(offset[2] - scene.BLOCK / 2) if np.linalg.norm(offset[:2]) < ON_PLATE else np.inf

    def judge(self) -> Judgement:
        """Asks whether the target is placed, and watches for failures."""
        gripped, above, open_ = self.grips(), self.above_plate(), self.width() > OPEN_WIDTH
        slow = np.linalg.norm(self.data.joint("target").qvel[:3]) < RESTING_SPEED
        rests = above < RESTING_HEIGHT and slow and open_ and not gripped
        self._rested = self._rested + 1 if rests else 0
        success, gone = self._rested >= RESTED, self._out_of_reach()
        potential = self._progress(gripped, above)
        event = self._watch.look(
            Glimpse(
                t=self.decisions * self.dt,
                width=self.width(),
                grips_target=gripped,
                grips_distractor=self.grips("distractor"),
                height=float(self.block()[2] - scene.BLOCK / 2),
                above_plate=above,
                potential=potential,
                out_of_reach=gone,
                last=self.decisions >= TIME_LIMIT and not success,
            )
        )
        failure = "" if success else self._watch.kind
        info = {"target": self._target, "event": event, "events": tuple(self._watch.events), "failure": failure}
        info["onset"] = self._watch.since if failure else None
        return Judgement(potential, success, failure if gone else "", info)

    def _out_of_reach(self) -> bool:
        here = self.block()[:2]
        return bool((here < LOST[0]).any() or (here > LOST[1]).any())

    def _progress(self, gripped: bool, above: float) -> float:
        """0 far away, 0.3 at the block, 0.4 gripped, 0.75 over the plate, 0.9 on the plate, 1 let go."""
        block, tcp = self.block(), self.tcp()
        if above < RESTING_HEIGHT and not gripped:
            return 0.95 + 0.05 * min(self.width() / OPEN_WIDTH, 1.0)
        if not gripped:
            return 0.3 * (1 - min(float(np.linalg.norm(block[:3] - tcp[:3])) / 0.35, 1.0))
        away = min(float(np.linalg.norm(block[:2] - self.plate()[:2])) / 0.35, 1.0)
        return float(0.4 + 0.35 * (1 - away) + 0.15 * (1 - np.clip(above / 0.07, 0, 1)))

    def _draw_places(self) -> np.ndarray:
        """(3,2) centres of plate, target and distractor [m], no two nearer than `APART`."""
        while True:
            places = self.np_random.uniform(*WORKSPACE, size=(3, 2))
            distances = np.linalg.norm(places - np.roll(places, 1, axis=0), axis=1)
            if distances.min() > APART:
                return places
