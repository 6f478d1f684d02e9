"""Training state as flat tensors, so that it fits in safetensors: optimizers, averaged weights, random generators."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

import torch
from torch import nn

from robot_fb.errors import CheckpointError

M = TypeVar("M", bound=nn.Module)
Tensors = Mapping[str, torch.Tensor]


def pack(prefix: str, tensors: Tensors) -> dict[str, torch.Tensor]:
    """Names with a prefix: `a` -> `prefix/a`."""
    return {f"{prefix}/{name}": tensor for name, tensor in tensors.items()}


def unpack(prefix: str, tensors: Tensors) -> dict[str, torch.Tensor]:
    """Those tensors whose names have the prefix, without it."""
    start = f"{prefix}/"
    return {name.removeprefix(start): tensor for name, tensor in tensors.items() if name.startswith(start)}


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    """Moments and counters of an optimizer: `INDEX/NAME`, parameters in their order."""
    state = optimizer.state_dict()["state"]
    return {f"{i}/{name}": torch.as_tensor(value) for i, slots in state.items() for name, value in slots.items()}


def restore_optimizer(optimizer: torch.optim.Optimizer, tensors: Tensors, where: Path) -> None:
    """Puts back what `optimizer_tensors` gave; learning rates stay as they are.

    Raises:
        CheckpointError: the tensors belong to other parameters.
    """
    state: dict[int, dict[str, torch.Tensor]] = {}
    for name, value in tensors.items():
        index, _, slot = name.partition("/")
        state.setdefault(int(index), {})[slot] = value
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    for index, slots in state.items():
        for slot, value in slots.items():
            if index >= len(parameters) or (value.ndim and value.shape != parameters[index].shape):
                raise CheckpointError(f"optimizer state in {where} is of other parameters", found=f"{index}/{slot}")
            if value.ndim:  # fused optimizers walk memory, so moments must lie as their parameter does
                slots[slot] = torch.empty_like(parameters[index]).copy_(value)
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


class Ema:
    """Exponential moving average of a module's weights, with a short memory at first.

    The decay of update t is min(decay, (1 + t) / (10 + t)), so that the random start is soon forgotten.

    Args:
        module: what is averaged.
        decay: of late updates.
    """

    def __init__(self, module: nn.Module, decay: float) -> None:
        self.average = copy.deepcopy(module).eval().requires_grad_(False)
        self._decay = decay

    @torch.no_grad()
    def update(self, module: nn.Module, step: int) -> None:
        """Moves the average towards the module after update `step` (from 0)."""
        weight = 1 - min(self._decay, (1 + step) / (10 + step))
        for slow, fast in zip(self.average.parameters(), module.parameters(), strict=True):
            slow.lerp_(fast, weight)
