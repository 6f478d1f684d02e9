"""When a failure began, in the info of every task."""

from __future__ import annotations

import numpy as np
import pytest

from envs import ENVIRONMENTS
from envs.cell.env import DT
from robot_fb.runtime.tasks import find_task

TASKS = ["keyed_socket", "occluded_peg", "fragile_lift", "pick_place"]


@pytest.mark.parametrize("task", TASKS)
def test_an_episode_that_stands_still_fails_when_its_time_is_up_from_its_last_progress_on(task):
    env = find_task(task).make(cameras=False)
    cell = env.unwrapped
    assert ENVIRONMENTS[find_task(task).env_id][1] == cell.time_limit
    _, info = env.reset(seed=0)
    assert info["failure"] == "" and info["onset"] is None
    still = np.array([0, 0, 0, 0, -1.0 if task in ("fragile_lift", "pick_place") else 1.0], np.float32)
    steps = 0
    while True:
        *_, terminated, truncated, info = env.step(still)
        steps += 1
        if terminated or truncated:
            break
    assert truncated and steps == cell.time_limit and info["failure"]
    assert info["onset"] <= steps * DT if task == "keyed_socket" else info["onset"] < steps * DT - 0.5  # its arm sinks
    env.close()


def test_what_ends_an_episode_is_its_onset():
    env = find_task("keyed_socket").make(cameras=False)
    env.reset(seed=0)
    steps, terminated = 0, False
    while not terminated and steps < 90:
        *_, terminated, _, info = env.step(np.array([0.02, 0, -0.01, 0, 1], np.float32))
        steps += 1
    assert terminated and not info["success"] and info["onset"] == pytest.approx(steps * DT)
    env.close()


def test_a_success_has_no_onset():
    task = find_task("occluded_peg")
    env = task.make(cameras=False)
    env.reset(seed=1)
    expert, over = task.expert(env), False
    while not over:
        *_, terminated, truncated, info = env.step(expert.act())
        over = terminated or truncated
    assert info["success"] and info["onset"] is None and info["failure"] == ""
    env.close()
