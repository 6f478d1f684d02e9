"""Finds what is intact in a damaged or unfinished MCAP file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import zstandard
from mcap import records as mcap
from mcap.opcode import Opcode

from robot_fb.episodes.records import HEAD, MAGIC, Raw, parse, read, split, unpack
from robot_fb.errors import BrokenFileError

_ZSTD_MARK = b"\x04\x00\x00\x00zstd"
_MARK_OFFSET = HEAD.size + 8 + 8 + 8 + 4
"""From the start of a chunk record to the name of its compression."""


@dataclass
class Damage:
    """What was wrong.

    Attributes:
        problems: one clause each, in file order.
        unfinished: the file merely has no end, as after a crash.
    """

    problems: list[str] = field(default_factory=list)
    unfinished: bool = False


class Gap:
    """Stands where something was lost; what comes after does not follow on what came before."""


def salvage(data: memoryview, damage: Damage) -> Iterator[Any]:
    """Every intact record up to the end of the data section, chunks opened, with `Gap()` where something is missing.

    Args:
        data: the file.
        damage: filled while going.
    """
    at = len(MAGIC)
    if bytes(data[:at]) != MAGIC:
        damage.problems.append("the magic number at the start is damaged")
        at = _next_chunk(data, 0)
        yield Gap()
    while True:
        raw = _plausible(data, at)
        if raw is None:
            yield from _cut_chunk(data, at)
            after = _next_chunk(data, at + 1)
            if after >= len(data):
                damage.unfinished = True
                if at < len(data):
                    damage.problems.append(f"cut short in the record at byte {at}")
                return
            damage.problems.append(f"no readable record in bytes {at} to {after}")
            at = after
            yield Gap()
            continue
        if raw.opcode in (Opcode.DATA_END, Opcode.FOOTER):
            _check_rest(data, damage)
            return
        try:
            record = parse(raw)
            if isinstance(record, mcap.Chunk):
                content = memoryview(unpack(record, raw.start))
                yield from map(parse, split(content, 0, len(content)))
            elif record is not None:
                yield record
        except BrokenFileError as error:
            damage.problems.append(error.what)
            yield Gap()
            if _plausible(data, raw.end) is None:  # then its length may be wrong, too
                at = _next_chunk(data, raw.start + 1)
                continue
        at = raw.end


def _check_rest(data: memoryview, damage: Damage) -> None:
    """Adds what only the checksums over whole sections tell: a damaged description, index or summary."""
    if damage.problems:
        return
    try:
        for _ in read(data):
            pass
    except BrokenFileError as error:
        damage.problems.append(error.what)


def definitions(data: memoryview) -> list[Any]:
    """Schemas and channels from the summary, for files whose first chunk is lost."""
    end = len(data) - len(MAGIC)
    footer_size = HEAD.size + 20
    if end < footer_size:
        return []
    try:
        (footer,) = split(data, end - footer_size, end)
        start = parse(footer).summary_start
        found = [parse(raw) for raw in split(data, start, end) if raw.opcode in (Opcode.SCHEMA, Opcode.CHANNEL)]
    except (BrokenFileError, ValueError, AttributeError):
        return []
    return found


def _plausible(data: memoryview, at: int) -> Raw | None:
    """The record at `at`, or None where there can be none."""
    if at < 0 or at + HEAD.size > len(data):
        return None
    opcode, length = HEAD.unpack_from(data, at)
    stop = at + HEAD.size + length
    known = Opcode.HEADER <= opcode <= Opcode.DATA_END or opcode >= 0x80
    return Raw(opcode, at, stop, data[at + HEAD.size : stop]) if known and stop <= len(data) else None


def _next_chunk(data: memoryview, start: int) -> int:
    """Offset of the next thing that looks like a chunk; the end of the data where nothing does."""
    whole: Any = data.obj
    search = whole.find if hasattr(whole, "find") else bytes(data).find  # an mmap searches without a copy
    at = start
    while True:
        mark = search(_ZSTD_MARK, at + _MARK_OFFSET)
        if mark < 0:
            return len(data)
        candidate = mark - _MARK_OFFSET
        if candidate >= start and data[candidate] == Opcode.CHUNK and _plausible(data, candidate) is not None:
            return candidate
        at = candidate + 1


def _cut_chunk(data: memoryview, at: int) -> Iterator[Any]:
    """The whole records at the beginning of a chunk whose end is missing: compression goes front to back."""
    body = data[at + HEAD.size :]
    if at >= len(data) or data[at] != Opcode.CHUNK or bytes(body[28:36]) != _ZSTD_MARK or len(body) < 44:
        return
    (size,) = memoryview(body[8 * 2 : 8 * 3]).cast("Q")
    try:
        reader = zstandard.ZstdDecompressor().stream_reader(body[44:])
        content = memoryview(reader.read(min(size, 64 << 20)))
        for raw in split(content, 0, len(content)):
            yield parse(raw)
    except (zstandard.ZstdError, BrokenFileError):
        return
