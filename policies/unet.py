"""A small 1-D U-Net over a chunk of actions, steered by a condition vector (Janner et al. 2022, Chi et al. 2023)."""

from __future__ import annotations

import math
from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    """Two convolutions over time; the condition scales and shifts in between (FiLM): (B,C,T) -> (B,C',T)."""

    def __init__(self, before: int, after: int, kernel: int) -> None:
        super().__init__()
        pad = kernel // 2
        self.first = nn.Sequential(nn.Conv1d(before, after, kernel, padding=pad), nn.GroupNorm(8, after), nn.SiLU())
        self.second = nn.Sequential(nn.Conv1d(after, after, kernel, padding=pad), nn.GroupNorm(8, after), nn.SiLU())
        self.skip = nn.Conv1d(before, after, 1) if before != after else nn.Identity()

    def forward(self, x: torch.Tensor, film: torch.Tensor) -> torch.Tensor:
        """`film` is (B, 2 C', 1): scale and shift."""
        scale, shift = film.chunk(2, dim=1)
        return self.second(torch.addcmul(shift, self.first(x), 1 + scale)) + self.skip(x)


class ChunkUNet(nn.Module):
    """(B,H,A) noisy actions, (B,) time and (B,cond_dim) -> (B,H,A).

    Args:
        action_dim: A.
        cond_dim: length of the condition.
        channels: at full, half, quarter, ... time resolution.
        kernel: of the convolutions, odd.
        cond_width: length that condition and time are brought to.
    """

    rates: torch.Tensor

    def __init__(
        self, action_dim: int, cond_dim: int, channels: tuple[int, ...], kernel: int = 3, cond_width: int = 128
    ) -> None:
        super().__init__()
        self.register_buffer("rates", torch.exp(torch.linspace(0, -math.log(1000.0), 16)), persistent=False)
        first = nn.Linear(cond_dim + 2 * len(self.rates), cond_width)
        self.cond = nn.Sequential(first, nn.SiLU(), nn.Linear(cond_width, cond_width), nn.SiLU())
        sizes, back = (action_dim, *channels), list(reversed(channels))
        self.down = nn.ModuleList(Block(a, b, kernel) for a, b in zip(sizes, channels, strict=False))
        self.middle = Block(channels[-1], channels[-1], kernel)
        self.up = nn.ModuleList(Block(a + b, b, kernel) for a, b in pairwise(back))
        widths = (*channels, channels[-1], *back[1:])
        self._film_sizes = [2 * width for width in widths]
        self.film = nn.Linear(cond_width, sum(self._film_sizes))
        self.out = nn.Conv1d(channels[0], action_dim, 1)

    def forward(self, actions: torch.Tensor, time: torch.Tensor, cond: torch.Tensor) -> torch.Tensor:
        """`time` is any number that grows with the noise, about 0 to 100."""
        angle = time[:, None] * self.rates
        cond = self.cond(torch.cat([angle.sin(), angle.cos(), cond], dim=1))
        films = iter(self.film(cond).unsqueeze(2).split(self._film_sizes, dim=1))
        x, skips = actions.transpose(1, 2), []
        for block in self.down:
            x = block(F.avg_pool1d(x, 2, ceil_mode=True) if skips else x, next(films))
            skips.append(x)
        x = self.middle(x, next(films))
        for block, skip in zip(self.up, reversed(skips[:-1]), strict=True):
            doubled = x.repeat_interleave(2, dim=2)[:, :, : skip.shape[2]]
            x = block(torch.cat([doubled, skip], dim=1), next(films))
        return self.out(x).transpose(1, 2)
