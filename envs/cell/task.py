"""What all tasks of the cell share as plugins of `robot_fb.tasks`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import gymnasium as gym

from robot_fb.interfaces import Expert
from robot_fb.types import Ceiling


class CellTask:
    """A task of the cell. Subclasses name the environment and the expert.

    Attributes:
        name: registered name.
        env_id: gymnasium id.
        expert_class: "module:Class", imported when first asked for.
    """

    name: str
    env_id: str
    expert_class: str

    def make(self, ablate: str = "", **options: Any) -> gym.Env:
        """The environment; `ablate` removes or spoils streams, see `envs.ablate`."""
        env = gym.make(f"envs:{self.env_id}", **options)
        if ablate:
            from envs.ablate import Ablate

            env = Ablate(env, ablate)
        return env

    def expert(self, env: gym.Env) -> Expert:
        """The scripted expert for an environment that `make` gave."""
        module, name = self.expert_class.split(":")
        return getattr(import_module(module), name)(env)

    def ceiling(self) -> Ceiling | None:
        """None: nothing is hidden."""
        return None
