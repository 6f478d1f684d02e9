"""What holds whoever commands: limits on motion and force, and a watchdog for commands that stay away."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from robot_fb.errors import ConfigError
from robot_fb.interfaces import Robot
from robot_fb.runtime.poses import POSE, pose_of, steerable
from robot_fb.types import ActionSpec, Obs, StepOutcome, StreamSpec

WRENCH = "wrench/wrist"

LIFE_S = 0.1
"""A robot is stopped when no command came for that long [s]."""

RECOVERS = 1.1
"""What a limit on force has taken from a push comes back by this factor a decision, once the force is below half."""


class Wrapped:
    """A robot inside another: everything is passed on. The base of the parts below."""

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self.streams: Mapping[str, StreamSpec] = robot.streams
        self.action: ActionSpec = robot.action
        self.dt: float = robot.dt

    def __enter__(self) -> Robot:
        self.robot.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self.robot.__exit__(*exc)

    def reset(self, seed: int | None = None) -> Obs:
        """As the robot inside."""
        return self.robot.reset(seed)

    def read(self) -> Obs:
        """As the robot inside."""
        return self.robot.read()

    def write(self, action: np.ndarray) -> np.ndarray:
        """As the robot inside."""
        return self.robot.write(action)

    def outcome(self) -> StepOutcome:
        """As the robot inside."""
        return self.robot.outcome()

    def still(self) -> np.ndarray:
        """As the robot inside."""
        return self.robot.still()

    def stop(self) -> None:
        """As the robot inside."""
        self.robot.stop()


@dataclass(frozen=True)
class Limits:
    """Of a steerable robot (see `runtime.poses`); what is not given is not limited.

    Attributes:
        speed_m_s: of the tool's commanded translation.
        turn_rad_s: of its commanded yaw.
        low: (3,) corner of the workspace [m, base frame].
        high: (3,) the opposite corner.
        force_n: while the measured force is above this, nothing moves further into it, and the next push in that
            direction is as much weaker as this one was too strong; away from it is free.
    """

    speed_m_s: float = np.inf
    turn_rad_s: float = np.inf
    low: tuple[float, float, float] = (-np.inf, -np.inf, -np.inf)
    high: tuple[float, float, float] = (np.inf, np.inf, np.inf)
    force_n: float = np.inf

    def __post_init__(self) -> None:
        """Refuses limits that nothing can keep."""
        if not all(limit > 0 for limit in (self.speed_m_s, self.turn_rad_s, self.force_n)):
            raise ConfigError("limits on speed, turn and force are above 0", found=str(self))
        if not all(a < b for a, b in zip(self.low, self.high, strict=True)):
            raise ConfigError("a workspace needs low below high", found=f"low {self.low}, high {self.high}")


class Limited(Wrapped):
    """Keeps every command within `Limits`, shortening it; `write` returns what was really sent.

    Args:
        robot: steerable; for `force_n` with the stream `wrench/wrist` (T,6): what acts on the tool, in its frame.
        limits: to keep.

    Attributes:
        cut: commands that were shortened.

    Raises:
        ConfigError: the robot is not of that kind.
    """

    def __init__(self, robot: Robot, limits: Limits) -> None:
        super().__init__(robot)
        if not steerable(robot):
            raise ConfigError("limits need a robot that shows tcp/pose and is told dx, dy, dz, dyaw")
        if np.isfinite(limits.force_n) and WRENCH not in robot.streams:
            raise ConfigError(f"a limit on force needs the stream {WRENCH}", found=", ".join(robot.streams))
        self.limits, self.cut = limits, 0
        self._wall, self._most = np.zeros(3), np.inf
        self._sent = np.zeros(3)

    def reset(self, seed: int | None = None) -> Obs:
        """Forgets what it has felt."""
        self._wall, self._most = np.zeros(3), np.inf
        return super().reset(seed)

    def write(self, action: np.ndarray) -> np.ndarray:
        """Sends what the limits leave of `action`."""
        allowed = self._allowed(np.asarray(action, np.float32))
        self.cut += not np.array_equal(allowed, action)
        return self.robot.write(allowed)

    def _allowed(self, action: np.ndarray) -> np.ndarray:
        limits, obs = self.limits, self.robot.read()
        away, turn = action[:3].astype(float), float(action[3])
        if np.isfinite(limits.force_n):
            push = self._may_push(obs)
            away += max(0.0, -float(away @ self._wall) - push) * self._wall
        length, most = float(np.linalg.norm(away)), limits.speed_m_s * self.dt
        if length > most:
            away *= most / length
        here = pose_of(obs).position
        away = np.clip(away, np.minimum(np.array(limits.low) - here, 0), np.maximum(np.array(limits.high) - here, 0))
        turn = float(np.clip(turn, -limits.turn_rad_s * self.dt, limits.turn_rad_s * self.dt))
        self._sent = away
        return np.concatenate([away, [turn], action[4:]]).astype(np.float32)

    def _may_push(self, obs: Obs) -> float:
        """How far the next command may go against what pushes back [m]; `_wall` is that direction."""
        force, most = _force(obs), self.limits.force_n
        size = float(np.linalg.norm(force))
        if size <= most:
            self._most *= RECOVERS if size < most / 2 else 1.0
            return self._most
        pushed = max(0.0, -float(self._sent @ force) / size)
        self._wall = force / size
        self._most = min(self._most, pushed * most / size) if pushed > 0 else self._most
        return 0.0


def _force(obs: Obs) -> np.ndarray:
    """(3,) the newest force on the tool [N], base frame."""
    axis, w = np.array(obs[POSE][3:6], float), float(obs[POSE][6])
    force = np.array(obs[WRENCH][-1, :3], float)
    cross = 2.0 * np.cross(axis, force)
    return force + w * cross + np.cross(axis, cross)


class Watchdog(Wrapped):
    """Stops a robot when its commands stay away, whatever the reason: a hung policy, a lost link, a full disk.

    It watches from the first command of an episode until `stop`, on a thread of its own.

    Args:
        robot: its `stop` may be called while a `write` is on its way.
        life_s: how long a command counts [s].

    Attributes:
        stops: how often it had to stop the robot.
    """

    def __init__(self, robot: Robot, life_s: float = LIFE_S) -> None:
        super().__init__(robot)
        self.stops, self._life = 0, life_s
        self._last = np.inf  # when the newest command came; infinite: nothing to watch
        self._lock, self._over = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def __enter__(self) -> Robot:
        super().__enter__()
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._over.set()
        self._thread.join()
        super().__exit__(*exc)

    def write(self, action: np.ndarray) -> np.ndarray:
        """Sends, and counts from now."""
        with self._lock:
            self._last = time.monotonic()
        return self.robot.write(action)

    def stop(self) -> None:
        """Stops; nothing is awaited any more."""
        with self._lock:
            self._last = np.inf
        self.robot.stop()

    def _watch(self) -> None:
        while not self._over.wait(self._life / 10):
            with self._lock:
                stale = time.monotonic() - self._last > self._life
                self._last = np.inf if stale else self._last
            if stale:
                self.stops += 1
                self.robot.stop()
