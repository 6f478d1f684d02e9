"""Puts one episode into one MCAP file, message by message, in whatever thread calls it."""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
from mcap.writer import CompressionType, Writer

from robot_fb.episodes import messages, schema
from robot_fb.episodes.codecs import Encoder
from robot_fb.episodes.messages import NS, kind, serialize
from robot_fb.episodes.pictures import PictureFormat
from robot_fb.episodes.routes import METADATA_KEY, Field, Route, fields_to_json, routes_for
from robot_fb.types import EpisodeMeta, Step, StreamSpec

CHUNK_BYTES = 256 * 1024
"""A damaged chunk is lost as a whole, so chunks stay small."""


_SCORE = struct.Struct("<4sd")


class Output:
    """The stream an `mcap.writer.Writer` writes to: gathers bytes and hands them to the system in whole pieces.

    Args:
        handle: an open file descriptor.
    """

    def __init__(self, handle: int) -> None:
        self.handle = handle
        self._pending = bytearray()
        self._position = 0

    def write(self, data: bytes) -> int:
        self._pending += data
        self._position += len(data)
        return len(data)

    def tell(self) -> int:
        return self._position

    def flush(self) -> None:
        """Gives everything to the system: a killed process loses it no more.

        Raises:
            OSError: e.g. the disk is full.
        """
        while self._pending:
            written = os.write(self.handle, self._pending)
            del self._pending[:written]


class EpisodeSink:
    """Encodes steps, samples and feedback of one episode.

    Args:
        output: where the bytes go; `steps` and `streams` say what was logged.
        id: of the episode.
        meta: what is known before the first step.
        start_ns: wall clock at t = 0, since the Unix epoch.
        pictures: how pictures are compressed.
    """

    def __init__(self, output: Output, id: str, meta: EpisodeMeta, start_ns: int, pictures: PictureFormat) -> None:
        self.meta, self.start_ns, self.steps = meta, start_ns, 0
        self.streams: tuple[str, ...] = ()
        self._pictures, self._output = pictures, output
        # The library asks for a file but uses nothing beyond write, tell and flush.
        stream: Any = output
        self._writer = Writer(stream, chunk_size=CHUNK_BYTES, compression=CompressionType.ZSTD, enable_data_crcs=True)
        self._in_chunk = 0
        self._schemas: dict[str, int] = {}
        self._channels: dict[str, int] = {}
        self._encoders: dict[str, Encoder] = {}
        self._step_routes: list[Route] | None = None
        self._sample_routes: dict[str, Route] = {}
        self._latest: dict[str, np.ndarray] = {}
        self._windows: dict[str, np.ndarray] = {}
        self._decision_head = b""
        self._about_decisions: Mapping[str, object] = {}
        self._head = schema.episode_record(id, meta, start_ns)
        self._writer.start(profile="ros2", library="robot_fb")
        self._writer.add_metadata(schema.EPISODE_RECORD, self._head)
        self.flush()

    def step(self, step: Step, missing: bool = False) -> None:
        """Logs a step: what it saw, what the monitors said, then the decision itself.

        A reader that goes through the file in order therefore has, at every decision, exactly what it was made from.

        Args:
            step: observation arrays are kept by reference; the caller must not change them.
            missing: a picture of this step was dropped.
        """
        stamp = self._stamp(step.t)
        if self._step_routes is None:
            self.streams = tuple(step.obs)
            fields = [self._field(name, value) for name, value in step.obs.items()]
            self._step_routes = routes_for(fields, self._pictures, self._channels)
            self._about_decisions = {METADATA_KEY: fields_to_json(fields)}
        for route in self._step_routes:
            values = [step.obs[f.name] for f in route.fields if f.name in step.obs]
            if len(values) == len(route.fields):
                self._observation(route, values, stamp)
        for name, score in step.scores.items():
            data = _SCORE.pack(b"\0\1\0\0", float(score))  # CDR of std_msgs/Float64
            self._message(f"/monitor/{name}/score", schema.SCORE_TYPE, stamp, data, {"score": name})
        flags = (
            schema.TERMINATED * step.terminated | schema.TRUNCATED * step.truncated | schema.SUCCESS * step.success
            | schema.PICTURE_MISSING * missing
        )
        row = schema.decision_row(step.t, step.reward, flags, step.source, step.proposed, step.executed)
        data = self._decision(row)
        self._message(schema.DECISION_TOPIC, schema.DECISION_TYPE, stamp, data, self._about_decisions)
        self.steps += 1

    def sample(self, stream: str, t: float, value: np.ndarray) -> None:
        """Logs one sample of a stream that comes at its own rate."""
        route = self._sample_routes.get(stream)
        if route is None:
            field = self._field(stream, value)
            (route,) = routes_for([field], self._pictures, self._channels, role="sample")
            self._sample_routes[stream] = route
        self._encode(route, [value], self._stamp(t))
        self._latest[stream] = value

    def feedback(self, t: float, event: str) -> None:
        """Logs one feedback event, as JSON."""
        self._message(schema.FEEDBACK_TOPIC, schema.FEEDBACK_TYPE, self._stamp(t), messages.text(event), {})

    def finish(self, outcome: schema.Outcome) -> None:
        """Writes the outcome and the index; nothing may follow."""
        self._writer.flush()
        self._writer.add_metadata(schema.EPISODE_RECORD, self._head)  # again, in case the beginning gets lost
        self._writer.add_metadata(schema.OUTCOME_RECORD, schema.outcome_record(outcome))
        self._writer.finish()
        self._output.flush()

    def flush(self) -> None:
        """Ends the chunk and gives all bytes to the system."""
        self._writer.flush()
        self._in_chunk = 0

    def _decision(self, row: np.ndarray) -> bytes:
        """All decision messages of an episode agree in all but their numbers."""
        if not self._decision_head:
            layout = messages.layout(schema.decision_labels((len(row) - len(schema.HEAD)) // 2))
            self._decision_head = serialize(kind(schema.DECISION_TYPE)(layout, row))[: -row.nbytes]
        return self._decision_head + row.tobytes()

    def _field(self, name: str, value: np.ndarray) -> Field:
        spec = self.meta.streams.get(name)
        return Field(name, value.shape, str(value.dtype), spec.unit if spec else "")

    def _observation(self, route: Route, values: list[np.ndarray], stamp: int) -> None:
        name = route.fields[0].name
        if route.window:
            self._window(route, values[0], self._windows.get(name), stamp)
            self._windows[name] = values[0]
        elif not all(self._sampled(f.name, value) for f, value in zip(route.fields, values, strict=True)):
            self._encode(route, values, stamp)

    def _sampled(self, name: str, value: np.ndarray) -> bool:
        """Whether the newest own-rate sample of a stream is this value, so that it is in the file already."""
        return name in self._latest and same_bits(self._latest[name], value)

    def _window(self, route: Route, window: np.ndarray, previous: np.ndarray | None, stamp: int) -> None:
        """Logs the rows that came since the last step, each with its own stamp; the last row is of now."""
        rate = self.meta.streams.get(route.fields[0].name, StreamSpec(window.shape, rate_hz=100.0)).rate_hz
        new = new_rows(previous, window, round(self.meta.dt * rate))
        for row in range(len(window) - new, len(window)):
            age = (len(window) - 1 - row) / rate
            self._encode(route, [window[row]], stamp - round(age * NS))

    def _encode(self, route: Route, values: list[np.ndarray], stamp: int) -> None:
        encoder = self._encoders.get(route.topic)
        if encoder is None:
            encoder = self._encoders[route.topic] = Encoder(route, self._pictures)
        data = encoder(values, stamp)
        self._message(route.topic, route.type, stamp, data, {METADATA_KEY: route.to_json})

    def _message(self, topic: str, type_name: str, stamp: int, data: bytes, metadata: Mapping[str, object]) -> None:
        channel = self._channels.get(topic)
        if channel is None:
            if type_name not in self._schemas:
                text = messages.definition(type_name)
                self._schemas[type_name] = self._writer.register_schema(type_name, "ros2msg", text)
            about = {key: str(value() if callable(value) else value) for key, value in metadata.items()}
            channel = self._writer.register_channel(topic, "cdr", self._schemas[type_name], about)
            self._channels[topic] = channel
        if self._in_chunk and self._in_chunk + len(data) > CHUNK_BYTES - 4096:
            self.flush()
        self._in_chunk += len(data) + 31  # what MCAP adds to each message
        self._writer.add_message(channel, max(stamp, 0), data, max(stamp, 0))

    def _stamp(self, t: float) -> int:
        return self.start_ns + round(t * NS)


def new_rows(previous: np.ndarray | None, window: np.ndarray, usual: int) -> int:
    """How many rows at the end of `window` (T, ...) are not yet in `previous`; `usual` wins where several fit."""
    size = len(window)
    if previous is None or previous.shape != window.shape:
        return size
    for new in sorted(range(size), key=lambda n: (n != usual, n)):
        if same_bits(window[: size - new], previous[new:]):
            return new
    return size


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays hold the same bytes."""
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()
