"""Numbers that mean nothing and a system that refuses: one line and exit status 2, before anything is written."""

from __future__ import annotations

import errno
import json

import pytest

from robot_fb.cli import main as command
from robot_fb.cli import tasks
from robot_fb.errors import ConfigError
from robot_fb.runtime.evaluate import append_row, read_evals
from robot_fb.training.metrics import read_metrics


@pytest.mark.parametrize(
    "error",
    [OSError(errno.ENOSPC, "No space left on device", "a"), PermissionError(errno.EACCES, "Permission denied", "b")],
)
def test_what_the_system_refuses_is_one_line(monkeypatch, capsys, error):
    def refuse(argv):
        raise error

    monkeypatch.setattr(tasks, "main", refuse)
    assert command.main(["tasks", "--json"]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err == f"robot-fb tasks: cannot use {error.filename}; found {error.strerror}\n"


@pytest.mark.parametrize("flag", ["--threads=-1", "--log-every=0", "--checkpoint-every=-2"])
def test_numbers_that_mean_nothing_are_refused_before_a_run_begins(tmp_path, capsys, flag):
    words = ["train", "bc", "--data", str(tmp_path), "--out", str(tmp_path / "run"), flag]
    assert command.main(words) == 2
    name = flag.split("=")[0]
    assert f"robot-fb train: {name}; expected at least" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "flag", ["--seed=-1", "--weight-decay=-1", "--warmup=-1", "--model.run-steps=0", "--model.run-steps=1000",
             "--model.noise-samples=0"]
)
def test_settings_that_cannot_work_name_themselves(tmp_path, capsys, flag):
    assert command.main(["train", "bc", "--data", str(tmp_path), "--out", str(tmp_path / "run"), flag]) == 2
    name = flag.split("=")[0].split(".")[-1].lstrip("-").replace("-", "_")
    assert name in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["--critic-lr=nan", "--bootstrap-steps=0", "--faults=3", "--policy.critics=0"])
def test_settings_of_the_correction_that_cannot_work_name_themselves(tmp_path, capsys, flag):
    assert command.main(["train", "residual", "--base", str(tmp_path), "--out", str(tmp_path / "run"), flag]) == 2
    assert flag.split("=")[0].split(".")[-1].lstrip("-").replace("-", "_") in capsys.readouterr().err


def test_lines_that_a_crash_left_half_do_not_spoil_the_others(tmp_path):
    row = {"task": "t", "policy": "p", "touch": "live", "success_rate": 1.0, "ci95": [0.5, 1.0], "episodes": 1}
    append_row(tmp_path, "a", 0.0, row | {"successes": 1})
    with (tmp_path / "evals.jsonl").open("a") as file:
        file.write('{"label": "b", "robot_min')
    append_row(tmp_path, "c", 0.0, row | {"successes": 1})
    assert [found["label"] for found in read_evals(tmp_path)] == ["a", "c"]


@pytest.mark.parametrize("text", ["a,b\n1,2\n", "step,loss\n1,much\n", "step\n1,2,3\n"])
def test_damaged_metrics_are_named(tmp_path, text):
    (tmp_path / "metrics.csv").write_text(text)
    with pytest.raises(ConfigError, match="damaged"):
        read_metrics(tmp_path / "metrics.csv")


def test_every_verb_takes_a_seed_and_a_file_for_its_document(tmp_path, capsys):
    assert command.main(["tasks", "--seed", "3", "--out", str(tmp_path / "tasks.json")]) == 0
    assert capsys.readouterr().out == ""
    rows = json.loads((tmp_path / "tasks.json").read_text())
    assert {"keyed_socket", "pick_place"} <= {row["task"] for row in rows}
    assert command.main(["tasks", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == rows
    assert command.main(["tasks", "--seed", "-1"]) == 2 and "--seed" in capsys.readouterr().err
    assert command.main(["tasks", "--out", str(tmp_path)]) == 2 and "cannot use" in capsys.readouterr().err
