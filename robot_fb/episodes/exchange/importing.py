"""`robot-fb episodes import`: a foreign recording and a mapping become episodes of a store."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

from robot_fb.episodes.exchange.arrays import read_archive
from robot_fb.episodes.exchange.bags import read_bag
from robot_fb.episodes.exchange.mapping import ImportMapping
from robot_fb.episodes.exchange.resample import action_spec, topics_of, tracks
from robot_fb.episodes.exchange.track import Row, Track
from robot_fb.episodes.store import Store
from robot_fb.episodes.writer import WriterConfig
from robot_fb.errors import EpisodeError
from robot_fb.types import EpisodeMeta, Step, StreamSpec

BAGS = (".mcap", ".db3", ".bag")
ARCHIVES = (".npz", ".npy")


def import_recording(
    path: Path, mapping: ImportMapping, out: Path, progress: Callable[[int], None] = lambda episodes: None
) -> list[str]:
    """Logs every episode of a foreign recording.

    Args:
        path: .mcap, .db3, .bag, .npz or .npy file, or a rosbag2 folder.
        mapping: what becomes what.
        out: the store; made where missing.
        progress: called with the number of episodes done.

    Returns:
        Ids of the new episodes.

    Raises:
        EpisodeError: of another kind, missing, damaged, or without a single step; episodes before the damage are kept.
        ConfigError, UnknownNameError: the mapping does not fit the recording.
    """
    found = _tracks(path, mapping)
    first = next(found, None)
    if first is None:
        raise EpisodeError(f"{path} gave no step", do="do all topics of the mapping overlap in time?")
    store = Store(out, create=True, writer=WriterConfig(wait=True))
    ids: list[str] = []
    for track in chain([first], found):
        ids += _log(store, track, mapping, path)
        progress(len(ids))
    return ids


def _tracks(path: Path, mapping: ImportMapping) -> Iterator[Track]:
    if not path.exists():
        raise EpisodeError(f"there is no {path}", do="check the path")
    if path.suffix in ARCHIVES:
        yield from read_archive(path, mapping)
    elif path.suffix in BAGS or (path / "metadata.yaml").exists():
        topics = topics_of(mapping)
        spec = action_spec(read_bag(path, {mapping.action.topic}), mapping)
        yield from tracks(read_bag(path, topics), mapping, spec)
    else:
        raise EpisodeError(f"{path} is of no kind that can be imported", expected=", ".join(BAGS + ARCHIVES),
                           found=path.suffix or "a folder without metadata.yaml")


def _log(store: Store, track: Track, mapping: ImportMapping, path: Path) -> list[str]:
    """Logs one episode; its streams are declared from its first step."""
    rows = iter(track.rows)
    row = next(rows, None)
    if row is None:
        return []
    streams = {
        name: StreamSpec(value.shape, str(value.dtype), mapping.streams[name].unit, mapping.rate_hz)
        for name, value in row.obs.items()
    }
    meta = EpisodeMeta(
        mapping.task, mapping.by, streams, track.action, mapping.dt, robot=mapping.robot,
        extra={"imported_from": path.name, **mapping.extra},
    )
    with store.open(meta) as writer:
        for i, step in enumerate(_steps(row, rows, mapping.dt, track.success)):
            writer.add_step(dataclasses.replace(step, t=i * mapping.dt))
        writer.close(track.success)
    return [writer.id]


def _steps(row: Row, rows: Iterator[Row], dt: float, success: bool) -> Iterator[Step]:
    """Rows as steps; the last one ends the episode."""
    while True:
        after = next(rows, None)
        last = after is None
        yield Step(
            0.0, row.obs, row.action, row.action, source="human", reward=row.reward, terminated=last and success,
            truncated=last and not success, success=last and success,
        )
        if after is None:
            return
        row = after
