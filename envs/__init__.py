"""Gymnasium environments of robot_fb: the shared cell and one folder a task.

`gymnasium.make("envs:robot_fb/KeyedSocket-v0")` needs no import: gymnasium imports the module before the colon itself.
(It stopped reading the `gymnasium.envs` entry point with 1.0.) After `import envs` the plain id does as well.
"""

from __future__ import annotations

import gymnasium as gym

from robot_fb.runtime.headless import choose_backend

choose_backend()

ENVIRONMENTS = {
    "robot_fb/FragileLift-v0": ("envs.fragile_lift.env:FragileLiftEnv", 160),
    "robot_fb/KeyedSocket-v0": ("envs.keyed_socket.env:KeyedSocketEnv", 90),
    "robot_fb/OccludedPeg-v0": ("envs.occluded_peg.env:OccludedPegEnv", 90),
    "robot_fb/PickPlace-v0": ("envs.pick_place.env:PickPlaceEnv", 180),
}
"""Environment id -> (class, time limit in decision steps of 50 ms)."""


def register() -> None:
    """Adds our environments to gymnasium's registry; does nothing the second time."""
    for name, (entry_point, limit) in ENVIRONMENTS.items():
        if name not in gym.registry:
            gym.register(id=name, entry_point=entry_point, max_episode_steps=limit)


register()
