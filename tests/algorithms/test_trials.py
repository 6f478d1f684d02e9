"""Trials: the best policy is the run's, and one that falls under its base is taken back."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from robot_fb.algorithms.residual import trials
from robot_fb.algorithms.residual.config import ResidualConfig
from robot_fb.runtime.evaluate import read_evals
from robot_fb.training.run_folder import RunFolder


class Trainer:
    """Its only weight is `skill`."""

    def __init__(self) -> None:
        self.head = SimpleNamespace(growth=torch.ones(2))
        self.skill = 0.0

    def policy(self):
        return self.skill * float(self.head.growth[0])

    def snapshot(self):
        return {"skill": self.skill}

    def restore(self, snapshot):
        self.skill = snapshot["skill"]


@pytest.fixture
def scene(tmp_path, monkeypatch):
    """Success is 0.3 for the base, and so much more with a skill; the saved policy is a number in a list."""
    saved: dict[str, float] = {}
    monkeypatch.setattr(trials, "save_policy", lambda folder, policy: saved.__setitem__(folder.name, policy))

    def evaluate(job, episodes, seed, seeds):
        assert seeds is trials.seeds.TRIAL
        return trials.EvalResult(job, seed, tuple(result(k < 30 + saved["trial"] * 100) for k in range(100)))

    def result(success):
        return SimpleNamespace(success=success, peak_force=1.0, seconds=2.0, failure="")

    monkeypatch.setattr(trials, "evaluate", evaluate)
    run = RunFolder.create(tmp_path / "run", {}, "test")
    rollout = SimpleNamespace(steps=0, lanes=SimpleNamespace(dt=0.05))
    trainer = Trainer()

    def make():
        return trials.Trials(rollout, trainer, run, "toy", "live", ResidualConfig(eval_every=100), 0)  # type: ignore[arg-type]

    return SimpleNamespace(make=make, saved=saved, run=run, rollout=rollout, trainer=trainer)


def learn(scene, callback, *skills: float) -> None:
    for skill in skills:
        scene.rollout.steps += 100
        scene.trainer.skill = skill
        callback.on_step(1, {})


def test_the_best_is_kept_and_a_fall_is_taken_back(scene):
    callback = scene.make()
    callback.on_start(0, 10)
    assert scene.saved["policy"] == 0.0
    learn(scene, callback, 0.5, 0.4)
    assert scene.saved["policy"] == 0.5 and scene.trainer.skill == 0.4
    learn(scene, callback, -0.2)
    assert scene.trainer.skill == 0.4 and scene.saved["policy"] == 0.5
    rows = read_evals(scene.run.path)
    assert [round(row["success_rate"], 2) for row in rows] == [0.3, 0.8, 0.7, 0.1]
    assert {row["label"] for row in rows} == {"trial"} and rows[-1]["robot_minutes"] == pytest.approx(0.25)


def test_a_resumed_run_knows_its_base_and_its_best(scene):
    callback = scene.make()
    callback.on_start(0, 10)
    learn(scene, callback, 0.5)
    again = scene.make()
    again.on_start(1, 10)
    learn(scene, again, 0.3)
    assert scene.saved["policy"] == 0.5
    learn(scene, again, -0.2)
    assert scene.trainer.skill == 0.3
    assert len(read_evals(scene.run.path)) == 4
