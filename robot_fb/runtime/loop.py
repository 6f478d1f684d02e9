"""The one control loop. Simulation, ROS and the fleet all run through it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from robot_fb.interfaces import Arbiter, FailureDetector, Policy, Robot, Subscriber
from robot_fb.runtime.guard import check_observation, checked_action, checked_chunk
from robot_fb.types import EpisodeMeta, Obs, Step, StepOutcome

PLANLESS = ("human", "hold", "rewind")
"""Decisions in which the policy's plan has no part: one that came too late does not matter to them."""


@dataclass(frozen=True)
class RunResult:
    """One episode in numbers.

    Attributes:
        success: whether it ended in success.
        steps: decisions made.
        ret: sum of rewards.
        overruns: ticks that took longer than their period; counted only when paced.
        holds: ticks at which the robot held still, the plan being too old to follow.
        info: the task's last words.
    """

    success: bool
    steps: int
    ret: float
    overruns: int = 0
    holds: int = 0
    info: dict[str, Any] = field(default_factory=dict)


def run(
    robot: Robot,
    policy: Policy,
    arbiter: Arbiter,
    monitors: Mapping[str, FailureDetector],
    subscribers: Sequence[Subscriber],
    meta: EpisodeMeta,
    *,
    human: Callable[[], np.ndarray | None] = lambda: None,
    max_steps: int | None = None,
    paced: bool = False,
) -> RunResult:
    """Runs one episode: observe, plan, decide, move, tell.

    In a simulation time stands still while the policy plans. A real robot's time does not: when paced, the action is
    the one that the plan means for now, and a plan that took longer than it reaches is not followed: the robot holds.

    Args:
        robot: reset by this call with `meta.seed`, and stopped at the end, however it ends.
        policy: reset by this call.
        arbiter: chooses between the policy and `human`.
        monitors: their scores go into every step; the highest is the arbiter's risk.
        subscribers: told of the start, every step, and the end. Each is told of the end also when an error ends the
            episode or another subscriber fails; `info["aborted"]` then names the error.
        meta: what is known beforehand.
        human: the present command of a person, or None.
        max_steps: decisions at most.
        paced: keep `robot.dt` between decisions, as a real robot needs; a simulation runs as fast as it can.

    Raises:
        ObservationError, ActionError: a NaN, a wrong shape, a missing stream; the robot is stopped first.
    """
    outcome, executed = StepOutcome(), np.zeros(robot.action.dim, np.float32)
    steps, ret, overruns, holds = 0, 0.0, 0, 0

    def tell_end(subscriber: Subscriber, kind: type[BaseException] | None, *_: object) -> None:
        aborted = {} if kind is None else {"aborted": kind.__name__}
        subscriber.on_end(outcome.success and kind is None, {**outcome.info, **aborted})

    with ExitStack() as at_end:  # last in, first out: the robot stops before anybody is told
        at_end.callback(robot.stop)
        obs = robot.reset(meta.seed)
        policy.reset(meta.seed)
        for monitor in monitors.values():
            monitor.reset()
        for subscriber in subscribers:
            subscriber.on_start(meta)
            at_end.push(partial(tell_end, subscriber))
        at_end.callback(robot.stop)
        started = time.monotonic()
        while not (outcome.terminated or outcome.truncated) and (max_steps is None or steps < max_steps):
            check_observation(obs, robot.streams)
            plan = _plan(policy, monitors, obs, robot.action.dim, paced)
            decision = arbiter.decide(plan.action, human(), max(plan.scores.values(), default=0.0))
            if plan.stale and decision.source not in PLANLESS:
                robot.stop()  # nothing new is sent: `executed` stays what was sent last
                decision, outcome = replace(decision, source="hold"), replace(outcome, reward=0.0)
                holds += 1
            else:
                executed = robot.write(checked_action(decision.action, robot.action.dim))
                outcome = robot.outcome()
            step = Step(
                steps * robot.dt, obs, plan.action, executed, decision.source, outcome.reward,
                outcome.terminated, outcome.truncated, outcome.success, plan.scores,
            )
            for subscriber in subscribers:
                subscriber.on_step(step)
            if decision.replan:
                policy.reset(meta.seed)
            obs, steps, ret = robot.read(), steps + 1, ret + outcome.reward
            if paced:
                overruns += not _wait_until(started + steps * robot.dt)
    return RunResult(outcome.success, steps, ret, overruns, holds, dict(outcome.info))


@dataclass(frozen=True)
class _Plan:
    action: np.ndarray
    scores: Mapping[str, float]
    stale: bool


def _plan(policy: Policy, monitors: Mapping[str, FailureDetector], obs: Obs, dim: int, paced: bool) -> _Plan:
    """What the policy wants to do now, and what the monitors say to that."""
    asked = time.monotonic()
    chunk = checked_chunk(policy.act(obs))
    scores = {name: monitor.score(obs, chunk) for name, monitor in monitors.items()}
    age = time.monotonic() - asked if paced else 0.0
    return _Plan(checked_action(chunk.at(chunk.t0 + age), dim), scores, age >= len(chunk.actions) * chunk.dt)


def _wait_until(moment: float) -> bool:
    """Sleeps until `moment`; False where it has passed already."""
    left = moment - time.monotonic()
    if left <= 0:
        return False
    time.sleep(left)
    return True
