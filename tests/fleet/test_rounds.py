"""Rounds of a simulated fleet on a real task: the robots are helped, the policy learns, the gate decides, and a stopped
run goes on."""

from __future__ import annotations

import json

import pytest

from robot_fb.algorithms.intervention.learn import InterventionConfig
from robot_fb.cli import main as command
from robot_fb.episodes.cache import load_arrays
from robot_fb.episodes.store import Store
from robot_fb.fleet.collect import collect
from robot_fb.fleet.rounds import ROUNDS, Rounds, RoundsConfig
from robot_fb.types import SOURCES


class Impatient:
    """A monitor that alarms after a second."""

    def __init__(self, *_):
        self._asked = 0

    def calibrate(self, successes, alpha):
        pass

    def reset(self):
        self._asked = 0

    def score(self, obs, chunk):
        self._asked += 1
        return 2.0 if self._asked > 20 else 0.0


def test_robots_that_ask_are_helped_and_the_log_says_who_moved(beginner, tmp_path):
    found = collect(beginner[0], tmp_path / "store", [5, 6, 7], robots=2, watch=Impatient)
    assert sorted(each.seed for each in found.episodes) == [5, 6, 7]
    assert len(found.waits) >= 3 and found.attention_s > 0
    store = Store(tmp_path / "store")
    human = 0.0
    for id in store.query():
        sources = [SOURCES[i] for i in store.read(id).columns.sources]
        assert set(sources[:20]) == {"policy"} and sources[20] == "hold"
        human += 0.05 * sources.count("human")
    assert human == pytest.approx(found.to_json()["human_s"]) and human > 0
    assert found.to_json()["successes"] >= 2  # nobody succeeds alone: the expert's hand did


def test_rounds_go_on_where_they_were_and_deploy_only_what_is_better(beginner, tmp_path, monkeypatch):
    policy, demos = beginner
    config = RoundsConfig(
        robots=2, rounds=2, episodes=2, gate_episodes=2, workers=0, learn=InterventionConfig(steps=2, batch=4)
    )
    first = Rounds(config, tmp_path / "out", policy, None, (demos,)).run()
    assert [row["round"] for row in first] == [0, 1, 2] and first[0]["deployed"]
    assert not any(row["deployed"] for row in first[1:])  # two steps do not teach it anything
    assert first[1]["decisions"]["demo"] == len(load_arrays(demos).actions)

    file = tmp_path / "out" / ROUNDS
    file.write_text("\n".join(json.dumps(row) for row in first[:2]) + "\n")  # the last round was not finished
    assert Rounds(config, tmp_path / "out", policy, None, (demos,)).run() == first


def test_the_command_starts_refuses_and_goes_on(beginner, tmp_path, capsys):
    words = ["fleet", "--policy", str(beginner[0]), "--data", str(beginner[1]), "--out", str(tmp_path / "out")]
    words += ["--robots=2", "--episodes=2", "--gate-episodes=2", "--workers=0", "--learn.steps=2", "--learn.batch=4"]
    assert command.main([*words, "--rounds=1", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [row["round"] for row in document["rounds"]] == [0, 1]
    for more, hint in [
        ([], "add --resume"), (["--resume", "--robots=3"], "another robots"), (["--gate-episodes=0"], "gate_episodes"),
        (["--detector=fusd"], "did you mean 'fused'"), (["--data", str(tmp_path / "none")], "no episode store"),
        (["--monitor", str(tmp_path)], str(tmp_path)), (["--task=keyed_socket"], "another task"),
    ]:
        assert command.main([*words, *more]) == 2
        error = capsys.readouterr().err
        assert hint in error and len(error.strip().splitlines()) == 1
    assert command.main([*words, "--rounds=2", "--resume"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 5  # two lines of head, the policy as it came, two rounds
