"""The way back: a robot undoes its own motion, pose by pose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from robot_fb.interfaces import Robot
from robot_fb.runtime.poses import Pose, change, pose_of, steerable, towards
from robot_fb.types import EpisodeMeta, Step

CALM = 0.2
"""It goes back to where the risk was below this share of the risk at the alarm (FLOAT, step 8)."""

NEAR_M, PATIENCE, SHARE = 0.004, 6, 0.5
"""A pose counts as reached from this far [m], or after so many decisions: a contact may be in the way. It goes with
a share of the action's bounds."""


@dataclass(frozen=True)
class _Was:
    pose: Pose
    rest: np.ndarray
    risk: float
    human: bool


class Rewind:
    """Keeps the way of an episode and leads back along it; a `Subscriber`.

    For steerable robots (see `runtime.poses`); the grip becomes again what it was. Other robots cannot go back.

    Args:
        robot: whose way it is.
    """

    def __init__(self, robot: Robot) -> None:
        self._robot = robot
        self._way: list[_Was] = []
        self._tried = 0
        self._goal = 0

    def on_start(self, meta: EpisodeMeta) -> None:
        """Forgets the last episode."""
        self._way.clear()

    def on_step(self, step: Step) -> None:
        """Keeps where it was; what happens on the way back is not kept."""
        if step.source == "rewind" or not steerable(self._robot):
            return
        risk, human = max(step.scores.values(), default=0.0), step.source in ("human", "blend")
        self._way.append(_Was(pose_of(step.obs), np.array(step.executed[4:]), risk, human))

    def on_end(self, success: bool, info: Mapping[str, Any]) -> None:
        """Nothing to do."""

    def start(self, alarm: float) -> bool:
        """Chooses how far to go back: to where the risk was low, or to the last correction by a person.

        Args:
            alarm: the risk at the alarm.

        Returns:
            False where there is no way back.
        """
        if not self._way:
            return False
        self._goal = next(
            (i for i in reversed(range(len(self._way))) if self._way[i].human or self._way[i].risk < CALM * alarm), 0
        )
        self._tried = 0
        return True

    def next(self) -> np.ndarray | None:
        """(action_dim,) one decision back; None once it is there."""
        while len(self._way) > self._goal:
            was = self._way[-1]
            away = change(pose_of(self._robot.read()), was.pose)
            if np.linalg.norm(away[:3]) > NEAR_M and self._tried < PATIENCE:
                self._tried += 1
                return towards(self._robot, was.pose, was.rest, SHARE)
            self._way.pop()
            self._tried = 0
        return None
