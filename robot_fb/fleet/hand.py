"""The hand that a simulated member keeps for the simulated operator."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from robot_fb.fleet.link import Port
from robot_fb.runtime.handshake import State
from robot_fb.teachers.operator import Hand


class Guided:
    """The `human` of a member's loop: a person's command where there is one, else the simulated operator's.

    Args:
        port: to the hub, which says when the simulated operator has the robot.
        hand: that moves then.
        state: where the robot stands.
    """

    def __init__(self, port: Port, hand: Hand, state: Callable[[], State]) -> None:
        self._port, self._hand, self._state = port, hand, state
        self._holds = False

    def __call__(self) -> np.ndarray | None:
        """(action_dim,) the command now, or None."""
        command, tired = self._port.human(), self._port.guided
        if command is not None or tired is None or self._state() not in (State.LEASED, State.HUMAN):
            self._holds = False
            return command
        if not self._holds:
            self._holds = True
            self._hand.reset()
        return self._hand.act(tired)
