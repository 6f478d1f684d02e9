"""Keeps what the control loop does as episodes of a store."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from robot_fb.interfaces import EpisodeStore, EpisodeWriter, FeedbackSource
from robot_fb.types import EpisodeMeta, Feedback, Step


class Recorder:
    """`interfaces.Subscriber` that writes every episode to a store.

    Args:
        store: where episodes go.
        keep_failures: whether episodes without success are kept.
        feedback: asked after every step; what it says goes into the episode. An event whose `episode` is empty is
            about the episode that is being recorded.

    Attributes:
        last: id of the last episode that was kept.
    """

    def __init__(
        self, store: EpisodeStore, keep_failures: bool = True, feedback: FeedbackSource | None = None
    ) -> None:
        self._store, self._keep, self._feedback = store, keep_failures, feedback
        self._writer: EpisodeWriter | None = None
        self.last: str | None = None

    def on_start(self, meta: EpisodeMeta) -> None:
        """Opens an episode."""
        self._writer = self._store.open(meta)

    def on_step(self, step: Step) -> None:
        """Adds a step, and the feedback that came by then; never blocks."""
        if self._writer is None:
            return
        self._writer.add_step(step)
        for event in self._feedback.poll(step.t) if self._feedback else ():
            self._writer.add_feedback(_about(event, self._writer.id))

    def on_end(self, success: bool, info: Mapping[str, Any]) -> None:
        """Closes the episode."""
        writer, self._writer = self._writer, None
        if writer is None:
            return
        if not success and not self._keep:
            writer.discard()
            return
        writer.close(success, {key: str(value) for key, value in info.items() if _plain(value)})
        self.last = writer.id


def _about(event: Feedback, episode: str) -> Feedback:
    """The event, about `episode` where it names none."""
    return dataclasses.replace(event, episode=episode) if getattr(event, "episode", None) == "" else event


def _plain(value: object) -> bool:
    return isinstance(value, str | bool | int | float) or (hasattr(value, "item") and getattr(value, "size", 0) == 1)
