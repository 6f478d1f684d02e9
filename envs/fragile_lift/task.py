"""fragile_lift as a plugin of `robot_fb.tasks`."""

from __future__ import annotations

from envs.cell.task import CellTask
from envs.fragile_lift.blind import best_constant_grip
from robot_fb.types import Ceiling


class FragileLiftTask(CellTask):
    """Lift an object without dropping or crushing it; how hard to grip can only be felt."""

    name = "fragile_lift"
    env_id = "robot_fb/FragileLift-v0"
    expert_class = "envs.fragile_lift.expert:FragileLiftExpert"
    blind_class = "envs.fragile_lift.blind:BlindGrip"

    def ceiling(self) -> Ceiling:
        """Without touch the grip force is the same for all: it drops what needs more and crushes what bears less."""
        force, rate = best_constant_grip()
        return Ceiling(rate, f"best constant grip, {force:.2f} N a finger, over the drawn masses and frictions")
