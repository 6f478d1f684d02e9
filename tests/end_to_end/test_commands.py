"""The real command in a process of its own: help pages, mistakes, and the whole demo in small."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from robot_fb.cli.main import VERBS

ROOT = Path(__file__).parents[2]
HELP = [
    ["tasks"], ["record"], ["train", "bc"], ["train", "residual"], ["eval"], ["report"], ["demo"], ["doctor"],
    ["bench"], ["episodes"], ["monitor", "fit"], ["fleet"], ["train", "intervention"],
    ["console"], ["enrol"], ["member"],
]


def robot_fb(*words: str, cwd: Path | None = None, timeout: float = 240) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "robot_fb.cli.main", *words], capture_output=True, text=True, timeout=timeout, cwd=cwd
    )


@pytest.mark.parametrize("verb", HELP, ids=" ".join)
def test_every_verb_explains_itself(verb):
    assert set(VERBS) == {first for first, *_ in HELP}
    done = robot_fb(*verb, "--help")
    assert done.returncode == 0 and len(done.stdout) > 100


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["recrod"], "did you mean 'record'"),
        (["record", "--task", "keyed_soket", "--out", "x"], "did you mean 'keyed_socket'"),
        (["eval", "--policy", "nowhere"], "no checkpoint at nowhere"),
        (["eval", "--policy", "expert", "--task", "keyed_socket", "--touch", "lost"], "unknown ablation mode"),
        (["train", "bc", "--data", "nowhere", "--out", "x"], "no episode store at nowhere"),
        (["train", "bc", "--data", "x", "--policy", "difusion", "--out", "x"], "diffusion"),
        (["train", "residual", "--base", "nowhere", "--out", "x"], "no checkpoint at nowhere"),
        (["report", "nowhere"], "is not a run"),
        (["bench", "sped"], "did you mean 'speed'"),
        (["eval", "--config", "nowhere.yaml"], "no config file at nowhere.yaml"),
        (["episodes", "ls", "nowhere"], "nowhere"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_mistake_is_one_line_and_status_2(tmp_path, words, hint):
    done = robot_fb(*words, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert hint in done.stderr and "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_an_unknown_config_key_names_the_nearest(tmp_path):
    (tmp_path / "c.yaml").write_text("episods: 3\n")
    done = robot_fb("record", "--config", "c.yaml", "--task", "keyed_socket", "--out", "x", cwd=tmp_path)
    assert done.returncode == 2 and "did you mean 'episodes'" in done.stderr


def test_tasks_as_json():
    rows = {row["task"]: row for row in json.loads(robot_fb("tasks", "--json").stdout)}
    assert rows["keyed_socket"]["ceiling"] == 0.5 and rows["pick_place"]["ceiling"] is None


@pytest.mark.timeout(1200)
def test_the_demo_in_small_shows_every_stage_and_does_nothing_twice(tmp_path):
    bench = ["bench", "demo", "--quick", "--seeds", "1", "--runs", "r", "--out", "b", "--json"]
    done = robot_fb(*bench, cwd=tmp_path, timeout=1000)
    assert done.returncode == 0, done.stderr[-2000:]
    document = json.loads(done.stdout)
    assert document == json.loads((tmp_path / "b" / "demo.json").read_text())
    labels = [row["label"] for row in document["rows"]]
    assert labels[0] == "base, by sight" and len(labels) == 5
    assert all(row["seed"] == 0 and row["whole_demo_minutes"] > 0 for row in document["rows"])
    page = (tmp_path / "r" / "0" / "report.html").read_text()
    assert page.count("data:image/png") >= 2 and not re.search(r"(src|href)=\"http", page)
    again = robot_fb("demo", "--quick", "--out", "r/0", "--json", cwd=tmp_path)
    assert again.returncode == 0 and "robot-fb train" not in again.stderr
    assert json.loads(again.stdout)["rows"][0]["successes"] == document["rows"][0]["successes"]
    other = robot_fb("demo", "--quick", "--out", "r/0", "--seed", "1", cwd=tmp_path)
    assert other.returncode == 2 and "another seed" in other.stderr


@pytest.mark.timeout(600)
def test_bases_from_few_demonstrations_in_small(tmp_path):
    words = ["--demonstrations", "2", "1", "--seeds", "1", "--steps", "3", "--episodes", "1", "--runs", "r"]
    done = robot_fb("bench", "pick_place", *words, "--out", "b", "--json", cwd=tmp_path, timeout=500)
    assert done.returncode == 0, done.stderr[-2000:]
    rows = json.loads(done.stdout)["rows"]
    assert [(row["demonstrations"], row["episodes"], row["steps"]) for row in rows] == [(2, 1, 3), (1, 1, 3)]


@pytest.mark.slow
@pytest.mark.parametrize("row", ["lipschitz", "faults", "ppo", "sac", "base", "blind"])
def test_rows_of_the_residual_table_in_small(tmp_path, row):
    words = ["bench", "residual", "--task", "keyed_socket", "--seed", "0", "--row", row, "--episodes", "2"]
    words += ["--steps", "1600", "--trial-episodes", "2", "--demonstrations", "2", "--base-steps", "2"]
    done = robot_fb(*words, "--runs", "r", "--out", "b", "--json", cwd=tmp_path, timeout=1000)
    assert done.returncode == 0, done.stderr[-2000:]
    rows = json.loads(done.stdout)["rows"]
    assert len(rows) == (5 if row == "faults" else 1)
    assert all(each["row"] == row and each["episodes"] == 2 for each in rows)
    if row == "lipschitz":
        assert rows[0]["holds"] and rows[0]["worst_trial_against_base"] <= 0
    again = robot_fb(*words, "--runs", "elsewhere", "--out", "b", "--json", cwd=tmp_path)
    assert again.returncode == 0 and json.loads(again.stdout)["rows"] == rows
    assert not (tmp_path / "elsewhere").exists()


def test_the_readme_names_only_commands_that_exist():
    text = (ROOT / "README.md").read_text()
    found = re.findall(r"robot-fb ([a-z]+)(?: (bc|residual|speed|log|human|demo|pick_place))?", text)
    assert found and {verb for verb, _ in found} <= set(VERBS)
    lines = [line for line in text.splitlines() if line.startswith("    robot-fb")]
    flags = {flag for line in lines for flag in re.findall(r"--[a-z-]+", line)}
    pages = "".join(robot_fb(*verb, "--help").stdout for verb in HELP)
    assert {flag for flag in flags if flag not in pages and flag not in ("--preset", "--config")} == set()
