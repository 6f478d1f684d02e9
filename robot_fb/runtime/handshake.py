"""Who holds the robot, as one table: how control goes from the policy to a person and back.

The order of a takeover: alarm, freeze, queue, lease, live picture, reference at the measured pose, deadman held,
correct, release, fresh observation and a new plan, autonomy. Whatever is not in the table does not happen.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class State(StrEnum):
    """Where a robot stands."""

    AUTONOMOUS = "autonomous"
    """The policy moves it."""
    ALARM = "alarm"
    """A monitor has just alarmed: this decision holds already."""
    FROZEN = "frozen"
    """It holds still and nobody was asked yet."""
    REQUESTED = "requested"
    """It holds still and waits for an operator."""
    LEASED = "leased"
    """It holds still; one operator may take hold of it."""
    HUMAN = "human"
    """The operator holds the deadman and moves it."""
    REWIND = "rewind"
    """It goes back the way that it came."""
    RETURNING = "returning"
    """It holds still for one decision; the policy forgets its plan and sees afresh."""
    STOPPED = "stopped"
    """It holds still until somebody resets it."""


class Event(StrEnum):
    """What may happen."""

    ALARMED = "alarmed"
    """A monitor's score passed its band."""
    CALLED = "called"
    """An operator wants the robot without an alarm."""
    FROZE = "froze"
    """It has been told to hold."""
    QUEUED = "queued"
    """The desk has the request."""
    GRANTED = "granted"
    """One operator has the lease."""
    GRASPED = "grasped"
    """A command came from a held deadman and a live picture."""
    RELEASED = "released"
    """The deadman was let go, has expired, or the picture is old."""
    REWOUND = "rewound"
    """It is back where things were well, or as far back as it goes."""
    BACK_UP = "back up"
    """The operator wants it to go back the way that it came."""
    HANDED_BACK = "handed back"
    """The operator is done, or says that the alarm was false."""
    LOST = "lost"
    """The lease is over without a word."""
    READY = "ready"
    """The policy has forgotten its plan, and a new observation is there."""
    STOP = "stop"
    """Somebody or something wants it to stop at once."""
    RESET = "reset"
    """Somebody who has looked says that it may go on."""


_ROWS: dict[State, dict[Event, State]] = {
    State.AUTONOMOUS: {Event.ALARMED: State.ALARM, Event.CALLED: State.FROZEN},
    State.ALARM: {Event.FROZE: State.FROZEN},
    State.FROZEN: {Event.QUEUED: State.REQUESTED},
    State.REQUESTED: {Event.GRANTED: State.LEASED, Event.HANDED_BACK: State.RETURNING},
    State.LEASED: {
        Event.GRASPED: State.HUMAN, Event.BACK_UP: State.REWIND, Event.HANDED_BACK: State.RETURNING,
        Event.LOST: State.FROZEN,
    },
    State.HUMAN: {Event.RELEASED: State.LEASED, Event.HANDED_BACK: State.RETURNING, Event.LOST: State.FROZEN},
    State.REWIND: {Event.REWOUND: State.LEASED, Event.LOST: State.FROZEN},
    State.RETURNING: {Event.READY: State.AUTONOMOUS, Event.CALLED: State.FROZEN},
    State.STOPPED: {Event.RESET: State.FROZEN},
}

TRANSITIONS: Mapping[State, Mapping[Event, State]] = MappingProxyType({
    state: MappingProxyType(row | ({} if state is State.STOPPED else {Event.STOP: State.STOPPED}))
    for state, row in _ROWS.items()
})
"""State -> what may happen there -> the state after it."""

MOVING: Mapping[State, str] = MappingProxyType({
    State.AUTONOMOUS: "policy", State.HUMAN: "human", State.REWIND: "rewind",
})
"""The states in which the robot moves, and by whom; in every other one it holds still."""


class Handshake:
    """Stands in one state of the table and moves along its rows.

    Attributes:
        state: now.
        last: the event that led here; None at the start.
    """

    def __init__(self) -> None:
        self.state = State.AUTONOMOUS
        self.last: Event | None = None

    def allows(self, event: Event) -> bool:
        """Whether `event` may happen now."""
        return event in TRANSITIONS[self.state]

    def happen(self, event: Event) -> bool:
        """Moves on; False, and nothing changes, where `event` cannot happen now."""
        after = TRANSITIONS[self.state].get(event)
        if after is None:
            return False
        self.state, self.last = after, event
        return True
