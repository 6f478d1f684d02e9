"""A hub with two made-up robots behind a real server, and browsers that say whatever a test wants."""

from __future__ import annotations

import json
import socket
import threading
import time
import urllib.error
import urllib.request

import pytest
from websockets.sync.client import connect

from robot_fb.console.app import Fleet
from robot_fb.console.serve import Console, ConsoleConfig
from robot_fb.console.talk import Shift
from robot_fb.fleet.hub import Hub
from robot_fb.fleet.protocol import Hello, Picture, Request, Status, Steer


class Robots:
    """Two robots in one hub, whose clock is real."""

    def __init__(self):
        self.hub, self.lock, self.said = Hub(), threading.Lock(), []
        for name in ("one", "two"):
            self.hear(name, Hello("rail", 0.05, (-1.0, -1.0), (1.0, 1.0), "abc", "autonomous"))
            self.hear(name, status("autonomous"))

    def do(self, what):
        with self.lock:
            found = what(self.hub, time.monotonic())
            self.said += self.hub.drain()
            return found

    def hear(self, name, message):
        self.do(lambda hub, now: hub.receive(name, message, now))

    def asks(self, name):
        self.hear(name, status("requested"))
        self.hear(name, Request(2.0, "risk 2.00 of 1", 0.5))

    def shows(self, name, stamp):
        self.hear(name, Picture("camera/front", stamp, b"\xff\xd8jpeg"))

    def steered(self):
        return [(name, message) for name, message in self.said if isinstance(message, Steer)]


def status(state):
    return Status(1.0, state, 0.5, 2.0, 3.0, 1, False, "", "", (0.0, 1.0))


class Browser:
    """Logs in and talks as a page does, or as no page would."""

    def __init__(self, console, host=""):
        address, _, self.token = console.address.partition("/#token=")
        self.viewer_token = console.viewers_address.partition("/#token=")[2]
        self.address, self.cookie = address, ""
        self.host = host or address.removeprefix("http://")

    def request(self, path, body=None, **headers):
        """(status, JSON or text, headers)."""
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Host": self.host, "Origin": self.address, "Cookie": self.cookie, **headers}
        request = urllib.request.Request(self.address + path, data, {k: v for k, v in headers.items() if v})
        try:
            with urllib.request.urlopen(request, timeout=5) as answer:
                return answer.status, answer.read().decode(), answer.headers
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode(), error.headers

    def login(self, token=None, name="ann"):
        """Status of the answer; keeps the session."""
        status, _, headers = self.request("/login", {"token": self.token if token is None else token, "name": name})
        self.cookie = (headers["set-cookie"] or "").partition(";")[0]
        return status

    def live(self, origin=None, cookie=None):
        """An open web socket."""
        headers = {"Cookie": self.cookie if cookie is None else cookie}
        return connect(
            self.address.replace("http", "ws") + "/live", origin=self.address if origin is None else origin,
            additional_headers=headers, open_timeout=5,
        )


def say(socket, kind, **fields):
    socket.send(json.dumps({"kind": kind, **fields}))


def hear(socket, kind, sound=lambda message: True, seconds=5.0):
    """The next message of a kind that satisfies a test."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        message = json.loads(socket.recv(timeout=seconds))
        if message["kind"] == kind and sound(message):
            return message
    raise AssertionError(f"no {kind} was heard")


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@pytest.fixture
def robots():
    return Robots()


@pytest.fixture
def shift():
    return Shift(simulated=True)


@pytest.fixture
def console(robots, shift):
    fleet = Fleet(shift)
    fleet.attach(robots.do)
    with Console(fleet, ConsoleConfig(port=free_port())) as page:
        yield page


@pytest.fixture
def browser(console):
    return Browser(console)
