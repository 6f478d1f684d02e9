"""Scales that travel with the weights: actions by their range, measurements by their spread with a floor."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import nn

from robot_fb.types import StreamSpec

FLOORS: dict[str, float] = {
    "m": 5e-3, "m/s": 2e-2, "rad": 2e-2, "rad/s": 1e-1, "quaternion": 2e-2, "N": 0.5, "N·m": 2e-2,
}
"""Unit -> smallest standard deviation to divide by: well above the noise of a good sensor of that kind, so that a
stream that hardly moves in the data (a quaternion of a tool that stays upright) cannot shout at run time."""

DEFAULT_FLOOR = 1e-2
"""For streams without a known unit."""

CLIP = 5.0
"""Measurements beyond this many standard deviations say no more."""


def spread_floor(spec: StreamSpec) -> np.ndarray:
    """The floor of each entry of a flattened stream, from its unit.

    A unit such as "m, quaternion xyzw" or "N, N·m" describes the last axis: a quaternion takes four entries, the
    others share what is left evenly.

    Returns:
        (size,) float32, size being the product of `spec.shape`.
    """
    width = spec.shape[-1] if spec.shape else 1
    units = [part.split()[0] for part in spec.unit.split(",") if part.strip()]
    quaternions = units.count("quaternion")
    share, rest = divmod(width - 4 * quaternions, max(len(units) - quaternions, 1))
    if not units or rest or share < 0 or (share == 0 and quaternions != len(units)):
        row = np.full(width, DEFAULT_FLOOR)
    else:
        sizes = [4 if unit == "quaternion" else share for unit in units]
        row = np.repeat([FLOORS.get(unit, DEFAULT_FLOOR) for unit in units], sizes)
    return np.broadcast_to(row, (*spec.shape[:-1], width)).reshape(-1).astype(np.float32)


class ActionScale(nn.Module):
    """Actions to [-1, 1] by the smallest and largest value in the data.

    A dimension that is constant in the data is shifted only: it comes back as that constant when the network says 0.
    """

    centre: torch.Tensor
    half_range: torch.Tensor

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.register_buffer("centre", torch.zeros(dim))
        self.register_buffer("half_range", torch.ones(dim))

    def fit(self, actions: np.ndarray) -> None:
        """Measures (N, dim) actions."""
        low, high = actions.min(0).astype(np.float32), actions.max(0).astype(np.float32)
        half = (high - low) / 2
        self.centre.copy_(torch.from_numpy((low + high) / 2))
        self.half_range.copy_(torch.from_numpy(np.where(half < 1e-6, 1.0, half).astype(np.float32)))

    def encode(self, actions: torch.Tensor) -> torch.Tensor:
        """(..., dim) in the action's units -> [-1, 1]."""
        return (actions - self.centre) / self.half_range

    def decode(self, scaled: torch.Tensor) -> torch.Tensor:
        """(..., dim) in [-1, 1] -> the action's units."""
        return scaled * self.half_range + self.centre


class StreamScale(nn.Module):
    """Flattened measurements in standard deviations, clipped; none smaller than the floor of its unit.

    Args:
        streams: the measurements (no pictures), in the order in which they are concatenated.
    """

    mean: torch.Tensor
    std: torch.Tensor
    floor: torch.Tensor

    def __init__(self, streams: Mapping[str, StreamSpec]) -> None:
        super().__init__()
        floors = [np.zeros(0, np.float32), *(spread_floor(spec) for spec in streams.values())]
        floor = torch.from_numpy(np.concatenate(floors))
        self.register_buffer("mean", torch.zeros_like(floor))
        self.register_buffer("std", torch.ones_like(floor))
        self.register_buffer("floor", floor, persistent=False)

    def fit(self, values: np.ndarray) -> None:
        """Measures (N, size) values."""
        self.mean.copy_(torch.from_numpy(values.mean(0, dtype=np.float64)))
        self.std.copy_(torch.maximum(torch.from_numpy(values.std(0, dtype=np.float64)).float(), self.floor))

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """(..., size) -> the same in standard deviations."""
        return ((values - self.mean) / self.std).clamp(-CLIP, CLIP)
