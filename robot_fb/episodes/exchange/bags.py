"""Messages of bags in the order of time: rosbag2 MCAP and db3, and ROS 1 bags."""

from __future__ import annotations

import heapq
import sqlite3
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcap import records as mcap
from rosbags.highlevel import AnyReader, AnyReaderError
from rosbags.serde import SerdeError
from rosbags.typesys import Stores, TypesysError, get_types_from_idl, get_types_from_msg, get_typestore

from robot_fb.episodes import records
from robot_fb.episodes.reading import named, opened
from robot_fb.errors import BrokenFileError, EpisodeError, UnknownNameError
from robot_fb.registry import closest

REORDER_NS = 2_000_000_000
"""Messages in an MCAP file may be out of order by as much, e.g. between two of its chunks."""


@dataclass(frozen=True)
class BagMessage:
    """One decoded message.

    Attributes:
        topic: where it was published.
        type: e.g. "sensor_msgs/msg/Image".
        stamp_ns: when it was recorded.
        content: as `rosbags` decodes it.
    """

    topic: str
    type: str
    stamp_ns: int
    content: Any


def read_bag(path: Path, topics: Collection[str]) -> Iterator[BagMessage]:
    """The messages on some topics of a bag.

    Args:
        path: an .mcap, .db3 or .bag file, or a rosbag2 folder.
        topics: those that are wanted.

    Raises:
        UnknownNameError: the bag lacks a topic.
        BrokenFileError: it cannot be read.
    """
    if path.suffix == ".mcap":
        with opened(path) as data, named(path):
            yield from _read_mcap(data, topics, path)
    else:
        yield from _read_with_rosbags(path, topics)


def _read_mcap(data: memoryview, topics: Collection[str], path: Path) -> Iterator[BagMessage]:
    """Straight through the file, with the message definitions that lie in it; a short heap mends the order."""
    decoder = _Decoder()
    waiting: list[tuple[int, int, BagMessage]] = []
    newest = count = 0
    for record in records.read(data):
        if isinstance(record, mcap.Schema):
            decoder.schemas[record.id] = record
        elif isinstance(record, mcap.Channel):
            decoder.channels[record.id] = record
        elif isinstance(record, mcap.Message):
            channel = decoder.channels.get(record.channel_id)
            if channel is None or channel.topic not in topics:
                continue
            count += 1
            newest = max(newest, record.log_time)
            heapq.heappush(waiting, (record.log_time, count, decoder.decode(record, channel)))
            while waiting and waiting[0][0] < newest - REORDER_NS:
                yield heapq.heappop(waiting)[2]
    _require(topics, {channel.topic for channel in decoder.channels.values()}, path)
    while waiting:
        yield heapq.heappop(waiting)[2]


class _Decoder:
    """Decodes with the definitions in the file: ROS releases differ in some messages."""

    def __init__(self) -> None:
        self.schemas: dict[int, mcap.Schema] = {}
        self.channels: dict[int, mcap.Channel] = {}
        self._stores: dict[int, Any] = {}

    def decode(self, record: mcap.Message, channel: mcap.Channel) -> BagMessage:
        schema = self.schemas.get(channel.schema_id)
        if schema is None or channel.message_encoding not in ("cdr", "ros1"):
            raise BrokenFileError(
                f"topic {channel.topic} is not of ROS", expected="messages in cdr or ros1",
                found=channel.message_encoding or "no encoding",
            )
        store = self._store(schema)
        kind = schema.name if "/msg/" in schema.name else schema.name.replace("/", "/msg/", 1)
        try:
            read = store.deserialize_cdr if channel.message_encoding == "cdr" else store.deserialize_ros1
            return BagMessage(channel.topic, kind, record.log_time, read(record.data, kind))
        except (SerdeError, KeyError, ValueError, IndexError) as error:
            raise BrokenFileError(f"a message on {channel.topic} cannot be decoded", found=str(error)) from error

    def _store(self, schema: mcap.Schema) -> Any:
        if schema.id not in self._stores:
            store = get_typestore(Stores.EMPTY)
            text = bytes(schema.data).decode(errors="replace")
            name = schema.name if "/msg/" in schema.name else schema.name.replace("/", "/msg/", 1)
            try:
                store.register(get_types_from_idl(text) if "idl" in schema.encoding else get_types_from_msg(text, name))
            except (TypesysError, SyntaxError, KeyError, ValueError) as error:
                raise BrokenFileError(f"the definition of {schema.name} cannot be read", found=str(error)) from error
            self._stores[schema.id] = store
        return self._stores[schema.id]


def _read_with_rosbags(path: Path, topics: Collection[str]) -> Iterator[BagMessage]:
    default = None if path.suffix == ".bag" else get_typestore(Stores.ROS2_JAZZY)
    try:
        with AnyReader([path], default_typestore=default) as bag:
            _require(topics, {connection.topic for connection in bag.connections}, path)
            wanted = [connection for connection in bag.connections if connection.topic in topics]
            for connection, stamp, data in bag.messages(connections=wanted):
                content = bag.deserialize(data, connection.msgtype)
                yield BagMessage(connection.topic, connection.msgtype, stamp, content)
    except (AnyReaderError, SerdeError, TypesysError, sqlite3.Error, AssertionError, KeyError, ValueError) as error:
        raise BrokenFileError(f"{path} cannot be read as a bag", found=str(error) or type(error).__name__) from error
    except OSError as error:
        raise EpisodeError(f"cannot open {path}", found=error.strerror or str(error)) from error


def _require(topics: Collection[str], known: Collection[str], path: Path) -> None:
    for topic in topics:
        if topic not in known:
            raise UnknownNameError(f"{path} has no topic {topic!r}", do=closest(topic, sorted(known)))
