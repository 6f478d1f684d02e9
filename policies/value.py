"""What a summed action is worth: an ensemble of Q functions over what the correction sees."""

from __future__ import annotations

import math

import torch
from torch import nn


class EnsembleLinear(nn.Module):
    """`members` linear layers side by side: (E,B,in) -> (E,B,out), one batched product."""

    def __init__(self, members: int, inputs: int, outputs: int) -> None:
        super().__init__()
        bound = 1 / math.sqrt(inputs)
        self.weight = nn.Parameter(torch.empty(members, inputs, outputs).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.zeros(members, 1, outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """One product for all members."""
        return torch.baddbmm(self.bias, x, self.weight)


class Critic(nn.Module):
    """Q(proprioception, visual feature, z_touch, base plan, summed action), LayerNorm after each hidden layer.

    What follows an action depends on what the base means to do next, so its plan belongs to the state.

    Args:
        proprio_dim, visual_dim, touch_dim, plan_dim, action_dim: lengths of the inputs.
        members: size of the ensemble.
        width: hidden width.
    """

    VISUAL = 32

    def __init__(
        self,
        proprio_dim: int,
        visual_dim: int,
        touch_dim: int,
        plan_dim: int,
        action_dim: int,
        members: int,
        width: int,
    ) -> None:
        super().__init__()
        self.members = members
        self.visual = nn.Sequential(nn.Linear(visual_dim, self.VISUAL), nn.LayerNorm(self.VISUAL), nn.Tanh())
        inputs = proprio_dim + self.VISUAL + touch_dim + plan_dim + action_dim
        self.layers = nn.Sequential(
            EnsembleLinear(members, inputs, width),
            nn.LayerNorm(width),
            nn.ReLU(),
            EnsembleLinear(members, width, width),
            nn.LayerNorm(width),
            nn.ReLU(),
            EnsembleLinear(members, width, 1),
        )

    def forward(
        self,
        proprio: torch.Tensor,
        visual: torch.Tensor,
        z: torch.Tensor,
        plan: torch.Tensor,
        action: torch.Tensor,
    ) -> torch.Tensor:
        """(E,B) values.

        Args:
            proprio: (B,P) normalised.
            visual: (B,V) the base's embedding.
            z: (B,Z) touch behind the gate.
            plan: (B,K,A) the base's, in units of the residual's scale.
            action: (B,A) summed action in units of the residual's scale.
        """
        x = torch.cat([proprio, self.visual(visual), z, plan.flatten(1), action], dim=1)
        return self.layers(x.expand(self.members, *x.shape)).squeeze(-1)

