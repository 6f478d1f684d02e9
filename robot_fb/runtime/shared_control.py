"""The arbiter of shared control: the policy moves the robot until a monitor or a person asks, then a person may."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from robot_fb.interfaces import Desk, Robot
from robot_fb.runtime.alarm import ALARM
from robot_fb.runtime.arbiter import takeover
from robot_fb.runtime.handshake import MOVING, Event, Handshake, State
from robot_fb.runtime.poses import Hold
from robot_fb.runtime.rewind import Rewind
from robot_fb.types import Decision, EpisodeMeta, Step

RISING = 1.1
"""After a hand-back a risk that is still high alarms again once it has grown by this factor."""

Mix = Callable[[np.ndarray, np.ndarray], Decision]
"""(proposal, human command) -> decision, while a person has hold of the robot."""


class SharedControl:
    """An `interfaces.Arbiter` that goes through the handshake; see `runtime.handshake`.

    It is asked once a decision, and is a `Subscriber` of the same loop, to know the way back. `human` must already be
    what `runtime.teleop.Deadman` lets through.

    Args:
        robot: that is controlled; looked at while it goes back.
        desk: where operators are asked, and what they say.
        mix: how a person's command and the policy's proposal become one; by default the person's alone.

    Attributes:
        handshake: where the robot stands.
        alarm: the risk at the last alarm; 0 before the first.
        reason: of the last alarm, in words.
    """

    def __init__(self, robot: Robot, desk: Desk, mix: Mix = takeover) -> None:
        self.handshake, self.alarm, self.reason = Handshake(), 0.0, ""
        self._desk, self._mix, self._hold = desk, mix, Hold(robot)
        self._way = Rewind(robot)
        self._band = ALARM

    def decide(self, proposal: np.ndarray, human: np.ndarray | None, risk: float) -> Decision:
        """What moves the robot now; see `Decision`."""
        self._go_on(human, risk)
        back = self._way.next() if self.handshake.state is State.REWIND else None
        if self.handshake.state is State.REWIND and back is None:
            self.handshake.happen(Event.REWOUND)
        state = self.handshake.state
        if state in MOVING:
            self._hold.let_go()
        if state is State.AUTONOMOUS:
            return Decision(proposal, "policy")
        if state is State.HUMAN and human is not None:
            return self._mix(proposal, human)
        if back is not None:
            return Decision(back, "rewind", reason=str(state))
        return Decision(self._hold.action(), "hold", reason=str(state), replan=state is State.RETURNING)

    def on_start(self, meta: EpisodeMeta) -> None:
        """An episode begins with the policy, unless the robot was stopped."""
        if self.handshake.state is not State.STOPPED:
            self.handshake = Handshake()
        self.alarm, self._band, self.reason = 0.0, ALARM, ""
        self._hold.let_go()
        self._way.on_start(meta)

    def on_step(self, step: Step) -> None:
        """Keeps the way."""
        self._way.on_step(step)

    def on_end(self, success: bool, info: Mapping[str, Any]) -> None:
        """Nothing to do."""

    def _go_on(self, human: np.ndarray | None, risk: float) -> None:
        """Everything that has happened since the last decision, in the order of the table."""
        shake = self.handshake
        self._band = max(ALARM, min(self._band, RISING * risk))
        if shake.state is State.RETURNING:
            shake.happen(Event.READY)
        elif shake.state is State.ALARM:
            shake.happen(Event.FROZE)
        for event in self._said():
            if event is Event.BACK_UP and not self._way.start(self.alarm):
                continue
            if shake.happen(event) and event is Event.HANDED_BACK:
                self._band = max(ALARM, RISING * risk)
        if risk > self._band and shake.happen(Event.ALARMED):
            self.alarm, self.reason = risk, f"risk {risk:.2f} of 1"
        if shake.state is State.FROZEN:
            self._desk.ask(risk, self.reason)
        shake.happen(Event.RELEASED if human is None else Event.GRASPED)

    def _said(self) -> Sequence[Event]:
        return [Event(word) for word in self._desk.poll()]
