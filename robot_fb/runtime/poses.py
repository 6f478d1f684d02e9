"""Poses of a tool that points down, and the action that leads to one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robot_fb.interfaces import Robot
from robot_fb.types import Obs

POSE = "tcp/pose"


@dataclass(frozen=True)
class Pose:
    """Where a tool is.

    Attributes:
        position: (3,) [m], base frame.
        yaw: about the base's z axis [rad].
    """

    position: np.ndarray
    yaw: float


def steerable(robot: Robot) -> bool:
    """Whether a robot shows `tcp/pose` and its action begins with dx, dy, dz, dyaw."""
    return POSE in robot.streams and [n.split()[0] for n in robot.action.names[:4]] == ["dx", "dy", "dz", "dyaw"]


def pose_of(obs: Obs) -> Pose:
    """The measured pose in an observation of a steerable robot."""
    x, y, z, w = (float(v) for v in obs[POSE][3:])
    return Pose(np.array(obs[POSE][:3], float), float(np.arctan2(2 * (x * y + w * z), 1 - 2 * (y * y + z * z))))


def change(start: Pose, goal: Pose) -> np.ndarray:
    """(4,) dx, dy, dz [m] and dyaw [rad], the short way round, from `start` to `goal`."""
    turn = (goal.yaw - start.yaw + np.pi) % (2 * np.pi) - np.pi
    return np.append(goal.position - start.position, turn)


def towards(robot: Robot, goal: Pose, rest: np.ndarray, share: float = 1.0) -> np.ndarray:
    """(action_dim,) one decision of a steerable robot towards `goal`, within a share of the action's bounds.

    Args:
        robot: looked at now.
        goal: where to.
        rest: (action_dim - 4,) the other coordinates of the action, the grip.
        share: of the bounds.
    """
    low, high = share * np.array([robot.action.low[:4], robot.action.high[:4]])
    return np.append(np.clip(change(pose_of(robot.read()), goal), low, high), rest).astype(np.float32)


class Hold:
    """Keeps a robot where it is; against a load it does not sink from decision to decision.

    Args:
        robot: to hold; one that is not steerable is asked for no motion.
    """

    def __init__(self, robot: Robot) -> None:
        self._robot = robot
        self._pose: Pose | None = None

    def let_go(self) -> None:
        """The robot moves again: the next `action` holds it where it is then."""
        self._pose = None

    def action(self) -> np.ndarray:
        """(action_dim,) for this decision."""
        if not steerable(self._robot):
            return self._robot.still()
        if self._pose is None:
            self._pose = pose_of(self._robot.read())
        return towards(self._robot, self._pose, self._robot.still()[4:])
