"""Scales: units decide the floor, constants survive, round trips are exact."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from policies.normalise import CLIP, DEFAULT_FLOOR, FLOORS, ActionScale, StreamScale, spread_floor
from robot_fb.types import StreamSpec


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (StreamSpec((7,), unit="m, quaternion xyzw"), [FLOORS["m"]] * 3 + [FLOORS["quaternion"]] * 4),
        (StreamSpec((6,), unit="m/s, rad/s"), [FLOORS["m/s"]] * 3 + [FLOORS["rad/s"]] * 3),
        (StreamSpec((2, 6), unit="N, N·m"), ([FLOORS["N"]] * 3 + [FLOORS["N·m"]] * 3) * 2),
        (StreamSpec((1,), unit="m"), [FLOORS["m"]]),
        (StreamSpec((3,)), [DEFAULT_FLOOR] * 3),
        (StreamSpec((5,), unit="m, rad"), [DEFAULT_FLOOR] * 5),  # cannot be shared evenly
        (StreamSpec((), unit="m"), [FLOORS["m"]]),
    ],
)
def test_floor_follows_the_unit_of_each_entry(spec, expected):
    np.testing.assert_allclose(spread_floor(spec), expected, rtol=1e-6)


def test_actions_span_minus_one_to_one_and_come_back():
    scale = ActionScale(3)
    actions = np.random.default_rng(0).uniform([-2, 5, 0], [4, 6, 1e-3], (100, 3)).astype(np.float32)
    scale.fit(actions)

    encoded = scale.encode(torch.from_numpy(actions))

    assert encoded.min(0).values.tolist() == pytest.approx([-1, -1, -1], abs=1e-3)
    assert encoded.max(0).values.tolist() == pytest.approx([1, 1, 1], abs=1e-3)
    np.testing.assert_allclose(scale.decode(encoded).numpy(), actions, atol=1e-5)


def test_an_action_that_never_changes_comes_back_as_itself():
    scale = ActionScale(1)
    scale.fit(np.full((10, 1), 0.7, np.float32))

    assert scale.encode(torch.tensor([[0.7]])).item() == pytest.approx(0.0)
    assert scale.decode(torch.tensor([[0.0]])).item() == pytest.approx(0.7)


def test_noise_below_the_floor_stays_small_and_outliers_are_clipped():
    scale = StreamScale({"tcp/pose": StreamSpec((7,), unit="m, quaternion xyzw")})
    noise = np.random.default_rng(0).normal(0, 1e-4, (1000, 7)).astype(np.float32)
    scale.fit(noise)

    assert scale(torch.from_numpy(noise)).abs().max() < 0.2
    assert scale(torch.full((1, 7), 100.0)).max() == CLIP
