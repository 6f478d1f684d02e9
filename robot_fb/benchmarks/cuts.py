"""Every link between an operator's hand and a robot is cut in turn while the hand moves it; how long does it move on?

Page, hub and robot are processes of their own, as they would be; time is the machine's monotonic clock, which all of
them share. The robot is simulated in real time.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any
from urllib.request import Request as Ask
from urllib.request import urlopen

import numpy as np
from rich.console import Console
from rich.progress import track
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect
from websockets.typing import Origin

from robot_fb.console.app import Fleet
from robot_fb.console.serve import Console as Page
from robot_fb.console.serve import ConsoleConfig
from robot_fb.episodes.store import Store
from robot_fb.errors import RobotFbError
from robot_fb.fleet import keys
from robot_fb.fleet.archive import Archive
from robot_fb.fleet.hub import Hub
from robot_fb.fleet.link import Link
from robot_fb.fleet.member import Crew, Member, hello
from robot_fb.fleet.server import Server
from robot_fb.interfaces import Robot
from robot_fb.runtime.gym_robot import GymRobot
from robot_fb.runtime.handshake import State
from robot_fb.runtime.safety import Wrapped
from robot_fb.runtime.tasks import find_task
from robot_fb.types import ActionChunk, EpisodeMeta, Obs, PolicySpec, Step, StreamSpec

SPAWN = multiprocessing.get_context("spawn")

TASK, CAMERA = "pick_place", "camera/made_up"

DARK, STEPS = "dark", "steps"
"""Files: while the first is there the camera is frozen; the second holds a line for each decision."""

LINKS = ("console", "hub", "member", "camera")
"""The page's connection goes dead; the hub is killed; the robot's connection goes dead; its cameras freeze."""

NAME = "robot"
SENDS_S, AGAIN_S = 1 / 60, 0.2
PATIENCE_S = 30.0

CALM_S, DARK_S = 0.4, 0.5
"""The hand moves the robot for that long before a cut, and a cut lasts that long [s]."""


def measure(count: int) -> list[dict[str, Any]]:
    """A row for each link: how long the robot moved on after each of `count` cuts [ms]."""
    rows = []
    for link in LINKS:
        rng, late = np.random.default_rng(LINKS.index(link)), []
        with tempfile.TemporaryDirectory() as folder, _Scene(Path(folder)) as scene:
            for _ in track(range(count), f"cut: {link}", console=Console(stderr=True)):
                scene.move(CALM_S + rng.uniform(0, 0.1))
                late.append(1000 * scene.cut(link))
        rows.append({
            "cut": link, "cuts": count, "stops_within_ms": float(np.max(late)), "median_ms": float(np.median(late)),
            "target": "at most 100 ms",
        })
    return rows


class _Scene:
    """A hub with its page, a robot that has joined, and an operator's page with a hand."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._page, self._hub_port, self._proxy_port = folder, *(_free_port() for _ in range(3))

    def __enter__(self) -> _Scene:
        keys.make_hub(self._folder / "keys")
        keys.enrol(self._folder / "keys", NAME)
        self._proxy = _start(_forward, self._proxy_port, self._hub_port)
        self._open_hub()
        self._robot = _start(_work, self._folder, self._proxy_port)
        return self

    def __exit__(self, *exc: object) -> None:
        self._hand.close()
        for process in (self._proxy, self._hub, self._robot):
            process.kill()
            process.join()

    def move(self, seconds: float) -> None:
        """The hand has the robot, and moves it for a while."""
        end, since = time.monotonic() + PATIENCE_S, None
        while time.monotonic() < end:
            self._hand.take()
            moving = bool(self._steps()) and self._steps()[-1][1] == "human"
            since = (since or time.monotonic()) if moving else None
            if since is not None and time.monotonic() - since > seconds:
                return
            time.sleep(0.01)
        raise RobotFbError("the robot never came into the hand", found=self._hand.why)

    def cut(self, link: str) -> float:
        """Cuts a link; returns how long the robot moved on [s]. Afterwards all is as before."""
        dark, cut = self._folder / DARK, time.monotonic()
        if link == "console":
            self._hand.mute = True
        elif link == "hub":
            self._hub.kill()
        elif link == "member":
            os.kill(self._proxy.pid or 0, signal.SIGSTOP)
        else:
            dark.touch()
        time.sleep(DARK_S)
        after = [(at, source) for at, source in self._steps() if at > cut]
        stopped = next((at for at, source in after if source != "human"), None)
        if stopped is None or any(source == "human" and stopped < at < cut + DARK_S for at, source in after):
            raise RobotFbError(f"the robot moved on after a cut of the link to the {link}")
        self._hand.mute = False
        dark.unlink(missing_ok=True)
        os.kill(self._proxy.pid or 0, signal.SIGCONT)
        if link == "hub":
            self._hub.join()
            self._hand.close()
            self._open_hub()
        return stopped - cut

    def _open_hub(self) -> None:
        ours, theirs = SPAWN.Pipe()
        self._hub = _start(_serve, self._folder, self._hub_port, self._page, theirs)
        if not ours.poll(PATIENCE_S):
            raise RobotFbError("the hub did not start")
        self._hand = _Hand(ours.recv())

    def _steps(self) -> list[tuple[float, str]]:
        """The robot's last decisions: (when it was sent, who decided)."""
        path = self._folder / STEPS
        lines = path.read_text(encoding="utf-8").splitlines()[-40:] if path.exists() else []
        pairs = [line.split() for line in lines]
        return [(float(pair[0]), pair[1]) for pair in pairs if len(pair) == 2]


def _start(target: Callable[..., None], *words: Any) -> Any:
    process = SPAWN.Process(target=target, args=words, daemon=True)
    process.start()
    return process


def _serve(folder: Path, port: int, page: int, told: Any) -> None:
    """The process of hub and page."""
    hub, fleet = Hub(post=Archive(Store(folder / "hub", create=True), folder / "incoming")), Fleet()
    address = f"tcp://127.0.0.1:{port}"
    with Server(hub, folder / "keys", address) as server, Page(fleet, ConsoleConfig(port=page)) as shown:
        fleet.attach(server.do)
        told.send(shown.address)
        threading.Event().wait()


def _work(folder: Path, port: int) -> None:
    """The process of the robot: one long episode in real time, whose every decision is noted."""
    with GymRobot(find_task(TASK).make(cameras=False, max_episode_steps=10**9)) as bare, ExitStack() as stack:
        robot = _Seeing(bare, folder / DARK)
        store = Store(folder / "robot", create=True)
        found = hello(robot, TASK, "none", State.AUTONOMOUS)
        address = f"tcp://127.0.0.1:{port}"
        link = stack.enter_context(Link(found, folder / "keys", NAME, address, store, folder / "releases"))
        crew = Crew(_Idle(robot), "none")
        member = Member(NAME, robot, crew, TASK, "nobody", link, store, pictures_age=robot.pictures_age)
        member.episode(0, listeners=[stack.enter_context(_Notes(folder / STEPS))])


class _Seeing(Wrapped):
    """A simulated robot with a made-up camera, which freezes while a file is there."""

    def __init__(self, robot: Robot, dark: Path) -> None:
        super().__init__(robot)
        self.streams: Mapping[str, StreamSpec] = {**robot.streams, CAMERA: StreamSpec((8, 8, 3), "uint8")}
        self._dark, self._seen = dark, time.monotonic()

    def reset(self, seed: int | None = None) -> Obs:
        """With a picture."""
        self.robot.reset(seed)
        return self.read()

    def read(self) -> Obs:
        """With a picture."""
        return {**self.robot.read(), CAMERA: np.zeros((8, 8, 3), np.uint8)}

    def pictures_age(self) -> float:
        """How old the picture is [s]."""
        if not self._dark.exists():
            self._seen = time.monotonic()
        return time.monotonic() - self._seen


class _Idle:
    """A policy that stays where it is."""

    def __init__(self, robot: Robot) -> None:
        self.spec = PolicySpec(TASK, robot.streams, robot.action, robot.dt)

    def reset(self, seed: int | None = None) -> None:
        pass

    def act(self, obs: Obs) -> ActionChunk:
        return ActionChunk(np.zeros((1, self.spec.action.dim), np.float32), self.spec.dt)

    def embed(self, obs: Obs) -> np.ndarray:
        return np.zeros(0, np.float32)


class _Notes:
    """A subscriber that notes when each decision was sent, and whose it was."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w", buffering=1)

    def __enter__(self) -> _Notes:
        return self

    def __exit__(self, *exc: object) -> None:
        self._file.close()

    def on_start(self, meta: EpisodeMeta) -> None:
        pass

    def on_step(self, step: Step) -> None:
        self._file.write(f"{time.monotonic()} {step.source}\n")

    def on_end(self, success: bool, info: object) -> None:
        pass


def _forward(port: int, to: int) -> None:
    """The process between robot and hub: passes bytes on, until it is halted."""
    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            other_reader, other_writer = await asyncio.open_connection("127.0.0.1", to)
        except OSError:
            writer.close()
            return
        await asyncio.gather(_pass_on(reader, other_writer), _pass_on(other_reader, writer))

    async def serve() -> None:
        async with await asyncio.start_server(meet, "127.0.0.1", port) as server:
            await server.serve_forever()

    asyncio.run(serve())


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.close()


class _Hand:
    """A page without a browser: takes the robot, and steers sixty times a second on the newest picture."""

    def __init__(self, address: str) -> None:
        origin, _, token = address.partition("/#token=")
        body = json.dumps({"token": token, "name": "bench"}).encode()
        with urlopen(Ask(f"{origin}/login", body, {"Origin": origin})) as answer:
            cookie = answer.headers["set-cookie"].partition(";")[0]
        self.why, self.mute = "", False
        live = origin.replace("http", "ws") + "/live"
        self._stack = ExitStack()
        self._socket = self._stack.enter_context(
            connect(live, origin=Origin(origin), additional_headers={"Cookie": cookie}, close_timeout=1)
        )
        self._stamp, self._holder, self._sequence, self._asked = None, "", 0, 0.0
        self._over = threading.Event()
        for work in (self._hear, self._steer):
            threading.Thread(target=work, daemon=True).start()

    def take(self) -> None:
        """Asks for the robot unless it is in the hand."""
        if self._holder != "bench" and time.monotonic() - self._asked > AGAIN_S:
            self._asked = time.monotonic()
            self._say(kind="watch", robot=NAME)
            self._say(kind="take", robot=NAME)

    def close(self) -> None:
        """Goes away."""
        self._over.set()
        self._stack.close()

    def _hear(self) -> None:
        try:
            while not self._over.is_set():
                message: Mapping[str, Any] = json.loads(self._socket.recv())
                if message["kind"] == "picture":
                    self._stamp = message["stamp"]
                elif message["kind"] == "fleet":
                    self._holder = next((each["holder"] for each in message["robots"] if each["name"] == NAME), "")
                elif message["kind"] == "no":
                    self.why = message["why"]
        except (ConnectionClosed, OSError):
            pass

    def _steer(self) -> None:
        while not self._over.wait(SENDS_S):
            if self._holder == "bench" and self._stamp is not None:
                self._sequence += 1
                self._say(
                    kind="steer", robot=NAME, action=[0.002, 0, 0, 0, 0], held=True, sequence=self._sequence,
                    picture=self._stamp,
                )
            else:
                self._say(kind="ping", t=0)

    def _say(self, **message: Any) -> None:
        if self.mute:
            return
        try:
            self._socket.send(json.dumps(message))
        except (ConnectionClosed, OSError):
            self._over.set()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]
