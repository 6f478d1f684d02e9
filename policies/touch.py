"""Touch for networks: force and taxel streams as one normalised vector, its encoder, and the contact gate."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import nn

from policies.lipschitz import LipschitzLinear
from robot_fb.types import StreamSpec, is_touch

POOL = 2
"""Taxels are summed in squares of this side: touch is told by where and how hard, not by single taxels."""


def touch_keys(streams: Mapping[str, StreamSpec]) -> tuple[str, ...]:
    """The force and touch streams of a task, in a fixed order."""
    return tuple(sorted(key for key in streams if is_touch(key)))


class TouchEncoder(nn.Module):
    """Touch streams -> z, with a decoder that rebuilds its input so that z keeps what touch says.

    Each channel (the 6 of a wrench, the 3 of a taxel pad) is divided by its own scale, measured once from data.

    Args:
        streams: all streams of the task; the touch streams among them are read.
        dim: length of z.
        width: hidden width.
        bounded: z moves no faster than its input; see `policies.lipschitz`.
    """

    scale: torch.Tensor
    channel: torch.Tensor
    is_force: torch.Tensor

    def __init__(
        self, streams: Mapping[str, StreamSpec], dim: int = 32, width: int = 128, bounded: bool = False
    ) -> None:
        super().__init__()
        self.keys = touch_keys(streams)
        channel, is_force, count = [], [], 0
        for key in self.keys:
            shape = pool(key, np.zeros(streams[key].shape)).shape
            if key.startswith("wrench/"):  # (T,6)
                index = np.broadcast_to(np.arange(6), shape)
                force = index < 3
            else:  # (3,R,C)
                index = np.broadcast_to(np.arange(shape[0])[:, None, None], shape)
                force = np.zeros(shape, bool)
            channel.append(count + index.ravel())
            is_force.append(force.ravel())
            count += int(index.max()) + 1
        size = sum(len(c) for c in channel)
        self.register_buffer("channel", torch.from_numpy(np.concatenate([np.zeros(0, int), *channel]).astype(np.int64)))
        self.register_buffer("is_force", torch.from_numpy(np.concatenate([np.zeros(0, bool), *is_force])))
        self.register_buffer("scale", torch.ones(max(count, 1)))
        self.size, self.dim = size, dim
        self.encode = (
            nn.Sequential(LipschitzLinear(size, width), nn.ReLU(), LipschitzLinear(width, dim), nn.Tanh())
            if bounded
            else nn.Sequential(
                nn.Linear(size, width), nn.LayerNorm(width), nn.ReLU(), nn.Linear(width, dim), nn.LayerNorm(dim),
                nn.Tanh(),
            )
        )
        self.decode = nn.Sequential(nn.Linear(dim, width), nn.ReLU(), nn.Linear(width, size))

    def flatten(self, obs: Mapping[str, np.ndarray]) -> np.ndarray:
        """(B, size) float32 [N, N·m], unscaled, from streams with a leading batch axis."""
        lanes = len(next(iter(obs.values())))
        flat = [pool(key, np.asarray(obs[key], np.float32)).reshape(lanes, -1) for key in self.keys]
        return np.concatenate([np.zeros((lanes, 0), np.float32), *flat], axis=1)

    def fit_scale(self, flat: np.ndarray) -> None:
        """Sets every channel's scale to its root mean square over (N, size) samples."""
        channel = self.channel.numpy()
        square = (flat.astype(np.float64) ** 2).mean(0)
        for c in range(len(self.scale)):
            self.scale[c] = max(float(np.sqrt(square[channel == c].mean())), 1e-3)

    def forward(self, flat: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """z (B,dim) and the scaled, softly clipped input (B,size) that `decode` should give back."""
        scaled = flat / self.scale[self.channel]
        scaled = 5.0 * torch.tanh(scaled / 5.0)
        return self.encode(scaled), scaled

    def augment(self, flat: torch.Tensor, newtons: float, generator: torch.Generator | None = None) -> torch.Tensor:
        """Adds one random offset of up to `newtons` to each force axis of each sample, the same over its window."""
        offset = torch.rand(len(flat), 6, generator=generator) * 2 - 1
        return torch.where(self.is_force, flat + newtons * offset[:, self.channel.clamp(max=5)], flat)


def pool(key: str, stream: np.ndarray) -> np.ndarray:
    """Sums the taxels (..., 3, R, C) of a pad in squares of `POOL`; other streams, or an odd grid, stay."""
    if not key.startswith("tactile/") or stream.shape[-1] % POOL or stream.shape[-2] % POOL:
        return stream
    rows, columns = stream.shape[-2] // POOL, stream.shape[-1] // POOL
    return stream.reshape(*stream.shape[:-2], rows, POOL, columns, POOL).sum((-3, -1))


def alive(obs: Mapping[str, np.ndarray]) -> np.ndarray:
    """(B,) bool: whether the touch sensors say anything; a real one's noise never repeats itself exactly.

    A wrench whose whole window is the same number again and again, or pads of zeros alone, are dead. Without touch
    streams nothing can be dead.
    """
    lanes = len(next(iter(obs.values())))
    dead = np.zeros(lanes, bool)
    for key in (key for key in obs if is_touch(key)):
        value = np.asarray(obs[key]).reshape(lanes, -1)
        if key.startswith("wrench/"):
            value = np.ptp(np.asarray(obs[key]), axis=1)
        dead |= ~value.any(axis=1)
    return ~dead


def contact_gate(obs: Mapping[str, np.ndarray], threshold_n: float) -> np.ndarray:
    """(B,1) float32 in 0 to 1: how surely the tool touches something, from the newest wrench samples.

    Without a wrench stream the gate is open.
    """
    keys = [key for key in obs if key.startswith("wrench/")]
    lanes = len(next(iter(obs.values())))
    if not keys:
        return np.ones((lanes, 1), np.float32)
    force = np.max([np.linalg.norm(obs[key][:, -5:, :3], axis=-1).max(-1) for key in keys], axis=0)
    return (1.0 / (1.0 + np.exp(-(force - threshold_n) / (0.15 * threshold_n)))).astype(np.float32)[:, None]
