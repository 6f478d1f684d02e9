"""Feedback known beforehand, for tests and replays."""

from __future__ import annotations

from collections.abc import Iterable

from robot_fb.types import Feedback


class ScriptedFeedback:
    """`interfaces.FeedbackSource` that gives each event once its time has come.

    Args:
        events: events with a time: `t`, or `end` for those over a stretch; others come at once.
    """

    def __init__(self, events: Iterable[Feedback]) -> None:
        self._waiting = sorted(events, key=_moment)

    def poll(self, now: float) -> list[Feedback]:
        """Events up to `now` [s] that were not given yet."""
        due = [event for event in self._waiting if _moment(event) <= now]
        self._waiting = self._waiting[len(due) :]
        return due


def _moment(event: Feedback) -> float:
    return float(getattr(event, "t", getattr(event, "end", 0.0)))
