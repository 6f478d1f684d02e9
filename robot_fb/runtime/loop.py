"""The one control loop. Simulation, ROS and the fleet all run through it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from robot_fb.errors import ActionError, ObservationError
from robot_fb.interfaces import Arbiter, FailureDetector, Policy, Robot, Subscriber
from robot_fb.types import EpisodeMeta, Obs, Step, StepOutcome


@dataclass(frozen=True)
class RunResult:
    """One episode in numbers.

    Attributes:
        success: whether it ended in success.
        steps: decisions made.
        ret: sum of rewards.
        overruns: ticks that took longer than their period; counted only when paced.
        info: the task's last words.
    """

    success: bool
    steps: int
    ret: float
    overruns: int = 0
    info: dict[str, Any] = field(default_factory=dict)


def run(
    robot: Robot,
    policy: Policy,
    arbiter: Arbiter,
    monitors: dict[str, FailureDetector],
    subscribers: Sequence[Subscriber],
    meta: EpisodeMeta,
    *,
    human: Callable[[], np.ndarray | None] = lambda: None,
    max_steps: int | None = None,
    paced: bool = False,
) -> RunResult:
    """Runs one episode: observe, plan, decide, move, tell.

    Args:
        robot: reset by this call with `meta.seed`, and stopped at the end, however it ends.
        policy: reset by this call.
        arbiter: chooses between the policy and `human`.
        monitors: their scores go into every step; the highest is the arbiter's risk.
        subscribers: told of the start, every step, and the end, also when an error ends the episode.
        meta: what is known beforehand.
        human: the present command of a person, or None.
        max_steps: decisions at most.
        paced: keep `robot.dt` between decisions, as a real robot needs; a simulation runs as fast as it can.

    Raises:
        ObservationError, ActionError: a NaN or a wrong shape; the robot is stopped first.
    """
    obs = robot.reset(meta.seed)
    policy.reset(meta.seed)
    for monitor in monitors.values():
        monitor.reset()
    steps, ret, overruns, outcome = 0, 0.0, 0, StepOutcome()
    started = time.monotonic()
    for subscriber in subscribers:
        subscriber.on_start(meta)
    try:
        while not (outcome.terminated or outcome.truncated) and (max_steps is None or steps < max_steps):
            _check_observation(obs)
            chunk = policy.act(obs)
            scores = {name: monitor.score(obs, chunk) for name, monitor in monitors.items()}
            proposed = _checked_action(chunk.actions[0])
            decision = arbiter.decide(proposed, human(), max(scores.values(), default=0.0))
            executed = robot.write(_checked_action(decision.action))
            outcome = robot.outcome()
            step = Step(
                steps * robot.dt, obs, proposed, executed, decision.source, outcome.reward,
                outcome.terminated, outcome.truncated, outcome.success, scores,
            )
            for subscriber in subscribers:
                subscriber.on_step(step)
            obs, steps, ret = robot.read(), steps + 1, ret + outcome.reward
            if paced:
                overruns += not _wait_until(started + steps * robot.dt)
    finally:
        robot.stop()
        for subscriber in subscribers:
            subscriber.on_end(outcome.success, outcome.info)
    return RunResult(outcome.success, steps, ret, overruns, dict(outcome.info))


def _check_observation(obs: Obs) -> None:
    for key, value in obs.items():
        if value.dtype.kind == "f" and not np.isfinite(value).all():
            raise ObservationError(f"observation {key!r} holds a NaN or an infinity", do="the robot was stopped")


def _checked_action(action: np.ndarray) -> np.ndarray:
    if not np.isfinite(action).all():
        raise ActionError("an action holds a NaN or an infinity", found=action.tolist(), do="the robot was stopped")
    return action


def _wait_until(moment: float) -> bool:
    """Sleeps until `moment`; False where it has passed already."""
    left = moment - time.monotonic()
    if left <= 0:
        return False
    time.sleep(left)
    return True
