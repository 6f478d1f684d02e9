"""The loop: order of calls, Ctrl-C between steps, checkpoints only of whole states."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
import yaml

from robot_fb.errors import CheckpointError
from robot_fb.training.callbacks import LogMetrics, SaveCheckpoints, load_checkpoint
from robot_fb.training.fit import fit
from robot_fb.training.mixer import Mixer


class Source:
    def sample(self, rng, n):
        return {"draw": rng.random(n)}


class Summing:
    """Adds up what it is given; can be told to misbehave in a step."""

    def __init__(self, trouble=None, at=0):
        self.total, self.done, self.trouble, self.at = 0.0, 0, trouble, at

    def step(self, batch):
        self.done += 1
        if self.trouble is not None and self.done == self.at:
            self.trouble()
        self.total += float(batch["draw"].sum())
        return {"loss": self.total}

    def policy(self):
        raise NotImplementedError

    def save(self, path: Path):
        path.mkdir(parents=True)
        (path / "total.yaml").write_text(yaml.safe_dump([self.total, self.done]))

    def load(self, path: Path):
        self.total, self.done = yaml.safe_load((path / "total.yaml").read_text())


class Rows:
    def __init__(self):
        self.rows = []

    def write(self, step, values):
        self.rows.append((step, dict(values)))

    def close(self):
        self.rows.append("closed")


def mixer():
    return Mixer({"a": Source()}, 3, seed=1)


def test_trains_to_the_end_and_logs_means():
    trainer, rows = Summing(), Rows()

    assert fit(trainer, mixer(), [LogMetrics([rows], 2)], 5) == 5

    steps = [row[0] for row in rows.rows[:-1]]
    assert steps == [2, 4] and rows.rows[-1] == "closed"


def test_half_and_resume_is_the_same_as_straight(tmp_path):
    straight = Summing()
    fit(straight, mixer(), [], 10)

    first, mix = Summing(), mixer()
    fit(first, mix, [SaveCheckpoints(first, mix, tmp_path, 100)], 5)
    second, mix = Summing(), Mixer({"a": Source()}, 3, seed=77)
    start = load_checkpoint(second, mix, tmp_path)
    fit(second, mix, [], 10, start)

    assert start == 5 and second.total == straight.total


def test_ctrl_c_finishes_the_step_and_saves(tmp_path):
    trainer, mix = Summing(lambda: os.kill(os.getpid(), signal.SIGINT), at=3), mixer()

    with pytest.raises(KeyboardInterrupt):
        fit(trainer, mix, [SaveCheckpoints(trainer, mix, tmp_path, 100)], 10)

    again, mix = Summing(), mixer()
    assert load_checkpoint(again, mix, tmp_path) == 3
    assert again.total == trainer.total
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_error_in_a_step_saves_nothing(tmp_path):
    def fail():
        raise RuntimeError("half done")

    trainer, mix = Summing(fail, at=4), mixer()
    with pytest.raises(RuntimeError):
        fit(trainer, mix, [SaveCheckpoints(trainer, mix, tmp_path, 2)], 10)

    assert [path.name for path in tmp_path.iterdir()] == ["step_00000002"]


def test_only_the_newest_whole_checkpoint_counts(tmp_path):
    trainer, mix = Summing(), mixer()
    fit(trainer, mix, [SaveCheckpoints(trainer, mix, tmp_path, 2)], 4)
    (tmp_path / "step_00000006").mkdir()  # as after a crash in the middle of saving

    assert load_checkpoint(Summing(), mix, tmp_path) == 4


def test_a_damaged_place_is_refused(tmp_path):
    trainer, mix = Summing(), mixer()
    fit(trainer, mix, [SaveCheckpoints(trainer, mix, tmp_path, 2)], 2)
    (tmp_path / "step_00000002" / "fit.yaml").write_text("step: two\n")

    with pytest.raises(CheckpointError, match="damaged"):
        load_checkpoint(Summing(), mix, tmp_path)


def test_no_checkpoint_yet_starts_at_nothing(tmp_path):
    assert load_checkpoint(Summing(), mixer(), tmp_path) == 0
