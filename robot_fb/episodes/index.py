"""The store's index: one JSON line an episode. Only a shortcut: whatever is missing or stale is read from the files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from robot_fb.config import from_mapping
from robot_fb.episodes import events
from robot_fb.episodes.reading import read_episode
from robot_fb.errors import ConfigError, EpisodeError
from robot_fb.types import Feedback


@dataclass(frozen=True)
class Entry:
    """What the index knows of one episode file.

    Attributes:
        id: of the episode; the file is `episodes/ID.mcap`.
        size, mtime_ns: of the file when it was read; others mean that the entry is stale.
        task, by, robot, seed, success, steps, info, dropped, unfinished: from the file.
        streams: names of the streams that the steps hold.
        duration_s: decision period times steps.
        feedback: events inside the file, as JSON lines.
        broken: why the file cannot be read; empty for a good one.
    """

    id: str
    size: int
    mtime_ns: int
    task: str = ""
    by: str = ""
    robot: str = ""
    seed: int | None = None
    success: bool = False
    steps: int = 0
    duration_s: float = 0.0
    streams: tuple[str, ...] = ()
    info: Mapping[str, str] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)
    unfinished: str = ""
    feedback: tuple[str, ...] = ()
    broken: str = ""

    def events(self) -> list[Feedback]:
        """Feedback that came while the episode ran."""
        return [events.from_json(line) for line in self.feedback]


def describe(path: Path) -> Entry:
    """The entry of one file, from the file itself."""
    stat = path.stat()
    id = path.name.removesuffix(".mcap")
    try:
        episode = read_episode(path, streams=())
    except EpisodeError as error:
        return Entry(id, stat.st_size, stat.st_mtime_ns, broken=str(error))
    return Entry(
        id, stat.st_size, stat.st_mtime_ns, episode.meta.task, episode.meta.by, episode.meta.robot, episode.meta.seed,
        episode.success, len(episode), len(episode) * episode.meta.dt, episode.streams,
        dict(episode.info), dict(episode.outcome.dropped), episode.outcome.unfinished,
        tuple(events.to_json(event) for event in episode.feedback),
    )


def load(path: Path) -> dict[str, Entry]:
    """All readable lines; later ones win. A torn or foreign line is simply not there."""
    entries: dict[str, Entry] = {}
    if not path.exists():
        return entries
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            data: Any = json.loads(line)
            entry = from_mapping(Entry, data)
        except (ValueError, ConfigError):
            continue
        entries[entry.id] = entry
    return entries


def to_line(entry: Entry) -> str:
    """One line of the index."""
    return json.dumps(asdict(entry), ensure_ascii=False)
