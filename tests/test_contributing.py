"""The examples in CONTRIBUTING.md run, and keep their Protocols."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from robot_fb import interfaces
from robot_fb.runtime.arbiter import PassThrough
from robot_fb.runtime.expert import ExpertPolicy
from robot_fb.runtime.gym_robot import GymRobot
from robot_fb.runtime.loop import run
from robot_fb.runtime.monitor import watched
from robot_fb.types import EpisodeMeta, PolicySpec
from tests.failure.conftest import make_trace


@pytest.fixture(scope="module")
def examples() -> dict:
    text = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    names: dict = {}
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(block, names)
    return names


def test_the_task_is_solved_by_its_expert(examples):
    task = examples["ReachTask"]()
    assert isinstance(task, interfaces.Task)
    env = task.make()
    robot = GymRobot(env)
    meta = EpisodeMeta("reach", "expert", robot.streams, robot.action, robot.dt, seed=1)
    spec = PolicySpec("reach", robot.streams, robot.action, robot.dt)
    result = run(robot, ExpertPolicy(task.expert(env), spec), PassThrough("expert"), {}, [], meta, max_steps=50)
    assert result.success


def test_the_policy_drives_the_robot_nowhere(examples):
    robot = examples["Cart"]()
    assert isinstance(robot, interfaces.Robot)
    policy = examples["HoldStill"](PolicySpec("cart", robot.streams, robot.action, robot.dt))
    assert isinstance(policy, interfaces.Policy)
    meta = EpisodeMeta("cart", "hold_still", robot.streams, robot.action, robot.dt)
    assert not run(robot, policy, PassThrough(), {}, [], meta, max_steps=5).success
    assert robot.x == 0.0


def test_the_sensor(examples):
    with examples["Thermometer"]() as sensor:
        assert isinstance(sensor, interfaces.Sensor)
        assert sensor.read()[1].shape == sensor.spec.shape


def test_the_detector(examples):
    rng = np.random.default_rng(0)
    detector = examples["TooHard"]()
    detector.fit([make_trace(rng, True) for _ in range(5)], seed=0)
    detector.calibrate([make_trace(rng, True) for _ in range(40)], alpha=0.1)
    alarms = [watched(detector, make_trace(rng, False), dt=0.05).alarm for _ in range(10)]
    assert all(alarms)
    other = examples["TooHard"]()
    other.restore(detector.state())
    assert other.usual == detector.usual


def test_the_feedback_source(examples):
    source = examples["Applause"]([0.5, 2.0], "e1")
    assert isinstance(source, interfaces.FeedbackSource)
    assert [event.t for event in source.poll(1.0)] == [0.5]
