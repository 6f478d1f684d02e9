"""A desk for one robot, with the operator on the same machine."""

from __future__ import annotations

import queue
from collections.abc import Sequence

from robot_fb.runtime.handshake import Event


class LocalDesk:
    """An `interfaces.Desk` without a network: the robot's side asks and polls, the operator's side looks and says.

    Every method may be called from any thread.

    Attributes:
        risk: that the robot last asked with.
        reason: why it asked; empty while it needs nobody.
    """

    def __init__(self) -> None:
        self.risk, self.reason = 0.0, ""
        self._said: queue.SimpleQueue[Event] = queue.SimpleQueue()

    def ask(self, risk: float, reason: str) -> None:
        """Notes the request and confirms it."""
        self.risk, self.reason = risk, reason or "called"
        self.say(Event.QUEUED)

    def poll(self) -> Sequence[Event]:
        """What was said since the last poll, in order."""
        return [self._said.get() for _ in range(self._said.qsize())]

    def say(self, event: Event) -> None:
        """The operator, or a key of theirs, says something."""
        if event is Event.HANDED_BACK:
            self.risk, self.reason = 0.0, ""
        self._said.put(event)
