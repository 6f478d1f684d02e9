"""One robot of a fleet: runs its episodes, logs them, says how it is, and asks when it needs a person."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import cv2
import numpy as np

from robot_fb.fleet.link import Port
from robot_fb.fleet.protocol import Hello, Mark, Picture, Request, Status
from robot_fb.interfaces import EpisodeStore, FailureDetector, Policy, Robot, Subscriber
from robot_fb.runtime.handshake import Event
from robot_fb.runtime.loop import RunResult, run
from robot_fb.runtime.recorder import Recorder
from robot_fb.runtime.shared_control import SharedControl
from robot_fb.types import EpisodeMeta, Evaluation, Feedback, Language, Obs, Outcome, Step

PRESSES_HARD_N = 40.0
"""A robot that presses this hard when it asks goes before all others: what it holds may break [N]."""

JPEG_QUALITY = 80

PICTURES_LIFE_S = 0.05
"""A person moves a robot no further whose cameras have shown nothing new for that long [s]: with a decision of 50 ms,
motion ends within 100 ms of a camera's last frame."""


@dataclass
class Crew:
    """Who drives a member: exchanged as one between episodes.

    Attributes:
        policy: that moves it.
        digest: of the policy.
        monitors: that watch the policy.
    """

    policy: Policy
    digest: str
    monitors: Mapping[str, FailureDetector] = field(default_factory=dict)


class HubDesk:
    """An `interfaces.Desk` at the hub.

    Args:
        port: to the hub.
        reporter: knows how hard the robot presses.
    """

    def __init__(self, port: Port, reporter: Reporter) -> None:
        self._port, self._reporter = port, reporter

    def ask(self, risk: float, reason: str) -> None:
        """Puts the robot into the hub's queue."""
        irreversible = min(1.0, self._reporter.force / PRESSES_HARD_N)
        self._port.send(Request(min(risk, 1e6), reason or "called", irreversible))

    def poll(self) -> Sequence[Event]:
        """What was said since the last poll."""
        return self._port.events()


class Reporter:
    """A `Subscriber` that tells the hub of every decision.

    Args:
        port: to the hub.
        clock: the member's monotonic time [s].
        pictures_age: how old the newest frame of the slowest camera is [s].

    Attributes:
        force: measured at the last decision [N].
        episodes: that have begun.
    """

    def __init__(
        self, port: Port, clock: Callable[[], float] = time.monotonic,
        pictures_age: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self.force, self.episodes = 0.0, 0
        self._port, self._clock, self._pictures_age = port, clock, pictures_age
        self._control: SharedControl | None = None

    def watch(self, control: SharedControl) -> None:
        """Whose state is reported."""
        self._control = control

    def on_start(self, meta: EpisodeMeta) -> None:
        """Counts."""
        self.episodes += 1

    def on_step(self, step: Step) -> None:
        """Says how the robot is, and what it sees while somebody watches."""
        control, port, stamp = self._control, self._port, self._clock()
        assert control is not None
        state = control.handshake.state
        port.stands(state)
        self.force, touch = force_of(step.obs), touch_of(step.obs)
        risk = min(max(step.scores.values(), default=0.0), 1e6)
        port.send(Status(
            stamp, state, risk, self.force, touch, self.episodes, step.success, control.reason, port.refused,
            tuple(map(float, step.executed)),
        ))
        for name in [name for name in step.obs if port.watched and name.startswith("camera/")]:
            sound, data = cv2.imencode(
                ".jpg", cv2.cvtColor(step.obs[name], cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY]
            )
            if sound:
                port.send(Picture(name, stamp - self._pictures_age(), data.tobytes()))

    def on_end(self, success: bool, info: Mapping[str, Any]) -> None:
        """Nothing to do."""


class Marks:
    """An `interfaces.FeedbackSource` of what the operator says about the episode.

    Args:
        port: to the hub.
    """

    def __init__(self, port: Port) -> None:
        self._port = port

    def poll(self, now: float) -> list[Feedback]:
        """Events since the last poll."""
        return [_feedback(mark, now) for mark in self._port.marks()]


class Member:
    """A robot with its crew, its log, and its port to the hub.

    Args:
        name: in the fleet, and in its log.
        robot: that it is.
        crew: that drives it.
        task: its name.
        by: who acts, for the log.
        port: to the hub.
        store: its log.
        human: the operator's command; the port's own by default.
        paced: in real time.
        clock: monotonic time [s].
        pictures_age: how old the newest frame of the slowest camera is [s]; a simulation's are always new.

    Attributes:
        crew: may be exchanged between episodes.
        control: the arbiter.
    """

    def __init__(
        self,
        name: str,
        robot: Robot,
        crew: Crew,
        task: str,
        by: str,
        port: Port,
        store: EpisodeStore,
        *,
        human: Callable[[], np.ndarray | None] | None = None,
        paced: bool = True,
        clock: Callable[[], float] = time.monotonic,
        pictures_age: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self.crew, self.name = crew, name
        self._robot, self._task, self._by, self._paced = robot, task, by, paced
        self._human, self._pictures_age = port.human if human is None else human, pictures_age
        self._reporter = Reporter(port, clock, pictures_age)
        self.control = SharedControl(robot, HubDesk(port, self._reporter))
        self._reporter.watch(self.control)
        self.recorder = Recorder(store, feedback=Marks(port))

    def episode(
        self, seed: int | None, max_steps: int | None = None, listeners: Sequence[Subscriber] = ()
    ) -> RunResult:
        """Runs and logs one episode.

        Args:
            seed: of the reset.
            max_steps: decisions at most.
            listeners: are told of it, too.
        """
        robot = self._robot
        meta = EpisodeMeta(self._task, self._by, robot.streams, robot.action, robot.dt, seed, self.name)
        return run(
            robot, self.crew.policy, self.control, self.crew.monitors,
            [self.control, self._reporter, self.recorder, *listeners], meta,
            human=self._seeing_human, max_steps=max_steps, paced=self._paced,
        )

    def _seeing_human(self) -> np.ndarray | None:
        """A person's command, while the cameras still show what it does."""
        command = self._human()
        return command if self._pictures_age() <= PICTURES_LIFE_S else None


def hello(robot: Robot, task: str, digest: str, state: str) -> Hello:
    """How a member introduces itself."""
    return Hello(task, robot.dt, robot.action.low, robot.action.high, digest, state)


def force_of(obs: Obs) -> float:
    """The newest force on the tool [N]; 0 where nothing measures it."""
    found = [np.linalg.norm(obs[name][-1, :3]) for name in obs if name.startswith("wrench/")]
    return float(max(found, default=0.0))


def touch_of(obs: Obs) -> float:
    """Sum of all that presses on tactile elements [N]; 0 where there are none."""
    return float(sum(np.abs(obs[name][0]).sum() for name in obs if name.startswith("tactile/")))


def _feedback(mark: Mark, now: float) -> Feedback:
    """What an operator said, as an event of the episode that is being recorded."""
    if mark.what in ("success", "failure"):
        return Outcome("", mark.what == "success", mark.author, mark.text)
    if mark.what in ("good", "bad"):
        return Evaluation("", now, 1.0 if mark.what == "good" else -1.0, mark.author)
    return Language("", now, now, mark.text, mark.author)
