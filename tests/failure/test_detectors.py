"""Every registered detector: it tells failures from successes, keeps its promise, and is the same after a save."""

from __future__ import annotations

import numpy as np
import pytest

from robot_fb import registry
from robot_fb.errors import CalibrationError, CheckpointError
from robot_fb.failure.consistency import Ace, mmd2
from robot_fb.failure.detector import Detector
from robot_fb.failure.float_ot import FloatOT, transport, unit
from robot_fb.failure.fused import warped
from robot_fb.failure.metrics import Watched, judge
from robot_fb.failure.novelty import RndOE
from robot_fb.runtime.monitor import watched
from tests.failure.conftest import make_trace

NAMES = registry.names("detectors")
ALPHA = 0.1


@pytest.fixture(scope="module")
def fitted(traces):
    """Fits a detector of a name once."""
    made = {}

    def get(name: str) -> Detector:
        if name not in made:
            detector = registry.load("detectors", name)()
            detector.fit(traces(30, 15, 0), seed=0)
            detector.calibrate(traces(60, 0, 1), ALPHA)
            made[name] = detector
        return made[name]

    return get


@pytest.mark.parametrize("name", NAMES)
def test_failures_alarm_and_successes_mostly_do_not(name, fitted, traces):
    found = judge([watched(fitted(name), trace, 0.05) for trace in traces(40, 20, 2)])
    assert found["tnr"] >= 0.7  # alpha is 0.1
    assert found["tpr"] >= 0.9, found
    assert found["balanced_accuracy"] == pytest.approx((found["tpr"] + found["tnr"]) / 2)
    assert found["median_delay_s"] < 1.0


@pytest.mark.parametrize("name", NAMES)
def test_what_was_learned_survives_as_plain_arrays(name, fitted, traces):
    detector, other = fitted(name), registry.load("detectors", name)()
    other.restore({key: value.copy() for key, value in detector.state().items()})
    other.band = detector.band
    (trace,) = traces(0, 1, 3)
    assert [r.score for r in other.run(trace)] == pytest.approx([r.score for r in detector.run(trace)], rel=1e-5)
    assert all(isinstance(value, np.ndarray) and value.dtype != object for value in detector.state().values())


@pytest.mark.parametrize("name", NAMES)
def test_an_episode_is_scored_the_same_whatever_came_before(name, fitted, traces):
    detector = fitted(name)
    first, second = traces(1, 1, 4)
    before = [r.score for r in detector.run(first)]
    detector.run(second)
    assert [r.score for r in detector.run(first)] == before


def test_ours_lets_slow_successes_pass(fitted):
    rng = np.random.default_rng(5)
    slow = [watched(fitted("fused"), make_trace(rng, True, speed=0.6), 0.05) for _ in range(30)]
    assert sum(episode.alarm is not None for episode in slow) <= 6


def test_ours_alarms_without_having_seen_a_failure(traces):
    detector = registry.load("detectors", "fused")()
    detector.fit(traces(30, 0, 0), seed=0)
    detector.calibrate(traces(60, 0, 1), ALPHA)
    found = judge([watched(detector, trace, 0.05) for trace in traces(30, 20, 2)])
    assert found["tpr"] >= 0.9 and found["tnr"] >= 0.7


def test_ours_is_replayed_faster_and_slower_but_in_order():
    rng = np.random.default_rng(0)
    rows = np.arange(50.0)[:, None]
    lengths = set()
    for _ in range(20):
        out = warped(rows, rng)[:, 0]
        assert (np.diff(out) >= 0).all() and set(out) <= set(rows[:, 0])
        lengths.add(len(out))
    assert min(lengths) < 50 < max(lengths)


def test_failures_among_the_calibration_data_are_named(fitted, traces):
    with pytest.raises(CalibrationError, match="bad0"):
        fitted("rnd_oe").calibrate(traces(60, 2, 1), ALPHA)


def test_too_few_successes_for_alpha(fitted, traces):
    detector = registry.load("detectors", "rnd_oe")()
    detector.fit(traces(5, 0, 0), 0)
    with pytest.raises(CalibrationError, match="at least 38"):
        detector.calibrate(traces(10, 0, 1), 0.05)
    with pytest.raises(CalibrationError, match="not calibrated"):
        detector.excess(detector.run(traces(1, 0, 1)[0])[0])


def test_no_success_to_learn_from(traces):
    for name in NAMES:
        with pytest.raises(CalibrationError, match="no successful episode"):
            registry.load("detectors", name)().fit(traces(0, 3, 0), 0)


def test_weights_of_another_detector_are_refused(fitted):
    with pytest.raises((CheckpointError, KeyError)):
        RndOE().restore(fitted("logpzo").state())


def test_transport_plans_have_uniform_marginals_and_prefer_cheap_pairs():
    rng = np.random.default_rng(0)
    cost = rng.random((3, 5, 7))
    plan = transport(cost)
    assert plan.sum(axis=2) == pytest.approx(np.full((3, 5), 1 / 5), abs=1e-4)
    assert plan.sum(axis=1) == pytest.approx(np.full((3, 7), 1 / 7), abs=1e-4)
    assert (plan * cost).sum() < cost.mean(axis=(1, 2)).sum()


def test_float_costs_next_to_nothing_along_a_demonstration_and_more_beside_it():
    rng = np.random.default_rng(0)
    demo = make_trace(rng, True)
    detector = FloatOT()
    detector.fit([demo], 0)
    on_it = detector.run(demo)[-1].score
    off_it = detector.run(make_trace(rng, False))[-1].score
    assert on_it < 0.1 and off_it > 3 * on_it
    scores = [reading.score for reading in detector.run(demo)]
    assert scores == sorted(scores) or np.diff(scores).min() > -0.02  # a sum over columns: it grows
    assert np.linalg.norm(unit(rng.normal(size=(4, 3))), axis=1) == pytest.approx(np.ones(4))


def test_mmd_is_nothing_between_equal_samples_and_grows_with_distance():
    rng = np.random.default_rng(0)
    sample = rng.normal(size=(30, 4))
    assert mmd2(sample, sample) == pytest.approx(0.0, abs=1e-9)
    near, far = mmd2(sample, rng.normal(size=(30, 4))), mmd2(sample, rng.normal(size=(30, 4)) + 2)
    assert 0 <= near < far
    # by hand: two points a unit apart, all distances 1 -> bandwidth 1
    assert mmd2(np.zeros((1, 1)), np.ones((1, 1))) == pytest.approx(2 - 2 * np.exp(-1))


def test_entropy_is_nothing_where_all_plans_agree_and_log_n_where_none_do(traces):
    detector = Ace()
    detector.fit(traces(3, 0, 0), 0)
    detector._centre, detector._spread = np.zeros(1), np.ones(1)
    same = np.zeros((16, 4, 1))
    spread = np.arange(20.0)[:, None, None] * np.ones((1, 4, 1))
    glimpse = make_trace(np.random.default_rng(0), True).glimpses[0]

    def entropy(plans: np.ndarray) -> float:
        return detector.compare(None, type(glimpse)(**(vars(glimpse) | {"plans": plans})))

    assert entropy(same) == pytest.approx(0.0, abs=1e-6)
    assert entropy(spread) == pytest.approx(np.log(20), abs=1e-6)


def test_metrics_by_hand():
    found = judge([
        Watched(True, 4.0, None), Watched(True, 4.0, 1.0),
        Watched(False, 4.0, 1.0, onset=0.5), Watched(False, 4.0, 3.0, onset=2.0), Watched(False, 4.0, None, onset=2.0),
    ])
    assert found["tpr"] == pytest.approx(2 / 3) and found["tnr"] == 0.5
    assert found["twa"] == pytest.approx(((0.75 + 0.25) / 3 + 0.5) / 2)
    assert found["median_delay_s"] == pytest.approx(0.75)
    assert judge([Watched(True, 1.0, None)])["balanced_accuracy"] is None
