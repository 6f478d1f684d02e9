"""Builds the columnar cache, episode by episode."""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

import numpy as np

from robot_fb.episodes.arrays import ABOUT, LAYOUT, EpisodeArrays, file_of, open_arrays
from robot_fb.episodes.episode import Episode
from robot_fb.episodes.index import Entry
from robot_fb.episodes.reading import read_episode
from robot_fb.episodes.store import Store
from robot_fb.errors import EpisodeError, ObservationError
from robot_fb.types import EpisodeMeta

KEEP = 4
"""Caches kept in a store; the least recently used go."""

Progress = Callable[[int, int], None]
Rows = dict[str, np.ndarray]


def build(
    place: Path, store: Store, entries: Sequence[Entry], contents: Sequence[str], streams: Collection[str] | None,
    progress: Progress | None,
) -> None:
    """Writes a cache beside its place and moves it there once it is whole. The caller holds the caches' lock.

    Args:
        place: folder of the new cache.
        store: of the episodes.
        entries: the episodes.
        contents: for each episode, a word that changes with its content.
        streams: those wanted; all that every episode has when None.
        progress: called with (episodes done, episodes to do).
    """
    cache = place.parent
    for orphan in cache.glob(".building.*"):  # nobody else builds while this process holds the lock
        shutil.rmtree(orphan, ignore_errors=True)
    folder = cache / f".building.{secrets.token_hex(4)}"
    folder.mkdir()
    try:
        columns: dict[str, _Column] = {}
        metas: list[EpisodeMeta] = []
        total = sum(entry.steps for entry in entries)
        wanted = _common(entries) if streams is None else sorted(streams)
        known = _Known(cache)
        for done, (entry, content) in enumerate(zip(entries, contents, strict=True)):
            if progress:
                progress(done, len(entries))
            rows, meta = known.rows(content, wanted) or _decoded(store, entry, wanted)
            for name, values in rows.items():
                if name not in columns:
                    columns[name] = _Column(file_of(folder, name), values, total)
                columns[name].append(values, entry.id, name)
            metas.append(meta)
        for column in columns.values():
            column.close()
        ends = np.cumsum([entry.steps for entry in entries]).tolist()
        about: dict[str, Any] = {
            "layout": LAYOUT, "arrays": list(columns), "episode_ends": ends, "ids": [e.id for e in entries],
            "metas": [asdict(meta) for meta in metas], "success": [e.success for e in entries],
            "contents": list(contents),
        }
        (folder / ABOUT).write_text(json.dumps(about), encoding="utf-8")
        shutil.rmtree(place, ignore_errors=True)
        folder.rename(place)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if progress:
        progress(len(entries), len(entries))
    _clear(cache)


def _common(entries: Sequence[Entry]) -> list[str]:
    """Streams that the steps of every episode hold."""
    return sorted(set.intersection(*(set(entry.streams) for entry in entries)))


class _Known:
    """Rows of episodes in the caches that are there already.

    Args:
        cache: their folder.
    """

    def __init__(self, cache: Path) -> None:
        self._where: dict[str, tuple[EpisodeArrays, int]] = {}
        for about in cache.glob(f"*/{ABOUT}"):
            arrays = open_arrays(about.parent, touch=False)
            if arrays is None:
                continue
            for i, content in enumerate(json.loads(about.read_text(encoding="utf-8")).get("contents", [])):
                self._where[content] = (arrays, i)

    def rows(self, content: str, wanted: Sequence[str]) -> tuple[Rows, EpisodeMeta] | None:
        """The columns of one episode; None where no cache has it with all wanted streams."""
        arrays, i = self._where.get(content, (None, 0))
        if arrays is None or not set(wanted) <= set(arrays.streams):
            return None
        first, last = (0 if i == 0 else int(arrays.episode_ends[i - 1])), int(arrays.episode_ends[i])
        rows = {f"stream:{name}": arrays.streams[name][first:last] for name in wanted}
        rows |= {name: getattr(arrays, name)[first:last]
                 for name in ("actions", "proposed", "rewards", "sources", "terminated")}
        return rows, arrays.metas[i]


def _decoded(store: Store, entry: Entry, wanted: Sequence[str]) -> tuple[Rows, EpisodeMeta]:
    episode = read_episode(store.file(entry.id), wanted)
    return _columns(episode, wanted), episode.meta


def _columns(episode: Episode, wanted: Sequence[str]) -> Rows:
    columns = episode.columns
    for name in wanted:
        if name not in columns.streams:
            raise ObservationError(
                f"episode {episode.id} has no stream {name!r}", found=", ".join(sorted(columns.streams)),
                do="leave it out, or load other episodes",
            )
    return {
        **{f"stream:{name}": columns.streams[name] for name in wanted},
        "actions": columns.executed, "proposed": columns.proposed, "rewards": columns.rewards.astype(np.float32),
        "sources": columns.sources, "terminated": columns.terminated,
    }


class _Column:
    """One .npy file that grows episode by episode. Plain writes, since a full disk under a memory map kills."""

    def __init__(self, path: Path, first: np.ndarray, rows: int) -> None:
        self._shape, self._dtype, self._left = first.shape[1:], first.dtype, rows
        self._file: IO[bytes] = path.open("wb")
        header = {"descr": np.lib.format.dtype_to_descr(first.dtype), "fortran_order": False,
                  "shape": (rows, *self._shape)}
        np.lib.format.write_array_header_1_0(self._file, header)

    def append(self, values: np.ndarray, id: str, name: str) -> None:
        if values.shape[1:] != self._shape or values.dtype != self._dtype:
            kind = ObservationError if name.startswith("stream:") else EpisodeError
            raise kind(
                f"episode {id} has {name.removeprefix('stream:')} in another form than the episodes before it",
                expected=f"{self._shape} {self._dtype}", found=f"{values.shape[1:]} {values.dtype}",
                do="load them apart",
            )
        self._left -= len(values)
        self._file.write(np.ascontiguousarray(values).tobytes())

    def close(self) -> None:
        self._file.close()
        if self._left:
            raise EpisodeError("the index counts other steps than the files hold", do="robot-fb episodes reindex STORE")


def _clear(cache: Path) -> None:
    """Removes all but the caches used last. Arrays that are mapped somewhere stay usable until they are let go."""
    folders = [p for p in cache.iterdir() if p.is_dir() and not p.name.startswith(".")]
    for old in sorted(folders, key=lambda p: p.stat().st_mtime, reverse=True)[KEEP:]:
        shutil.rmtree(old, ignore_errors=True)
