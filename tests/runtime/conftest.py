"""A made-up robot and policies for the control loop."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

from robot_fb.runtime.gym_robot import GymRobot
from robot_fb.types import ActionChunk, EpisodeMeta, PolicySpec, StreamSpec


class Line(gym.Env):
    """A point on a line; success at 1. The observation can be made to break."""

    dt = 0.05
    stream_specs = {"state": StreamSpec((1,), unit="m")}  # noqa: RUF012
    observation_space = gym.spaces.Dict({"state": gym.spaces.Box(-9, 9, (1,), np.float32)})
    action_space = gym.spaces.Box(-0.5, 0.5, (1,), np.float32)
    breaks_at = -1

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.count = 0.0, 0
        return self._obs(), {}

    def step(self, action):
        self.x += float(action[0])
        self.count += 1
        done = self.x >= 1.0
        return self._obs(), float(done), done, self.count >= 20, {"success": done, "peak_force": 3.0}

    def _obs(self):
        x = np.nan if self.count == self.breaks_at else self.x
        return {"state": np.array([x], np.float32)}


class Forward:
    """Asks for the same step for ever."""

    def __init__(self, step: float = 0.3) -> None:
        self.step = step
        self.spec = PolicySpec("line", Line.stream_specs, None, 0.05)  # type: ignore[arg-type]

    def reset(self, seed=None):
        pass

    def act(self, obs):
        return ActionChunk(np.array([[self.step]], np.float32), 0.05)

    def embed(self, obs):
        return np.zeros(0, np.float32)


@pytest.fixture
def robot():
    made = GymRobot(Line())
    made.stopped = 0  # type: ignore[attr-defined]
    stop = made.stop

    def counting() -> None:
        made.stopped += 1  # type: ignore[attr-defined]
        stop()

    made.stop = counting  # type: ignore[method-assign]
    return made


@pytest.fixture
def meta(robot):
    return EpisodeMeta("line", "forward", robot.streams, robot.action, robot.dt, 0)


@pytest.fixture
def forward():
    return Forward
