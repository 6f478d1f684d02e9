"""Checks files down to every checksum and every step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mcap import records as mcap

from robot_fb.episodes import events, records, schema
from robot_fb.episodes.locks import is_recording
from robot_fb.episodes.reading import named, opened, read_episode
from robot_fb.episodes.store import MARK, Store
from robot_fb.errors import BrokenFileError, EpisodeError

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong.

    Attributes:
        file: where.
        what: in words.
        repairable: whether `robot-fb episodes repair` helps.
    """

    file: str
    what: str
    repairable: bool


@dataclass(frozen=True)
class Verdict:
    """The result of a check; its fields are the document of `robot-fb episodes verify --json`.

    Attributes:
        files: looked at.
        episodes: whole ones among them.
        steps: decisions in those.
        ok: no problem at all.
        problems: what is wrong.
    """

    files: int
    episodes: int
    steps: int
    ok: bool
    problems: tuple[Problem, ...]


def verify(path: Path, progress: Progress | None = None) -> Verdict:
    """Checks a store or a single MCAP file, whoever wrote it.

    Raises:
        EpisodeError: there is neither at `path`.
    """
    if path.is_dir():
        store = Store(path)
        files = sorted(store.episodes.glob("*.mcap"))
        problems = _leftovers(store) + _side_log(store)
    elif path.exists():
        files, problems = [path], []
    else:
        raise EpisodeError(f"there is no {path}", expected=f"a store (a folder with {MARK}) or an .mcap file")
    episodes = steps = 0
    for done, file in enumerate(files):
        if progress:
            progress(done, len(files))
        try:
            found = verify_file(file)
        except EpisodeError as error:
            repairable = isinstance(error, BrokenFileError) and error.repairable
            problems.append(Problem(str(file), error.what.removeprefix(f"{file}: "), repairable))
            continue
        if found is not None:
            episodes += 1
            steps += found
    if progress:
        progress(len(files), len(files))
    return Verdict(len(files), episodes, steps, not problems, tuple(problems))


def verify_file(path: Path) -> int | None:
    """Reads everything in a file.

    Returns:
        Its decisions; None for a sound MCAP file that is no episode of robot_fb.

    Raises:
        BrokenFileError, NewerFormatError: what is wrong with it.
    """
    ours = False
    with opened(path) as data, named(path):
        for record in records.read(data):
            ours = ours or (isinstance(record, mcap.Metadata) and record.name == schema.EPISODE_RECORD)
    return len(read_episode(path)) if ours else None


def _leftovers(store: Store) -> list[Problem]:
    dead = [part for part in store.parts() if not is_recording(part)]
    return [Problem(str(part), "the recording died before its end", True) for part in dead]


def _side_log(store: Store) -> list[Problem]:
    path = store.path / "feedback.jsonl"
    _, damaged = events.read(path)
    return [Problem(str(path), f"{len(damaged)} damaged lines; all others are read", False)] if damaged else []
