"""A store: a folder of episodes, their feedback and an index that can be rebuilt from the files alone.

    STORE/store.yaml           format version
    STORE/episodes/ID.mcap     one finished episode each; ID.mcap.part while it is recorded
    STORE/feedback.jsonl       events that came after an episode
    STORE/index.jsonl, cache/  shortcuts; may be deleted at any time

Any number of processes may write to one store at once: each episode is a file of its own, locked while it is
recorded, and the two shared files are only ever appended to, under a lock.
"""

from __future__ import annotations

import atexit
import secrets
import weakref
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from robot_fb.config import read_yaml, write_yaml
from robot_fb.episodes import events, index
from robot_fb.episodes.episode import Episode, Samples
from robot_fb.episodes.reading import read_episode, read_samples
from robot_fb.episodes.schema import FORMAT, Outcome, check_format
from robot_fb.episodes.writer import EpisodeWriter, WriterConfig, disk_error
from robot_fb.errors import ConfigError, EpisodeError, RobotFbError, UnknownNameError
from robot_fb.registry import closest
from robot_fb.types import EpisodeMeta, Feedback

MARK = "store.yaml"
_WHERE = ("task", "by", "success", "robot", "seed", "unfinished")
_open_writers: weakref.WeakSet[EpisodeWriter] = weakref.WeakSet()


class Store:
    """A folder of episodes; see `interfaces.EpisodeStore`.

    Args:
        path: the folder.
        create: make it where it is missing.
        writer: how episodes are written.

    Raises:
        EpisodeError: there is no store.
        NewerFormatError: written by a newer robot_fb.
    """

    def __init__(self, path: Path | str, create: bool = False, writer: WriterConfig | None = None) -> None:
        self.path = Path(path)
        self.episodes = self.path / "episodes"
        self._writer_config = writer
        mark = self.path / MARK
        if not mark.exists():
            if not create:
                raise EpisodeError(
                    f"there is no episode store at {self.path}", expected=f"a folder with {MARK}",
                    found="another folder" if self.path.exists() else "nothing",
                    do="check the path, or record one: robot-fb record --out STORE",
                )
            _create(self.path, mark)
        try:
            found = int(read_yaml(mark).get("format", -1))
        except (ConfigError, TypeError, ValueError) as error:
            raise EpisodeError(f"{mark} is damaged", expected="format: NUMBER", found=str(error)) from error
        check_format(found, f"the store {self.path}")

    def open(self, meta: EpisodeMeta) -> EpisodeWriter:
        """A new episode, recorded from now on.

        Raises:
            DiskFullError, EpisodeError: the file cannot be made.
        """
        id = f"{datetime.now(UTC):%Y%m%dT%H%M%S_%f}_{secrets.token_hex(2)}"
        path = self.file(id)

        def done(outcome: Outcome, streams: tuple[str, ...], feedback: list[Feedback]) -> None:
            with suppress(OSError, RobotFbError):  # the episode is safe; the index is only a shortcut
                self._index_new(path, meta, outcome, streams, feedback)

        writer = EpisodeWriter(path, id, meta, self._writer_config, done)
        _open_writers.add(writer)
        return writer

    def query(self, **where: object) -> Sequence[str]:
        """Ids of the readable episodes that match, oldest first.

        Args:
            **where: task, by, success, robot, seed or unfinished (True: episodes that were never closed).
        """
        for key in where:
            if key not in _WHERE:
                raise UnknownNameError(f"episodes cannot be asked for {key!r}", do=closest(key, _WHERE))
        if "unfinished" in where:
            unfinished = bool(where.pop("unfinished"))
            return [e.id for e in self.entries() if bool(e.unfinished) is unfinished and _matches(e, where)]
        return [entry.id for entry in self.entries() if _matches(entry, where)]

    def read(self, id: str) -> Episode:
        """One episode.

        Raises:
            UnknownNameError: there is none of that id.
            BrokenFileError: its file is damaged.
        """
        return read_episode(self._existing(id))

    def samples(self, id: str, stream: str) -> Samples:
        """A stream of one episode at its own rate."""
        return read_samples(self._existing(id), stream)

    def entries(self, broken: bool = False) -> list[index.Entry]:
        """What is known of every finished episode, oldest first, held against the files.

        Args:
            broken: also those whose files cannot be read.
        """
        known = index.load(self.path / "index.jsonl")
        found: list[index.Entry] = []
        fresh: list[index.Entry] = []
        for path in sorted(self.episodes.glob("*.mcap")):
            try:
                stat = path.stat()
                entry = known.get(path.name.removesuffix(".mcap"))
                if entry is None or (entry.size, entry.mtime_ns) != (stat.st_size, stat.st_mtime_ns):
                    entry = index.describe(path)
                    fresh.append(entry)
            except FileNotFoundError:  # somebody has just removed it
                continue
            found.append(entry)
        if fresh:
            with suppress(OSError):  # a read-only store can still be read
                events.append(self.path / "index.jsonl", [index.to_line(entry) for entry in fresh])
        return [entry for entry in found if broken or not entry.broken]

    def parts(self) -> list[Path]:
        """Files of episodes that are being recorded, or whose recording died."""
        return sorted(self.episodes.glob("*.mcap.part"))

    def reindex(self) -> list[index.Entry]:
        """Forgets the index and builds it from the files."""
        (self.path / "index.jsonl").unlink(missing_ok=True)
        return self.entries(broken=True)

    def append_feedback(self, event: Feedback) -> None:
        """Adds an event to the side log; it is on the disk when this returns.

        Raises:
            DiskFullError: the disk took no more.
        """
        try:
            events.append(self.path / "feedback.jsonl", [events.to_json(event)])
        except OSError as error:
            raise disk_error(self.path / "feedback.jsonl", error) from error

    def feedback(self, episode: str | None = None) -> list[Feedback]:
        """Events from within the episodes, then those that came later.

        Args:
            episode: only those that speak of this one.
        """
        inside = [event for entry in self.entries() for event in entry.events()]
        late, _ = events.read(self.path / "feedback.jsonl")
        return [e for e in [*inside, *late] if episode is None or episode in events.episodes_of(e)]

    def file(self, id: str) -> Path:
        """Where a finished episode lies."""
        return self.episodes / f"{id}.mcap"

    def _existing(self, id: str) -> Path:
        path = self.file(id)
        if Path(id).name != id or not path.exists():
            ids = [p.name.removesuffix(".mcap") for p in self.episodes.glob("*.mcap")]
            raise UnknownNameError(f"there is no episode {id!r} in {self.path}", do=closest(id, ids[-5:]))
        return path

    def _index_new(
        self, path: Path, meta: EpisodeMeta, outcome: Outcome, streams: tuple[str, ...], feedback: list[Feedback]
    ) -> None:
        stat = path.stat()
        entry = index.Entry(
            path.name.removesuffix(".mcap"), stat.st_size, stat.st_mtime_ns, meta.task, meta.by, meta.robot, meta.seed,
            outcome.success, outcome.steps, outcome.steps * meta.dt, streams, dict(outcome.info),
            dict(outcome.dropped), outcome.unfinished, tuple(map(events.to_json, feedback)),
        )
        events.append(self.path / "index.jsonl", [index.to_line(entry)])


def _matches(entry: index.Entry, where: dict[str, object]) -> bool:
    return all(getattr(entry, key) == value for key, value in where.items())


def _create(path: Path, mark: Path) -> None:
    """Makes an empty store; two processes may do so at once."""
    if path.is_dir() and any(p.name != "episodes" and not p.name.startswith(".") for p in path.iterdir()):
        if not mark.exists():
            raise EpisodeError(f"{path} holds other files", expected="an empty or missing folder", do="choose another")
    try:
        (path / "episodes").mkdir(parents=True, exist_ok=True)
        temporary = path / f".{MARK}.{secrets.token_hex(4)}"
        write_yaml(temporary, {"format": FORMAT, "what": "episodes of robot_fb"})
        temporary.replace(mark)
    except OSError as error:
        raise disk_error(path, error) from error


@atexit.register
def _finish_open_episodes() -> None:
    """An episode that is still open when Python ends is kept, as unfinished."""
    for writer in list(_open_writers):
        with suppress(Exception):
            writer.abandon("the program ended")
