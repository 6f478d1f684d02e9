"""What the page says and hears: every message is checked against its own form before anything is done with it."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from robot_fb.console.access import OPERATOR, Session
from robot_fb.errors import ProtocolError
from robot_fb.fleet.hub import Hub, Seen
from robot_fb.fleet.protocol import MAX_NUMBERS, MAX_TEXT, Mark, Steer
from robot_fb.runtime.handshake import Event

MAX_BYTES = 8192
"""Of a message from the page."""

MARKS = ("success", "failure", "good", "bad", "note")

SPARK = 60
"""Decisions of the risk that every robot's card shows."""

_FORMS: dict[str, dict[str, type]] = {
    "ping": {"t": float}, "watch": {"robot": str}, "take": {"robot": str}, "say": {"robot": str, "event": str},
    "steer": {"robot": str, "action": list, "held": bool, "sequence": int, "picture": float},
    "mark": {"robot": str, "what": str, "text": str}, "relieve": {"on": bool},
}
"""Kind of message -> its fields."""

Json = dict[str, Any]


@dataclass
class Shift:
    """Who works the queue when both a person and a simulated operator could.

    Attributes:
        simulated: whether there is a simulated operator.
        person: whose place it is now: a person's name, or empty while the simulated operator works.
        doing: what the fleet does when it does not move robots: a few words, done, total.
    """

    simulated: bool = False
    person: str = ""
    doing: tuple[str, int, int] | None = None


def read(data: str | bytes) -> Json:
    """A message of the page.

    Raises:
        ProtocolError: too long, not JSON, an unknown kind, another field, a wrong type, a number that is none.
    """
    if len(data) > MAX_BYTES:
        raise ProtocolError("the message is too long", expected=f"at most {MAX_BYTES} bytes", found=len(data))
    try:
        message = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ProtocolError("the message is no JSON") from error
    form = _FORMS.get(message.pop("kind", "")) if _is_named(message) else None
    if form is None:
        raise ProtocolError("the message is of no known kind")
    kind = next(kind for kind, known in _FORMS.items() if known is form)
    if set(message) != set(form):
        raise ProtocolError(f"{kind} has other fields", expected=sorted(form), found=sorted(map(str, message))[:10])
    return {"kind": kind, **{name: _checked(kind, name, message[name], wanted) for name, wanted in form.items()}}


class Talk:
    """One open page.

    Args:
        session: whose page it is.
        shift: shared by all pages of a fleet.

    Attributes:
        watched: the robot that is looked at, or empty.
    """

    def __init__(self, session: Session, shift: Shift) -> None:
        self.watched = ""
        self._session, self._shift = session, shift
        self._sent: dict[str, float] = {}

    def hear(self, message: Json, hub: Hub, now: float) -> Json | None:
        """Does what a checked message asks for; returns the answer, None where none is due."""
        name, kind = self._session.name, message["kind"]
        hub.hear(name, now)
        if kind == "ping":
            return {"kind": "pong", "t": message["t"]}
        if kind == "watch":
            self.watched, self._sent = message["robot"] if message["robot"] in hub.members else "", {}
            hub.watch(name, self.watched or None)
            return None
        if self._session.role != OPERATOR:
            return {"kind": "no", "why": "you look on; log in with the operator's token to do that"}
        why = self._do(message, hub, now)
        return {"kind": "no", "why": why} if why else None

    def fleet(self, hub: Hub, now: float) -> Json:
        """All robots at a glance."""
        waiting = {each.robot: (i + 1, now - each.since) for i, each in enumerate(hub.waiting(now))}
        return {
            "kind": "fleet", "you": self._session.name, "role": self._session.role,
            "simulated": self._shift.simulated, "person": self._shift.person, "doing": self._shift.doing,
            "robots": [_card(name, seen, hub, waiting.get(name)) for name, seen in sorted(hub.members.items())],
        }

    def robot(self, hub: Hub) -> list[Json]:
        """The robot that is looked at: its traces, and the pictures that have come since the last call."""
        seen = hub.members.get(self.watched)
        if seen is None:
            return []
        status = seen.status
        found: list[Json] = [{
            "kind": "robot", "name": self.watched, "dt": seen.hello.dt, "low": seen.hello.low, "high": seen.hello.high,
            "risks": list(seen.risks), "forces": list(seen.forces), "touches": list(seen.touches),
            "action": status.action if status else (), "refused": status.refused if status else "",
        }]
        for stream, picture in sorted(seen.pictures.items()):
            if self._sent.get(stream) != picture.stamp:
                self._sent[stream] = picture.stamp
                jpeg = base64.b64encode(picture.jpeg).decode("ascii")
                found.append({"kind": "picture", "stream": stream, "stamp": picture.stamp, "jpeg": jpeg})
        return found

    def leave(self, hub: Hub, now: float) -> None:
        """The page is closed, or its connection is lost: whatever it had is free."""
        hub.leave(self._session.name)
        if self._shift.person == self._session.name:
            self._shift.person = ""

    def _do(self, message: Json, hub: Hub, now: float) -> str:
        """Returns why not; empty where it was done."""
        name, kind, robot = self._session.name, message["kind"], message.get("robot", "")
        if kind == "take":
            return hub.take(name, robot, now)
        if kind == "say":
            events = [event for event in Event if event == message["event"]]
            return hub.say(name, robot, events[0]) if events else f"nothing is called {message['event'][:40]!r}"
        if kind == "steer":
            action = tuple(map(float, message["action"]))
            return hub.steer(name, robot, Steer(action, message["held"], message["sequence"], message["picture"]))
        if kind == "mark":
            if message["what"] not in MARKS:
                return f"nothing is marked {message['what'][:40]!r}"
            return hub.mark(name, robot, Mark(message["what"], message["text"], name))
        if not self._shift.simulated:
            return "no simulated operator is at work here"
        if self._shift.person not in ("", name):
            return f"{self._shift.person} has that place"
        self._shift.person = name if message["on"] else ""
        return ""


def _card(name: str, seen: Seen, hub: Hub, waiting: tuple[int, float] | None) -> Json:
    status = seen.status
    place, seconds = waiting or (None, None)
    return {
        "name": name, "task": seen.hello.task, "state": "away" if seen.away else str(seen.state),
        "risks": list(seen.risks)[-SPARK:], "force": status.force if status else 0.0,
        "episode": status.episode if status else 0, "success": bool(status and status.success), "alarm": seen.alarm,
        "holder": hub.leases.holder(name) or "", "place": place, "waits": seconds,
    }


def _is_named(message: object) -> bool:
    return isinstance(message, dict) and isinstance(message.get("kind"), str)


def _checked(kind: str, name: str, value: Any, wanted: type) -> Any:
    """The value, if it is of the field's type and within all limits."""
    sound = {
        float: lambda: _is_number(value), bool: lambda: isinstance(value, bool),
        int: lambda: type(value) is int and 0 <= value < 1 << 53,
        str: lambda: isinstance(value, str) and len(value) <= MAX_TEXT,
        list: lambda: isinstance(value, list) and len(value) <= MAX_NUMBERS and all(map(_is_number, value)),
    }
    checks: Callable[[], bool] = sound[wanted]
    if not checks():
        raise ProtocolError(f"{kind}.{name} is not usable", expected=wanted.__name__)
    return float(value) if wanted is float else value


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15 and math.isfinite(value)
