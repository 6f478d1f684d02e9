"""The observation encoder: any mix of streams, and picture shifts in training only."""

from __future__ import annotations

import numpy as np
import torch

from policies.encoder import EncoderConfig, ObsEncoder, SpatialSoftmax, shift_pictures
from robot_fb.types import StreamSpec


def test_spatial_softmax_finds_a_bright_spot():
    maps = torch.zeros(1, 1, 5, 5)
    maps[0, 0, 0, 4] = 50.0

    assert torch.allclose(SpatialSoftmax(5, 5)(maps), torch.tensor([[1.0, -1.0]]), atol=1e-4)  # x right, y up


def test_condition_joins_the_newest_picture_and_every_number(visual_spec, look):
    encoder = ObsEncoder(visual_spec.obs, 2, EncoderConfig())
    obs = {k: torch.from_numpy(np.stack([v, v])[None]) for k, v in look(visual_spec).items()}

    assert encoder.dim == 2 * 64 + 13
    assert encoder.cond_dim == 2 * 64 + 2 * 13
    assert encoder.condition(obs).shape == (1, encoder.cond_dim)


def test_older_pictures_are_ignored_and_older_numbers_are_not(visual_spec, look):
    encoder = ObsEncoder(visual_spec.obs, 2, EncoderConfig()).eval()
    obs = {k: torch.from_numpy(np.stack([v, v])[None]) for k, v in look(visual_spec).items()}
    before = encoder.condition(obs)

    obs["camera/scene"][:, 0] = 0
    assert torch.equal(encoder.condition(obs), before)
    obs["tcp/pose"][:, 0] += 0.5
    assert not torch.equal(encoder.condition(obs), before)


def test_works_without_cameras_and_without_numbers():
    numbers = ObsEncoder({"state": StreamSpec((3,))}, 1, EncoderConfig())
    assert numbers.condition({"state": torch.zeros(4, 1, 3)}).shape == (4, 3)
    pictures = ObsEncoder({"camera/a": StreamSpec((16, 16, 3), "uint8")}, 1, EncoderConfig())
    assert pictures.condition({"camera/a": torch.zeros(4, 1, 16, 16, 3, dtype=torch.uint8)}).shape == (4, 64)


def test_shift_moves_pictures_within_bounds_and_repeats_edges():
    ramp = torch.arange(16, dtype=torch.uint8)[None, :, None, None].expand(200, 16, 16, 3).contiguous()

    shifted = shift_pictures(ramp, 3, torch.Generator().manual_seed(0))

    moves = shifted[:, 8, 8, 0].int() - 8
    assert set(moves.tolist()) == {-3, -2, -1, 0, 1, 2, 3}
    down = shifted[moves == 3][0, :, 0, 0].tolist()
    assert down == [*range(3, 16), 15, 15, 15]


def test_shift_needs_a_generator(visual_spec, look):
    encoder = ObsEncoder(visual_spec.obs, 2, EncoderConfig()).eval()
    obs = {k: torch.from_numpy(np.stack([v, v])[None]) for k, v in look(visual_spec).items()}

    plain = encoder.condition(obs)

    assert torch.equal(encoder.condition(obs), plain)
    assert not torch.equal(encoder.condition(obs, torch.Generator().manual_seed(0)), plain)
