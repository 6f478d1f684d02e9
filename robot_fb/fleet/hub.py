"""The hub without its sockets: who is there, who waits, who has whom, and what each has to hear.

All times are of the hub's own clock: real, or that of a simulated fleet.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from robot_fb.fleet.leases import LIFE_S, Leases
from robot_fb.fleet.protocol import (
    Beat,
    Guide,
    Hello,
    Kept,
    Mark,
    Message,
    Offer,
    Picture,
    Piece,
    Ping,
    Request,
    Said,
    Status,
    Steer,
    Want,
    Watch,
    Who,
    Work,
)
from robot_fb.fleet.requests import RequestQueue, Waiting
from robot_fb.runtime.handshake import Event, State

SILENT_S = 1.0
"""A member that was not heard for that long is away [s]."""

TRACE = 200
"""Decisions of which the risk is remembered, for the operator: ten seconds."""

HELD = (State.LEASED, State.HUMAN, State.REWIND)
"""States in which a robot believes that an operator has it."""

OPERATORS_SAY = (Event.BACK_UP, Event.HANDED_BACK, Event.STOP, Event.RESET)

ANYBODY_SAYS = (Event.STOP,)
"""Who sees danger need not have a lease."""


@dataclass
class Seen:
    """What the hub knows of one robot.

    Attributes:
        hello: its introduction.
        status: its last decision, None before the first.
        heard: when it was last heard [s].
        away: it has fallen silent.
        risks: of its last decisions.
        forces: of its last decisions [N].
        touches: of its last decisions [N].
        alarm: the reason of its last alarm.
        pictures: the newest of every camera, by stream.
    """

    hello: Hello
    heard: float
    status: Status | None = None
    away: bool = False
    risks: deque[float] = field(default_factory=lambda: deque(maxlen=TRACE))
    forces: deque[float] = field(default_factory=lambda: deque(maxlen=TRACE))
    touches: deque[float] = field(default_factory=lambda: deque(maxlen=TRACE))
    alarm: str = ""
    pictures: dict[str, Picture] = field(default_factory=dict)

    @property
    def state(self) -> State:
        """Where it stands."""
        return State(self.status.state if self.status else self.hello.state)


class Hub:
    """The rules of a fleet. Not for several threads at once.

    Args:
        order: of the queue: "priority" or "fifo".
        life_s: how long a silent operator keeps a lease [s].
        post: takes a file's message from a member, and returns the answers: see `fleet.collect`.

    Attributes:
        members: by name.
        waits: how long each robot waited that an operator came to, in order [s].
        leases: who has whom.
    """

    def __init__(
        self,
        order: str = "priority",
        life_s: float = LIFE_S,
        post: Callable[[str, Message], Iterable[Message]] = lambda name, message: (),
    ) -> None:
        self.members: dict[str, Seen] = {}
        self.waits: list[float] = []
        self.leases = Leases(life_s)
        self._queue = RequestQueue(order)
        self._post = post
        self._watched: dict[str, str] = {}  # operator -> robot
        self._release: Offer | None = None
        self._work: Work | None = None
        self._outbox: list[tuple[str, Message]] = []

    def receive(self, name: str, message: Message, now: float) -> None:
        """A member said something."""
        seen = self.members.get(name)
        if isinstance(message, Hello):
            self._let_go(name)
            self.members[name] = Seen(message, now)
            if name in self._watched.values():
                self._send(name, Watch(True))
            for word in (self._release, self._work):
                if word is not None:
                    self._send(name, word)
            return
        if seen is None:
            self._send(name, Who())
            return
        seen.heard, seen.away = now, False
        match message:
            case Ping():
                self._send(name, Beat(message.sequence))
            case Status():
                self._note(name, seen, message, now)
            case Request():
                self._ask(name, seen, message, now)
            case Picture():
                seen.pictures[message.stream] = message
            case Offer() | Piece() | Want() | Kept():
                for reply in self._post(name, message):
                    self._send(name, reply)
            case _:
                pass  # only a hub says the rest

    def drain(self) -> list[tuple[str, Message]]:
        """What is to be sent now: (member, message), in order."""
        out, self._outbox = self._outbox, []
        return out

    def tick(self, now: float) -> None:
        """Time has passed: ends leases of silent operators, notices silent members."""
        for robot in self.leases.expired(now):
            self._lost(robot)
        for name, seen in self.members.items():
            if not seen.away and now - seen.heard > SILENT_S:
                self.gone(name)

    def take(self, operator: str, robot: str, now: float) -> str:
        """An operator wants a robot.

        Returns:
            Why not; empty where the lease is theirs.
        """
        seen = self.members.get(robot)
        if seen is None or seen.away:
            return f"{robot} is not there"
        if seen.state is State.STOPPED:
            return f"{robot} is stopped; somebody who has looked resets it first"
        holder, other = self.leases.holder(robot), self.leases.robot_of(operator)
        if holder == operator:
            return ""
        if holder is not None:
            return f"{robot} is with {holder}"
        if other is not None:
            return f"you have {other}; hand it back first"
        self.leases.take(robot, operator, now)
        waiting = self._queue.find(robot)
        if waiting is not None:
            self.waits.append(now - waiting.since)
            self._queue.drop(robot)
            self._send(robot, Said(Event.GRANTED))
        else:
            self._send(robot, Said(Event.CALLED))
        return ""

    def say(self, operator: str, robot: str, event: Event) -> str:
        """An operator says something to a robot. Everybody may stop one.

        Returns:
            Why not; empty where it was passed on.
        """
        if event not in OPERATORS_SAY:
            return f"operators do not say {event!r}"
        seen = self.members.get(robot)
        if seen is None:
            return f"{robot} is not there"
        free = event is Event.RESET and self.leases.holder(robot) is None
        if event not in ANYBODY_SAYS and not free and self.leases.holder(robot) != operator:
            return f"you do not have {robot}"
        self._send(robot, Said(event))
        if event in (Event.HANDED_BACK, Event.STOP):
            self.leases.end(robot)
        return ""

    def steer(self, operator: str, robot: str, command: Steer) -> str:
        """Passes an operator's command on, at once.

        Returns:
            Why not; empty where it was passed on.
        """
        if self.leases.holder(robot) != operator:
            return f"you do not have {robot}"
        if command.held and len(command.action) != len(self.members[robot].hello.low):
            return f"{robot} takes {len(self.members[robot].hello.low)} numbers"
        self._send(robot, command)
        return ""

    def guide(self, robot: str, tired: float) -> None:
        """The operator who has the robot is a simulated one."""
        self._send(robot, Guide(tired))

    def mark(self, operator: str, robot: str, mark: Mark) -> str:
        """Passes an operator's word about the episode on; returns why not."""
        if self.leases.holder(robot) != operator:
            return f"you do not have {robot}"
        self._send(robot, mark)
        return ""

    def hear(self, operator: str, now: float) -> None:
        """The operator is there."""
        self.leases.hear(operator, now)

    def watch(self, operator: str, robot: str | None) -> None:
        """The operator looks at a robot's cameras, or at none any more."""
        before = self._watched.pop(operator, None)
        if before is not None and before != robot and before not in self._watched.values():
            self._send(before, Watch(False))
        if robot in self.members:
            if robot not in self._watched.values():
                self._send(robot, Watch(True))
            self._watched[operator] = robot

    def leave(self, operator: str) -> None:
        """The operator has gone: whatever they had is free."""
        self.watch(operator, None)
        robot = self.leases.robot_of(operator)
        if robot is not None:
            self._lost(robot)

    def waiting(self, now: float) -> list[Waiting]:
        """Robots that wait for an operator, the next one first."""
        return self._queue.in_order(now)

    def gone(self, name: str) -> None:
        """The member cannot be reached."""
        if name in self.members:
            self.members[name].away = True
            self._let_go(name)

    def roll_out(self, release: Offer) -> None:
        """Offers a release to every member, and to those who come later."""
        self._release = release
        for name in self.members:
            self._send(name, release)

    def work(self, until: int) -> None:
        """Lets every member go on until it has ended so many episodes."""
        self._work = Work(until)
        for name in self.members:
            self._send(name, self._work)

    def _note(self, name: str, seen: Seen, status: Status, now: float) -> None:
        """Keeps what a member says of itself, and mends what the two of them see differently."""
        before = seen.status
        seen.status = status
        seen.risks.append(status.risk)
        seen.forces.append(status.force)
        seen.touches.append(status.touch)
        if status.reason:
            seen.alarm = status.reason
        if before is not None and status.episode != before.episode:  # nobody waits, or is held, across episodes
            self._queue.drop(name)
            if self.leases.holder(name) is not None:
                self._lost(name)
        if seen.state in HELD and self.leases.holder(name) is None:
            self._send(name, Said(Event.LOST))
        if seen.state in (State.AUTONOMOUS, State.RETURNING, State.STOPPED):
            self._queue.drop(name)
        self._send(name, Beat(-1))

    def _ask(self, name: str, seen: Seen, request: Request, now: float) -> None:
        self._send(name, Said(Event.QUEUED))
        seen.alarm = request.reason
        if self.leases.holder(name) is not None:
            self._send(name, Said(Event.GRANTED))
        else:
            self._queue.put(name, request.risk, request.irreversible, request.reason, now)

    def _let_go(self, name: str) -> None:
        """The member is another one now, or away."""
        self._queue.drop(name)
        if self.leases.holder(name) is not None:
            self._lost(name)

    def _lost(self, robot: str) -> None:
        self.leases.end(robot)
        self._send(robot, Said(Event.LOST))

    def _send(self, name: str, message: Message) -> None:
        self._outbox.append((name, message))
