"""keyed_socket as a plugin of `robot_fb.tasks`."""

from __future__ import annotations

from envs.cell.task import CellTask
from envs.keyed_socket.env import COMMITMENTS, SIDES
from robot_fb.types import Ceiling


class KeyedSocketTask(CellTask):
    """Seat a plug in the open side of a keyed socket; which side is open can only be felt."""

    name = "keyed_socket"
    env_id = "robot_fb/KeyedSocket-v0"
    expert_class = "envs.keyed_socket.expert:KeyedSocketExpert"
    blind_class = "envs.keyed_socket.expert:BlindSearch"

    def ceiling(self) -> Ceiling:
        """Without touch each commitment is a guess among the sides not yet tried."""
        rate = COMMITMENTS / len(SIDES)
        return Ceiling(rate, f"{COMMITMENTS} guesses among {len(SIDES)} equally likely sides")
