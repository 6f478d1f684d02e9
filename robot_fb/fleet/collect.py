"""A round of a simulated fleet: every robot runs episodes, asks when its monitor alarms, and one operator helps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from robot_fb.episodes.store import Store
from robot_fb.episodes.writer import WriterConfig
from robot_fb.errors import ConfigError
from robot_fb.fleet.hand import Guided
from robot_fb.fleet.hub import Hub
from robot_fb.fleet.member import Crew, Member, hello
from robot_fb.fleet.operator import SimulatedOperator
from robot_fb.fleet.simulated import DirectPort, SimulatedFleet
from robot_fb.interfaces import FailureDetector, Policy, Robot
from robot_fb.runtime.gym_robot import GymRobot
from robot_fb.runtime.handshake import State
from robot_fb.runtime.monitor import load_monitor
from robot_fb.runtime.tasks import find_task
from robot_fb.teachers.operator import Hand, Skill
from robot_fb.training.checkpoint import check_fits, load_policy, policy_digest
from robot_fb.types import EpisodeMeta, Step

PATIENCE = 2
"""An episode of a fleet may take so many times the task's own limit: the robot may have to wait for help."""

Watch = Callable[[Policy, Robot], FailureDetector]
"""Makes the monitor of one robot."""


Do = Callable[[Callable[[Hub, float], Any]], Any]
"""Calls a function of (hub, now) while nobody else touches the hub."""


@dataclass(frozen=True)
class Desk:
    """A person's place beside the fleet, which then runs in real time.

    Attributes:
        attach: called with the way to the hub when a round begins, and with None when it is over.
        simulated: whether the simulated operator is to work now.
    """

    attach: Callable[[Do | None], None]
    simulated: Callable[[], bool]


@dataclass(frozen=True)
class Lasted:
    """One episode of a fleet.

    Attributes:
        robot: whose.
        seed: of the reset.
        success: whether it ended in success.
        seconds: it took [s].
        human_s: a person's hand was on the robot [s].
        asked: how often the robot asked.
    """

    robot: str
    seed: int
    success: bool
    seconds: float
    human_s: float
    asked: int


@dataclass(frozen=True)
class Collected:
    """A round.

    Attributes:
        episodes: in the order in which they ended.
        waits: of robots for the operator [s].
        attention_s: the operator was busy with a robot, from the lease to the hand-back [s].
    """

    episodes: tuple[Lasted, ...]
    waits: tuple[float, ...]
    attention_s: float

    def to_json(self) -> dict[str, Any]:
        """The round in numbers."""
        wins = [each for each in self.episodes if each.success]
        alone = [each for each in wins if not each.human_s]
        human = sum(each.human_s for each in self.episodes)
        return {
            "episodes": len(self.episodes), "successes": len(wins), "successes_alone": len(alone),
            "asked": sum(each.asked for each in self.episodes), "human_s": human,
            "human_s_per_success": human / len(wins) if wins else None, "attention_s": self.attention_s,
            "median_wait_s": float(np.median(self.waits)) if self.waits else None,
            "robot_minutes": sum(each.seconds for each in self.episodes) / 60,
        }


def collect(
    policy: Path, store: Path, seeds: list[int], *, robots: int = 4, watch: Watch | None = None,
    skill: Skill | None = None, order: str = "priority", seed: int = 0,
    done: Callable[[Lasted], None] = lambda episode: None, desk: Desk | None = None,
) -> Collected:
    """Runs and logs one episode for each seed; whichever robot is free takes the next one.

    Args:
        policy: run folder of the policy that all robots run.
        store: that the episodes go to.
        seeds: of the episodes.
        robots: how many.
        watch: makes the monitors; None: nobody asks.
        skill: of the simulated operator.
        order: of the queue.
        seed: of the operator.
        done: called after each episode.
        desk: where a person may work, in place of the simulated operator.

    Raises:
        ConfigError: no robots, or a task without an expert, whom the simulated operator imitates.
        CheckpointError: a policy or a monitor that cannot be used.
    """
    if robots < 1:
        raise ConfigError("a fleet needs robots", found=robots)
    made = _Fleet(policy, store, skill or Skill(), order, seed, watch, iter(seeds), done, desk)
    return made.run(robots)


def fitted(folder: Path, path: Path) -> Watch:
    """Watches with a monitor that `robot-fb monitor fit` made for the policy at `path`."""
    return lambda policy, robot: load_monitor(folder, policy, path)


class _Fleet:
    def __init__(
        self, policy: Path, store: Path, skill: Skill, order: str, seed: int, watch: Watch | None,
        seeds: Iterator[int], done: Callable[[Lasted], None], desk: Desk | None,
    ) -> None:
        self._path, self._skill, self._seed, self._watch = policy, skill, seed, watch
        self._digest = policy_digest(policy)
        self._task = find_task(load_policy(policy).spec.task)
        self._dt, self._limit = _pace(self._task)
        self._store = Store(store, create=True, writer=WriterConfig(wait=True))
        self._seeds, self._done = seeds, done
        self._found: list[Lasted] = []
        self._operator = SimulatedOperator(skill, seed)
        self._hub = Hub(order)
        self._desk = desk
        self._clock = SimulatedFleet(self._hub, self._dt, self._operate, paced=desk is not None)

    def run(self, robots: int) -> Collected:
        if self._desk is not None:
            self._desk.attach(self._clock.do)
        try:
            self._clock.run({f"robot-{i + 1}": self._robot(i) for i in range(robots)})
        finally:
            if self._desk is not None:
                self._desk.attach(None)
        return Collected(tuple(self._found), tuple(self._hub.waits), self._operator.attention.worked_s)

    def _operate(self, hub: Hub, now: float) -> None:
        if self._desk is None or self._desk.simulated():
            self._operator.tick(hub, now)
        else:
            self._operator.rest(hub)

    def _robot(self, index: int) -> Callable[[DirectPort, Callable[[], None]], None]:
        name = f"robot-{index + 1}"

        def work(port: DirectPort, wait: Callable[[], None]) -> None:
            env = self._task.make(max_episode_steps=PATIENCE * self._limit)  # here: its cameras belong to this thread
            with GymRobot(env) as robot:
                self._episodes(name, index, robot, port, wait)

        return work

    def _episodes(self, name: str, index: int, robot: GymRobot, port: DirectPort, wait: Callable[[], None]) -> None:
        policy = load_policy(self._path)
        check_fits(policy.spec, robot.streams, robot.action, f"the policy in {self._path}")
        monitors = {} if self._watch is None else {"monitor": self._watch(policy, robot)}
        hand = self._hand(robot, index)

        def human() -> np.ndarray | None:
            wait()
            return guided()

        member = Member(
            name, robot, Crew(policy, self._digest, monitors), self._task.name, str(self._path), port, self._store,
            human=human, paced=False, clock=self._clock.clock,
        )
        guided = Guided(port, hand, lambda: member.control.handshake.state)
        port.send(hello(robot, self._task.name, self._digest, State.AUTONOMOUS))
        for seed in self._seeds:
            count = _Count()
            result = member.episode(seed, listeners=[count])
            seconds, human_s = result.steps * self._dt, count.human * self._dt
            lasted = Lasted(name, seed, result.success, seconds, human_s, count.asked)
            self._found.append(lasted)
            self._done(lasted)

    def _hand(self, robot: GymRobot, index: int) -> Hand:
        expert = self._task.expert(robot.env)
        if expert is None:
            raise ConfigError(f"task {self._task.name!r} has no expert for a simulated operator to imitate")
        rng = np.random.default_rng([self._seed, 78, index])
        return Hand(expert, np.array(robot.action.low), np.array(robot.action.high), self._skill, rng)


class _Count:
    """Counts what people did in an episode."""

    def __init__(self) -> None:
        self.human = self.asked = 0
        self._held = False

    def on_start(self, meta: EpisodeMeta) -> None:
        pass

    def on_step(self, step: Step) -> None:
        self.human += step.source in ("human", "blend")
        held = step.source in ("hold", "human", "blend", "rewind")
        self.asked += held and not self._held
        self._held = held

    def on_end(self, success: bool, info: object) -> None:
        pass


def _pace(task: Any) -> tuple[float, int]:
    """Seconds of a decision, and decisions of an episode.

    Raises:
        ConfigError: no limit is registered.
    """
    with GymRobot(task.make(cameras=False)) as robot:
        spec = robot.env.spec
        if spec is None or spec.max_episode_steps is None:
            raise ConfigError(f"episodes of {task.name} have no limit, and a fleet needs one")
        return robot.dt, spec.max_episode_steps
