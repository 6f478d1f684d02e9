"""Every registered plugin keeps its Protocol."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from robot_fb import interfaces, registry
from robot_fb.episodes.store import Store
from robot_fb.failure.detector import Detector
from robot_fb.runtime.arbiter import PassThrough, Takeover
from robot_fb.runtime.desk import LocalDesk
from robot_fb.runtime.recorder import Recorder
from robot_fb.teachers.scripted import ScriptedFeedback
from robot_fb.types import ActionSpec, EpisodeMeta, PolicySpec, StreamSpec

CLONED = [name for name in registry.names("policies") if hasattr(registry.load("policies", name), "loss")]


def spec() -> PolicySpec:
    streams = {"camera/wrist": StreamSpec((32, 32, 3), "uint8"), "tcp/pose": StreamSpec((7,))}
    return PolicySpec("contract", streams, ActionSpec((-1.0, -1.0), (1.0, 1.0)), 0.05, horizon=8, execute=4)


@pytest.mark.parametrize("group", registry.GROUPS)
def test_every_entry_point_can_be_loaded(group):
    for name in registry.names(group):
        assert registry.load(group, name) is not None


@pytest.mark.parametrize("name", registry.names("tasks"))
def test_tasks(name):
    task = registry.load("tasks", name)()
    assert isinstance(task, interfaces.Task) and task.name == name
    env = task.make(cameras=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped, skip_render_check=True)
    expert = task.expert(env)
    obs, info = env.reset(seed=1)
    assert set(obs) == set(env.unwrapped.stream_specs) and not any("hidden" in key for key in obs)
    if expert is not None:
        assert isinstance(expert, interfaces.Expert)
        expert.reset()
        assert env.action_space.contains(np.asarray(expert.act(), np.float32))
    *_, info = env.step(env.action_space.sample())
    assert {"success", "peak_force", "failure"} <= set(info)
    ceiling = task.ceiling()
    assert ceiling is None or (0 < ceiling.success_rate < 1 and ceiling.reason)


@pytest.mark.parametrize("name", CLONED)
def test_policies(name):
    policy = registry.load("policies", name)(spec())
    assert isinstance(policy, interfaces.LanePolicy)
    obs = {"camera/wrist": np.zeros((2, 32, 32, 3), np.uint8), "tcp/pose": np.zeros((2, 7), np.float32)}
    policy.reset_lanes(2, 0)
    plans = policy.act_lanes(obs, np.ones(2, bool))
    assert plans.shape == (2, 8, 2) and plans.dtype == np.float32 and np.abs(plans).max() <= 1
    assert policy.embed_lanes(obs).shape == (2, policy.spec.embed_dim)
    policy.reset(0)
    one = policy.act({key: value[0] for key, value in obs.items()})
    assert one.actions.shape == (8, 2)


@pytest.mark.parametrize("name", registry.names("tasks"))
def test_every_task_makes_a_robot(name):
    with registry.load("robots", "sim")(registry.load("tasks", name)().make(cameras=False)) as robot:
        assert isinstance(robot, interfaces.Robot)
        first = robot.reset(seed=1)
        assert {key: value.shape for key, value in first.items()} == {k: s.shape for k, s in robot.streams.items()}
        middle = np.add(robot.action.low, robot.action.high).astype(np.float32) / 2
        assert np.array_equal(robot.write(middle), middle) and len(robot.action.names) == robot.action.dim
        assert np.array_equal(robot.write(middle + 9), np.asarray(robot.action.high, np.float32))
        assert robot.outcome().info["peak_force"] >= 0
        again = robot.reset(seed=1)
        assert all(np.array_equal(first[key], again[key]) for key in first)
        robot.stop()
        robot.stop()


@pytest.mark.parametrize("name", registry.names("robots"))
def test_robots(name):
    kind = registry.load("robots", name)
    assert all(callable(getattr(kind, method)) for method in ("reset", "read", "write", "outcome", "stop"))
    assert hasattr(kind, "__enter__") and hasattr(kind, "__exit__")


@pytest.mark.parametrize("name", registry.names("sensors"))
def test_sensors(name):
    kind = registry.load("sensors", name)
    assert callable(kind.read) and hasattr(kind, "__enter__") and hasattr(kind, "__exit__")


@pytest.mark.parametrize("name", registry.names("detectors"))
def test_detectors(name):
    kind = registry.load("detectors", name)
    assert issubclass(kind, Detector) and kind().plans >= 0


def test_our_own_parts_keep_their_protocols():
    assert isinstance(PassThrough(), interfaces.Arbiter) and isinstance(Takeover(), interfaces.Arbiter)
    assert isinstance(ScriptedFeedback([]), interfaces.FeedbackSource) and isinstance(LocalDesk(), interfaces.Desk)


def test_the_log_keeps_its_protocols(tmp_path):
    store = Store(tmp_path / "s", create=True)
    assert isinstance(store, interfaces.EpisodeStore) and isinstance(Recorder(store), interfaces.Subscriber)
    writer = store.open(EpisodeMeta("contract", "test", {}, ActionSpec((-1.0,), (1.0,)), 0.05))
    assert isinstance(writer, interfaces.EpisodeWriter)
    writer.discard()
    assert list(store.query()) == []
