"""Robots that wait for an operator, the most urgent one first."""

from __future__ import annotations

from dataclasses import dataclass

from robot_fb.errors import ConfigError

ORDERS = ("priority", "fifo")

PATIENCE_S = 10.0
"""Waiting this long weighs as much as the highest risk [s]: nobody waits for ever."""


@dataclass(frozen=True)
class Waiting:
    """One robot's request.

    Attributes:
        robot: its name.
        risk: the monitors' score; above 1 is an alarm.
        irreversible: 0 to 1, how much would be lost by going on.
        since: when it asked [s].
        reason: for the operator.
    """

    robot: str
    risk: float
    irreversible: float
    since: float
    reason: str

    def urgency(self, now: float) -> float:
        """What the queue is ordered by."""
        risk = max(self.risk, 0.0)
        return risk / (1.0 + risk) + self.irreversible + (now - self.since) / PATIENCE_S


class RequestQueue:
    """At most one request a robot.

    Args:
        order: "priority" by risk, irreversibility and waiting time; "fifo" by waiting time alone.

    Raises:
        ConfigError: another order.
    """

    def __init__(self, order: str = "priority") -> None:
        if order not in ORDERS:
            raise ConfigError(f"unknown order {order!r}", do=f"one of: {', '.join(ORDERS)}")
        self._order = order
        self._waiting: dict[str, Waiting] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, robot: str, risk: float, irreversible: float, reason: str, now: float) -> None:
        """Asks; a robot that asks again keeps its place in time."""
        before = self._waiting.get(robot)
        self._waiting[robot] = Waiting(robot, risk, irreversible, before.since if before else now, reason)

    def drop(self, robot: str) -> None:
        """It no longer waits."""
        self._waiting.pop(robot, None)

    def find(self, robot: str) -> Waiting | None:
        """The robot's request, or None."""
        return self._waiting.get(robot)

    def in_order(self, now: float) -> list[Waiting]:
        """All that wait, the next one first."""
        if self._order == "fifo":
            return sorted(self._waiting.values(), key=lambda each: each.since)
        return sorted(self._waiting.values(), key=lambda each: -each.urgency(now))
