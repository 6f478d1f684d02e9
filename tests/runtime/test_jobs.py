"""Mistakes in a job are found before any process is started, and say what to do."""

from __future__ import annotations

import dataclasses

import pytest

from robot_fb import registry
from robot_fb.errors import CheckpointError, ConfigError
from robot_fb.runtime import episodes
from robot_fb.runtime.episodes import Job, run_episodes
from robot_fb.runtime.evaluate import evaluate
from robot_fb.training.checkpoint import save_policy
from robot_fb.types import ActionSpec, PolicySpec, StreamSpec

CART = PolicySpec("gym:CartPole-v1", {"state": StreamSpec((4,))}, ActionSpec((-1.0, -1.0), (1.0, 1.0)), 0.02, 4, 2, 1)


@pytest.fixture
def no_processes(monkeypatch):
    def refuse(*args):
        raise AssertionError("a process was about to be started")

    monkeypatch.setattr(episodes, "_in_processes", refuse)


def saved(folder, spec):
    save_policy(folder, registry.load("policies", "chunk_mlp")(spec))
    return str(folder)


def test_a_policy_runs_on_a_third_party_task(tmp_path):
    job = Job(CART.task, saved(tmp_path / "run", CART))
    first, second = (evaluate(job, episodes=2, seed=1, workers=0) for _ in range(2))
    assert repr(first) == repr(second)  # not `==`: the peak forces are NaN
    assert first.to_json()["peak_force_p95_n"] is None and all(e.steps > 0 and e.ret > 0 for e in first.episodes)


@pytest.mark.parametrize(
    ("change", "hint"),
    [
        ({"obs": {"state": StreamSpec((5,))}}, r"'state' of another shape; expected \(5,\); found \(4,\)"),
        ({"obs": {"image": StreamSpec((4,))}}, "'image', which is not there"),
        ({"action": ActionSpec((-1.0,), (1.0,))}, "another action; expected 2 numbers; found 1"),
        ({"task": "gym:Pendulum-v1"}, "trained for another task"),
    ],
    ids=["shape", "stream", "action", "task"],
)
def test_a_policy_that_does_not_fit_the_task_is_refused(tmp_path, no_processes, change, hint):
    by = saved(tmp_path / "run", dataclasses.replace(CART, **change))
    with pytest.raises(CheckpointError, match=hint):
        run_episodes(Job(CART.task, by), [0], workers=2)


def test_a_negative_number_of_workers_is_refused(no_processes):
    with pytest.raises(ConfigError, match="--workers"):
        run_episodes(Job("keyed_socket"), [0], workers=-1)
