"""Rectified flow (Liu et al. 2022, Lipman et al. 2022): straight paths from noise to actions, a few Euler steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from policies.chunked import ChunkedConfig, ChunkedPolicy
from policies.unet import ChunkUNet
from robot_fb.config import check_range
from robot_fb.types import PolicySpec

TIME_SCALE = 100.0
"""Brings the flow's time, 0 to 1, to the range that the U-Net's time features are made for."""


@dataclass(frozen=True)
class FlowConfig(ChunkedConfig):
    """Flow policy.

    Attributes:
        channels: of the U-Net, from full to coarsest time resolution.
        kernel: of its convolutions.
        run_steps: Euler steps at run time, 1 to 4; may be changed after training.
        noise_samples: path points drawn per observation, so that each encoded picture teaches several times.
    """

    channels: tuple[int, ...] = (48, 96)
    kernel: int = 5
    run_steps: int = 4
    noise_samples: int = 4

    def __post_init__(self) -> None:
        """Refuses values that cannot work."""
        super().__post_init__()
        check_range(self, ("run_steps", "noise_samples"), 1)


class FlowPolicy(ChunkedPolicy):
    """See the module."""

    config_class: ClassVar[type[ChunkedConfig]] = FlowConfig

    def __init__(self, spec: PolicySpec, config: FlowConfig | None = None) -> None:
        super().__init__(spec, config)
        c: FlowConfig = self.config
        self.net = ChunkUNet(spec.action.dim, self.encoder.cond_dim, c.channels, c.kernel)

    def loss(self, batch: Mapping[str, Any], generator: torch.Generator | None = None) -> torch.Tensor:
        """Mean square error of the velocity, over random points of random straight paths."""
        cond, actions = self.encoder.condition(batch["obs"], generator), self.actions.encode(batch["actions"])
        guide = self.guide_loss(cond, actions)
        cond, actions = (each.repeat_interleave(self.config.noise_samples, 0) for each in (cond, actions))
        noise = torch.randn(actions.shape, generator=generator)
        return self.velocity_loss(actions, cond, noise, torch.rand(len(actions), generator=generator)) + guide

    def velocity_loss(
        self, actions: torch.Tensor, cond: torch.Tensor, noise: torch.Tensor, time: torch.Tensor
    ) -> torch.Tensor:
        """The loss for given noise (B,H,A) and times (B,) in [0, 1]: 0 is noise, 1 the action in [-1, 1]."""
        t = time[:, None, None]
        said = self.net((1 - t) * noise + t * actions, time * TIME_SCALE, cond)
        return torch.nn.functional.mse_loss(said, actions - noise)

    def sample(self, cond: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """Euler's method from noise."""
        steps = self.config.run_steps
        x = torch.randn((len(cond), self.spec.horizon, self.spec.action.dim), generator=generator)
        for i in range(steps):
            time = torch.full((len(x),), TIME_SCALE * i / steps)
            x = x + self.net(x, time, cond) / steps
        return x
