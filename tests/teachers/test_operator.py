"""The simulated operator: when it reacts, how it moves, how it tires."""

from __future__ import annotations

import numpy as np
import pytest

from robot_fb.errors import ConfigError
from robot_fb.teachers.operator import Attention, Hand, Skill


class Count:
    """An expert that says how often it was asked."""

    def __init__(self):
        self.asked = 0

    def reset(self):
        self.asked = 0

    def act(self):
        self.asked += 1
        return np.array([0.1 * self.asked, 0.0])


def hand(seed=0, **skill):
    return Hand(Count(), np.array([-1.0, -2.0]), np.array([1.0, 2.0]), Skill(**skill), np.random.default_rng(seed))


def test_a_steady_hand_is_only_late():
    late = hand(delay=2, tremor=0.0)
    assert [round(float(late.act()[0]), 1) for _ in range(5)] == [0.1, 0.1, 0.1, 0.2, 0.3]
    late.reset()
    assert late.act()[0] == pytest.approx(0.1)


def test_a_hand_trembles_within_the_bounds_and_more_when_tired():
    def spread(tired):
        trembling = hand(delay=0, tremor=0.1)
        moves = np.array([trembling.act(tired)[1] for _ in range(500)])
        assert np.abs(moves).max() <= 2.0
        return moves.std()

    assert spread(0.0) == pytest.approx(0.2, rel=0.15)
    assert spread(1.0) == pytest.approx(2 * spread(0.0), rel=0.01)


def test_attention_goes_to_one_robot_after_a_while_and_away_again():
    attention = Attention(Skill(reaction_s=0.5, spread=0.0, stint_s=2.0), np.random.default_rng(0))
    assert not attention.reaches(10.0)
    attention.turn_to("one", 1.0)
    assert not attention.reaches(1.4) and attention.reaches(1.5)
    attention.take(1.5)
    assert not attention.reaches(1.6) and not attention.has_enough(3.4) and attention.has_enough(3.5)
    attention.turn_away()
    assert attention.robot is None and attention.worked_s == pytest.approx(2.0)


def test_a_tired_operator_reacts_late():
    attention = Attention(Skill(reaction_s=0.5, spread=0.0, tires_s=10.0), np.random.default_rng(0))
    attention.worked_s = 10.0
    attention.turn_to("one", 0.0)
    assert not attention.reaches(0.9) and attention.reaches(1.0)


def test_no_operator_is_less_than_nothing():
    with pytest.raises(ConfigError):
        Skill(tremor=-1.0)
