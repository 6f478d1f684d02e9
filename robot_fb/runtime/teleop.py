"""A person's commands: valid while the deadman is held, the command is new, and the picture behind it is live."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from robot_fb.interfaces import Robot
from robot_fb.runtime.poses import pose_of

COMMAND_LIFE_S = 0.04
"""A command counts for that long unless another follows [s]; with a decision of 50 ms, motion ends within 90 ms."""

PICTURE_LIFE_S = 0.3
"""A command given on an older picture is refused [s]."""


@dataclass(frozen=True)
class Command:
    """What a person wants, at one moment.

    Attributes:
        action: (action_dim,) as the robot takes it; or for a `Leader` the leader's pose in its first four places.
        held: whether the deadman was held.
        sequence: grows with every command of one operator; an older one that comes late is passed over.
        picture: robot time of the picture that the person saw [s, of the robot's monotonic clock].
    """

    action: np.ndarray
    held: bool
    sequence: int
    picture: float


class Deadman:
    """Keeps a person's newest command and lets go of it when it is old, whatever happens to the link.

    All times are of this machine's monotonic clock: when a command was sent is not asked, so clocks need not agree.

    Args:
        command_life_s: how long a command is valid.
        picture_life_s: how old its picture may be when it arrives.
        clock: monotonic time [s].
    """

    def __init__(
        self,
        command_life_s: float = COMMAND_LIFE_S,
        picture_life_s: float = PICTURE_LIFE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._command_life, self._picture_life, self._clock = command_life_s, picture_life_s, clock
        self._lock = threading.Lock()
        self._action: np.ndarray | None = None
        self._arrived = -np.inf
        self._sequence = -1

    def give(self, command: Command) -> str:
        """A command arrived; may be called from any thread.

        Returns:
            Why it is refused, in words for the operator; empty where it is taken. A refused command lets go.
        """
        now = self._clock()
        with self._lock:
            if command.sequence <= self._sequence:
                return "it is older than one that came before"
            self._sequence = command.sequence
            self._action = None
            if not command.held:
                return ""
            age = now - command.picture
            if not 0.0 <= age <= self._picture_life:
                return f"the picture is {1000 * age:.0f} ms old; {1000 * self._picture_life:.0f} ms is the limit"
            if not np.isfinite(command.action).all():
                return "it holds a NaN or an infinity"
            self._action, self._arrived = np.array(command.action, np.float32), now
            return ""

    def let_go(self) -> None:
        """Forgets the operator: the next one counts anew."""
        with self._lock:
            self._action, self._sequence = None, -1

    def command(self) -> np.ndarray | None:
        """(action_dim,) what the person wants now, or None."""
        with self._lock:
            fresh = self._clock() - self._arrived <= self._command_life
            return self._action if fresh else None


class Clutch:
    """Turns the pose of a leader arm, a tracked hand or a mouse into a pose for the robot, without a jump.

    When it closes, the leader's pose and the robot's *measured* pose become each other's reference; from then on the
    robot is to move as the leader moves. The target never runs ahead of the robot by more than `lead`: what builds up
    against a contact is not let loose when the contact ends.

    Args:
        lead: (n,) how far the target may be from the measured pose, per coordinate.
        gain: robot movement per leader movement.
    """

    def __init__(self, lead: np.ndarray, gain: float = 1.0) -> None:
        self._lead, self._gain = np.asarray(lead, float), gain
        self._leader: np.ndarray | None = None
        self._target = np.zeros_like(self._lead)

    @property
    def closed(self) -> bool:
        """Whether the leader moves the robot."""
        return self._leader is not None

    def close(self, leader: np.ndarray, measured: np.ndarray) -> None:
        """Takes both poses as each other's reference."""
        self._leader, self._target = np.array(leader, float), np.array(measured, float)

    def open(self) -> None:
        """Lets go."""
        self._leader = None

    def change(self, leader: np.ndarray, measured: np.ndarray) -> np.ndarray:
        """(n,) from the measured pose to the target; zeros while open.

        Args:
            leader: (n,) the leader's pose now; angles unwrapped.
            measured: (n,) the robot's, in the same coordinates.
        """
        if self._leader is None:
            return np.zeros_like(self._lead)
        self._target += self._gain * (leader - self._leader)
        self._leader = np.array(leader, float)
        self._target = np.clip(self._target, measured - self._lead, measured + self._lead)
        return self._target - measured


class Leader:
    """Follows a leader arm, a tracked hand or a mouse: the `human` of `runtime.loop.run`.

    The commands that the deadman gets hold the leader's pose: x, y, z [m], yaw [rad], then the other coordinates of
    the robot's action as they are. The clutch closes here, beside the robot, at the first of them: how long a command
    or a picture was on its way moves nothing.

    Args:
        robot: steerable.
        deadman: that the commands go through.
        gain: robot movement per leader movement.
    """

    def __init__(self, robot: Robot, deadman: Deadman, gain: float = 1.0) -> None:
        self._robot, self._deadman = robot, deadman
        self._clutch = Clutch(np.array(robot.action.high[:4]), gain)

    def __call__(self) -> np.ndarray | None:
        """(action_dim,) the command now, or None where nobody commands."""
        command = self._deadman.command()
        if command is None:
            self._clutch.open()
            return None
        pose = pose_of(self._robot.read())
        measured = np.append(pose.position, pose.yaw)
        if not self._clutch.closed:
            self._clutch.close(command[:4], measured)
        return np.append(self._clutch.change(command[:4], measured), command[4:]).astype(np.float32)
