"""The verbs that run episodes: what they print, what they keep, and that Ctrl-C loses nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from robot_fb.cli import eval as eval_verb
from robot_fb.cli import main as command
from robot_fb.cli import record, tasks
from robot_fb.episodes.store import Store
from robot_fb.errors import ConfigError


def test_record_keeps_as_many_successes_as_asked_for(tmp_path, capsys):
    words = ["--task", "keyed_socket", "--episodes", "2", "--out", str(tmp_path / "s"), "--workers", "0", "--json"]
    assert record.main(words) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["episodes"] == document["successes"] == 2 and document["tried"] >= 2
    entries = Store(tmp_path / "s").entries()
    assert [entry.success for entry in entries] == [True, True] and all(entry.by == "expert" for entry in entries)


def test_record_leaves_failures_out_unless_told_and_says_how_many(tmp_path, capsys, monkeypatch):
    seen = _every_second_fails(monkeypatch)
    words = ["--task", "keyed_socket", "--out", str(tmp_path / "s"), "--workers", "0"]
    assert record.main([*words, "--episodes", "3"]) == 0
    assert "3 episodes" in (said := capsys.readouterr().out) and f"{len(seen) - 3} that failed were left out" in said
    seen.clear()
    assert record.main([*words, "--episodes", "4", "--keep-failures", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["episodes"] == document["tried"] == 4 and document["successes"] == 2


def test_recording_again_adds_other_episodes(tmp_path):
    words = ["--task", "keyed_socket", "--episodes", "1", "--out", str(tmp_path / "s"), "--workers", "0"]
    assert record.main(words) == record.main(words) == 0
    seeds = [entry.seed for entry in Store(tmp_path / "s").entries()]
    assert len(set(seeds)) == 2


def _every_second_fails(monkeypatch):
    from robot_fb.runtime.episodes import EpisodeResult

    seen = []

    def run_episodes(job, seeds, workers, done):
        results = []
        for seed in seeds:
            seen.append(seed)
            results.append(EpisodeResult(seed, len(seen) % 2 == 0, 10, 0.5, 1.0, 3.0))
            done(results[-1])
        return results

    monkeypatch.setattr(record, "run_episodes", run_episodes)
    return seen


@pytest.mark.parametrize("verb", [record.main, eval_verb.main])
def test_no_episodes_at_all_is_a_mistake(verb, tmp_path):
    words = ["--out", str(tmp_path)] if verb is record.main else ["--policy", "expert"]
    with pytest.raises(ConfigError, match="at least 1"):
        verb([*words, "--task", "keyed_socket", "--episodes", "0"])


def test_eval_prints_the_agreed_document_and_logs_its_episodes(tmp_path, capsys):
    words = ["--policy", "expert", "--task", "keyed_socket", "--episodes", "2", "--workers", "0"]
    assert eval_verb.main([*words, "--log", str(tmp_path / "log"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert set(document) == {
        "task", "policy", "episodes", "successes", "success_rate", "ci95", "peak_force_p95_n", "mean_episode_s",
        "touch", "seed",
    }
    assert document["seed"] == 7 and document["touch"] == "live"
    assert len(Store(tmp_path / "log").query()) == 2


def test_eval_says_the_same_in_words(capsys):
    assert eval_verb.main(["--policy", "expert", "--task", "keyed_socket", "--episodes", "1", "--workers", "0"]) == 0
    said = capsys.readouterr().out
    assert "of 1 succeeded" in said and "95% interval" in said and " N" in said


def test_tasks_tell_their_ceilings(capsys):
    assert tasks.main([]) == 0
    said = capsys.readouterr().out
    assert "keyed_socket" in said and "50%" in said and "robot_fb/KeyedSocket-v0" in said


def test_ctrl_c_keeps_what_was_finished_and_leaves_no_traceback(tmp_path):
    store = tmp_path / "s"
    words = ["record", "--task", "keyed_socket", "--episodes", "500", "--out", str(store)]
    process = subprocess.Popen(
        [sys.executable, "-m", "robot_fb.cli.main", *words], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    deadline = time.monotonic() + 120
    while not list(store.glob("episodes/*.mcap")) and time.monotonic() < deadline:
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to every process of the group
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130 and "Traceback" not in said and "stopped" in said
    kept = Store(store).entries(broken=True)
    assert kept and not any(entry.broken for entry in kept)


def test_a_closed_pipe_is_no_error(monkeypatch):
    def broken(argv):
        raise BrokenPipeError

    monkeypatch.setattr(tasks, "main", broken)
    assert command.main(["tasks"]) == 0


@pytest.mark.timeout(600)
def test_a_monitor_is_fitted_and_watches(tmp_path, capsys):
    demos, base, monitor = (str(tmp_path / name) for name in ("demos", "base", "monitor"))
    task = ["--task", "keyed_socket"]
    assert record.main([*task, "--episodes", "5", "--out", demos, "--workers", "0"]) == 0
    words = ["bc", "--data", demos, "--policy", "chunk_mlp", "--steps", "2", "--out", base]
    assert command.main(["train", *words]) == 0
    words = ["monitor", "fit", "--policy", base, "--data", demos, "--detector", "pca_kmeans", "--out", monitor]
    capsys.readouterr()
    assert command.main([*words, "--alpha", "0.05"]) == 2
    assert "expected at least 76 in the store; found 5" in capsys.readouterr().err
    assert command.main([*words, "--alpha", "0.5", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["calibrated_on"] == 2
    log = tmp_path / "log"
    words = ["--policy", base, "--episodes", "1", "--workers", "0", "--log", str(log), "--monitor", monitor, "--json"]
    assert eval_verb.main(words) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["monitor"]["successes"] + document["monitor"]["failures"] == 1
    store = Store(log)
    episode = store.read(store.query()[0])
    assert all("monitor" in scores for scores in episode.columns.scores)
    assert command.main(["eval", "--policy", "expert", *task, "--episodes", "1", "--monitor", monitor]) == 2
    assert "watches a policy" in capsys.readouterr().err
