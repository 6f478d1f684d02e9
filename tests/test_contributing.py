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
from robot_fb.types import ActionChunk, EpisodeMeta, PolicySpec, Step


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
    detector = examples["TooFar"]()
    assert isinstance(detector, interfaces.FailureDetector)
    action = np.zeros(1, np.float32)
    successes = [[Step(0.0, {"position": np.array([x])}, action, action)] for x in (0.5, 1.0)]
    detector.calibrate(successes, alpha=0.0)
    chunk = ActionChunk(action[None], 0.05)
    assert detector.score({"position": np.array([0.9])}, chunk) == 0.0
    assert detector.score({"position": np.array([3.0])}, chunk) == pytest.approx(2.0)


def test_the_feedback_source(examples):
    source = examples["Applause"]([0.5, 2.0], "e1")
    assert isinstance(source, interfaces.FeedbackSource)
    assert [event.t for event in source.poll(1.0)] == [0.5]
