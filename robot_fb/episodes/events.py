"""Feedback events as JSON, and the append-only side log that keeps those which come after an episode."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from robot_fb.config import from_mapping
from robot_fb.episodes.schema import FORMAT, check_format
from robot_fb.errors import BrokenFileError, ConfigError
from robot_fb.types import Evaluation, Feedback, Intervention, Language, Outcome, Preference, Ranking

KINDS: dict[str, type] = {
    "intervention": Intervention, "evaluation": Evaluation, "preference": Preference, "ranking": Ranking,
    "language": Language, "outcome": Outcome,
}


def to_json(event: Feedback) -> str:
    """One line: the event's fields and the format version."""
    return json.dumps({"v": FORMAT, **asdict(event)}, ensure_ascii=False)


def from_json(text: str) -> Feedback:
    """The event behind one line.

    Raises:
        NewerFormatError: written by a newer robot_fb.
        BrokenFileError: not an event.
    """
    try:
        data: dict[str, Any] = json.loads(text)
        check_format(int(data.pop("v")), "a feedback event")
        return from_mapping(KINDS[data["kind"]], data)
    except (ValueError, KeyError, TypeError, AttributeError, ConfigError) as error:
        raise BrokenFileError("a feedback event is damaged", found=text[:80]) from error


def time_of(event: Feedback) -> float:
    """When an event is about [s since the episode began]."""
    if isinstance(event, Evaluation):
        return event.t
    if isinstance(event, Intervention | Language):
        return event.end
    return 0.0


def episodes_of(event: Feedback) -> set[str]:
    """Ids of the episodes that an event speaks of."""
    if isinstance(event, Preference):
        return {event.first.episode, event.second.episode}
    if isinstance(event, Ranking):
        return {segment.episode for segment in event.order}
    return {event.episode}


def append(path: Path, lines: list[str]) -> None:
    """Appends whole lines under a lock and brings them to the disk; a torn last line of a crash is closed off first."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        size = os.fstat(handle).st_size
        torn = size > 0 and os.pread(handle, 1, size - 1) != b"\n"
        data = ("\n" if torn else "").encode() + "".join(line + "\n" for line in lines).encode()
        while data:
            data = data[os.write(handle, data) :]
        os.fsync(handle)
    finally:
        os.close(handle)


def read(path: Path) -> tuple[list[Feedback], list[str]]:
    """(events, lines that are none): a torn or damaged line costs itself only."""
    events: list[Feedback] = []
    damaged: list[str] = []
    if not path.exists():
        return events, damaged
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        if not line.strip():
            continue
        try:
            events.append(from_json(line))
        except BrokenFileError:
            damaged.append(line)
    return events, damaged


def plain(event: Feedback) -> Mapping[str, Any]:
    """For JSON output."""
    return asdict(event)
