"""A small 1-D U-Net over a chunk of actions, steered by a condition vector (Janner et al. 2022, Chi et al. 2023).

A chunk is so short that torch's convolutions spend most of their time on bookkeeping: those here are matrix products
on (B,T,C), which halves the time of a plan on a CPU.
"""

from __future__ import annotations

import math
from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional as F

from robot_fb.errors import ConfigError


class Block(nn.Module):
    """A convolution over time that the condition scales and shifts (FiLM), with a skip: (B,T,C) -> (B,T,C')."""

    def __init__(self, before: int, after: int, kernel: int) -> None:
        super().__init__()
        self.kernel = kernel
        self.taps = nn.Linear(kernel * before, after)
        self.norm = nn.LayerNorm(after, elementwise_affine=False)  # scale and shift come from the condition
        self.skip = nn.Linear(before, after) if before != after else nn.Identity()

    def forward(self, x: torch.Tensor, film: torch.Tensor) -> torch.Tensor:
        """`film` is (B, 1, 2 C'): scale and shift."""
        scale, shift = film.chunk(2, dim=2)
        return F.silu(torch.addcmul(shift, self.norm(self._convolve(x)), scale)) + self.skip(x)

    def _convolve(self, x: torch.Tensor) -> torch.Tensor:
        steps = x.shape[1]
        edge = x.new_zeros(len(x), self.kernel // 2, x.shape[2])
        padded = torch.cat([edge, x, edge], dim=1)
        return self.taps(torch.cat([padded[:, i : i + steps] for i in range(self.kernel)], dim=2))


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
        self, action_dim: int, cond_dim: int, channels: tuple[int, ...], kernel: int = 5, cond_width: int = 128
    ) -> None:
        if not channels or min(channels) < 1 or kernel < 1 or kernel % 2 == 0:
            found = f"channels {channels}, kernel {kernel}"
            raise ConfigError("U-Net", expected="some channels, each at least 1, and an odd kernel", found=found)
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
        with torch.no_grad():  # scales start at 1, shifts at 0
            self.film.bias.copy_(torch.cat([torch.cat([torch.ones(w), torch.zeros(w)]) for w in widths]))
        self.out = nn.Linear(channels[0], action_dim)

    def forward(self, actions: torch.Tensor, time: torch.Tensor, cond: torch.Tensor) -> torch.Tensor:
        """`time` is any number that grows with the noise, about 0 to 100."""
        angle = time[:, None] * self.rates
        cond = self.cond(torch.cat([angle.sin(), angle.cos(), cond], dim=1))
        films = iter(self.film(cond).unsqueeze(1).split(self._film_sizes, dim=2))
        x, skips = actions, []
        for block in self.down:
            x = block(_halve(x) if skips else x, next(films))
            skips.append(x)
        x = self.middle(x, next(films))
        for block, skip in zip(self.up, reversed(skips[:-1]), strict=True):
            doubled = x.repeat_interleave(2, dim=1)[:, : skip.shape[1]]
            x = block(torch.cat([doubled, skip], dim=2), next(films))
        return self.out(x)


def _halve(x: torch.Tensor) -> torch.Tensor:
    """Means of neighbouring times: (B,T,C) -> (B,ceil(T/2),C)."""
    if x.shape[1] % 2:
        x = torch.cat([x, x[:, -1:]], dim=1)
    return (x[:, ::2] + x[:, 1::2]) / 2
