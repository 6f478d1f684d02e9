"""Columnar cache: all decision steps of many episodes as memory-mapped arrays: a training batch decodes nothing.

Built once for each set of episodes and streams, and keyed by what the files hold, not by when they were written; a
set that has grown takes the rows that it shares with an older cache from there. It lies in `STORE/cache/` and may be
deleted at any time. Flat arrays with `episode_ends` follow diffusion_policy's replay buffer (Chi et al., 2023).
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import struct
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from robot_fb.episodes.arrays import LAYOUT, EpisodeArrays, open_arrays
from robot_fb.episodes.cache_build import Progress, build
from robot_fb.episodes.index import Entry
from robot_fb.episodes.store import Store
from robot_fb.episodes.writer import disk_error
from robot_fb.errors import BrokenFileError, EpisodeError, UnknownNameError
from robot_fb.registry import closest

__all__ = ["EpisodeArrays", "load_arrays"]


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
    contents = [_content(store, entry) for entry in entries]
    folder = store.path / "cache" / _key(contents, streams)
    found = open_arrays(folder)
    if found is None:
        try:
            with _locked(folder.parent):
                found = open_arrays(folder)  # another process may have built it while this one waited
                if found is None:
                    build(folder, store, entries, contents, streams, progress)
                    found = open_arrays(folder)
        except OSError as error:
            raise disk_error(folder, error) from error
    if found is None:
        raise EpisodeError(f"the cache {folder} vanished while it was opened", do="run the command again")
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


def _key(contents: Sequence[str], streams: Collection[str] | None) -> str:
    """A name that changes with every byte of the episodes: each file ends in a checksum of its content."""
    parts = [str(LAYOUT), "*" if streams is None else json.dumps(sorted(streams)), *contents]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:24]


def _content(store: Store, entry: Entry) -> str:
    """What one episode's rows depend on."""
    return f"{entry.id} {entry.size} {_checksum(store.file(entry.id))}"


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


