"""Columnar cache: all decision steps of many episodes as memory-mapped arrays: a training batch decodes nothing.

Built once for each set of episodes and streams, and keyed by what the files hold, not by when they were written. It
lies in `STORE/cache/` and may be deleted at any time. Flat arrays with `episode_ends` follow diffusion_policy's replay
buffer (Chi et al., 2023).
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import secrets
import shutil
import struct
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

import numpy as np

from robot_fb.episodes.episode import Episode
from robot_fb.episodes.index import Entry
from robot_fb.episodes.reading import read_episode
from robot_fb.episodes.schema import meta_from_json
from robot_fb.episodes.store import Store
from robot_fb.episodes.writer import disk_error
from robot_fb.errors import BrokenFileError, EpisodeError, ObservationError, UnknownNameError
from robot_fb.registry import closest
from robot_fb.types import EpisodeMeta

LAYOUT = 1
"""Rises when the arrays' form changes; older caches are then built anew."""
KEEP = 4
"""Caches kept in a store; the least recently used go."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class EpisodeArrays:
    """Steps of E episodes one after the other, N in all.

    Attributes:
        streams: (N, ...) each, memory-mapped, read-only; row i is the observation of decision step i.
        actions: (N, action_dim) float32, what the robot was sent.
        proposed: (N, action_dim) float32, what the policy asked for.
        rewards: (N,) float32.
        sources: (N,) uint8, index into `types.SOURCES`.
        terminated: (N,) bool.
        episode_ends: (E,) int64, exclusive.
        ids: of the episodes.
        metas: of the episodes.
        success: (E,) bool.
    """

    streams: Mapping[str, np.ndarray]
    actions: np.ndarray
    proposed: np.ndarray
    rewards: np.ndarray
    sources: np.ndarray
    terminated: np.ndarray
    episode_ends: np.ndarray
    ids: tuple[str, ...]
    metas: tuple[EpisodeMeta, ...]
    success: np.ndarray

    def __len__(self) -> int:
        return len(self.actions)


def load_arrays(
    store: Path | str | Store, ids: Sequence[str] | None = None, streams: Collection[str] | None = None,
    progress: Progress | None = None,
) -> EpisodeArrays:
    """The arrays of a store's episodes, from its cache or built into it.

    Args:
        store: the store or its folder.
        ids: these episodes in this order; all readable ones, oldest first, when None.
        streams: these streams; all that every episode has when None.
        progress: called with (episodes done, episodes to do) while building.

    Raises:
        EpisodeError: no store, no steps, or episodes with different actions.
        ObservationError: an episode lacks a stream or has it in another shape.
        BrokenFileError: an episode among `ids` cannot be read.
        DiskFullError: no room for the cache.
    """
    store = store if isinstance(store, Store) else Store(store)
    entries = _choose(store, ids)
    key = _key(store, entries, streams)
    cache = store.path / "cache"
    found = _open(cache / key)
    if found is None:
        try:
            with _locked(cache):
                found = _open(cache / key)  # another process may have built it while this one waited
                if found is None:
                    _build(cache, key, store, entries, streams, progress)
                    found = _open(cache / key)
        except OSError as error:
            raise disk_error(cache, error) from error
    if found is None:
        raise EpisodeError(f"the cache {cache / key} vanished while it was opened", do="run the command again")
    return found


def _choose(store: Store, ids: Sequence[str] | None) -> list[Entry]:
    known = {entry.id: entry for entry in store.entries(broken=True)}
    if ids is None:
        broken = [entry for entry in known.values() if entry.broken]
        if broken:
            warnings.warn(f"{len(broken)} damaged episodes are left out; robot-fb episodes verify {store.path}",
                          stacklevel=3)
        chosen = [entry for entry in known.values() if not entry.broken]
    else:
        for id in ids:
            if id not in known:
                raise UnknownNameError(f"there is no episode {id!r} in {store.path}", do=closest(id, list(known)[-5:]))
            if known[id].broken:
                raise BrokenFileError(known[id].broken)
        chosen = [known[id] for id in ids]
    chosen = [entry for entry in chosen if entry.steps > 0]
    if not chosen:
        raise EpisodeError(f"{store.path} has no steps to learn from", do="record some: robot-fb record --out STORE")
    return chosen


def _key(store: Store, entries: Sequence[Entry], streams: Collection[str] | None) -> str:
    """A name that changes with every byte of the episodes: each file ends in a checksum of its content."""
    parts = [str(LAYOUT), "*" if streams is None else json.dumps(sorted(streams))]
    parts += [f"{entry.id} {entry.size} {_checksum(store.file(entry.id))}" for entry in entries]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:24]


def _checksum(path: Path) -> str:
    """The summary's and the data section's checksums, as the last bytes of the file hold them."""
    with path.open("rb") as file:
        file.seek(-37, os.SEEK_END)  # footer record and closing magic
        tail = file.read(37)
        (summary_start,) = struct.unpack_from("<Q", tail, 9)
        if not 13 <= summary_start < file.tell():
            return tail.hex()
        file.seek(summary_start - 13)  # the DataEnd record
        return file.read(13).hex() + tail.hex()


@contextmanager
def _locked(cache: Path) -> Iterator[None]:
    cache.mkdir(exist_ok=True)
    with (cache / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _open(folder: Path) -> EpisodeArrays | None:
    """The arrays of a finished cache; None where there is none or it is damaged, so that it is built anew."""
    try:
        about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
        arrays = {name: np.load(folder / f"{quote(name, safe='')}.npy", mmap_mode="r", allow_pickle=False)
                  for name in about["arrays"]}
        ends = np.array(about["episode_ends"], np.int64)
        metas = tuple(meta_from_json(meta) for meta in about["metas"])
        success = np.array(about["success"], bool)
        if any(len(a) != ends[-1] for a in arrays.values()):
            return None
        os.utime(folder)  # keeps the caches in use from being cleared away
    except PermissionError:
        pass
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return None
    streams = {name.removeprefix("stream:"): a for name, a in arrays.items() if name.startswith("stream:")}
    return EpisodeArrays(
        streams, arrays["actions"], arrays["proposed"], arrays["rewards"], arrays["sources"], arrays["terminated"],
        ends, tuple(about["ids"]), metas, success,
    )


def _build(
    cache: Path, key: str, store: Store, entries: Sequence[Entry], streams: Collection[str] | None,
    progress: Progress | None,
) -> None:
    """Writes a cache beside its place and moves it there once it is whole."""
    for orphan in cache.glob(".building.*"):  # nobody else builds while this process holds the lock
        shutil.rmtree(orphan, ignore_errors=True)
    folder = cache / f".building.{secrets.token_hex(4)}"
    folder.mkdir()
    try:
        columns: dict[str, _Column] = {}
        metas: list[EpisodeMeta] = []
        total = sum(entry.steps for entry in entries)
        wanted = _common(entries) if streams is None else sorted(streams)
        for done, entry in enumerate(entries):
            if progress:
                progress(done, len(entries))
            episode = read_episode(store.file(entry.id), wanted)
            for name, values in _columns(episode, wanted).items():
                if name not in columns:
                    columns[name] = _Column(folder / f"{quote(name, safe='')}.npy", values, total)
                columns[name].append(values, entry.id, name)
            metas.append(episode.meta)
        for column in columns.values():
            column.close()
        ends = np.cumsum([entry.steps for entry in entries]).tolist()
        about: dict[str, Any] = {
            "layout": LAYOUT, "arrays": list(columns), "episode_ends": ends, "ids": [e.id for e in entries],
            "metas": [asdict(meta) for meta in metas], "success": [e.success for e in entries],
        }
        (folder / "about.json").write_text(json.dumps(about), encoding="utf-8")
        shutil.rmtree(cache / key, ignore_errors=True)
        folder.rename(cache / key)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if progress:
        progress(len(entries), len(entries))
    _clear(cache)


def _common(entries: Sequence[Entry]) -> list[str]:
    """Streams that the steps of every episode hold."""
    return sorted(set.intersection(*(set(entry.streams) for entry in entries)))


def _columns(episode: Episode, wanted: Sequence[str]) -> dict[str, np.ndarray]:
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
