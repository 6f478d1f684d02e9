"""Arrays for training: right, built once, never half, never stale."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from episode_samples import META, make_steps

from robot_fb.episodes import arrays as arrays_of_a_cache
from robot_fb.episodes import cache, cache_build
from robot_fb.episodes.cache import load_arrays
from robot_fb.episodes.store import Store
from robot_fb.errors import BrokenFileError, EpisodeError, ObservationError, UnknownNameError
from robot_fb.types import SOURCES, StreamSpec

HERE = Path(__file__).parent


@pytest.fixture
def builds(monkeypatch):
    """The caches that are built, as they are."""
    built = []
    build = cache.build

    def counted(place, *args):
        built.append(place)
        return build(place, *args)

    monkeypatch.setattr(cache, "build", counted)
    return built


def test_every_row_is_what_the_step_saw(store, record):
    runs = [make_steps(5, seed=1), make_steps(7, seed=2)]
    ids = [record(runs[0], success=True), record(runs[1], success=False)]

    arrays = load_arrays(store)

    steps = [step for run in runs for step in run]
    assert len(arrays) == 12
    assert arrays.ids == tuple(ids)
    assert arrays.metas == (META, META)
    assert arrays.episode_ends.tolist() == [5, 12]
    assert arrays.success.tolist() == [True, False]
    assert set(arrays.streams) == set(META.streams)
    for name, rows in arrays.streams.items():
        assert isinstance(rows, np.memmap) and not rows.flags.writeable
        assert rows.tobytes() == np.stack([step.obs[name] for step in steps]).tobytes()
    assert arrays.actions.tobytes() == np.stack([step.executed for step in steps]).tobytes()
    assert arrays.proposed.tobytes() == np.stack([step.proposed for step in steps]).tobytes()
    assert np.array_equal(arrays.rewards, np.array([step.reward for step in steps], np.float32))
    assert [SOURCES[i] for i in arrays.sources] == [step.source for step in steps]
    assert arrays.terminated.tolist() == [step.terminated for step in steps]


def test_chosen_episodes_and_streams_in_the_chosen_order(store, record):
    a, b, c = (record(make_steps(n, seed=n)) for n in (2, 3, 4))

    arrays = load_arrays(store.path, ids=[c, a], streams=["tcp/pose"])

    assert arrays.ids == (c, a)
    assert arrays.episode_ends.tolist() == [4, 6]
    assert list(arrays.streams) == ["tcp/pose"]
    assert b not in arrays.ids


def test_it_is_built_once_and_anew_when_episodes_change(store, record, builds):
    record(make_steps(2))
    load_arrays(store)
    load_arrays(store.path)
    assert len(builds) == 1

    record(make_steps(3))
    assert load_arrays(store).episode_ends.tolist() == [2, 5]
    assert len(builds) == 2


def test_a_grown_set_decodes_only_what_is_new(store, record, monkeypatch):
    runs = [make_steps(n, seed=n) for n in (2, 3, 4)]
    ids = [record(run) for run in runs[:2]]
    load_arrays(store)
    decoded = []
    read_episode = cache_build.read_episode

    def counted(path, streams):
        decoded.append(path)
        return read_episode(path, streams)

    monkeypatch.setattr(cache_build, "read_episode", counted)
    ids.append(record(runs[2]))

    arrays = load_arrays(store, ids=ids[::-1])

    assert decoded == [store.file(ids[2])]
    steps = [step for run in runs[::-1] for step in run]
    for name, rows in arrays.streams.items():
        assert rows.tobytes() == np.stack([step.obs[name] for step in steps]).tobytes()
    assert arrays.actions.tobytes() == np.stack([step.executed for step in steps]).tobytes()


def test_other_content_under_the_same_name_is_noticed(store, record, builds):
    """Given a file that is replaced by another of the same size and time, the stale cache is not used."""
    a, b = record(make_steps(3, seed=1)), record(make_steps(3, seed=2))
    before = load_arrays(store, ids=[a])
    store.file(a).write_bytes(store.file(b).read_bytes())

    after = load_arrays(store, ids=[a])

    assert len(builds) == 2
    assert before.actions.tobytes() != after.actions.tobytes()


@pytest.mark.parametrize("name", ["about.json", "actions.npy", "stream%3Atcp%2Fpose.npy"])
@pytest.mark.parametrize("damage", ["cut", "gone", "other"])
def test_a_damaged_cache_is_built_anew(store, record, name, damage):
    record(make_steps(3))
    whole = load_arrays(store)
    expected = {key: rows.tobytes() for key, rows in whole.streams.items()} | {"actions": whole.actions.tobytes()}
    del whole
    (file,) = (store.path / "cache").glob(f"*/{name}")
    if damage == "gone":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:30] if damage == "cut" else b"something else")

    arrays = load_arrays(store)

    assert {key: rows.tobytes() for key, rows in arrays.streams.items()} == {
        key: value for key, value in expected.items() if key != "actions"
    }
    assert arrays.actions.tobytes() == expected["actions"]


def test_an_interrupted_build_leaves_nothing_that_is_used(store, record, monkeypatch):
    for n in (2, 3):
        record(make_steps(n))
    stopped = []

    def stop(done, total):
        if done == 1 and not stopped:
            stopped.append(done)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load_arrays(store, progress=stop)
    (store.path / "cache" / ".building.dead").mkdir()

    assert load_arrays(store).episode_ends.tolist() == [2, 5]
    assert [p.name for p in (store.path / "cache").iterdir() if "building" in p.name] == []


LOAD = """
import sys
from robot_fb.episodes.cache import load_arrays
print("ready", flush=True)
sys.stdin.readline()
arrays = load_arrays(sys.argv[1])
print(len(arrays), float(arrays.actions.sum()))
"""


def test_processes_that_build_at_once_agree(store, record):
    for n in (20, 30):
        record(make_steps(n, seed=n))
    both = [
        subprocess.Popen([sys.executable, "-c", LOAD, str(store.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         text=True) for _ in range(3)
    ]
    for process in both:
        assert process.stdout.readline() == "ready\n"
    found = {process.communicate("go\n", timeout=60)[0] for process in both}

    arrays = load_arrays(store)
    assert found == {f"50 {float(arrays.actions.sum())}\n"}
    assert len([p for p in (store.path / "cache").iterdir() if p.is_dir()]) == 1


def test_old_caches_are_cleared_away(store, record):
    ids = [record(make_steps(2)) for _ in range(cache_build.KEEP + 2)]
    for id in ids:
        load_arrays(store, ids=[id])

    assert len([p for p in (store.path / "cache").iterdir() if p.is_dir()]) == cache_build.KEEP


def test_the_cache_may_be_deleted(store, record):
    record(make_steps(2))
    load_arrays(store)
    for file in sorted((store.path / "cache").rglob("*"), reverse=True):
        file.rmdir() if file.is_dir() else file.unlink()

    assert len(load_arrays(store)) == 2


def test_only_streams_that_all_share(store, record):
    record(make_steps(2))
    fewer = {"tcp/pose": META.streams["tcp/pose"]}
    record(make_steps(2, streams=fewer), meta=dataclasses.replace(META, streams=fewer))

    assert list(load_arrays(store).streams) == ["tcp/pose"]
    with pytest.raises(ObservationError, match="no stream 'camera/scene'"):
        load_arrays(store, streams=["camera/scene"])


def test_streams_of_other_shapes_do_not_mix(store, record):
    for size in (3, 4):
        streams = {"lidar": StreamSpec((size,))}
        record(make_steps(2, streams=streams), meta=dataclasses.replace(META, streams=streams))

    with pytest.raises(ObservationError, match=r"lidar in another form.*expected \(3,\) float32; found \(4,\)"):
        load_arrays(store)


def test_empty_unknown_and_damaged_episodes(store, record):
    with pytest.raises(EpisodeError, match="no steps to learn from"):
        load_arrays(store)
    good, bad = record(make_steps(2)), record(make_steps(2))
    store.file(bad).write_bytes(store.file(bad).read_bytes()[:5000])

    with pytest.warns(UserWarning, match="1 damaged episodes are left out"):
        assert load_arrays(store).ids == (good,)
    with pytest.raises(BrokenFileError, match=bad):
        load_arrays(store, ids=[bad])
    with pytest.raises(UnknownNameError):
        load_arrays(store, ids=["nothing"])
    with pytest.raises(EpisodeError, match="no episode store"):
        load_arrays(store.path / "nowhere")


def test_no_pickle_is_ever_read(store, record):
    record(make_steps(2))
    load_arrays(store)
    (folder,) = [p for p in (store.path / "cache").iterdir() if p.is_dir()]
    np.save(folder / "actions.npy", np.array([{"a": 1}] * 2, dtype=object), allow_pickle=True)

    arrays = load_arrays(store)

    assert arrays.actions.dtype == np.float32
    assert json.loads((folder / "about.json").read_text())["layout"] == arrays_of_a_cache.LAYOUT
    assert Store(store.path).query() == list(arrays.ids)
