"""The simulated operator at a hub: takes the robot on top of the queue, corrects, hands back."""

from __future__ import annotations

import numpy as np

from robot_fb.fleet.hub import Hub
from robot_fb.runtime.handshake import Event
from robot_fb.teachers.operator import Attention, Skill

NAME = "simulated operator"


class SimulatedOperator:
    """Works at a `Hub` as a person would; the hand that moves is the member's own, see `fleet.protocol.Guide`.

    Args:
        skill: how good it is.
        seed: of its reactions.
        name: that it has at the hub.
    """

    def __init__(self, skill: Skill, seed: int = 0, name: str = NAME) -> None:
        self.attention = Attention(skill, np.random.default_rng([seed, 77]))
        self.name = name

    def tick(self, hub: Hub, now: float) -> None:
        """Does what is due now; call it often."""
        attention = self.attention
        if attention.robot is None:
            waiting = hub.waiting(now)
            if waiting:
                attention.turn_to(waiting[0].robot, now)
            return
        robot = attention.robot
        if attention.reaches(now):
            if all(each.robot != robot for each in hub.waiting(now)) or hub.take(self.name, robot, now):
                attention.turn_away()  # it waits no longer, or somebody was faster
                return
            hub.guide(robot, attention.tired)
            attention.take(now)
        elif hub.leases.robot_of(self.name) == robot:
            hub.hear(self.name, now)
            if attention.has_enough(now):
                hub.say(self.name, robot, Event.HANDED_BACK)
                attention.turn_away()
        elif hub.leases.holder(robot) is not None or not attention.reaching:
            attention.turn_away()

    def rest(self, hub: Hub) -> None:
        """Lets go of everything: somebody else works."""
        hub.leave(self.name)
        self.attention.turn_away()
