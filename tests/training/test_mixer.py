"""Shares, joining and reproducible draws."""

from __future__ import annotations

import json

import numpy as np
import pytest

from robot_fb.errors import ConfigError
from robot_fb.training.mixer import Mixer, join, split


class Constant:
    """Rows of one value; as long as told."""

    def __init__(self, value, length=10):
        self.value, self.length = value, length

    def __len__(self):
        return self.length

    def sample(self, rng, n):
        return {"obs": {"x": np.full((n, 2), self.value)}, "draw": rng.random(n)}


@pytest.mark.parametrize(
    ("total", "shares", "expected"),
    [(5, [1, 1], [3, 2]), (64, [0.5, 0.5], [32, 32]), (10, [7, 2, 1], [7, 2, 1]), (3, [1], [3]), (1, [1, 9], [0, 1])],
)
def test_split_gives_whole_numbers_that_add_up(total, shares, expected):
    assert split(total, shares) == expected


def test_batches_hold_the_shares():
    mixer = Mixer({"demos": Constant(1), "online": Constant(2)}, 8, {"demos": 3, "online": 1})

    batch = mixer.next()

    assert batch["obs"]["x"][:, 0].tolist() == [1] * 6 + [2] * 2


def test_an_empty_source_leaves_its_share_to_the_others():
    mixer = Mixer({"demos": Constant(1, 0), "online": Constant(2)}, 8)

    assert mixer.next()["obs"]["x"][:, 0].tolist() == [2] * 8


def test_nothing_to_draw_from_is_said():
    with pytest.raises(ConfigError, match="nothing to learn from"):
        Mixer({"demos": Constant(1, 0)}, 8).next()


def test_state_goes_through_json_and_brings_the_same_draws():
    mixer = Mixer({"a": Constant(1)}, 4, seed=5)
    mixer.next()
    state = json.loads(json.dumps(mixer.state()))
    expected = mixer.next()["draw"]

    other = Mixer({"a": Constant(1)}, 4, seed=99)
    other.restore(state)

    np.testing.assert_array_equal(other.next()["draw"], expected)


@pytest.mark.parametrize(
    ("sources", "shares"), [({}, {}), ({"a": Constant(1)}, {"b": 1.0}), ({"a": Constant(1)}, {"a": 0.0})]
)
def test_shares_that_make_no_sense_are_refused(sources, shares):
    with pytest.raises(ConfigError):
        Mixer(sources, 4, shares)


def test_join_is_recursive():
    joined = join([{"a": {"b": np.zeros(1)}}, {"a": {"b": np.ones(2)}}])

    assert joined["a"]["b"].tolist() == [0, 1, 1]
