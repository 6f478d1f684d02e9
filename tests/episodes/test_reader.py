"""Files that others wrote, and files that are broken: read rightly or refused clearly, never worse."""

from __future__ import annotations

import json
import os
import struct
import zlib

import cv2
import lz4.frame
import numpy as np
import pytest
import zstandard
from episode_samples import META, make_steps
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcap import records as mcap
from mcap.data_stream import RecordBuilder
from mcap.writer import CompressionType, Writer

from robot_fb.episodes import pictures, records
from robot_fb.episodes.exchange.bags import read_bag
from robot_fb.episodes.reading import read_episode
from robot_fb.episodes.repair import repair
from robot_fb.episodes.store import Store
from robot_fb.episodes.verify import verify, verify_file
from robot_fb.errors import BrokenFileError, NewerFormatError, RobotFbError


def read_all(path):
    return list(records.read(memoryview(path.read_bytes())))


def as_json(record):
    """A record in the form of the conformance files: every field a string or a list or mapping of strings."""

    def plain(value):
        if isinstance(value, bytes | memoryview):
            return [str(byte) for byte in bytes(value)]
        if isinstance(value, dict):
            return {str(k): str(v) for k, v in value.items()}
        return value if isinstance(value, str) else str(value)

    return {"type": type(record).__name__, "fields": sorted([k, plain(v)] for k, v in vars(record).items())}


def test_conformance_files_read_as_they_must(third_party_data):
    files = sorted((third_party_data / "mcap_conformance").glob("*/*.mcap"))
    assert len(files) == 159

    for file in files:
        expected = json.loads(file.with_suffix(".json").read_text())["records"]
        found = [as_json(r) for r in read_all(file) if not isinstance(r, mcap.MessageIndex)]
        assert found == [{"type": r["type"], "fields": sorted(r["fields"])} for r in expected], file.name


def test_conformance_files_are_no_episodes_but_sound(third_party_data):
    for file in sorted((third_party_data / "mcap_conformance").glob("*/*.mcap"))[::20]:
        assert verify_file(file) is None
        with pytest.raises(BrokenFileError, match=r"no episode of robot_fb.*episodes import"):
            read_episode(file)


def test_a_file_of_rosbag2_is_read_message_by_message(third_party_data):
    """Given a bag of an older ROS, every type decodes with the definitions in the file."""
    (file,) = (third_party_data / "rosbag2_mcap").glob("*.mcap")
    topics = {r.topic for r in read_all(file) if isinstance(r, mcap.Channel)}

    found = list(read_bag(file, topics))

    assert len(found) == 194
    assert len({m.type for m in found if m.type.startswith("sensor_msgs/")}) == 24
    assert [m.stamp_ns for m in found] == sorted(m.stamp_ns for m in found)


@pytest.mark.parametrize("compression", list(CompressionType))
def test_every_compression_is_read(tmp_path, compression):
    path = tmp_path / "a.mcap"
    writer = Writer(str(path), compression=compression)
    writer.start()
    channel = writer.register_channel("t", "", 0)
    for i in range(100):
        writer.add_message(channel, i, bytes([i]) * 1000, i)
    writer.finish()

    found = [bytes(r.data) for r in read_all(path) if isinstance(r, mcap.Message)]

    assert found == [bytes([i]) * 1000 for i in range(100)]


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """A small episode."""
    store = Store(tmp_path_factory.mktemp("good") / "store", create=True)
    with store.open(META) as writer:
        for step in make_steps(8):
            writer.add_step(step)
        writer.close(True)
    return store.file(writer.id)


@pytest.mark.parametrize(
    ("content", "words", "repairable"),
    [
        (b"", "is empty", False),
        (b"%PDF-1.7 and so on", "no MCAP file.*expected an MCAP magic number", False),
        (b"\x89MCAP0\r\n", "no proper end", True),
        (b"#ROSBAG V2.0\n" + bytes(100), "no MCAP file", False),
    ],
)
def test_empty_and_foreign_files(tmp_path, content, words, repairable):
    path = tmp_path / "a.mcap"
    path.write_bytes(content)

    with pytest.raises(BrokenFileError, match=f"a.mcap.*{words}") as caught:
        read_episode(path)

    assert caught.value.repairable is repairable
    assert verify(path).problems[0].repairable is repairable


def test_a_cut_file_says_where_and_that_repair_helps(tmp_path, good):
    path = tmp_path / "a.mcap"
    path.write_bytes(good.read_bytes()[: good.stat().st_size // 2])

    with pytest.raises(BrokenFileError, match=r"cut short in the record at byte.*repair saves what is intact"):
        read_episode(path)


def test_an_episode_of_a_newer_version(tmp_path, good):
    path = tmp_path / "a.mcap"
    with path.open("wb") as file:
        writer = Writer(file)
        writer.start("ros2")
        writer.add_metadata("robot_fb.episode", {"format": "7", "id": "x", "meta": "{}", "start_ns": "0"})
        writer.finish()

    with pytest.raises(NewerFormatError, match="found format 7; upgrade"):
        read_episode(path)


@pytest.mark.parametrize("compression", ["zstd", "lz4", ""])
def test_a_bomb_does_not_go_off(tmp_path, compression):
    """Given a small chunk that unpacks to a gigabyte but claims a kilobyte, reading stops at once."""
    big = bytes(64 << 20)
    packed = {"zstd": lambda: zstandard.compress(big), "lz4": lambda: lz4.frame.compress(big), "": lambda: big[:2048]}
    for size in (1024, 1 << 60):
        chunk = mcap.Chunk(
            compression=compression, data=packed[compression](), message_end_time=0, message_start_time=0,
            uncompressed_crc=0, uncompressed_size=size,
        )
        builder = RecordBuilder()
        chunk.write(builder)
        path = tmp_path / "a.mcap"
        path.write_bytes(records.MAGIC + builder.end() + records.MAGIC)

        with pytest.raises(BrokenFileError, match=r"another size|claims"):
            read_all(path)


def test_lengths_are_not_trusted(tmp_path):
    for opcode in range(256):
        path = tmp_path / "a.mcap"
        path.write_bytes(records.MAGIC + struct.pack("<BQ", opcode, 1 << 62) + bytes(40) + records.MAGIC)
        with pytest.raises(BrokenFileError):
            read_all(path)


@pytest.mark.parametrize("name", [".png", ".jpg"])
def test_a_picture_that_claims_to_be_huge_is_refused_before_it_is_decoded(name):
    done, data = cv2.imencode(name, np.zeros((8, 8, 3), np.uint8))
    file = bytearray(data.tobytes())
    place = 16 if name == ".png" else file.index(b"\xff\xc0") + 5
    file[place : place + 4] = b"\x7f\xff\x7f\xff"

    with pytest.raises(BrokenFileError, match="another size"):
        pictures.decode(np.frombuffer(file, np.uint8), (8, 8, 3))
    with pytest.raises(BrokenFileError, match=r"too large|cannot be decoded"):
        pictures.decode(np.frombuffer(file, np.uint8))
    assert done and pictures.decode(data.ravel(), (8, 8, 3)).shape == (8, 8, 3)


EXAMPLES = int(os.environ.get("ROBOT_FB_FUZZ", "50"))
FUZZ = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
FLIPS = st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(1, 255)), min_size=1, max_size=8)


@FUZZ
@given(flips=FLIPS, cut=st.floats(0, 1))
def test_only_our_errors_come_out_of_damaged_files(tmp_path, good, flips, cut):
    """Given an episode with flipped bytes and a missing end, reading and repairing succeed or say why not."""
    damaged = bytearray(good.read_bytes())
    for place, mask in flips:
        damaged[int(place * len(damaged))] ^= mask
    path = tmp_path / "a.mcap"
    path.write_bytes(damaged[: int(cut * len(damaged))] if cut < 0.9 else damaged)

    for attempt in (read_episode, verify, repair, read_episode):
        try:
            attempt(path)
        except RobotFbError:
            pass


@FUZZ
@given(flips=FLIPS)
def test_content_that_lies_under_right_checksums_is_refused_too(tmp_path, good, flips):
    """Given an episode whose messages were changed and its checksums made to fit, only our errors come out."""
    path = tmp_path / "a.mcap"
    content = bytearray(unpacked(good.read_bytes()))
    for place, mask in flips:
        content[int(place * len(content))] ^= mask
    path.write_bytes(records.MAGIC + packed(bytes(content)) + records.MAGIC)

    for attempt in (read_episode, verify, repair, read_episode):
        try:
            attempt(path)
        except RobotFbError:
            pass


def unpacked(data):
    """All records of a file's data section, chunks opened."""
    view, out = memoryview(data), b""
    for raw in records.split(view, len(records.MAGIC), len(data) - len(records.MAGIC)):
        record = records.parse(raw)
        if isinstance(record, mcap.DataEnd):
            break
        if isinstance(record, mcap.Chunk):
            out += records.unpack(record, raw.start)
        elif not isinstance(record, mcap.MessageIndex):
            out += bytes(view[raw.start : raw.end])
    return out


def packed(content):
    """Data and footer of a file without chunks and index."""
    builder = RecordBuilder()
    mcap.DataEnd(zlib.crc32(records.MAGIC + content)).write(builder)
    mcap.Footer(0, 0, 0).write(builder)
    return content + builder.end()


def test_the_unchunked_form_used_for_fuzzing_is_a_sound_episode(tmp_path, good):
    path = tmp_path / "a.mcap"
    path.write_bytes(records.MAGIC + packed(unpacked(good.read_bytes())) + records.MAGIC)

    assert len(read_episode(path)) == 8
