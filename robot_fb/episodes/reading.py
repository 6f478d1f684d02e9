"""Reads one episode file back: every step's observation exactly as it was logged."""

from __future__ import annotations

import mmap
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from mcap import records as mcap

from robot_fb.episodes import codecs, events, records, schema
from robot_fb.episodes.episode import Columns, Episode, Samples
from robot_fb.episodes.messages import NS, deserialize
from robot_fb.episodes.routes import METADATA_KEY, Field, Route, fields_from_json
from robot_fb.errors import BrokenFileError, EpisodeError
from robot_fb.types import SOURCES, EpisodeMeta, Feedback

_FLAGS = range(2 * schema.PICTURE_MISSING)


@contextmanager
def opened(path: Path) -> Iterator[memoryview]:
    """A file's bytes, mapped.

    Raises:
        BrokenFileError: empty.
        EpisodeError: cannot be opened.
    """
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            if size == 0:
                raise BrokenFileError(f"{path} is empty", expected="an MCAP file")
            # Copying would double the memory; a private map costs pages as they are read.
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise EpisodeError(f"cannot open {path}", found=error.strerror or str(error)) from error
    view = memoryview(mapped)
    try:
        yield view
    finally:
        try:
            view.release()
            mapped.close()
        except BufferError:  # slices are still alive, e.g. in a traceback; the map goes when they do
            pass


def read_episode(path: Path, streams: Collection[str] | None = None) -> Episode:
    """The episode in a file.

    Args:
        path: an MCAP file that robot_fb wrote.
        streams: only these; all when None.

    Raises:
        BrokenFileError: damaged, cut short or no episode; the message begins with the path.
        NewerFormatError: written by a newer robot_fb.
    """
    with opened(path) as data, named(path):
        return _Assembler(streams).run(records.read(data))


def read_samples(path: Path, stream: str) -> Samples:
    """What a source wrote at its own rate, or the rows of a sliding window with their own stamps.

    Raises:
        EpisodeError: the episode has no such stream.
        BrokenFileError: as `read_episode`.
    """
    t: dict[str, list[float]] = {"sample": [], "step": []}
    values: dict[str, list[np.ndarray]] = {"sample": [], "step": []}
    with opened(path) as data, named(path):
        start_ns = 0
        routes: dict[int, Route | None] = {}
        schemas: dict[int, str] = {}
        for record in records.read(data):
            if isinstance(record, mcap.Metadata) and record.name == schema.EPISODE_RECORD:
                start_ns = schema.parse_episode_record(record.metadata)[2]
            elif isinstance(record, mcap.Schema):
                schemas[record.id] = record.name
            elif isinstance(record, mcap.Channel):
                routes[record.id] = route_of(record, schemas)
            elif isinstance(record, mcap.Message) and (route := routes.get(record.channel_id)):
                for f, value in zip(route.fields, codecs.decode(route, record.data), strict=True):
                    if f.name == stream:
                        t[route.role].append((record.log_time - start_ns) / NS)
                        values[route.role].append(value)
    role = "sample" if values["sample"] else "step"
    if not values[role]:
        raise EpisodeError(f"{path} has no stream {stream!r}")
    return Samples(np.array(t[role]), np.stack(values[role]))


@contextmanager
def named(path: Path) -> Iterator[None]:
    """Puts the file's name in front of what is wrong with it."""
    try:
        yield
    except BrokenFileError as error:
        if error.what.startswith(str(path)):
            raise
        do = error.do or ("robot-fb episodes repair saves what is intact" if error.repairable else "")
        raise BrokenFileError(
            f"{path}: {error.what}", expected=error.expected, found=error.found, do=do, repairable=error.repairable
        ) from error


def route_of(channel: mcap.Channel, schemas: Mapping[int, str]) -> Route | None:
    """How a channel's messages are read; None where it holds no stream."""
    text = channel.metadata.get(METADATA_KEY)
    if text is None or channel.topic == schema.DECISION_TOPIC:
        return None
    return Route.from_json(channel.topic, schemas.get(channel.schema_id, ""), text)


class _Assembler:
    """Walks through the records in file order and keeps the newest value of each stream: a decision's observation is
    what is newest when its record comes."""

    def __init__(self, streams: Collection[str] | None) -> None:
        self._wanted = streams
        self._head: tuple[str, EpisodeMeta, int] | None = None
        self._outcome = schema.Outcome(unfinished="the file says nothing about its end")
        self._schemas: dict[int, str] = {}
        self._handlers: dict[int, Callable[[mcap.Message], None] | None] = {}
        self._newest: dict[tuple[str, tuple[int, ...], str], np.ndarray | None] = {}
        self._windows: dict[str, deque[np.ndarray | None]] = {}
        self._all_fields: tuple[Field, ...] = ()
        self._fields: list[Field] = []
        self._rows: dict[str, list[np.ndarray]] = {}
        self._decisions: list[np.ndarray] = []
        self._scores: dict[str, float] = {}
        self._all_scores: list[Mapping[str, float]] = []
        self._feedback: list[Feedback] = []

    def run(self, stream: Iterator[Any]) -> Episode:
        for record in stream:
            if isinstance(record, mcap.Message):
                handler = self._handlers.get(record.channel_id)
                if handler is not None:
                    handler(record)
            elif isinstance(record, mcap.Metadata):
                self._metadata(record)
            elif isinstance(record, mcap.Schema):
                self._schemas[record.id] = record.name
            elif isinstance(record, mcap.Channel) and record.id not in self._handlers:
                self._handlers[record.id] = self._handler(record)
        if self._head is None:
            raise BrokenFileError(
                "the file holds no episode of robot_fb", expected=f"a metadata record {schema.EPISODE_RECORD}",
                do="bring a foreign recording in with: robot-fb episodes import",
            )
        id, meta, start_ns = self._head
        names = tuple(f.name for f in self._all_fields)
        return Episode(id, meta, self._outcome, self._columns(meta), names, tuple(self._feedback), start_ns)

    def _metadata(self, record: mcap.Metadata) -> None:
        if record.name == schema.EPISODE_RECORD:
            self._head = schema.parse_episode_record(record.metadata)
        elif record.name == schema.OUTCOME_RECORD:
            self._outcome = schema.parse_outcome_record(record.metadata)
        elif record.name == schema.GAP_RECORD:
            self._newest.clear()
            self._windows.clear()
            self._scores = {}

    def _handler(self, channel: mcap.Channel) -> Callable[[mcap.Message], None] | None:
        if channel.topic == schema.DECISION_TOPIC:
            fields = fields_from_json(channel.metadata.get(METADATA_KEY, "[]"))
            self._all_fields = fields
            self._fields = [f for f in fields if self._wanted is None or f.name in self._wanted]
            self._rows = {f.name: [] for f in self._fields}
            return self._decision
        if channel.topic == schema.FEEDBACK_TOPIC:
            return lambda m: self._feedback.append(events.from_json(deserialize(m.data, schema.FEEDBACK_TYPE).data))
        if "score" in channel.metadata:
            name = channel.metadata["score"]
            return lambda m: self._scores.update({name: deserialize(m.data, schema.SCORE_TYPE).data})
        route = route_of(channel, self._schemas)
        if route is None:
            return None
        wanted = self._wanted is None or any(f.name in self._wanted for f in route.fields)
        return lambda message: self._value(route, message, wanted)

    def _value(self, route: Route, message: mcap.Message, wanted: bool) -> None:
        """Remembers a value; of a stream that nobody wants, only that it came."""
        values = codecs.decode(route, message.data) if wanted else [None] * len(route.fields)
        for f, value in zip(route.fields, values, strict=True):
            if route.window:
                self._windows.setdefault(f.name, deque(maxlen=route.window)).append(value)
            else:
                self._newest[f.name, f.shape, f.dtype] = value

    def _decision(self, message: mcap.Message) -> None:
        row = deserialize(message.data, schema.DECISION_TYPE).data
        if len(row) < len(schema.HEAD) or (self._decisions and len(row) != len(self._decisions[0])):
            raise BrokenFileError("a decision has another length than the first one", found=len(row), repairable=True)
        flags = row[schema.HEAD.index("flags")]
        if flags not in _FLAGS:
            raise BrokenFileError("a decision has impossible flags", found=flags)
        missing = bool(int(flags) & schema.PICTURE_MISSING)
        if not all(self._has(f) or (missing and f.dtype == "uint8") for f in self._all_fields):
            return  # a part of what this decision was made from is lost, so the decision is of no use
        for f in self._fields:
            self._rows[f.name].append(self._observed(f))
        self._decisions.append(row)
        self._all_scores.append(self._scores)
        self._scores = {}

    def _has(self, f: Field) -> bool:
        window = self._windows.get(f.name)
        return (f.name, f.shape, f.dtype) in self._newest or (window is not None and len(window) == window.maxlen)

    def _observed(self, f: Field) -> np.ndarray:
        window = self._windows.get(f.name)
        if window is not None and f.shape[:1] == (len(window),):
            return np.stack([row for row in window if row is not None])
        value = self._newest.get((f.name, f.shape, f.dtype))
        # Only a picture that was dropped before any came is missing; black says so best.
        return np.zeros(f.shape, f.dtype) if value is None else value

    def _columns(self, meta: EpisodeMeta) -> Columns:
        dim = meta.action.dim
        none = np.zeros((0, len(schema.HEAD) + 2 * dim))
        table = np.stack(self._decisions).astype(np.float64) if self._decisions else none
        if table.shape[1] != len(schema.HEAD) + 2 * dim:
            raise BrokenFileError("decisions have another action than the episode says", expected=dim)
        t, reward, flags, source = table[:, : len(schema.HEAD)].T
        if not np.isin(source, range(len(SOURCES))).all():
            raise BrokenFileError("a decision has an unknown source")
        bits = flags.astype(np.uint8)
        proposed, executed = np.split(table[:, len(schema.HEAD) :].astype(np.float32), [dim], axis=1)
        return Columns(
            {f.name: np.array(self._rows[f.name], f.dtype).reshape(len(table), *f.shape) for f in self._fields},
            t, reward, proposed, executed, source.astype(np.uint8),
            (bits & schema.TERMINATED) > 0, (bits & schema.TRUNCATED) > 0, (bits & schema.SUCCESS) > 0,
            (bits & schema.PICTURE_MISSING) > 0, tuple(self._all_scores),
        )
