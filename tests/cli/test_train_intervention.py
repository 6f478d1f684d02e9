"""`robot-fb train intervention`: the gate decides what is kept, a stopped run goes on, mistakes are one line."""

from __future__ import annotations

import json

import pytest

from robot_fb.algorithms.intervention import gate
from robot_fb.cli import main as command
from robot_fb.cli import train_intervention
from robot_fb.training.checkpoint import policy_digest


def words(beginner, out, *more):
    base, data = map(str, beginner)
    return ["train", "intervention", "--base", base, "--data", data, "--out", str(out), "--batch=4", *more]


@pytest.mark.parametrize("kept", [True, False])
def test_the_gate_decides_which_policy_is_kept(beginner, tmp_path, capsys, monkeypatch, kept):
    monkeypatch.setattr(train_intervention, "better", lambda after, before: kept)
    more = ("--steps=3", "--gate-episodes=1", "--workers=0", "--json")
    assert command.main(words(beginner, tmp_path / "run", *more)) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["deployed"] is kept and found["decisions"]["demo"] > 0
    assert (policy_digest(tmp_path / "run") == policy_digest(beginner[0])) is not kept


def test_two_equal_policies_are_not_better_than_each_other(beginner):
    tried = gate.Gate("pick_place", 1, 0, 0).try_out(beginner[0])
    assert not gate.better(tried, tried)


def test_a_stopped_run_goes_on(beginner, tmp_path, capsys):
    assert command.main(words(beginner, tmp_path / "run", "--steps=2", "--gate-episodes=0")) == 0
    assert command.main(words(beginner, tmp_path / "run", "--steps=2", "--gate-episodes=0")) == 2
    assert "--resume" in capsys.readouterr().err
    assert command.main(words(beginner, tmp_path / "run", "--steps=4", "--gate-episodes=0", "--resume")) == 2
    assert "another steps" in capsys.readouterr().err
    assert command.main(words(beginner, tmp_path / "run", "--steps=2", "--gate-episodes=0", "--resume")) == 0


@pytest.mark.parametrize(
    ("more", "hint"),
    [
        (["--weights=sirus"], "sirius"), (["--gate-episodes=-1"], "negative"), (["--base=nowhere"], "nowhere"),
        (["--data=nowhere"], "no episode store at nowhere"), (["--steps=0"], "steps"),
    ],
)
def test_a_mistake_is_one_line(beginner, tmp_path, capsys, more, hint):
    assert command.main(words(beginner, tmp_path / "run", *more)) == 2
    error = capsys.readouterr().err
    assert hint in error and "Traceback" not in error and not (tmp_path / "run").exists()
