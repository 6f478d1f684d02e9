"""Turns messages that come at their own rates into decision steps by taking the newest of each."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

import numpy as np

from robot_fb.episodes.exchange.bags import BagMessage
from robot_fb.episodes.exchange.mapping import ImportMapping, StreamMap, Take
from robot_fb.episodes.exchange.track import Row, Track
from robot_fb.episodes.exchange.values import extract
from robot_fb.episodes.messages import NS
from robot_fb.errors import ConfigError, EpisodeError
from robot_fb.types import ActionSpec


def topics_of(mapping: ImportMapping) -> set[str]:
    """All topics that a mapping reads."""
    takes: list[Take] = [*mapping.streams.values(), mapping.action]
    for name, stream in {**mapping.streams, "action": mapping.action}.items():
        if not stream.topic:
            raise ConfigError(f"{name} has no topic", expected="topic: /NAME")
    found = {take.topic for take in [*takes, mapping.reward]} | {mapping.episodes.topic}
    return found - {""}


def action_spec(messages: Iterable[BagMessage], mapping: ImportMapping) -> ActionSpec:
    """Bounds from the mapping, or else the extremes of the recording."""
    if mapping.action.low and mapping.action.high:
        return ActionSpec(mapping.action.low, mapping.action.high, mapping.action.names)
    low: np.ndarray | None = None
    high: np.ndarray | None = None
    for message in messages:
        value = _action(message, mapping)
        low = value if low is None else np.minimum(low, value)
        high = value if high is None else np.maximum(high, value)
    if low is None or high is None:
        raise EpisodeError(f"no message on the action topic {mapping.action.topic}")
    return ActionSpec(tuple(map(float, low)), tuple(map(float, high)), mapping.action.names)


def tracks(messages: Iterable[BagMessage], mapping: ImportMapping, spec: ActionSpec) -> Iterator[Track]:
    """Episodes of decision steps.

    A step's observation is the newest of every stream at its time; its action is the newest one when the next step
    begins, because commands answer to what was seen. Steps begin once every stream and the action have come.

    Args:
        messages: in the order of time.
        mapping: what becomes what.
        spec: bounds of the action.
    """
    ticker = _Ticker(mapping)
    rows: list[tuple[int, Row]] = []
    for message in messages:
        commanded_ns = ticker.commanded_ns
        if ticker.ends(message):
            yield from _track(rows, commanded_ns, mapping, spec)
            rows = []
        rows.extend(ticker.take(message))
    rows.extend(ticker.rest())
    yield from _track(rows, ticker.commanded_ns, mapping, spec)


def _track(
    rows: list[tuple[int, Row]], commanded_ns: int, mapping: ImportMapping, spec: ActionSpec
) -> Iterator[Track]:
    """The episode, if it has steps; those within the pause that ended it are no part of it."""
    kept = [row for begun_ns, row in rows if mapping.episodes.gap_s <= 0 or begun_ns <= commanded_ns]
    if kept:
        yield Track(spec, kept, mapping.success)


class _Ticker:
    """Emits a row whenever a decision period has passed."""

    def __init__(self, mapping: ImportMapping) -> None:
        self._mapping = mapping
        self._period = round(mapping.dt * NS)
        self._by_topic: dict[str, list[tuple[str, StreamMap]]] = {}
        for name, stream in mapping.streams.items():
            self._by_topic.setdefault(stream.topic, []).append((name, stream))
        self._newest: dict[str, np.ndarray] = {}
        self._windows: dict[str, deque[np.ndarray]] = {}
        self._restart()

    def _restart(self) -> None:
        self._action: np.ndarray | None = None
        self.commanded_ns = 0
        self._reward = 0.0
        self._seen: dict[str, np.ndarray] | None = None
        self._begun_ns = self._next_ns = 0

    def ends(self, message: BagMessage) -> bool:
        """Whether an episode ended before this message."""
        where = self._mapping.episodes
        if where.topic and message.topic == where.topic:
            self._newest, self._windows = {}, {}  # the world was reset: nothing seen before holds any more
            self._restart()
            return True
        pause = message.stamp_ns - self.commanded_ns if message.topic == self._mapping.action.topic else 0
        over = where.gap_s > 0 and self._action is not None and pause > where.gap_s * NS
        if over:
            self._restart()
        return over

    def take(self, message: BagMessage) -> Iterator[tuple[int, Row]]:
        """Rows, with the time at which they began, that were complete before this message, which is then taken in."""
        while self._next_ns and message.stamp_ns >= self._next_ns:
            gap = self._mapping.episodes.gap_s
            if gap > 0 and self._next_ns - self.commanded_ns > gap * NS:
                break  # the pause that ends this episode has begun
            yield from self._tick()
        if self._seen is None and self._next_ns and message.stamp_ns > self._begun_ns:
            self._seen = dict(self._newest)  # all that came at the step's own time is in
        for name, stream in self._by_topic.get(message.topic, ()):
            raw = extract(message.content, message.type, stream.field, stream.size)
            self._put(name, stream, stream.value(raw))
        if message.topic == self._mapping.action.topic:
            self._action, self.commanded_ns = _action(message, self._mapping), message.stamp_ns
        if message.topic == self._mapping.reward.topic:
            raw = extract(message.content, message.type, self._mapping.reward.field)
            self._reward += float(self._mapping.reward.cut(raw).sum())
        if not self._next_ns and self._action is not None and len(self._newest) == len(self._mapping.streams):
            self._begun_ns, self._next_ns = message.stamp_ns, message.stamp_ns + self._period

    def rest(self) -> Iterator[tuple[int, Row]]:
        """The step that was under way when the messages ended."""
        if self._next_ns:
            yield from self._tick()

    def _tick(self) -> Iterator[tuple[int, Row]]:
        assert self._action is not None
        seen = dict(self._newest) if self._seen is None else self._seen
        yield self._begun_ns, Row(seen, self._action, self._reward)
        self._reward, self._seen = 0.0, None
        self._begun_ns, self._next_ns = self._next_ns, self._next_ns + self._period

    def _put(self, name: str, stream: StreamMap, value: np.ndarray) -> None:
        if not stream.window:
            self._newest[name] = value
            return
        window = self._windows.setdefault(name, deque([value] * stream.window, maxlen=stream.window))
        window.append(value)
        self._newest[name] = np.stack(window)


def _action(message: BagMessage, mapping: ImportMapping) -> np.ndarray:
    raw = extract(message.content, message.type, mapping.action.field)
    return mapping.action.cut(np.atleast_1d(raw)).astype(np.float32)


