"""Training batches a second: from the columnar cache, from robomimic-style HDF5, and by decoding MCAP each time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from robot_fb.benchmarks.cell_episode import META, STREAMS, CellEpisode
from robot_fb.episodes.cache import EpisodeArrays, load_arrays
from robot_fb.episodes.store import Store
from robot_fb.episodes.writer import WriterConfig

BATCH, OBS_HORIZON, CHUNK, STEPS = 64, 2, 16, 120

Batch = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Window:
    """Where one sample of a batch lies: step `at` of episode `episode`."""

    episode: int
    at: int


def rows(folder: Path, episodes: int, seconds: float) -> list[dict[str, Any]]:
    """One row a reader; all give the same batches, which is checked.

    Args:
        folder: for the data.
        episodes: recorded; 120 steps each.
        seconds: how long each reader runs.
    """
    store = _record(folder / "store", episodes)
    arrays = load_arrays(store)
    hdf5 = folder / "robomimic.hdf5"
    _write_hdf5(arrays, hdf5)
    readers: dict[str, Callable[[list[Window]], Batch]] = {
        "columnar cache": _from_cache(arrays), "robomimic-style HDF5 (h5py)": _from_hdf5(hdf5, keep_numbers=False),
        "robomimic-style HDF5 (h5py), numbers kept in memory": _from_hdf5(hdf5, keep_numbers=True),
        "MCAP decoded each time": _from_mcap(store, arrays.ids),
    }
    windows = next(_windows(episodes, seed=1))
    expected = readers["columnar cache"](windows)
    for reader in readers.values():
        found = reader(windows)
        if any(not np.array_equal(found[key], expected[key]) for key in expected):
            raise AssertionError("two readers gave different batches")
    rates = {name: _rate(reader, _windows(episodes, seed=0), seconds) for name, reader in readers.items()}
    best_other = max(rate for name, rate in rates.items() if name != "columnar cache")
    result = [
        {"what": "training batches", "reader": name, "batches_per_s": rate, "batch": BATCH, "obs_horizon": OBS_HORIZON,
         "chunk": CHUNK, "cameras": "2 x 64x64", "episodes": episodes, "steps": episodes * STEPS}
        for name, rate in rates.items()
    ]
    result[0] |= {"times_the_better_of_the_others": rates["columnar cache"] / best_other, "target": "at least 5"}
    return result


def _record(path: Path, episodes: int) -> Store:
    store = Store(path, create=True, writer=WriterConfig(wait=True))
    for i in range(episodes):
        source = CellEpisode(i)
        with store.open(META) as writer:
            for _ in range(STEPS):
                writer.add_step(source.step())
            writer.close(True)
    return store


def _write_hdf5(arrays: EpisodeArrays, path: Path) -> None:
    """data/demo_I/obs/KEY and data/demo_I/actions, uncompressed, as robomimic's scripts write them."""
    import h5py

    with h5py.File(path, "w") as file:
        first = 0
        for i, end in enumerate(arrays.episode_ends):
            demo = file.create_group(f"data/demo_{i}")
            demo.create_dataset("actions", data=arrays.actions[first:end])
            for key, values in arrays.streams.items():
                demo.create_dataset(f"obs/{key}", data=values[first:end])
            first = int(end)


def _windows(episodes: int, seed: int) -> Iterator[list[Window]]:
    rng = np.random.default_rng(seed)
    while True:
        yield [Window(int(e), int(t)) for e, t in zip(
            rng.integers(0, episodes, BATCH), rng.integers(OBS_HORIZON - 1, STEPS - CHUNK, BATCH), strict=True)]


def _from_cache(arrays: EpisodeArrays) -> Callable[[list[Window]], Batch]:
    starts = np.concatenate([[0], arrays.episode_ends[:-1]])

    def read(windows: list[Window]) -> Batch:
        at = np.array([starts[w.episode] + w.at for w in windows])[:, None]
        back, ahead = at + np.arange(1 - OBS_HORIZON, 1), at + np.arange(CHUNK)
        return {**{key: values[back] for key, values in arrays.streams.items()}, "actions": arrays.actions[ahead]}

    return read


def _from_hdf5(path: Path, keep_numbers: bool) -> Callable[[list[Window]], Batch]:
    """Per sample a slice of each dataset, as robomimic's SequenceDataset does; `keep_numbers` is its cache mode
    "low_dim": all but the pictures are read into memory beforehand."""
    import h5py

    file: Any = h5py.File(path, "r")
    demos = [file[f"data/demo_{i}"] for i in range(len(file["data"]))]
    held = {"camera/scene", "camera/wrist"} if keep_numbers else {*STREAMS, "actions"}
    datasets = [
        {key: (demo[key if key == "actions" else f"obs/{key}"]) for key in (*STREAMS, "actions")} for demo in demos
    ]
    datasets = [{key: d if key in held else d[:] for key, d in demo.items()} for demo in datasets]

    def read(windows: list[Window]) -> Batch:
        batch = {
            key: np.stack([datasets[w.episode][key][w.at + 1 - OBS_HORIZON : w.at + 1] for w in windows])
            for key in STREAMS
        }
        batch["actions"] = np.stack([datasets[w.episode]["actions"][w.at : w.at + CHUNK] for w in windows])
        return batch

    return read


def _from_mcap(store: Store, ids: tuple[str, ...]) -> Callable[[list[Window]], Batch]:
    """Each episode that a batch touches is decoded once for that batch."""

    def read(windows: list[Window]) -> Batch:
        episodes = {e: store.read(ids[e]).columns for e in sorted({w.episode for w in windows})}
        batch = {
            key: np.stack([episodes[w.episode].streams[key][w.at + 1 - OBS_HORIZON : w.at + 1] for w in windows])
            for key in STREAMS
        }
        batch["actions"] = np.stack([episodes[w.episode].executed[w.at : w.at + CHUNK] for w in windows])
        return batch

    return read


def _rate(read: Callable[[list[Window]], Batch], windows: Iterator[list[Window]], seconds: float) -> float:
    """Batches a second, at least three of them."""
    count, begun = 0, time.perf_counter()
    while count < 3 or time.perf_counter() - begun < seconds:
        read(next(windows))
        count += 1
    return count / (time.perf_counter() - begun)
