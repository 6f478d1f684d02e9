"""Rounds of a simulated fleet on a real task: the robots are helped, the policy learns, the gate decides, and a stopped
run goes on."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from robot_fb.algorithms import bc
from robot_fb.algorithms.intervention.learn import InterventionConfig
from robot_fb.episodes.cache import load_arrays
from robot_fb.episodes.store import Store
from robot_fb.episodes.writer import WriterConfig
from robot_fb.fleet.collect import collect
from robot_fb.fleet.rounds import ROUNDS, Rounds, RoundsConfig
from robot_fb.runtime.episodes import Job, run_episodes
from robot_fb.training.checkpoint import save_policy
from robot_fb.types import SOURCES

TASK = "pick_place"


@pytest.fixture(scope="module")
def beginner(tmp_path_factory):
    """(policy that knows next to nothing, the demonstrations that it saw)."""
    from policies.chunk_mlp import ChunkMlpPolicy

    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("beginner")
    Store(folder / "demos", create=True, writer=WriterConfig(wait=True))
    run_episodes(Job(TASK, log=folder / "demos"), [1, 2], 0)
    config = bc.BcConfig(policy="chunk_mlp", steps=20, batch=16, streams=("tcp/pose",), obs_horizon=1)
    trainer, source = bc.prepare(load_arrays(folder / "demos"), config, ChunkMlpPolicy.config_class(width=16))
    for _ in range(config.steps):
        trainer.step(source.sample(np.random.default_rng(0), 16))
    save_policy(folder / "policy", trainer.policy())
    return folder / "policy", folder / "demos"


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
