"""The conformal band: what it promises, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from robot_fb.errors import CalibrationError
from robot_fb.failure.band import fit_band, needed


def wandering(rng: np.random.Generator, count: int) -> list[np.ndarray]:
    """Scores that rise, each at its own pace and for its own time."""
    return [np.cumsum(rng.gamma(1.0, 0.1, rng.integers(30, 60))) * rng.uniform(0.7, 1.3) for _ in range(count)]


def passes(band, scores: np.ndarray) -> bool:
    return any(band.excess(score, moment) > 1 for moment, score in enumerate(scores))


@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_as_many_successes_alarm_as_was_declared(alpha):
    rng = np.random.default_rng(0)
    alarms = count = 0
    for seed in range(60):
        band = fit_band(wandering(rng, 100), alpha, seed)
        alarms += sum(passes(band, scores) for scores in wandering(rng, 50))
        count += 50
    assert alarms / count <= alpha + 0.02
    assert binomtest(alarms, count).proportion_ci().high > 0.5 * alpha  # and it is not idle


def test_the_height_is_the_conformal_rank_of_the_other_half():
    scores = [np.full(4, float(k)) for k in range(40)]
    band = fit_band(scores, alpha=0.1, seed=3)
    order = np.random.default_rng(3).permutation(40)
    first, second = order[:20], np.sort(order[20:])
    expected = second[19 - 1]  # the 19th smallest: ceil(21 * 0.9)
    assert band.level(0) == pytest.approx(expected) or expected <= first.mean()
    assert band.level(99) == band.level(3)


def test_only_high_scores_alarm():
    rng = np.random.default_rng(1)
    band = fit_band([rng.normal(size=20) for _ in range(60)], 0.1)
    assert band.excess(-50.0, 5) < 0 and band.excess(50.0, 5) > 1
    assert band.excess(band.level(5), 5) == pytest.approx(1.0)


def test_scores_without_any_spread_make_a_band_that_the_same_scores_do_not_pass():
    band = fit_band([np.ones(5)] * 40, 0.05)
    assert band.excess(1.0, 3) <= 1 < band.excess(1.1, 3)


def test_too_few_successes_say_how_many_are_needed():
    assert needed(0.05) == 38
    with pytest.raises(CalibrationError, match="at least 38; found 37"):
        fit_band([np.ones(5)] * 37, 0.05)
    fit_band([np.arange(5.0)] * 38, 0.05)


@pytest.mark.parametrize("bad", [np.array([]), np.array([1.0, np.nan])])
def test_a_success_without_usable_scores_is_named(bad):
    with pytest.raises(CalibrationError, match="success 3"):
        fit_band([np.ones(4)] * 3 + [bad] + [np.ones(4)] * 40, 0.1)


@pytest.mark.parametrize("alpha", [0.0, 1.0, -1.0, float("nan")])
def test_an_alpha_that_is_no_share_is_refused(alpha):
    with pytest.raises(CalibrationError, match="alpha"):
        fit_band([np.ones(4)] * 50, alpha)
