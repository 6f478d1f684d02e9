"""occluded_peg as a plugin of `robot_fb.tasks`."""

from __future__ import annotations

from envs.cell.task import CellTask
from envs.occluded_peg.env import MAX_DRAG
from envs.occluded_peg.search import best_search
from robot_fb.types import Ceiling


class OccludedPegTask(CellTask):
    """Insert a peg that sits crooked under a hood; where it sits can only be felt."""

    name = "occluded_peg"
    env_id = "robot_fb/OccludedPeg-v0"
    expert_class = "envs.occluded_peg.expert:OccludedPegExpert"
    blind_class = "envs.occluded_peg.search:Sweep"

    def ceiling(self) -> Ceiling:
        """Without touch the tip follows a path that does not depend on where the peg sits."""
        reason = f"the share of offsets that chamfer and clearance catch along the best path of {MAX_DRAG * 1e3:g} mm"
        return Ceiling(best_search(), reason)
