"""Ablations spoil what they name and nothing else."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

from envs.ablate import FAULTS, Ablate, parse
from robot_fb.errors import ConfigError


class Counting(gym.Env):
    """Every stream holds the number of decisions made so far."""

    dt = 0.05
    observation_space = gym.spaces.Dict(
        {
            "tcp/pose": gym.spaces.Box(-np.inf, np.inf, (7,), np.float32),
            "wrench/wrist": gym.spaces.Box(-np.inf, np.inf, (16, 6), np.float32),
            "tactile/left": gym.spaces.Box(-np.inf, np.inf, (3, 8, 8), np.float32),
        }
    )
    action_space = gym.spaces.Box(-1, 1, (1,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count = 0
        return self._obs(), {}

    def step(self, action):
        self.count += 1
        return self._obs(), 0.0, False, False, {}

    def _obs(self):
        return {key: np.full(space.shape, self.count, np.float32) for key, space in self.observation_space.items()}


def roll(ablation: str, steps: int = 10, seed: int = 0, donor=None) -> list[dict[str, np.ndarray]]:
    env = Ablate(Counting(), ablation, donor)
    observations = [env.reset(seed=seed)[0]]
    return observations + [env.step(np.zeros(1))[0] for _ in range(steps)]


def test_none_zeroes_touch_and_leaves_the_rest():
    last = roll("touch=none")[-1]
    assert not last["wrench/wrist"].any() and not last["tactile/left"].any()
    assert (last["tcp/pose"] == 10).all()


def test_delayed_shows_what_was_300_ms_ago():
    counts = [int(obs["wrench/wrist"][0, 0]) for obs in roll("touch=delayed")]
    assert counts == [0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4]


def test_shuffled_shows_the_donor_step_by_step_and_holds_its_end():
    donor_seeds = []

    def donor(seed: int) -> list[dict[str, np.ndarray]]:
        donor_seeds.append(seed)
        return [{"wrench/wrist": np.full((16, 6), 100.0 + k), "tactile/left": np.zeros((3, 8, 8))} for k in range(4)]

    counts = [int(obs["wrench/wrist"][0, 0]) for obs in roll("wrench/*=shuffled", donor=donor)]
    assert counts == [100, 101, 102, 103] + [103] * 7
    roll("wrench/*=shuffled", donor=donor)
    assert donor_seeds[0] == donor_seeds[1]


def test_bias_is_constant_in_an_episode_and_of_the_asked_size():
    first, *rest = roll("wrench/wrist=bias:2.0")
    offset = first["wrench/wrist"][0, :3]
    assert np.linalg.norm(offset) == pytest.approx(2.0, rel=1e-5)
    assert np.allclose(rest[4]["wrench/wrist"][0, :3] - 5, offset, atol=1e-5)


def test_dropout_keeps_the_last_sample_at_about_its_rate():
    counts = np.array([obs["tactile/left"][0, 0, 0] for obs in roll("tactile/left=dropout:0.2", 2000)])
    lost = (np.diff(counts) == 0).mean()
    assert 0.16 < lost < 0.24


def test_same_seed_gives_the_same_faults():
    one, two = roll("touch=dropout:0.5", seed=3), roll("touch=dropout:0.5", seed=3)
    assert all((a["wrench/wrist"] == b["wrench/wrist"]).all() for a, b in zip(one, two, strict=True))


@pytest.mark.parametrize(
    ("text", "hint"),
    [("touch", "TARGET=MODE"), ("touch=delayd", "delayed"), ("touch=bias:much", "a number")],
)
def test_mistakes_are_named(text: str, hint: str):
    with pytest.raises(ConfigError, match=hint):
        parse(text)


def test_a_target_without_streams_is_refused():
    with pytest.raises(ConfigError, match="covers no stream"):
        Ablate(Counting(), "lidar=none")


def test_shuffled_without_a_donor_is_refused():
    with pytest.raises(ConfigError, match="shuffle"):
        Ablate(Counting(), "touch=shuffled")


def test_faults_spoil_some_episodes_each_with_one_fault():
    env = Ablate(Counting(), "touch=faults:0.5")
    kinds = []
    for seed in range(400):
        seen = [env.reset(seed=seed)[0]] + [env.step(np.zeros(1))[0] for _ in range(30)]
        counts = np.array([obs["wrench/wrist"][0, 0] for obs in seen])
        steps = np.diff(counts[10:])
        if not counts.any():
            kinds.append("dead")
        elif (counts == np.arange(31)).all():
            kinds.append("live")
        elif np.allclose(steps, 1, atol=1e-3):
            kinds.append("delayed" if counts[-1] == 24 else "bias")
        else:
            kinds.append("dropout")
    share = {kind: kinds.count(kind) / len(kinds) for kind in set(kinds)}
    assert share["live"] == pytest.approx(0.5, abs=0.08)
    assert all(share[kind] == pytest.approx(0.125, abs=0.06) for kind in FAULTS)
