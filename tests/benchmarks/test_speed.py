"""The race of simulators: every contender gets its turns, and one that dies says so."""

from __future__ import annotations

import json
import shutil
import sys

import numpy as np
import pytest

from robot_fb.benchmarks import contenders, speed
from robot_fb.errors import RobotFbError


def test_every_contender_runs_in_every_round():
    rates = speed.race({"cell": sys.executable, "lanes": sys.executable}, rounds=2, seconds=0.1)
    assert set(rates) == {"cell", "lanes"}
    assert all(len(rounds) == 2 and min(rounds) > 0 for rounds in rates.values())


def test_ratios_are_taken_within_a_round():
    rows = speed.speed_rows({"cell": [100.0, 10.0, 50.0], "robosuite": [10.0, 1.0, 10.0]})
    assert [row["cell_is_times_as_fast"] for row in rows] == [1.0, 10.0]
    assert rows[1]["steps_per_s"] == 10.0


def test_a_contender_that_dies_is_an_error_that_names_it():
    with pytest.raises(RobotFbError, match="robosuite"), speed.Contender("robosuite", shutil.which("false") or ""):
        pass


def test_pictures_that_show_nothing_do_not_count():
    rng = np.random.default_rng(0)
    one, other = rng.integers(0, 255, (2, 16, 16, 3), np.uint8)
    assert contenders.drawn([one, other]) and contenders.drawn([one])
    assert not contenders.drawn([one, np.zeros_like(one)])
    assert not contenders.drawn([one, one + np.uint8(1)])  # both cameras show the same


def test_the_result_is_written_with_what_made_it(tmp_path, monkeypatch):
    monkeypatch.setattr(speed, "race", lambda pythons, rounds, seconds: {name: [2.0] * rounds for name in pythons})
    document = speed.run(["--no-peer", "--rounds", "1", "--plans", "2", "--out", str(tmp_path)])
    assert json.loads((tmp_path / "speed.json").read_text()) == document
    assert document["command"].startswith("robot-fb bench speed") and document["versions"]["mujoco"]
    policies = {row["policy"] for row in document["rows"] if row["what"] == "chunk inference"}
    assert policies == {"diffusion", "flow", "chunk_mlp"}
