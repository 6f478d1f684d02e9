"""Third-party environments: every space that they may have, in the form that robot_fb speaks."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from robot_fb.errors import RobotFbError
from robot_fb.runtime.gym_robot import GymRobot
from robot_fb.runtime.lanes import Lanes
from robot_fb.runtime.tasks import NamedStreams, find_task


class Made(gym.Env):
    """Says what its spaces allow, and remembers what it was told to do."""

    def __init__(self, observation: gym.Space, action: gym.Space, info: dict | None = None) -> None:
        self.observation_space, self.action_space, self.said = observation, action, info or {}

    def reset(self, *, seed=None, options=None):
        self.observation_space.seed(0)
        return self.observation_space.sample(), {}

    def step(self, action):
        self.done = action
        return self.observation_space.sample(), 1.0, False, False, self.said


BOX = spaces.Box(-2.0, 2.0, (2,), np.float32)
GOAL = spaces.Dict({
    "image": spaces.Box(0, 255, (4, 4, 3), np.uint8), "goal": spaces.Box(-1, 1, (3,), np.float64),
    "kind": spaces.Discrete(5), "distance": spaces.Box(0, 1, (), np.float64),
})


def test_a_dict_keeps_its_keys_and_every_stream_has_its_said_shape_and_type():
    robot = GymRobot(NamedStreams(Made(GOAL, BOX)))
    obs = robot.reset(0)
    assert set(obs) == set(GOAL) and obs["image"].dtype == np.uint8 and obs["goal"].dtype == np.float32
    assert {k: (v.shape, v.dtype.name) for k, v in obs.items()} == {
        k: (s.shape, s.dtype) for k, s in robot.streams.items()
    }


def test_a_box_action_is_kept_within_its_bounds():
    env = Made(BOX, BOX)
    robot = GymRobot(NamedStreams(env))
    robot.reset(0)
    assert robot.write(np.array([9.0, 0.5])).tolist() == [2.0, 0.5] == env.done.tolist()


def test_a_discrete_action_is_the_largest_of_as_many_numbers():
    env = Made(BOX, spaces.Discrete(3))
    robot = GymRobot(NamedStreams(env))
    robot.reset(0)
    robot.write(np.array([0.1, -0.5, 0.7]))
    assert robot.action.dim == 3 and env.done == 2


@pytest.mark.parametrize(
    ("info", "success"), [({}, False), ({"success": 1.0}, True), ({"is_success": np.bool_(True)}, True)]
)
def test_success_is_what_the_environment_says(info, success):
    robot = GymRobot(NamedStreams(Made(BOX, BOX, info)))
    robot.reset(0)
    robot.write(np.zeros(2))
    assert robot.outcome().success is success


@pytest.mark.parametrize(
    ("observation", "action"), [(spaces.Text(5), BOX), (BOX, spaces.MultiBinary(3)), (BOX, spaces.Box(-1, 1, (2, 2)))]
)
def test_spaces_that_are_no_numbers_are_refused(observation, action):
    with pytest.raises(RobotFbError, match="unusable"):
        NamedStreams(Made(observation, action))


def test_a_simulation_keeps_its_own_time_step(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # MuJoCo notes its warnings in a file where it stands
    with GymRobot(find_task("gym:HalfCheetah-v5").make()) as robot:
        assert robot.dt == pytest.approx(0.05) and robot.streams["state"].shape == (17,) and robot.action.dim == 6


def test_the_module_of_an_id_must_be_there():
    with pytest.raises(RobotFbError, match="no_such_module") as caught:
        find_task("gym:no_such_module:Thing-v0").make()
    assert "\n" not in str(caught.value)


def test_touch_cannot_be_taken_away_where_there_is_none():
    with pytest.raises(RobotFbError, match="no touch"):
        find_task("gym:Pendulum-v1").make(ablate="touch=none")


def test_third_party_tasks_run_in_lanes():
    with Lanes("gym:Pendulum-v1", 2, seed=5) as lanes:
        first = lanes.reset()
        lanes.send(np.zeros((2, 1), np.float32))
        step = lanes.receive()
    assert first["state"].shape == step.obs["state"].shape == (2, 3) and not step.success.any()
