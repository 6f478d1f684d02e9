"""What the scores in a step mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from robot_fb.types import EpisodeMeta, Step

ALARM = 1.0
"""A monitor's score above this is an alarm."""


class FirstAlarm:
    """A `Subscriber` that notes when a monitor first alarms in an episode.

    Attributes:
        at: that time [s], or None.
    """

    def __init__(self) -> None:
        self.at: float | None = None

    def on_start(self, meta: EpisodeMeta) -> None:
        """Forgets the last episode."""
        self.at = None

    def on_step(self, step: Step) -> None:
        """Looks at the scores."""
        if self.at is None and max(step.scores.values(), default=0.0) > ALARM:
            self.at = step.t

    def on_end(self, success: bool, info: Mapping[str, Any]) -> None:
        """Nothing to do."""
