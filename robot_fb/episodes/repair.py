"""Makes a damaged or unfinished file whole again: what is intact goes into a new file that takes its place."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mcap import records as mcap
from mcap.writer import CompressionType, Writer

from robot_fb.episodes import schema
from robot_fb.episodes.locks import not_recording
from robot_fb.episodes.messages import deserialize
from robot_fb.episodes.reading import opened, read_episode
from robot_fb.episodes.salvage import Damage, Gap, definitions, salvage
from robot_fb.episodes.sink import CHUNK_BYTES, Output
from robot_fb.episodes.writer import disk_error, sync_folder
from robot_fb.errors import BrokenFileError, EpisodeError


@dataclass(frozen=True)
class Repaired:
    """What a repair did.

    Attributes:
        file: the whole file; None where there was nothing to save and the empty remains were removed.
        messages: kept.
        steps: decisions kept.
        problems: what was wrong.
        backup: the damaged original, kept because parts of it could not be read.
    """

    file: Path | None
    messages: int
    steps: int
    problems: tuple[str, ...]
    backup: Path | None


def repair(path: Path) -> Repaired:
    """Saves what is intact in `path` (`ID.mcap` or `ID.mcap.part`) and puts the new file at `ID.mcap`.

    The original stands until the new file is whole on the disk, and stays as `.bak` where parts of it were unreadable.

    Raises:
        StoreBusyError: it is being recorded right now.
        BrokenFileError: nothing in it can be saved.
        DiskFullError: no room for the new file; the original stays.
    """
    final = path.with_name(path.name.removesuffix(".part"))
    if final != path and final.exists():
        raise EpisodeError(f"{final} exists already", do=f"move one of it and {path.name} away")
    with not_recording(path):
        if path.stat().st_size == 0 and final != path:
            path.unlink()
            return Repaired(None, 0, 0, ("the recording died before its first byte",), None)
        fresh = path.with_name(f".{final.name}.repairing")
        try:
            return _replace(path, fresh, final)
        except OSError as error:
            raise disk_error(fresh, error) from error
        finally:
            fresh.unlink(missing_ok=True)


def _replace(path: Path, fresh: Path, final: Path) -> Repaired:
    damage, copied = _write(path, fresh)
    # A decision whose observation is partly lost does not count.
    steps = len(read_episode(fresh, streams=())) if copied.head is not None else 0
    backup = path.with_name(final.name + ".bak")
    path.replace(backup)
    fresh.replace(final)
    sync_folder(final.parent)
    if damage.problems:
        return Repaired(final, copied.messages, steps, tuple(damage.problems), backup)
    backup.unlink()
    return Repaired(final, copied.messages, steps, ("it had no end",), None)


def _write(path: Path, fresh: Path) -> tuple[Damage, _Copy]:
    damage = Damage()
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        with opened(path) as data:
            copy = _Copy(Output(handle), definitions(data))
            for record in salvage(data, damage):
                copy.add(record)
            if copy.lost:
                damage.problems.append(f"{copy.lost} messages of channels whose description is lost")
            copy.finish(damage)
        os.fsync(handle)
    finally:
        os.close(handle)
    if not copy.messages and copy.head is None:
        found = "; ".join(damage.problems) or "no record"
        raise BrokenFileError(f"{path} holds nothing that can be saved", found=found)
    return damage, copy


class _Copy:
    """Writes records into a new file, as they come."""

    def __init__(self, output: Output, definitions: list[Any]) -> None:
        stream: Any = output
        self._writer = Writer(stream, chunk_size=CHUNK_BYTES, compression=CompressionType.ZSTD, enable_data_crcs=True)
        self._output = output
        self._schemas = {r.id: r for r in definitions if isinstance(r, mcap.Schema)}
        self._channels = {r.id: r for r in definitions if isinstance(r, mcap.Channel)}
        self._new_schemas: dict[int, int] = {0: 0}
        self._new_channels: dict[int, int] = {}
        self._started = False
        self._outcome: schema.Outcome | None = None
        self._last_decision: bytes | None = None
        self._in_chunk = 0
        self.head: mcap.Metadata | None = None
        self.messages = self.steps = self.lost = 0

    def add(self, record: Any) -> None:
        if isinstance(record, mcap.Header):
            self._start(record.profile)
            return
        self._start("ros2")
        if isinstance(record, mcap.Schema):
            self._schemas[record.id] = record
        elif isinstance(record, mcap.Channel):
            self._channels[record.id] = record
        elif isinstance(record, mcap.Message):
            self._message(record)
        elif isinstance(record, mcap.Metadata):
            self._metadata(record)
        elif isinstance(record, mcap.Attachment):
            self._writer.add_attachment(
                record.create_time, record.log_time, record.name, record.media_type, record.data
            )
        elif isinstance(record, Gap):
            self._flush()
            self._writer.add_metadata(schema.GAP_RECORD, {})

    def finish(self, damage: Damage) -> None:
        """The outcome that stood there, else one that says that there was none."""
        self._start("ros2")
        self._flush()
        if self.head is not None:
            lost = "; ".join(damage.problems)
            outcome = self._outcome or schema.Outcome(
                success=self._succeeded(), unfinished=f"repaired: {lost or 'the recording died'}"
            )
            self._writer.add_metadata(
                schema.OUTCOME_RECORD, schema.outcome_record(replace(outcome, steps=self.steps))
            )
        self._writer.finish()
        self._output.flush()

    def _start(self, profile: str) -> None:
        if not self._started:
            self._writer.start(profile, "robot_fb")
            self._started = True

    def _metadata(self, record: mcap.Metadata) -> None:
        if record.name == schema.OUTCOME_RECORD:
            with suppress(BrokenFileError):
                self._outcome = schema.parse_outcome_record(record.metadata)
            return
        if record.name == schema.EPISODE_RECORD:
            if self.head is not None:
                return  # it is repeated at the end, for files that lost their beginning
            self.head = record
        self._flush()
        self._writer.add_metadata(record.name, record.metadata)

    def _message(self, record: mcap.Message) -> None:
        channel = self._channel(record.channel_id)
        if channel is None:
            self.lost += 1
            return
        data = bytes(record.data)
        if self._in_chunk and self._in_chunk + len(data) > CHUNK_BYTES - 4096:
            self._flush()
        self._in_chunk += len(data) + 31
        self._writer.add_message(channel, record.log_time, data, record.publish_time, record.sequence)
        self.messages += 1
        if self._channels[record.channel_id].topic == schema.DECISION_TOPIC:
            self.steps += 1
            self._last_decision = data

    def _channel(self, id: int) -> int | None:
        """The id in the new file; None where the description of the channel or its schema is lost."""
        if id in self._new_channels:
            return self._new_channels[id]
        channel = self._channels.get(id)
        if channel is None or (channel.schema_id and channel.schema_id not in self._schemas):
            return None
        if channel.schema_id not in self._new_schemas:
            s = self._schemas[channel.schema_id]
            self._new_schemas[s.id] = self._writer.register_schema(s.name, s.encoding, s.data)
        self._new_channels[id] = self._writer.register_channel(
            channel.topic, channel.message_encoding, self._new_schemas[channel.schema_id], channel.metadata
        )
        return self._new_channels[id]

    def _flush(self) -> None:
        self._writer.flush()
        self._in_chunk = 0

    def _succeeded(self) -> bool:
        if self._last_decision is None:
            return False
        row = deserialize(self._last_decision, schema.DECISION_TYPE).data
        return len(row) > 2 and bool(int(row[schema.HEAD.index("flags")]) & schema.SUCCESS)
