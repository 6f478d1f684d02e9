"""Numpy archives, whose rows are decision steps already."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from robot_fb.episodes.exchange.mapping import ImportMapping, Take
from robot_fb.episodes.exchange.track import Row, Track
from robot_fb.errors import BrokenFileError, ConfigError, UnknownNameError
from robot_fb.registry import closest
from robot_fb.types import ActionSpec


def read_archive(path: Path, mapping: ImportMapping) -> Iterator[Track]:
    """The episodes in a .npz or .npy file.

    Raises:
        BrokenFileError: no archive, or one that holds pickled objects.
        UnknownNameError: the mapping names an array that is not there.
        ConfigError: arrays of different lengths.
    """
    archive = _load(path)
    action = _take(archive, mapping.action, "action", path).astype(np.float32)
    columns = {name: stream.value(_take(archive, stream, name, path)) for name, stream in mapping.streams.items()}
    reward = _take(archive, mapping.reward, "reward", path) if mapping.reward.array else np.zeros(len(action))
    verdict = _array(archive, mapping.success_array, path) if mapping.success_array else None
    for name, values in {**columns, "reward": reward, "success": action if verdict is None else verdict}.items():
        if len(values) != len(action):
            what = f"{path}: {name} has another length than the action"
            raise ConfigError(what, expected=len(action), found=len(values))
    if action.ndim != 2:
        raise ConfigError(f"{path}: the action array", expected="(rows, action_dim)", found=action.shape)
    spec = ActionSpec(
        mapping.action.low or tuple(map(float, action.min(axis=0))),
        mapping.action.high or tuple(map(float, action.max(axis=0))), mapping.action.names,
    )
    for first, last in _bounds(archive, mapping, len(action), path):
        rows = (
            Row({name: values[i] for name, values in columns.items()}, action[i], float(reward[i]))
            for i in range(first, last)
        )
        yield Track(spec, rows, mapping.success if verdict is None else bool(verdict[last - 1]))


def _load(path: Path) -> Mapping[str, np.ndarray]:
    try:
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return {"data": loaded} if loaded.dtype.names is None else {n: loaded[n] for n in loaded.dtype.names}
        with loaded:
            return {name: loaded[name] for name in loaded.files}
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error, KeyError, MemoryError) as error:
        raise BrokenFileError(
            f"{path} is no numpy archive that can be read", expected="plain .npz or .npy arrays",
            found=str(error).splitlines()[0] if str(error) else type(error).__name__,
        ) from error


def _take(archive: Mapping[str, np.ndarray], take: Take, what: str, path: Path) -> np.ndarray:
    if not take.array:
        raise ConfigError(f"{what} has no array", expected="array: NAME", do=f"known: {', '.join(archive)}")
    return take.cut(_array(archive, take.array, path))


def _array(archive: Mapping[str, np.ndarray], name: str, path: Path) -> np.ndarray:
    if name not in archive:
        raise UnknownNameError(f"{path} has no array {name!r}", do=closest(name, list(archive)))
    return archive[name]


def _bounds(
    archive: Mapping[str, np.ndarray], mapping: ImportMapping, rows: int, path: Path
) -> Iterator[tuple[int, int]]:
    where = mapping.episodes
    if where.ends:
        ends = _array(archive, where.ends, path).astype(int).tolist()
    elif where.array:
        index = _array(archive, where.array, path)
        if len(index) != rows:
            raise ConfigError(f"{path}: {where.array} has another length", expected=rows, found=len(index))
        ends = [*(np.flatnonzero(index[1:] != index[:-1]) + 1).tolist(), rows]
    else:
        ends = [rows]
    first = 0
    for end in ends:
        if not first < end <= rows:
            raise ConfigError(f"{path}: episode ends must rise to at most {rows}", found=ends)
        yield first, end
        first = end
