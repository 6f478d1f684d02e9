"""The hub's socket: encrypted, open to enrolled members alone, on a thread of its own."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import zmq
import zmq.auth
from zmq.auth.thread import ThreadAuthenticator

from robot_fb.errors import ConfigError, ProtocolError
from robot_fb.fleet import keys
from robot_fb.fleet.hub import Hub
from robot_fb.fleet.protocol import MAX_BYTES, Hello, Refused, Who, decode, encode

logger = logging.getLogger(__name__)

R = TypeVar("R")

TICK_S = 0.02
"""Leases and silence are looked at that often [s]."""

BACKLOG = 500
"""Messages that may wait for one member; one that does not take them is gone."""


class Server:
    """Carries messages between members and a `Hub`. A context manager.

    Args:
        hub: the rules.
        folder: of `fleet.keys`; the hub's own pair is made if missing.
        address: to listen at, "tcp://127.0.0.1:*" for any free port.

    Attributes:
        address: where it really listens.
        refused: why messages were refused, the last few: (member, reason).

    Raises:
        ConfigError: the address cannot be used.
    """

    def __init__(self, hub: Hub, folder: Path, address: str = "tcp://127.0.0.1:*") -> None:
        keys.make_hub(folder)
        self._hub, self._folder = hub, folder
        self._names: dict[str, str] = {}  # public key -> name
        self._routes: dict[str, bytes] = {}  # name -> where its newest connection is
        self.refused: list[tuple[str, str]] = []
        self._lock, self._over = threading.Lock(), threading.Event()
        self._context = zmq.Context()
        self._auth = ThreadAuthenticator(self._context)
        self._socket = self._open(address)
        self.address = self._socket.getsockopt_string(zmq.LAST_ENDPOINT)
        self._wake, self._woken = self._context.socket(zmq.PUSH), self._context.socket(zmq.PULL)
        self._woken.bind("inproc://wake")
        self._wake.connect("inproc://wake")
        self._thread = threading.Thread(target=self._serve, name="hub", daemon=True)

    def __enter__(self) -> Server:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._over.set()
        self._thread.join()
        self._auth.stop()
        for socket in (self._socket, self._wake, self._woken):
            socket.close(linger=0)
        self._context.term()

    def do(self, what: Callable[[Hub, float], R]) -> R:
        """Calls `what(hub, now)` while nobody else touches the hub, and sends what came of it; from any thread."""
        with self._lock:
            found = what(self._hub, time.monotonic())
            with suppress(zmq.Again):
                self._wake.send(b"", zmq.NOBLOCK)
            return found

    def callback(self, domain: str, key: bytes) -> bool:
        """Whether the owner of a public key may connect: called by ZeroMQ at every connection."""
        name = keys.members(self._folder).get(key)
        if name is not None:
            self._names[key.decode()] = name
        return name is not None

    def _open(self, address: str) -> zmq.Socket:
        own = keys.pair(self._folder, keys.HUB)
        self._auth.start()
        self._auth.configure_curve_callback(credentials_provider=self)
        socket = self._context.socket(zmq.ROUTER)
        socket.curve_server, socket.curve_publickey, socket.curve_secretkey = True, own.public, own.secret
        socket.router_mandatory, socket.maxmsgsize = True, MAX_BYTES
        socket.sndhwm, socket.linger = BACKLOG, 0
        try:
            socket.bind(address)
        except zmq.ZMQError as error:
            raise ConfigError(f"the hub cannot listen at {address}", found=str(error)) from error
        return socket

    def _serve(self) -> None:
        poller = zmq.Poller()
        poller.register(self._socket, zmq.POLLIN)
        poller.register(self._woken, zmq.POLLIN)
        ticked = 0.0
        while not self._over.is_set():
            ready = dict(poller.poll(int(1000 * TICK_S)))
            if self._woken in ready:
                self._woken.recv()
            with self._lock:
                now = time.monotonic()
                for _ in range(100 if self._socket in ready else 0):
                    try:
                        frames: Any = self._socket.recv_multipart(zmq.NOBLOCK, copy=False)
                    except zmq.Again:
                        break
                    self._take(frames, now)
                if now - ticked > TICK_S:
                    ticked = now
                    self._hub.tick(now)
                self._send()

    def _take(self, frames: list[zmq.Frame], now: float) -> None:
        name = self._names.get(str(frames[-1].get("User-Id")))
        route = frames[0].bytes
        if name is None or len(frames) != 2:
            return
        try:
            message = decode(frames[1].bytes)
            if not self._may_speak(name, route):
                raise ProtocolError(f"a robot of the name {name} is connected already")
            if isinstance(message, Hello):
                self._routes[name] = route
            elif self._routes.setdefault(name, route) != route:
                self._socket.send_multipart([route, encode(Who())], zmq.NOBLOCK)
                return
            self._hub.receive(name, message, now)
        except zmq.ZMQError:
            return
        except ProtocolError as error:
            if (name, str(error)) not in self.refused:
                logger.warning("%s: %s", name, error)
                self.refused = [*self.refused[-19:], (name, str(error))]
            with suppress(zmq.ZMQError):
                self._socket.send_multipart([route, encode(Refused(str(error)))], zmq.NOBLOCK)

    def _may_speak(self, name: str, route: bytes) -> bool:
        """A second robot under a living one's name stays out; a restarted one comes back when the first is silent."""
        seen = self._hub.members.get(name)
        return seen is None or seen.away or self._routes.get(name) == route

    def _send(self) -> None:
        for name, message in self._hub.drain():
            route = self._routes.get(name)
            try:
                if route is not None:
                    self._socket.send_multipart([route, encode(message)], zmq.NOBLOCK)
            except zmq.ZMQError:  # closed, or it does not take what is sent
                self._hub.gone(name)
