"""A hub, members that run a made-up robot on threads of their own, and the sockets between them."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack

import numpy as np
import pytest

from robot_fb.episodes.store import Store
from robot_fb.fleet import keys
from robot_fb.fleet.archive import Archive
from robot_fb.fleet.hub import Hub
from robot_fb.fleet.link import Link
from robot_fb.fleet.member import Crew, Member, hello
from robot_fb.fleet.server import Server
from robot_fb.types import ActionChunk, ActionSpec, PolicySpec, StepOutcome, StreamSpec


class Rail:
    """A robot on a rail with a camera; it keeps when it was moved. Ends well at 1."""

    streams = {  # noqa: RUF012
        "position": StreamSpec((1,), unit="m"), "camera/front": StreamSpec((8, 8, 3), "uint8"),
        "wrench/wrist": StreamSpec((1, 6), unit="N, N·m"),
    }
    action, dt = ActionSpec((-0.1,), (0.1,), ("dx [m]",)), 0.05

    def __init__(self):
        self.x, self.moved = 0.0, []

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        pass

    def reset(self, seed=None):
        self.x = 0.0
        return self.read()

    def read(self):
        return {
            "position": np.array([self.x], np.float32), "camera/front": np.full((8, 8, 3), 100, np.uint8),
            "wrench/wrist": np.array([[3.0, 4.0, 0, 0, 0, 0]], np.float32),
        }

    def write(self, action):
        self.x += float(action[0])
        if action[0]:
            self.moved.append(time.monotonic())
        return action

    def outcome(self):
        return StepOutcome(success=self.x > 1, terminated=self.x > 1)

    def still(self):
        return np.zeros(1, np.float32)

    def stop(self):
        pass


class Slow:
    """A policy that moves by a millimetre, once it is let."""

    spec = PolicySpec("rail", Rail.streams, Rail.action, Rail.dt)

    def reset(self, seed=None):
        pass

    def act(self, obs):
        return ActionChunk(np.array([[0.001]], np.float32), 0.05)

    def embed(self, obs):
        return np.zeros(0, np.float32)


class Risk:
    """A monitor that says what a test has set."""

    def __init__(self):
        self.now = 0.0

    def calibrate(self, successes, alpha):
        pass

    def reset(self):
        self.now = 0.0

    def score(self, obs, chunk):
        return self.now


class Running:
    """A member at work on a thread."""

    def __init__(self, place, name, max_steps=400):
        self.robot, self.risk = Rail(), Risk()
        self.store = Store(place.folder / name, create=True)
        found = hello(self.robot, "rail", "abc", "autonomous")
        self.link = Link(found, place.keys, name, place.address, self.store, place.folder / f"{name}-releases")
        crew = Crew(Slow(), "abc", {"risk": self.risk})
        self.member = Member(name, self.robot, crew, "rail", "slow", self.link, self.store)
        self.thread = threading.Thread(target=lambda: self.member.episode(0, max_steps), daemon=True)

    @property
    def state(self):
        return self.member.control.handshake.state

    def __enter__(self):
        self.link.__enter__()
        self.thread.start()
        return self

    def __exit__(self, *exc):
        self.robot.x = 2.0
        self.thread.join(5)
        self.link.__exit__()


class Place:
    """A hub's folder and socket, and whoever joins."""

    def __init__(self, folder):
        self.folder, self.keys = folder, folder / "keys"
        self.store = Store(folder / "hub", create=True)
        self.arrived = []
        self.stack = ExitStack()
        self.address = "tcp://127.0.0.1:*"
        self.start()

    def start(self):
        self.archive = Archive(
            self.store, self.folder / "incoming", lambda name, episode: self.arrived.append((name, episode))
        )
        self.hub = Hub(post=self.archive)
        self.server = Server(self.hub, self.keys, self.address)
        self.address = self.server.address
        self.server.__enter__()

    def stop(self):
        self.server.__exit__()

    def join(self, name, **options):
        keys.enrol(self.keys, name)
        return self.stack.enter_context(Running(self, name, **options))

    def do(self, what):
        return self.server.do(what)

    def wait(self, truth, seconds=5.0):
        """Until it is true."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if truth():
                return
            time.sleep(0.005)
        raise AssertionError("it did not become true in time")


@pytest.fixture
def place(tmp_path):
    made = Place(tmp_path)
    yield made
    made.stack.close()
    made.stop()
