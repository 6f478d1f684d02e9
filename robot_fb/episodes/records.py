"""Reads any MCAP file record by record, checking every checksum and trusting no length.

Goes through the file from the start and needs no index, so it also reads the valid files on which index-driven readers
stumble. Lengths and decompressed sizes are capped: a damaged or hostile file costs a clear error, not the memory.
Format: https://mcap.dev/spec.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import lz4.frame
import zstandard
from mcap import records as mcap
from mcap.data_stream import ReadDataStream
from mcap.exceptions import McapError
from mcap.opcode import Opcode

from robot_fb.errors import BrokenFileError

MAGIC = b"\x89MCAP0\r\n"
HEAD = struct.Struct("<BQ")
MESSAGE_HEAD = struct.Struct("<HIQQ")
CHUNK_LIMIT = 512 * 1024 * 1024
"""Bytes that one chunk may unpack to."""
PIECE = 1024 * 1024

_PARSERS: dict[int, Callable[[ReadDataStream], Any]] = {
    Opcode.HEADER: mcap.Header.read, Opcode.FOOTER: mcap.Footer.read, Opcode.SCHEMA: mcap.Schema.read,
    Opcode.CHANNEL: mcap.Channel.read, Opcode.CHUNK: mcap.Chunk.read, Opcode.MESSAGE_INDEX: mcap.MessageIndex.read,
    Opcode.CHUNK_INDEX: mcap.ChunkIndex.read, Opcode.ATTACHMENT: mcap.Attachment.read,
    Opcode.ATTACHMENT_INDEX: mcap.AttachmentIndex.read, Opcode.STATISTICS: mcap.Statistics.read,
    Opcode.METADATA: mcap.Metadata.read, Opcode.METADATA_INDEX: mcap.MetadataIndex.read,
    Opcode.SUMMARY_OFFSET: mcap.SummaryOffset.read, Opcode.DATA_END: mcap.DataEnd.read,
}


@dataclass(frozen=True)
class Raw:
    """One record as it stands in the file.

    Attributes:
        opcode: kind of record.
        start, end: byte offsets, its 9-byte head included.
        body: content.
    """

    opcode: int
    start: int
    end: int
    body: memoryview


def check_magic(data: memoryview) -> None:
    """Raises BrokenFileError where `data` does not begin like an MCAP file."""
    if len(data) == 0:
        raise BrokenFileError("the file is empty", expected="an MCAP file")
    if bytes(data[: len(MAGIC)]) != MAGIC:
        raise BrokenFileError("this is no MCAP file", expected="an MCAP magic number", found=repr(bytes(data[:8])))


def split(data: memoryview, start: int, end: int) -> Iterator[Raw]:
    """The records between two offsets.

    Raises:
        BrokenFileError: a record runs over the end.
    """
    at = start
    while at < end:
        if end - at < HEAD.size:
            raise _cut(at)
        opcode, length = HEAD.unpack_from(data, at)
        stop = at + HEAD.size + length
        if stop > end:
            raise _cut(at)
        yield Raw(opcode, at, stop, data[at + HEAD.size : stop])
        at = stop


def parse(raw: Raw) -> Any:
    """The record as a dataclass of `mcap.records`; None where its kind is unknown (the format allows it).

    Raises:
        BrokenFileError: its content is damaged.
    """
    try:
        if raw.opcode == Opcode.MESSAGE:
            channel, sequence, log_time, publish_time = MESSAGE_HEAD.unpack_from(raw.body)
            return mcap.Message(channel, log_time, raw.body[MESSAGE_HEAD.size :], publish_time, sequence)  # type: ignore
        parser = _PARSERS.get(raw.opcode)
        return parser(ReadDataStream(BytesIO(raw.body))) if parser else None
    except (McapError, struct.error, ValueError, OverflowError) as error:
        raise BrokenFileError(
            f"the record at byte {raw.start} is damaged", found=str(error) or type(error).__name__, repairable=True
        ) from error


def unpack(chunk: mcap.Chunk, start: int) -> bytes:
    """A chunk's content, checked.

    Args:
        chunk: as parsed.
        start: its offset, for messages.

    Raises:
        BrokenFileError: it cannot be decompressed, has another size or another checksum than it says.
    """
    if chunk.uncompressed_size > CHUNK_LIMIT:
        raise BrokenFileError(
            f"the chunk at byte {start} claims {chunk.uncompressed_size} bytes", expected=f"at most {CHUNK_LIMIT}",
            repairable=True,
        )
    try:
        data = _decompress(chunk)
    except (zstandard.ZstdError, RuntimeError, EOFError, ValueError, MemoryError) as error:
        raise BrokenFileError(
            f"the chunk at byte {start} cannot be decompressed", found=str(error), repairable=True
        ) from error
    if len(data) != chunk.uncompressed_size:
        raise BrokenFileError(
            f"the chunk at byte {start} has another size", expected=chunk.uncompressed_size, found=len(data),
            repairable=True,
        )
    if chunk.uncompressed_crc and zlib.crc32(data) != chunk.uncompressed_crc:
        raise BrokenFileError(f"the chunk at byte {start} fails its checksum", repairable=True)
    return data


def _decompress(chunk: mcap.Chunk) -> bytes:
    """Piece by piece, so that a lie about the size costs one piece too many and no more."""
    limit = chunk.uncompressed_size
    if chunk.compression == "":
        return chunk.data
    if chunk.compression == "zstd":
        reader = zstandard.ZstdDecompressor().stream_reader(chunk.data, read_size=PIECE)
        return _gather(lambda: reader.read(PIECE), limit)
    if chunk.compression == "lz4":
        unpacker = lz4.frame.LZ4FrameDecompressor()
        rest = [bytes(chunk.data)]

        def more() -> bytes:
            return b"" if unpacker.eof else unpacker.decompress(rest.pop() if rest else b"", max_length=PIECE)

        return _gather(more, limit)
    raise ValueError(f"unknown compression {chunk.compression!r}")


def _gather(more: Callable[[], bytes], limit: int) -> bytes:
    pieces, size = [], 0
    while size <= limit and (piece := more()):
        pieces.append(piece)
        size += len(piece)
    return b"".join(pieces)


def read(data: memoryview) -> Iterator[Any]:
    """Every record of a whole MCAP file in file order, chunks opened, checksums verified.

    Yields:
        Dataclasses of `mcap.records`; messages' `data` is a memoryview.

    Raises:
        BrokenFileError: empty, foreign, cut short or damaged.
    """
    check_magic(data)
    footer: Raw | None = None
    summary_start = 0
    for raw in split(data, len(MAGIC), _end_of_records(data)):
        record = parse(raw)
        if isinstance(record, mcap.Chunk):
            content = memoryview(unpack(record, raw.start))
            for inner in split(content, 0, len(content)):
                yield parse(inner)
            continue
        _verify(data, raw, record)
        if raw.opcode == Opcode.DATA_END:
            summary_start = raw.end
        if raw.opcode == Opcode.FOOTER:
            footer = raw
            _verify_summary(data, raw, record, summary_start)
        if record is not None:
            yield record
        if footer is not None:
            break
    if footer is None or footer.end != len(data) - len(MAGIC):
        raise BrokenFileError("the file has no proper end", expected="a footer record at its end", repairable=True)


def _end_of_records(data: memoryview) -> int:
    """Where the closing magic begins; the end of the data where there is none, so that what is there is still read."""
    whole = len(data) >= 2 * len(MAGIC) and bytes(data[-len(MAGIC) :]) == MAGIC
    return len(data) - len(MAGIC) if whole else len(data)


def _verify(data: memoryview, raw: Raw, record: Any) -> None:
    if isinstance(record, mcap.Attachment):
        (crc,) = struct.unpack("<I", raw.body[-4:])
        if crc and zlib.crc32(raw.body[:-4]) != crc:
            raise BrokenFileError(f"the attachment at byte {raw.start} fails its checksum", repairable=True)
    if isinstance(record, mcap.DataEnd) and record.data_section_crc:
        if zlib.crc32(data[: raw.start]) != record.data_section_crc:
            raise BrokenFileError("the data section fails its checksum", repairable=True)


def _verify_summary(data: memoryview, raw: Raw, footer: mcap.Footer, summary_start: int) -> None:
    if footer.summary_start and footer.summary_start != summary_start:
        raise BrokenFileError("the footer points to no summary", found=footer.summary_start, repairable=True)
    if footer.summary_crc and zlib.crc32(data[summary_start : raw.end - 4]) != footer.summary_crc:
        raise BrokenFileError("the summary fails its checksum", repairable=True)


def _cut(at: int) -> BrokenFileError:
    return BrokenFileError(f"the file is cut short in the record at byte {at}", repairable=True)
