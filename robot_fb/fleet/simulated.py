"""A fleet of simulated robots in one process, in step with one simulated clock: as fast as the machine, and the same
every time.

The robots take turns: one decides and moves while the others wait; when all have, the clock goes on by one decision and
the messages of that decision are delivered. So a seed fixes everything, the waiting times too.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

import numpy as np

from robot_fb.fleet.hub import Hub
from robot_fb.fleet.protocol import Guide, Mark, Message, Said, Steer, Watch, Work
from robot_fb.runtime.handshake import Event, State
from robot_fb.runtime.teleop import Command, Deadman

R = TypeVar("R")


class DirectPort:
    """A `link.Port` without a socket.

    Args:
        clock: the fleet's time [s].
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.watched, self.refused = False, ""
        self.guided: float | None = None
        self.until: int | None = None
        self._deadman = Deadman(clock=clock)
        self._out: list[Message] = []
        self._events: list[Event] = []
        self._marks: list[Mark] = []

    def send(self, message: Message) -> None:
        """For the hub, when all robots have had their turn."""
        self._out.append(message)

    def sent(self) -> list[Message]:
        """What was said since the last call."""
        out, self._out = self._out, []
        return out

    def deliver(self, message: Message) -> None:
        """The hub says something."""
        match message:
            case Said():
                if message.event in (Event.GRANTED, Event.LOST, Event.HANDED_BACK):
                    self.guided = None
                self._events.append(Event(message.event))
            case Guide():
                self.guided = message.tired
            case Mark():
                self._marks.append(message)
            case Watch():
                self.watched = message.on
            case Work():
                self.until = message.until
            case Steer():
                action = np.array(message.action, np.float32)
                self.refused = self._deadman.give(Command(action, message.held, message.sequence, message.picture))
            case _:
                pass  # files lie in one place anyway

    def events(self) -> list[Event]:
        """What was said since the last call."""
        events, self._events = self._events, []
        return events

    def marks(self) -> list[Mark]:
        """What an operator said about the episode since the last call."""
        marks, self._marks = self._marks, []
        return marks

    def human(self) -> np.ndarray | None:
        """(action_dim,) the operator's command now, or None."""
        return self._deadman.command()

    def stands(self, state: State) -> None:
        """Nothing to do: this link cannot break."""


class _Over(BaseException):
    """Ends a robot's thread from within."""


class _Turn:
    """A robot's thread, which runs only while it has the turn."""

    def __init__(self, name: str, work: Callable[[], None]) -> None:
        self.alive = True
        self.error: BaseException | None = None
        self._mine, self._yours = threading.Semaphore(0), threading.Semaphore(0)
        self._over = False
        self._work = work
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def give(self) -> None:
        """Lets it run up to its next decision."""
        self._mine.release()
        self._yours.acquire()

    def back(self) -> None:
        """It has decided; called on its own thread."""
        self._yours.release()
        self._mine.acquire()
        if self._over:
            raise _Over

    def end(self) -> None:
        """Ends it, wherever it is."""
        self._over = True
        while self.alive:
            self.give()
        self._thread.join()

    def _run(self) -> None:
        try:
            self._mine.acquire()
            if not self._over:
                self._work()
        except _Over:
            pass
        except BaseException as error:  # belongs to whoever runs the fleet
            self.error = error
        finally:
            self.alive = False
            self._yours.release()


class SimulatedFleet:
    """Robots that take turns around a `Hub`.

    Args:
        hub: whose clock is this one's.
        dt: of a decision [s].
        tick: called with (hub, now) after every decision: the operator.
        paced: not faster than real time, for a person to work with.

    Attributes:
        now: simulated time [s].
    """

    def __init__(
        self, hub: Hub, dt: float, tick: Callable[[Hub, float], None] = lambda hub, now: None, paced: bool = False
    ) -> None:
        self.now = 0.0
        self._hub, self._dt, self._tick, self._paced = hub, dt, tick, paced
        self._lock, self._due = threading.Lock(), 0.0
        self._turns: dict[str, _Turn] = {}

    def clock(self) -> float:
        """Simulated time [s]."""
        return self.now

    def do(self, what: Callable[[Hub, float], R]) -> R:
        """Calls `what(hub, now)` between two decisions; from any thread. What comes of it is sent with the next one."""
        with self._lock:
            return what(self._hub, self.now)

    def run(self, robots: Mapping[str, Callable[[DirectPort, Callable[[], None]], None]]) -> None:
        """Runs all robots until each is done.

        Args:
            robots: name -> what it does, on a thread of its own, given its port and a function that it calls once
                every decision, to wait for the others. Its port's first message is a `Hello`.

        Raises:
            whatever a robot raised; the others are ended first.
        """
        ports = {name: DirectPort(self.clock) for name in robots}
        self._turns = {name: _Turn(name, _bound(work, ports[name], self._back(name))) for name, work in robots.items()}
        try:
            while alive := [turn for turn in self._turns.values() if turn.alive]:
                for turn in alive:
                    turn.give()
                    if turn.error is not None:
                        raise turn.error
                self._deliver(ports)
        finally:
            for turn in self._turns.values():
                turn.end()

    def _back(self, name: str) -> Callable[[], None]:
        return lambda: self._turns[name].back()

    def _deliver(self, ports: Mapping[str, DirectPort]) -> None:
        """One decision's time goes by."""
        with self._lock:
            self.now += self._dt
            for name, port in ports.items():
                for message in port.sent():
                    self._hub.receive(name, message, self.now)
            self._hub.tick(self.now)
            self._tick(self._hub, self.now)
            for name, message in self._hub.drain():
                ports[name].deliver(message)
        if self._paced:
            self._due = max(self._due + self._dt, time.monotonic())  # what was late is not made up for
            time.sleep(max(self._due - time.monotonic(), 0.0))


def _bound(work: Callable, port: DirectPort, back: Callable[[], None]) -> Callable[[], None]:
    return lambda: work(port, back)
