"""What a writer refuses, and what happens when the disk does."""

from __future__ import annotations

import dataclasses
import errno
import os
import threading

import numpy as np
import pytest
from episode_samples import META, make_steps

from robot_fb.episodes import sink
from robot_fb.episodes.repair import repair
from robot_fb.episodes.store import Store
from robot_fb.episodes.verify import verify
from robot_fb.episodes.writer import WriterConfig
from robot_fb.errors import ActionError, DiskFullError, EpisodeError, ObservationError


def spoil(step, name, array):
    return dataclasses.replace(step, obs={**step.obs, name: array})


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (lambda s: spoil(s, "tcp/pose", np.full(7, np.nan, np.float32)), ObservationError, "tcp/pose holds a NaN"),
        (lambda s: spoil(s, "tcp/pose", np.zeros(6, np.float32)), ObservationError, r"expected \(7,\); found \(6,\)"),
        (lambda s: spoil(s, "camera/scene", np.zeros((64, 64, 3))), ObservationError, "another dtype"),
        (lambda s: spoil(s, "tcp/pose", np.array(["a"] * 7)), ObservationError, "another dtype"),
        (lambda s: spoil(s, "new", np.zeros(2)), ObservationError, "other streams"),
        (lambda s: dataclasses.replace(s, executed=np.array([0, 0, np.nan, 0, 0])), ActionError, "executed.*NaN"),
        (lambda s: dataclasses.replace(s, proposed=np.full(5, np.inf)), ActionError, "proposed action.*infinity"),
        (lambda s: dataclasses.replace(s, executed=np.zeros(4)), ActionError, r"expected \(5,\); found \(4,\)"),
        (lambda s: dataclasses.replace(s, executed="left"), ActionError, "executed action"),
        (lambda s: dataclasses.replace(s, source="nobody"), ActionError, "unknown source"),
    ],
)
def test_a_bad_value_is_refused_and_the_episode_so_far_is_kept(store, change, error, words):
    steps = make_steps(3)
    writer = store.open(META)
    writer.add_step(steps[0])
    writer.add_step(steps[1])

    with pytest.raises(error, match=words):
        writer.add_step(change(steps[2]))

    writer.close(False)
    assert len(store.read(writer.id)) == 2


def test_a_nan_sample_is_refused(store):
    writer = store.open(META)
    with pytest.raises(ObservationError, match="tactile/left holds a NaN"):
        writer.add_sample("tactile/left", 0.0, np.full((3, 8, 6), np.nan))
    writer.discard()


def test_a_closed_episode_takes_no_more(store, record):
    writer = store.open(META)
    writer.close(True)

    with pytest.raises(EpisodeError, match="is closed"):
        writer.add_step(make_steps(1)[0])
    with pytest.raises(EpisodeError, match="is closed already"):
        writer.close(True)


def test_an_exception_in_the_loop_keeps_the_episode_as_unfinished(store):
    with pytest.raises(KeyboardInterrupt):
        with store.open(META) as writer:
            for step in make_steps(4):
                writer.add_step(step)
            raise KeyboardInterrupt

    episode = store.read(writer.id)
    assert len(episode) == 4
    assert episode.outcome.unfinished == "KeyboardInterrupt"
    assert store.query(unfinished=True) == [writer.id]


class FullDisk:
    """`os.write` on a disk with `room` bytes left."""

    def __init__(self, room: int) -> None:
        self.room = room

    def __call__(self, handle: int, data) -> int:
        if self.room <= 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        part = bytes(data[: self.room])
        self.room -= len(part)
        return os.write(handle, part)


@pytest.fixture
def full_disk(monkeypatch):
    class Os:
        write = FullDisk(150_000)

    monkeypatch.setattr(sink, "os", Os)
    return Os.write


def test_a_full_disk_is_said_and_what_was_written_can_be_repaired(store, full_disk):
    writer = store.open(META)
    with pytest.raises(DiskFullError, match=r"no room to write .*found No space left.*repair"):
        for step in make_steps(40):
            writer.add_step(step)
        writer.close(True)
    with pytest.raises(DiskFullError):
        writer.close(True)
    full_disk.room = 10**9

    problems = verify(store.path).problems
    assert [p.repairable for p in problems] == [True]
    done = repair(writer.part)
    assert 0 < done.steps < 40
    assert verify(store.path).ok


def test_a_disk_full_from_the_start_is_said(store, full_disk):
    full_disk.room = 0

    with pytest.raises(DiskFullError):
        store.open(META)


def test_a_slow_disk_loses_pictures_first_and_says_how_many(tmp_path, monkeypatch, caplog):
    """Given a disk that takes nothing for a while, the steps' numbers all survive and the gaps are counted."""
    store = Store(tmp_path / "store", create=True, writer=WriterConfig(picture_bytes=100_000))
    writer, gate = store.open(META), threading.Event()
    log_step = writer._sink.step

    def stalled(step, missing):
        gate.wait()
        log_step(step, missing)

    monkeypatch.setattr(writer._sink, "step", stalled)
    steps = make_steps(30)
    for step in steps:
        writer.add_step(step)
    assert writer.dropped["camera/scene"] > 0
    assert [r.getMessage() for r in caplog.records if "does not keep up" in r.getMessage()][1:] == []
    assert "does not keep up" in caplog.text
    gate.set()
    writer.close(True)

    episode = store.read(writer.id)

    assert len(episode) == 30
    assert episode.outcome.dropped == dict(writer.dropped)
    assert store.entries()[0].dropped == dict(writer.dropped)
    assert episode.columns.missing.sum() == writer.dropped["camera/scene"]
    for found, added in zip(episode.steps, steps, strict=True):
        assert found.obs["wrench/wrist"].tobytes() == added.obs["wrench/wrist"].tobytes()
        assert found.executed.tobytes() == added.executed.tobytes()
