"""A small 1-D U-Net over a chunk of actions, steered by a condition vector (Janner et al. 2022, Chi et al. 2023)."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    """Two convolutions over time; the condition scales and shifts in between (FiLM): (B,C,T) -> (B,C',T)."""

    def __init__(self, before: int, after: int, cond_dim: int, kernel: int) -> None:
        super().__init__()
        pad = kernel // 2
        self.first = nn.Sequential(nn.Conv1d(before, after, kernel, padding=pad), nn.GroupNorm(8, after), nn.SiLU())
        self.film = nn.Linear(cond_dim, 2 * after)
        self.second = nn.Sequential(nn.Conv1d(after, after, kernel, padding=pad), nn.GroupNorm(8, after), nn.SiLU())
        self.skip = nn.Conv1d(before, after, 1) if before != after else nn.Identity()

    def forward(self, x: torch.Tensor, cond: torch.Tensor) -> torch.Tensor:
        """See the class."""
        scale, shift = self.film(cond).unsqueeze(-1).chunk(2, dim=1)
        return self.second(self.first(x) * (1 + scale) + shift) + self.skip(x)


class ChunkUNet(nn.Module):
    """(B,H,A) noisy actions, (B,) time and (B,cond_dim) -> (B,H,A).

    Args:
        action_dim: A.
        cond_dim: length of the condition.
        channels: at full, half, quarter, ... time resolution.
        kernel: of the convolutions, odd.
        cond_width: length that condition and time are brought to.
    """

    def __init__(
        self, action_dim: int, cond_dim: int, channels: tuple[int, ...], kernel: int = 3, cond_width: int = 128
    ) -> None:
        super().__init__()
        self.frequencies = 16
        first = nn.Linear(cond_dim + 2 * self.frequencies, cond_width)
        self.cond = nn.Sequential(first, nn.SiLU(), nn.Linear(cond_width, cond_width), nn.SiLU())
        sizes = (action_dim, *channels)
        self.down = nn.ModuleList(Block(a, b, cond_width, kernel) for a, b in zip(sizes, channels, strict=False))
        self.middle = Block(channels[-1], channels[-1], cond_width, kernel)
        back = list(reversed(channels))
        self.up = nn.ModuleList(
            Block(b + skip, skip, cond_width, kernel) for b, skip in zip(back[:1] + back[1:-1], back[1:], strict=True)
        )
        self.out = nn.Conv1d(channels[0], action_dim, 1)

    def forward(self, actions: torch.Tensor, time: torch.Tensor, cond: torch.Tensor) -> torch.Tensor:
        """`time` is any number that grows with the noise, about 0 to 100."""
        cond = self.cond(torch.cat([self._waves(time), cond], dim=1))
        x, skips = actions.transpose(1, 2), []
        for i, block in enumerate(self.down):
            x = block(x if i == 0 else F.avg_pool1d(x, 2, ceil_mode=True), cond)
            skips.append(x)
        x = self.middle(x, cond)
        for block, skip in zip(self.up, reversed(skips[:-1]), strict=True):
            x = F.interpolate(x, size=skip.shape[-1], mode="nearest")
            x = block(torch.cat([x, skip], dim=1), cond)
        return self.out(x).transpose(1, 2)

    def _waves(self, time: torch.Tensor) -> torch.Tensor:
        """Sines and cosines of `time` at wavelengths from about 6 to 6,000."""
        rates = torch.exp(torch.linspace(0, -math.log(1000.0), self.frequencies))
        angle = time.float()[:, None] * rates
        return torch.cat([angle.sin(), angle.cos()], dim=1)
