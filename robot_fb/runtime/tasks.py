"""Tasks by name: registered plugins, and third-party gymnasium ids as `gym:ID`."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from robot_fb import registry
from robot_fb.errors import ConfigError, RobotFbError, UnknownNameError
from robot_fb.interfaces import Expert, Task
from robot_fb.runtime.headless import choose_backend
from robot_fb.types import Ceiling, StreamSpec

FOREIGN = {"dm_control": "dm_control shimmy", "metaworld": "metaworld"}
"""Prefix -> packages that bring such tasks."""


def find_task(name: str) -> Task:
    """A task by its registered name or as `gym:ID`.

    Raises:
        UnknownNameError: nobody knows the name.
        RobotFbError: the package that brings it is not installed.
    """
    choose_backend()
    prefix, colon, rest = name.partition(":")
    if not colon:
        return registry.load("tasks", name)()
    if prefix in FOREIGN:
        raise RobotFbError(f"{prefix} tasks need packages that are not here", do=f"pip install {FOREIGN[prefix]}")
    if prefix != "gym":
        raise UnknownNameError(f"unknown kind of task {prefix!r}", do=registry.closest(prefix, ["gym", *FOREIGN]))
    if rest not in gym.registry and ":" not in rest:
        raise UnknownNameError(f"gymnasium knows no {rest!r}", do=registry.closest(rest, list(gym.registry)))
    return GymTask(name, rest)


class GymTask:
    """A third-party gymnasium environment as a task: no expert, no ceiling."""

    def __init__(self, name: str, env_id: str) -> None:
        self.name, self.env_id = name, env_id

    def make(self, ablate: str = "", cameras: bool = True, **options: Any) -> gym.Env:
        """The environment, its observations as named streams."""
        if ablate:
            raise ConfigError(f"{self.name} has no touch to ablate", found=ablate, do="leave out --touch")
        try:
            return NamedStreams(gym.make(self.env_id, **options))
        except (gym.error.Error, ImportError) as error:  # `module:ID` imports the module first
            raise RobotFbError(f"{self.name} cannot be made", found=" ".join(str(error).split())) from error

    def expert(self, env: gym.Env) -> Expert | None:
        """None."""
        return None

    def ceiling(self) -> Ceiling | None:
        """None: unknown."""
        return None


class NamedStreams(gym.Wrapper[Any, Any, Any, Any]):
    """Gives any observation and action space the form that robot_fb speaks.

    A `Dict` observation keeps its keys, anything else becomes the stream `state`; numbers become float32. A discrete
    action is taken from the largest of as many numbers as there are choices.
    """

    def __init__(self, env: gym.Env) -> None:
        super().__init__(env)
        space = env.observation_space
        self._parts = dict(space.spaces) if isinstance(space, spaces.Dict) else {"state": space}
        self.stream_specs = {key: _spec(part) for key, part in self._parts.items()}
        self.observation_space = spaces.Dict({key: _box(spec) for key, spec in self.stream_specs.items()})
        self._discrete = isinstance(env.action_space, spaces.Discrete)
        if self._discrete:
            self.action_space = spaces.Box(-1.0, 1.0, (int(env.action_space.n),), np.float32)  # type: ignore[attr-defined]
        elif not isinstance(env.action_space, spaces.Box) or len(env.action_space.shape) != 1:
            raise RobotFbError("unusable action space", expected="Box of one axis, or Discrete", found=env.action_space)
        self.dt = float(getattr(env.unwrapped, "dt", 0.05))

    @property
    def unwrapped(self) -> Any:
        """This wrapper: what it adds belongs to the task."""
        return self

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Starts an episode."""
        obs, info = self.env.reset(seed=seed, options=options)
        return self._streams(obs), info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One decision."""
        obs, reward, terminated, truncated, info = self.env.step(int(np.argmax(action)) if self._discrete else action)
        found = info.get("success", info.get("is_success", False))
        return self._streams(obs), float(reward), terminated, truncated, {**info, "success": bool(found)}

    def _streams(self, obs: Any) -> dict[str, np.ndarray]:
        parts = obs if isinstance(self.env.observation_space, spaces.Dict) else {"state": obs}
        return {key: np.asarray(parts[key], spec.dtype).reshape(spec.shape) for key, spec in self.stream_specs.items()}


def _spec(space: gym.Space) -> StreamSpec:
    if isinstance(space, spaces.Box) and space.dtype == np.uint8:
        return StreamSpec(tuple(space.shape), "uint8")
    if isinstance(space, spaces.Box):
        return StreamSpec(tuple(space.shape) or (1,))
    if isinstance(space, spaces.Discrete):
        return StreamSpec((1,))
    raise RobotFbError("unusable observation space", expected="Box, Discrete or a Dict of them", found=space)


def _box(spec: StreamSpec) -> spaces.Box:
    if spec.dtype == "uint8":
        return spaces.Box(0, 255, spec.shape, np.uint8)
    return spaces.Box(-np.inf, np.inf, spec.shape, np.float32)
