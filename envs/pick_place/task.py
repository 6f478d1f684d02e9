"""pick_place as a plugin of `robot_fb.tasks`."""

from __future__ import annotations

from envs.cell.task import CellTask


class PickPlaceTask(CellTask):
    """Put the block onto the plate of its colour; nothing is hidden."""

    name = "pick_place"
    env_id = "robot_fb/PickPlace-v0"
    expert_class = "envs.pick_place.expert:PickPlaceExpert"
