"""Who commands the robot at a tick, where nobody has to ask first; and the ways of mixing two commands.

`runtime.shared_control` is the arbiter that goes through a handshake.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from robot_fb.errors import ConfigError
from robot_fb.types import Decision, Source


class PassThrough:
    """The proposal goes through as it is; people are not listened to.

    Args:
        source: what the log says about who decided.
    """

    def __init__(self, source: Source = "policy") -> None:
        self._source: Source = source

    def decide(self, proposal: np.ndarray, human: np.ndarray | None, risk: float) -> Decision:
        """The proposal."""
        return Decision(proposal, self._source)


class Takeover:
    """A person's command wins whenever there is one."""

    def decide(self, proposal: np.ndarray, human: np.ndarray | None, risk: float) -> Decision:
        """The person's command, or the proposal where nobody commands."""
        return Decision(proposal, "policy") if human is None else takeover(proposal, human)


def takeover(proposal: np.ndarray, human: np.ndarray) -> Decision:
    """The person's command alone."""
    return Decision(human, "human", 1.0, "takeover")


def blend(weight: float) -> Callable[[np.ndarray, np.ndarray], Decision]:
    """A weighted mean of both.

    Args:
        weight: of the person, 0 to 1.

    Raises:
        ConfigError: another weight.
    """
    if not 0.0 <= weight <= 1.0:
        raise ConfigError("the weight of a person's command is a share", expected="0 to 1", found=weight)

    def mix(proposal: np.ndarray, human: np.ndarray) -> Decision:
        return Decision(weight * human + (1.0 - weight) * proposal, "blend", weight, "blend")

    return mix


def nudge(proposal: np.ndarray, human: np.ndarray) -> Decision:
    """The person's command on top of the policy's; the robot's bounds hold for the sum."""
    return Decision(proposal + human, "blend", 0.5, "nudge")
