"""Layers whose output cannot move faster than their input, for corrections with a certified bound."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F


class LipschitzLinear(nn.Linear):
    """A linear layer whose matrix is divided by its largest singular value wherever that passes 1.

    `follow` brings the estimate of that value up to date by power iteration, after each gradient step; `norm` measures
    exactly what the matrix in force still stretches.
    """

    probe: torch.Tensor

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs)
        self.register_buffer("probe", F.normalize(torch.randn(outputs), dim=0))
        self.follow(20)

    @torch.no_grad()
    def follow(self, times: int = 1) -> None:
        """Moves the probe towards the direction that is stretched most."""
        for _ in range(times):
            moved = self.weight @ (self.weight.T @ self.probe)
            length = moved.norm()
            if length > 1e-12:  # a matrix of zeros stretches nothing, and must not take the probe along
                self.probe.copy_(moved / length)

    def matrix(self) -> torch.Tensor:
        """(outputs, inputs) the matrix in force."""
        return self.weight / (self.probe @ self.weight).norm().clamp(min=1.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(..., inputs) -> (..., outputs)."""
        return F.linear(x, self.matrix(), self.bias)

    @torch.no_grad()
    def norm(self) -> float:
        """Largest singular value of the matrix in force."""
        return float(torch.linalg.matrix_norm(self.matrix().double(), 2))


def product_of_norms(layers: nn.Sequential) -> float:
    """Lipschitz constant (2-norm) of linear layers with activations of slope at most 1 between them.

    Raises:
        ValueError: another kind of layer, of which nothing is known.
    """
    product = 1.0
    for layer in layers:
        if isinstance(layer, LipschitzLinear):
            product *= layer.norm()
        elif not isinstance(layer, nn.ReLU | nn.Tanh):
            raise ValueError(f"no bound is known for {type(layer).__name__}")
    return product
