"""A member's connection to its hub, on a thread of its own. The robot never waits for it, and does not depend on it."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import numpy as np
import zmq

from robot_fb.episodes.store import Store
from robot_fb.errors import ProtocolError
from robot_fb.fleet import keys
from robot_fb.fleet.protocol import (
    MAX_BYTES,
    Beat,
    Guide,
    Hello,
    Kept,
    Mark,
    Message,
    Offer,
    Piece,
    Ping,
    Refused,
    Request,
    Said,
    Steer,
    Want,
    Watch,
    Who,
    Work,
    decode,
    encode,
)
from robot_fb.fleet.transfer import Incoming, answer, offer
from robot_fb.runtime.handshake import Event, State
from robot_fb.runtime.teleop import Command, Deadman

logger = logging.getLogger(__name__)

PING_S = 0.02
"""While an operator has the robot it asks that often whether the hub is there [s]."""

BEAT_LIFE_S = 0.05
"""On the way back, which needs no hand, the hub must have been heard within that time [s]."""

LEASE_LIFE_S = 1.0
"""A lease is over when the hub was not heard for that long [s]. A hand's commands end with its deadman, long before."""

AGAIN_S = 2.0
"""An offer is made again after that time without an answer [s]."""


class Port(Protocol):
    """What a member needs of its hub: over a socket, or in the same process for a simulated fleet."""

    watched: bool
    """Whether somebody looks at the pictures."""

    refused: str
    """Why the newest command was refused."""

    guided: float | None
    """How tired the simulated operator is who has the robot; None: it has not."""

    until: int | None
    """Episodes after which none begins; None: no limit."""

    def send(self, message: Message) -> None:
        """Says something; never blocks."""
        ...

    def events(self) -> Sequence[Event]:
        """What was said since the last call."""
        ...

    def marks(self) -> Sequence[Mark]:
        """What an operator said about the episode since the last call."""
        ...

    def human(self) -> np.ndarray | None:
        """(action_dim,) the operator's command now, or None."""
        ...

    def stands(self, state: State) -> None:
        """Where the robot stands now."""
        ...


class Link:
    """A `Port` over an encrypted socket. A context manager.

    Args:
        hello: what the member is.
        folder: of `fleet.keys`: the member's own pair, and the hub's public key.
        name: of the member.
        address: of the hub.
        store: of the member: its episodes are brought to the hub, and removed here once the hub has them whole.
        releases: folder for what the hub rolls out.

    Attributes:
        problem: why the hub refuses this member; empty while it does not.
        release: file of the newest release, None before the first.
    """

    def __init__(self, hello: Hello, folder: Path, name: str, address: str, store: Store, releases: Path) -> None:
        self.watched, self.refused = False, ""
        self.guided: float | None = None
        self.until: int | None = None
        self.problem = ""
        self.release: Path | None = None
        self.hello = hello
        self._store, self._releases = store, releases
        releases.mkdir(parents=True, exist_ok=True)
        self._incoming = Incoming(releases / "parts", releases.joinpath, self._released)
        self._deadman = Deadman()
        self._state = State.AUTONOMOUS
        self._request: Request | None = None
        self._said: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._marked: queue.SimpleQueue[Mark] = queue.SimpleQueue()
        self._out: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._offered: dict[str, tuple[Offer, float]] = {}
        self._heard, self._pinged, self._count = 0.0, 0.0, 0
        self._over = threading.Event()
        self._context = zmq.Context()
        own, hub = keys.pair(folder, name), keys.public(folder)
        self._socket = self._context.socket(zmq.DEALER)
        self._socket.curve_publickey, self._socket.curve_secretkey = own.public, own.secret
        self._socket.curve_serverkey, self._socket.maxmsgsize = hub, MAX_BYTES
        self._socket.immediate, self._socket.linger, self._socket.sndhwm = True, 200, 100
        self._socket.reconnect_ivl, self._socket.reconnect_ivl_max = 50, 500
        self._socket.connect(address)
        self._thread = threading.Thread(target=self._work, name="link", daemon=True)

    def __enter__(self) -> Link:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._over.set()
        self._thread.join()
        self._socket.close()
        self._context.term()

    def send(self, message: Message) -> None:
        """Says something soon; what cannot be said at once, for want of a connection, is passed over."""
        if isinstance(message, Request):
            self._request = message
        self._out.put(message)

    def events(self) -> list[Event]:
        """What was said since the last call; a link that has broken down is a lost one."""
        return _all(self._said) if self._thread.is_alive() else [Event.LOST]

    def marks(self) -> list[Mark]:
        """What an operator said about the episode since the last call."""
        return _all(self._marked)

    def human(self) -> np.ndarray | None:
        """(action_dim,) the operator's command now, or None."""
        return self._deadman.command()

    def stands(self, state: State) -> None:
        """Where the robot stands; the next hand counts its commands anew."""
        if state is State.LEASED and self._state not in (State.LEASED, State.HUMAN, State.REWIND):
            self._heard = time.monotonic()
            self._deadman.let_go()
        if state not in (State.FROZEN, State.REQUESTED):
            self._request = None
        self._state = state

    def unsent(self) -> list[str]:
        """Episodes that the hub does not have yet."""
        return [entry.id for entry in self._store.entries()]

    def _work(self) -> None:
        poller = zmq.Poller()
        poller.register(self._socket, zmq.POLLIN)
        self._tell(self.hello)
        while not self._over.is_set():
            if poller.poll(5):
                with suppress(zmq.Again):
                    while True:
                        self._take(self._socket.recv(zmq.NOBLOCK))
            for message in _all(self._out):
                self._tell(message)
            now = time.monotonic()
            self._beat(now)
            self._offer(now)

    def _take(self, data: bytes) -> None:
        try:
            message = decode(data)
            match message:
                case Beat():
                    self._heard = time.monotonic()
                case Who():
                    self._introduce()
                case Refused():
                    self.problem = message.reason
                    logger.warning("the hub refuses: %s", message.reason)
                case Said():
                    if message.event in (Event.GRANTED, Event.LOST, Event.HANDED_BACK):
                        self.guided = None
                    self._said.put(Event(message.event))
                case Guide():
                    self.guided = message.tired
                case Mark():
                    self._marked.put(message)
                case Watch():
                    self.watched = message.on
                case Work():
                    self.until = message.until
                case Steer():
                    action = np.array(message.action, np.float32)
                    command = Command(action, message.held, message.sequence, message.picture)
                    self.refused = self._deadman.give(command)
                case Want():
                    self._offered = {name: (found, time.monotonic()) for name, (found, _) in self._offered.items()}
                    self._tell(answer(message, self._store.file(message.name)))
                case Kept():
                    self._kept(message.name)
                case Offer() | Piece():
                    for reply in self._incoming.receive(message):
                        self._tell(reply)
                case _:
                    pass  # only a member says the rest
        except (ProtocolError, ValueError, OSError) as error:
            logger.warning("a message of the hub is passed over: %s", error)

    def _tell(self, message: Message) -> None:
        try:
            self._socket.send(encode(message), zmq.NOBLOCK)
        except zmq.Again:
            pass
        except ProtocolError as error:
            logger.error("a message cannot be sent: %s", error)

    def _introduce(self) -> None:
        """The hub does not know this member: it was restarted, or the connection was lost."""
        self.problem = ""
        self._tell(self.hello)
        self._offered.clear()
        if self._request is not None:
            self._tell(self._request)

    def _beat(self, now: float) -> None:
        """While an operator has the robot: is the hub still there?"""
        if self._state not in (State.LEASED, State.HUMAN, State.REWIND):
            return
        if now - self._pinged > PING_S:
            self._pinged, self._count = now, self._count + 1
            self._tell(Ping(self._count))
        if now - self._heard > (BEAT_LIFE_S if self._state is State.REWIND else LEASE_LIFE_S):
            self._heard = now
            self._said.put(Event.LOST)

    def _offer(self, now: float) -> None:
        """Offers the oldest episode that the hub does not have."""
        waiting = sorted(self._store.episodes.glob("*.mcap"))[:1] if self._due(now) else []
        for path in waiting:
            found = offer(path.name.removesuffix(".mcap"), path)
            self._offered = {found.name: (found, now)}
            self._tell(found)

    def _due(self, now: float) -> bool:
        return all(now - when > AGAIN_S for _, when in self._offered.values())

    def _kept(self, name: str) -> None:
        """The hub has it whole: it need not lie here any more."""
        if name in self._offered:
            self._store.file(name).unlink(missing_ok=True)
            del self._offered[name]

    def _released(self, name: str) -> None:
        self.release = self._releases / name


def _all(source: queue.SimpleQueue) -> list:
    return [source.get() for _ in range(source.qsize())]
