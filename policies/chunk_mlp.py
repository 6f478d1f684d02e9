"""Plain regression of a chunk of actions: the simplest base, and the best one where the data have one mode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import nn

from policies.chunked import ChunkedConfig, ChunkedPolicy
from robot_fb.config import check_range
from robot_fb.errors import ConfigError
from robot_fb.types import PolicySpec


@dataclass(frozen=True)
class ChunkMlpConfig(ChunkedConfig):
    """Regression policy.

    Attributes:
        width: of the hidden layers.
        layers: hidden layers.
        dropout: share of hidden units dropped in training.
    """

    width: int = 256
    layers: int = 2
    dropout: float = 0.0

    def __post_init__(self) -> None:
        """Refuses values that cannot work."""
        super().__post_init__()
        check_range(self, ("width", "layers"), 1)
        check_range(self, ("dropout",))
        if not self.dropout < 1:
            raise ConfigError("config key 'dropout'", expected="below 1", found=self.dropout)


class ChunkMlpPolicy(ChunkedPolicy):
    """See the module."""

    config_class: ClassVar[type[ChunkedConfig]] = ChunkMlpConfig

    def __init__(self, spec: PolicySpec, config: ChunkMlpConfig | None = None) -> None:
        super().__init__(spec, config)
        c: ChunkMlpConfig = self.config
        parts: list[nn.Module] = []
        before = self.encoder.cond_dim
        for _ in range(c.layers):
            parts += [nn.Linear(before, c.width), nn.LayerNorm(c.width), nn.SiLU(), nn.Dropout(c.dropout)]
            before = c.width
        self.net = nn.Sequential(*parts, nn.Linear(before, spec.horizon * spec.action.dim))

    def loss(self, batch: Mapping[str, Any], generator: torch.Generator | None = None) -> torch.Tensor:
        """Mean square error of the chunk in [-1, 1]."""
        cond = self.encoder.condition(batch["obs"], generator)
        return nn.functional.mse_loss(self._chunk(cond), self.actions.encode(batch["actions"]))

    def sample(self, cond: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """The same plan every time."""
        return self._chunk(cond)

    def _chunk(self, cond: torch.Tensor) -> torch.Tensor:
        return self.net(cond).unflatten(1, (self.spec.horizon, self.spec.action.dim))
