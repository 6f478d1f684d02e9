"""Tasks by name, seeds that never meet, and episodes in processes."""

from __future__ import annotations

import math
import multiprocessing
import os
import signal

import numpy as np
import pytest

from robot_fb.episodes.store import Store
from robot_fb.errors import RobotFbError, UnknownNameError
from robot_fb.runtime.arbiter import PassThrough
from robot_fb.runtime.episodes import Job, run_episodes
from robot_fb.runtime.evaluate import append_eval, evaluate, read_evals, wilson
from robot_fb.runtime.loop import run
from robot_fb.runtime.recorder import Recorder
from robot_fb.runtime.seeds import EVALUATION, RECORD, TRAINING
from robot_fb.runtime.tasks import find_task
from robot_fb.teachers.scripted import ScriptedFeedback
from robot_fb.types import Evaluation


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("keyed_soket", "keyed_socket"),
        ("gym:HalfCheeta-v5", "HalfCheetah"),
        ("gmy:X-v0", "gym"),
        ("metaworld:x", "pip"),
    ],
)
def test_unknown_tasks_get_a_hint(name: str, hint: str):
    with pytest.raises(RobotFbError, match=hint):
        find_task(name)


@pytest.mark.parametrize("name", ["gym:Pendulum-v1", "gym:CartPole-v1"])
def test_any_gymnasium_environment_speaks_in_streams(name: str):
    env = find_task(name).make()
    obs, _ = env.reset(seed=0)
    assert obs["state"].dtype == np.float32 and env.unwrapped.stream_specs["state"].shape == obs["state"].shape
    *_, info = env.step(env.action_space.sample())
    assert info["success"] is False


def test_seeds_of_different_purposes_never_meet():
    drawn = {r.seed(s, k) for r in (RECORD, TRAINING, EVALUATION) for s in range(20) for k in range(200)}
    assert len(drawn) == 3 * 20 * 200


def test_results_do_not_depend_on_the_number_of_workers(tmp_path):
    job = Job("keyed_socket")
    seeds = [11, 12, 13, 14, 15]
    alone, two = run_episodes(job, seeds, workers=0), run_episodes(job, seeds, workers=2)
    assert alone == two and [r.seed for r in alone] == seeds


def test_a_worker_that_dies_is_replaced():
    job, seeds, killed = Job("keyed_socket"), [11, 12, 13, 14, 15], []

    def kill_one(result):
        if not killed:
            child = multiprocessing.active_children()[0]
            killed.append(child.pid)
            os.kill(child.pid, signal.SIGKILL)

    results = run_episodes(job, seeds, workers=2, done=kill_one)
    assert killed and results == run_episodes(job, seeds, workers=0)


def test_workers_that_die_again_and_again_are_an_error():
    def kill_all(result):
        for child in multiprocessing.active_children():
            os.kill(child.pid, signal.SIGKILL)

    with pytest.raises(RobotFbError, match=r"died after \d of 9 episodes"):
        run_episodes(Job("keyed_socket"), list(range(9)), workers=1, done=kill_all)


def test_recorded_episodes_lie_in_the_store(tmp_path):
    results = run_episodes(Job("keyed_socket", log=tmp_path / "s"), [5], workers=0)
    store = Store(tmp_path / "s")
    (id,) = store.query(task="keyed_socket", success=True)
    episode = store.read(id)
    assert id == results[0].id and len(episode) == results[0].steps
    assert episode.meta.seed == 5 and episode.info["hidden"] == results[0].hidden
    assert set(episode.columns.sources.tolist()) == {4}  # the expert


def test_a_task_without_expert_says_so():
    with pytest.raises(RobotFbError, match="no expert"):
        run_episodes(Job("gym:Pendulum-v1"), [0], workers=0)


def test_evaluation_counts_and_is_noted(tmp_path):
    result = evaluate(Job("keyed_socket", "expert"), episodes=2, seed=3, workers=0)
    document = result.to_json()
    assert set(document) == {
        "task", "policy", "episodes", "successes", "success_rate", "ci95", "peak_force_p95_n", "mean_episode_s",
        "touch", "seed",
    }
    append_eval(tmp_path, "expert", result, 0.0)
    (row,) = read_evals(tmp_path)
    assert row["label"] == "expert" and len(row["peak_forces"]) == 2


def test_wilson_interval_against_published_numbers():
    low, high = wilson(81, 263)  # Newcombe 1998, table I
    assert (round(low, 4), round(high, 4)) == (0.2553, 0.3662)
    assert wilson(0, 10)[0] == 0.0 and math.isclose(wilson(10, 10)[1], 1.0)


def test_unknown_ablations_are_refused_before_anything_runs():
    with pytest.raises(RobotFbError, match="delayed"):
        run_episodes(Job("keyed_socket", touch="delayd"), [0], workers=2)


def test_unknown_task_is_an_unknown_name():
    with pytest.raises(UnknownNameError):
        run_episodes(Job("nothing_like_it"), [0], workers=0)


def test_feedback_given_while_recording_goes_into_the_episode(tmp_path, robot, meta, forward):
    store = Store(tmp_path / "s", create=True)
    source = ScriptedFeedback([Evaluation("", 0.05, 1.0, "me"), Evaluation("other", 0.1, -1.0, "me")])
    recorder = Recorder(store, feedback=source)
    run(robot, forward(0.3), PassThrough(), {}, [recorder], meta)
    assert store.feedback(recorder.last) == [Evaluation(recorder.last or "", 0.05, 1.0, "me")]
    assert len(store.feedback()) == 2
