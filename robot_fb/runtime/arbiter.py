"""Who commands the robot at a tick."""

from __future__ import annotations

import numpy as np

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
        if human is None:
            return Decision(proposal, "policy")
        return Decision(human, "human", 1.0, "takeover")
