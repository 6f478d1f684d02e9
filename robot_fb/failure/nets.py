"""Small networks for detectors, and their weights as plain arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise

import numpy as np
import torch
from torch import nn

from robot_fb.errors import CheckpointError


class Scale(nn.Module):
    """Standardises features and clips them at `LIMIT` deviations, so that one odd sensor cannot blind a net."""

    LIMIT = 10.0
    mean: torch.Tensor
    std: torch.Tensor

    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("std", torch.ones(size))

    def fit(self, rows: torch.Tensor) -> None:
        """Sets mean and deviation from (N, size) rows; features that hardly vary are not blown up."""
        std = rows.std(0, correction=0)
        self.mean[:], self.std[:] = rows.mean(0), std.clamp(min=max(0.01 * float(std.mean()), 1e-6))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """(..., size), standardised."""
        return ((rows - self.mean) / self.std).clamp(-self.LIMIT, self.LIMIT)


def mlp(inputs: int, outputs: int, width: int = 128, layers: int = 2) -> nn.Sequential:
    """A plain network with SiLU between its layers."""
    sizes = [inputs, *[width] * layers]
    hidden = [part for a, b in pairwise(sizes) for part in (nn.Linear(a, b), nn.SiLU())]
    return nn.Sequential(*hidden, nn.Linear(width, outputs))


def train(
    net: nn.Module, rows: torch.Tensor, loss: Callable[[torch.Tensor, torch.Generator], torch.Tensor], steps: int,
    seed: int, batch: int = 256, lr: float = 1e-3,
) -> None:
    """Adam on random batches of rows, the step size falling to nothing.

    Args:
        net: its parameters that need a gradient are trained.
        rows: (N, ...).
        loss: of a batch, with a generator for its draws.
        steps: gradient steps.
        seed: of batches and draws.
        batch: rows in each, fewer where there are fewer.
        lr: the first step size.
    """
    generator = torch.Generator().manual_seed(seed)
    optimiser = torch.optim.AdamW([p for p in net.parameters() if p.requires_grad], lr, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    net.train()
    for _ in range(steps):
        chosen = torch.randint(len(rows), (min(batch, len(rows)),), generator=generator)
        optimiser.zero_grad(set_to_none=True)
        loss(rows[chosen], generator).backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimiser.step()
        schedule.step()
    net.eval()


def arrays(net: nn.Module) -> dict[str, np.ndarray]:
    """Weights and buffers by name."""
    return {name: tensor.detach().numpy().copy() for name, tensor in net.state_dict().items()}


def load_arrays(net: nn.Module, state: Mapping[str, np.ndarray]) -> None:
    """Puts weights and buffers back.

    Raises:
        CheckpointError: they are not those of this network.
    """
    try:
        net.load_state_dict({name: torch.from_numpy(np.array(value)) for name, value in state.items()})
    except RuntimeError as error:
        found = str(error).splitlines()[-1].strip()
        raise CheckpointError("a detector's weights do not fit it", found=found) from error
    net.eval()
