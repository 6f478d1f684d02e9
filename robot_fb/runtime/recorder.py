"""Keeps what the control loop does as episodes of a store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from robot_fb.interfaces import EpisodeStore, EpisodeWriter
from robot_fb.types import EpisodeMeta, Step


class Recorder:
    """`interfaces.Subscriber` that writes every episode to a store.

    Args:
        store: where episodes go.
        keep_failures: whether episodes without success are kept.

    Attributes:
        last: id of the last episode that was kept.
    """

    def __init__(self, store: EpisodeStore, keep_failures: bool = True) -> None:
        self._store, self._keep = store, keep_failures
        self._writer: EpisodeWriter | None = None
        self.last: str | None = None

    def on_start(self, meta: EpisodeMeta) -> None:
        """Opens an episode."""
        self._writer = self._store.open(meta)

    def on_step(self, step: Step) -> None:
        """Adds a step; never blocks."""
        if self._writer is not None:
            self._writer.add_step(step)

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


def _plain(value: object) -> bool:
    return isinstance(value, str | bool | int | float) or (hasattr(value, "item") and getattr(value, "size", 0) == 1)
