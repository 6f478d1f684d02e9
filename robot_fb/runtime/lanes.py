"""Many simulations of one task side by side, each in its own process, for learning."""

from __future__ import annotations

import math
import multiprocessing
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode

from robot_fb.types import Obs, StreamSpec


@dataclass(frozen=True)
class LaneStep:
    """What one decision of all lanes led to; every array has a leading lane axis.

    Attributes:
        obs: what to decide from next; already of a new episode where `over`.
        reward: (lanes,).
        over: (lanes,) the episode ended with this step.
        success: (lanes,) it ended in success.
        force: (lanes,) largest contact force during the decision [N], zero where the task does not say.
    """

    obs: Obs
    reward: np.ndarray
    over: np.ndarray
    success: np.ndarray
    force: np.ndarray


@dataclass(frozen=True)
class _Make:
    """Makes one lane's environment in its process."""

    task: str
    options: dict[str, Any]

    def __call__(self) -> gym.Env:
        from robot_fb.runtime.tasks import find_task

        return find_task(self.task).make(**self.options)


class Lanes:
    """`AsyncVectorEnv` over a task. A context manager.

    Args:
        task: registered name or `gym:ID`.
        count: number of lanes.
        seed: lane i starts from `seed + i` and goes on from there.
        options: for the task's `make`, e.g. `ablate`.

    Attributes:
        streams: what is observed.
        dt: length of a decision [s].
        careful_n: contact force that a careful motion on this task stays below [N]; infinite where it does not say.
    """

    def __init__(self, task: str, count: int, seed: int, **options: Any) -> None:
        context = "forkserver"
        multiprocessing.get_context(context).set_forkserver_preload(["gymnasium", "numpy", "robot_fb.runtime.tasks"])
        self.count, self._seed = count, seed
        self._env = AsyncVectorEnv(
            [_Make(task, options)] * count, context=context, autoreset_mode=AutoresetMode.SAME_STEP
        )
        specs: dict[str, StreamSpec] = self._env.get_attr("stream_specs")[0]
        self.streams = specs
        self.dt: float = self._env.get_attr("dt")[0]
        says = self._env.call("has_wrapper_attr", "careful_n")[0]
        self.careful_n: float = self._env.get_attr("careful_n")[0] if says else math.inf

    def __enter__(self) -> Lanes:
        return self

    def __exit__(self, *exc: object) -> None:
        self._env.close(terminate=exc[0] is not None)

    def reset(self) -> Obs:
        """Starts an episode in every lane."""
        return self._env.reset(seed=[self._seed + i for i in range(self.count)])[0]

    def send(self, actions: np.ndarray) -> None:
        """Starts one decision of all lanes; the caller may work meanwhile."""
        self._env.step_async(actions)

    def receive(self) -> LaneStep:
        """Waits for what `send` started."""
        obs, reward, terminated, truncated, info = self._env.step_wait()
        final = info.get("final_info", {})
        force = np.where(_column(final, "_force", self.count), _column(final, "force", self.count),
                         _column(info, "force", self.count))
        success = _column(final, "success", self.count).astype(bool)
        return LaneStep(obs, reward.astype(np.float32), terminated | truncated, success, force.astype(np.float32))


def _column(info: dict[str, Any], key: str, lanes: int) -> np.ndarray:
    return np.asarray(info.get(key, np.zeros(lanes)))
