"""Learning from corrections: which decisions are of which kind, in which shares they are drawn, and what is learned."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from robot_fb.algorithms import bc
from robot_fb.algorithms.intervention.data import WEIGHTS, Kind, kinds, sources_of
from robot_fb.algorithms.intervention.learn import InterventionConfig, prepare
from robot_fb.errors import CheckpointError, ConfigError, EpisodeError
from robot_fb.training import chunks
from robot_fb.types import SOURCES, StreamSpec


def say(*stretches):
    """(decisions,) sources: ("policy", 3), ("human", 2)."""
    return np.concatenate([np.full(count, SOURCES.index(source), np.uint8) for source, count in stretches])


SHOWN = say(("expert", 6))
CORRECTED = say(("policy", 20), ("hold", 3), ("human", 4), ("hold", 1), ("policy", 5))
TWICE = say(("policy", 4), ("human", 2), ("policy", 3), ("blend", 2))


def recorded(toy_arrays, *episodes, success=None):
    arrays = toy_arrays(tuple(map(len, episodes)), success=success)
    return dataclasses.replace(arrays, sources=np.concatenate(episodes))


def test_every_decision_is_of_one_kind(toy_arrays):
    D, H, B, R, N = Kind.DEMO, Kind.HUMAN, Kind.BEFORE, Kind.ROBOT, Kind.NOTHING
    arrays = recorded(toy_arrays, SHOWN, CORRECTED, TWICE, CORRECTED, success=[True, True, True, False])
    failed = [N] * 23 + [H] * 4 + [N] * 6
    corrected = [R] * 5 + [B] * 15 + [N] * 3 + [H] * 4 + [N] + [R] * 5
    twice = [B] * 4 + [H] * 2 + [B] * 3 + [H] * 2
    assert kinds(arrays).tolist() == [D] * 6 + corrected + twice + failed


def test_the_shares_are_those_of_the_papers():
    counts = {Kind.DEMO: 200, Kind.HUMAN: 100, Kind.BEFORE: 100, Kind.ROBOT: 600}
    shares = {name: {key: share for key, (_, share) in make(counts).items()} for name, make in WEIGHTS.items()}
    assert shares["iwr"] == {"human": 0.5, "rest": 0.5}
    assert shares["sirius"] == pytest.approx({"demo": 0.2, "human": 0.5, "before": 0.002, "robot": 0.298})
    assert shares["plain"] == {"all": 1.0} and shares["hg_dagger"] == {"shown": 1.0}
    early = WEIGHTS["sirius"]({**counts, Kind.DEMO: 100_000})
    assert sum(share for _, share in early.values()) == pytest.approx(1.0)
    assert min(share for _, share in early.values()) > 0


@pytest.mark.parametrize("weights", list(WEIGHTS))
def test_a_batch_is_drawn_in_those_shares(toy_arrays, weights):
    arrays = recorded(toy_arrays, SHOWN, CORRECTED)
    spec = chunks.make_spec(arrays, ("state",), horizon=1, execute=1, obs_horizon=1)
    sources, shares, counts = sources_of([arrays, recorded(toy_arrays, SHOWN)], spec, weights)
    assert counts == {"demo": 12, "human": 4, "before": 15, "robot": 10}
    rows = {name: len(source) for name, source in sources.items()}
    assert rows == {
        "hg_dagger": {"shown": 16}, "iwr": {"human": 4, "rest": 37}, "plain": {"all": 41},
        "sirius": {"demo": 12, "human": 4, "before": 15, "robot": 10},
    }[weights]
    assert set(shares) == set(rows)


def small(arrays):
    """A policy that was cloned for a moment."""
    from policies.chunk_mlp import ChunkMlpPolicy

    config = bc.BcConfig(policy="chunk_mlp", steps=3, batch=8, horizon=2, execute=1, obs_horizon=1, streams=("state",))
    trainer, _ = bc.prepare(arrays, config, ChunkMlpPolicy.config_class(width=32, dropout=0.0))
    return trainer.model


def test_a_correction_changes_what_the_policy_does(toy_arrays):
    torch.set_num_threads(1)
    arrays = recorded(toy_arrays, say(("policy", 40), ("human", 60)), SHOWN)
    arrays.streams["state"][:, 1] = -1.0
    policy = small(arrays)
    arrays.streams["state"][40:100, 1] = 1.0
    arrays.actions[40:100] = 0.4
    config = InterventionConfig(weights="iwr", steps=300, lr=3e-3)
    trainer, mixer, _ = prepare(policy, [arrays], config)
    losses = [trainer.step(mixer.next())["loss"] for _ in range(config.steps)]
    assert np.mean(losses[-20:]) < 0.5 * np.mean(losses[:20])
    human = [trainer.policy().act({"state": arrays.streams["state"][i]}).actions[0, 0] for i in range(40, 60)]
    assert np.mean(human) == pytest.approx(0.4, abs=0.1)


def test_mistakes_are_named(toy_arrays):
    arrays = recorded(toy_arrays, SHOWN)
    policy = small(arrays)
    with pytest.raises(ConfigError, match="sirius"):
        prepare(policy, [arrays], InterventionConfig(weights="sirus"))
    with pytest.raises(EpisodeError, match="another task"):
        prepare(policy, [toy_arrays(task="other")], InterventionConfig())
    with pytest.raises(EpisodeError, match="nothing"):
        prepare(policy, [recorded(toy_arrays, say(("policy", 5)), success=[False])], InterventionConfig())
    with pytest.raises(ConfigError, match="does not learn"):
        prepare(object(), [arrays], InterventionConfig())
    meta = dataclasses.replace(arrays.metas[0], streams={"state": StreamSpec((5,))})
    with pytest.raises(CheckpointError, match="another shape"):
        prepare(policy, [dataclasses.replace(arrays, metas=(meta,))], InterventionConfig())
