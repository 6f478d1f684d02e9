"""History, re-planning, lanes and hand-over, with a policy whose plans are known."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from policies.chunked import ChunkedConfig, ChunkedPolicy
from robot_fb import interfaces
from robot_fb.errors import ConfigError, ObservationError
from robot_fb.types import ActionSpec, PolicySpec, StreamSpec

SPEC = PolicySpec("toy", {"state": StreamSpec((1,))}, ActionSpec((-10.0,), (10.0,)), 0.1, horizon=6, execute=3)


class Counting(ChunkedPolicy):
    """Plan number k is k/10, k/10 + 0.01, ...; remembers what it was asked."""

    def loss(self, batch, generator=None):
        return torch.zeros((), requires_grad=True)

    def sample(self, cond, generator):
        self.asked = [*getattr(self, "asked", []), cond.clone()]
        start = torch.full((len(cond), 1, 1), len(self.asked) / 10)
        return start + 0.01 * torch.arange(self.spec.horizon)[None, :, None]


def run(policy, values, fresh=None):
    lanes = np.asarray(values, np.float32).shape[1]
    policy.reset_lanes(lanes, 0)
    plans = []
    for i, value in enumerate(values):
        begun = np.zeros(lanes, bool) if fresh is None else np.asarray(fresh[i])
        plans.append(policy.act_lanes({"state": np.asarray(value, np.float32)[:, None]}, begun))
    return np.array(plans)


def test_is_a_lane_policy():
    assert isinstance(Counting(SPEC), interfaces.LanePolicy)


def test_plans_again_after_execute_actions_and_shows_the_plan_from_now_on():
    policy = Counting(SPEC, ChunkedConfig(blend_steps=0))

    plans = run(policy, [[0.0]] * 5)

    assert len(policy.asked) == 2
    np.testing.assert_allclose(plans[:, 0, 0, 0], [0.10, 0.11, 0.12, 0.20, 0.21], atol=1e-6)
    np.testing.assert_allclose(plans[2, 0, :, 0], [0.12, 0.13, 0.14, 0.15, 0.15, 0.15], atol=1e-6)


def test_a_new_plan_fades_in_over_the_old_one():
    policy = Counting(SPEC, ChunkedConfig(blend_steps=3))

    plans = run(policy, [[0.0]] * 4)

    tail, new = np.array([0.13, 0.14, 0.15]), np.array([0.20, 0.21, 0.22])
    weight = np.array([0.25, 0.5, 0.75])
    np.testing.assert_allclose(plans[3, 0, :3, 0], (1 - weight) * tail + weight * new, atol=1e-6)
    np.testing.assert_allclose(plans[3, 0, 3:, 0], [0.23, 0.24, 0.25], atol=1e-6)


def test_history_is_the_last_two_observations_and_repeats_the_first():
    policy = Counting(SPEC, ChunkedConfig())

    run(policy, [[0.1], [0.2], [0.3], [0.4]])

    np.testing.assert_allclose(policy.asked[0], [[0.1, 0.1]], atol=1e-6)
    np.testing.assert_allclose(policy.asked[1], [[0.3, 0.4]], atol=1e-6)


def test_only_lanes_that_are_due_are_planned_in_one_call():
    policy = Counting(SPEC, ChunkedConfig())
    fresh = [[True, True], [False, True], [False, False], [False, False], [False, False]]

    run(policy, [[0.0, 0.5]] * 5, fresh)

    assert [len(cond) for cond in policy.asked] == [2, 1, 1, 1]


def test_a_fresh_lane_forgets_plan_and_history():
    policy = Counting(SPEC, ChunkedConfig(blend_steps=3))

    plans = run(policy, [[0.1], [0.9]], [[True], [True]])

    np.testing.assert_allclose(policy.asked[1], [[0.9, 0.9]], atol=1e-6)
    assert plans[1, 0, 0, 0] == pytest.approx(0.2)


def test_lane_and_single_use_agree():
    single, lanes = Counting(SPEC), Counting(SPEC)
    single.reset(0)
    lanes.reset_lanes(1, 0)
    for value in np.linspace(0, 1, 7, dtype=np.float32):
        chunk = single.act({"state": np.array([value])})
        plan = lanes.act_lanes({"state": np.array([[value]])}, np.zeros(1, bool))
        np.testing.assert_array_equal(chunk.actions, plan[0])
    assert chunk.dt == 0.1


def test_plans_stay_within_the_actions_bounds():
    policy = Counting(PolicySpec("toy", SPEC.obs, ActionSpec((-0.12,), (0.12,)), 0.1, horizon=6, execute=3))

    assert run(policy, [[0.0]]).max() == pytest.approx(0.12)


def test_embed_is_the_encoders_feature():
    policy = Counting(SPEC)

    assert policy.spec.embed_dim == 1
    assert policy.embed({"state": np.array([0.5], np.float32)}).dtype == np.float32
    assert policy.embed_lanes({"state": np.full((3, 1), 0.5, np.float32)}).shape == (3, 1)


@pytest.mark.parametrize(
    ("obs", "words"),
    [
        ({}, "lacks state"),
        ({"state": np.zeros(2, np.float32)}, "another shape"),
        ({"state": np.array([np.nan], np.float32)}, "NaN"),
        ({"state": np.array([np.inf], np.float32)}, "infinity"),
    ],
)
def test_a_bad_observation_is_refused(obs, words):
    policy = Counting(SPEC)

    with pytest.raises(ObservationError, match=words):
        policy.act(obs)
    if obs:
        with pytest.raises(ObservationError, match=words):
            policy.embed(obs)


def test_chunk_lengths_must_fit():
    with pytest.raises(ConfigError, match="execute <= horizon"):
        Counting(PolicySpec("toy", SPEC.obs, SPEC.action, 0.1, horizon=4, execute=5))
