"""What all tasks of the cell share as plugins of `robot_fb.tasks`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import gymnasium as gym

from envs.ablate import Ablate
from robot_fb.interfaces import Expert
from robot_fb.types import Ceiling


class CellTask:
    """A task of the cell. Subclasses name the environment and the expert.

    Attributes:
        name: registered name.
        env_id: gymnasium id.
        expert_class: "module:Class", imported when first asked for.
        blind_class: the same for a scripted search that neither feels nor knows what is hidden; empty for none.
    """

    name: str
    env_id: str
    expert_class: str
    blind_class: str = ""

    def make(self, ablate: str = "", **options: Any) -> gym.Env:
        """The environment; `ablate` removes or spoils streams, see `envs.ablate`."""
        env = gym.make(f"envs:{self.env_id}", **options)
        if not ablate:
            return env
        blind = options | {"cameras": False}
        return Ablate(env, ablate, lambda seed: self._expert_episode(seed, **blind))

    def expert(self, env: gym.Env) -> Expert:
        """The scripted expert for an environment that `make` gave."""
        return _load(self.expert_class)(env)

    def blind(self, env: gym.Env) -> Expert | None:
        """The scripted blind search for an environment that `make` gave, if the task has one."""
        return _load(self.blind_class)(env) if self.blind_class else None

    def ceiling(self) -> Ceiling | None:
        """None: nothing is hidden."""
        return None

    def _expert_episode(self, seed: int, **options: Any) -> list[Any]:
        """The observations of one episode by the expert, for streams that are to come from another episode."""
        env = self.make(**options)
        expert = self.expert(env)
        obs, _ = env.reset(seed=seed)
        expert.reset()
        episode, over = [obs], False
        while not over:
            obs, _, terminated, truncated, _ = env.step(expert.act())
            episode.append(obs)
            over = terminated or truncated
        env.close()
        return episode


def _load(name: str) -> Any:
    """The class of a "module:Class"."""
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)
