"""Who may command which robot: one operator a robot, one robot an operator, for as long as the operator is heard."""

from __future__ import annotations

from dataclasses import dataclass

LIFE_S = 1.0
"""A lease ends when its operator was not heard for that long [s]. Motion has ended long before, with the deadman."""


@dataclass
class _Lease:
    operator: str
    heard: float


class Leases:
    """The table of leases.

    Args:
        life_s: how long a silent operator keeps one [s].
    """

    def __init__(self, life_s: float = LIFE_S) -> None:
        self._life = life_s
        self._by_robot: dict[str, _Lease] = {}

    def take(self, robot: str, operator: str, now: float) -> bool:
        """Gives the lease, unless somebody has that robot or the operator has another one."""
        holder = self.holder(robot)
        if holder == operator:
            self.hear(operator, now)
            return True
        if holder is not None or self.robot_of(operator) is not None:
            return False
        self._by_robot[robot] = _Lease(operator, now)
        return True

    def end(self, robot: str) -> None:
        """The lease is over."""
        self._by_robot.pop(robot, None)

    def hear(self, operator: str, now: float) -> None:
        """The operator is there."""
        for lease in self._by_robot.values():
            if lease.operator == operator:
                lease.heard = now

    def expired(self, now: float) -> list[str]:
        """Ends the leases of those who fell silent; names their robots."""
        over = [robot for robot, lease in self._by_robot.items() if now - lease.heard > self._life]
        for robot in over:
            self.end(robot)
        return over

    def holder(self, robot: str) -> str | None:
        """The operator who has the robot."""
        lease = self._by_robot.get(robot)
        return None if lease is None else lease.operator

    def robot_of(self, operator: str) -> str | None:
        """The robot that the operator has."""
        return next((robot for robot, lease in self._by_robot.items() if lease.operator == operator), None)
