"""Diffusion policy (Chi et al. 2023): a chunk of actions is denoised from noise; DDPM training, DDIM at run time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from diffusers.schedulers.scheduling_ddim import DDIMScheduler
from diffusers.schedulers.scheduling_ddpm import DDPMScheduler

from policies.chunked import ChunkedConfig, ChunkedPolicy
from policies.unet import ChunkUNet
from robot_fb.config import check_range
from robot_fb.errors import ConfigError
from robot_fb.types import PolicySpec


@dataclass(frozen=True)
class DiffusionConfig(ChunkedConfig):
    """Diffusion policy.

    Attributes:
        channels: of the U-Net, from full to coarsest time resolution.
        kernel: of its convolutions.
        train_steps: noise levels in training.
        run_steps: DDIM steps at run time, 4 to 8; may be changed after training.
        prediction: what the network says. With v (Salimans & Ho 2022) few steps are enough.
        noise_samples: noise levels drawn per observation, so that each encoded picture teaches several times.
    """

    channels: tuple[int, ...] = (48, 96)
    kernel: int = 5
    train_steps: int = 100
    run_steps: int = 4
    prediction: Literal["epsilon", "v_prediction", "sample"] = "v_prediction"
    noise_samples: int = 4

    def __post_init__(self) -> None:
        """Refuses values that cannot work."""
        super().__post_init__()
        check_range(self, ("run_steps", "train_steps", "noise_samples"), 1)
        if self.run_steps > self.train_steps:
            expected = f"at most train_steps, {self.train_steps}"
            raise ConfigError("config key 'run_steps'", expected=expected, found=self.run_steps)


class DiffusionPolicy(ChunkedPolicy):
    """See the module."""

    config_class: ClassVar[type[ChunkedConfig]] = DiffusionConfig

    def __init__(self, spec: PolicySpec, config: DiffusionConfig | None = None) -> None:
        super().__init__(spec, config)
        c: DiffusionConfig = self.config
        self.net = ChunkUNet(spec.action.dim, self.encoder.cond_dim, c.channels, c.kernel)
        schedule: dict[str, Any] = {
            "num_train_timesteps": c.train_steps, "beta_schedule": "squaredcos_cap_v2",
            "prediction_type": c.prediction, "clip_sample": True,
        }
        self.noising = DDPMScheduler(**schedule)
        self.denoising = DDIMScheduler(**schedule, timestep_spacing="trailing")
        self.denoising.set_timesteps(c.run_steps)

    def loss(self, batch: Mapping[str, Any], generator: torch.Generator | None = None) -> torch.Tensor:
        """Mean square error of what `config.prediction` names, over random noise levels."""
        cond, actions = self.encoder.condition(batch["obs"], generator), self.actions.encode(batch["actions"])
        guide = self.guide_loss(cond, actions)
        cond, actions = (each.repeat_interleave(self.config.noise_samples, 0) for each in (cond, actions))
        noise = torch.randn(actions.shape, generator=generator)
        level = torch.randint(0, self.config.train_steps, (len(actions),), generator=generator)
        return self.denoising_loss(actions, cond, noise, level) + guide

    def denoising_loss(
        self, actions: torch.Tensor, cond: torch.Tensor, noise: torch.Tensor, level: torch.Tensor
    ) -> torch.Tensor:
        """The loss for given noise (B,H,A) and noise levels (B,) int64; actions are in [-1, 1]."""
        noisy = self.noising.add_noise(actions, noise, level)  # type: ignore[arg-type]
        if self.config.prediction == "v_prediction":
            target = self.noising.get_velocity(actions, noise, level)  # type: ignore[arg-type]
        else:
            target = noise if self.config.prediction == "epsilon" else actions
        return torch.nn.functional.mse_loss(self.net(noisy, level, cond), target)

    def sample(self, cond: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """DDIM without added noise."""
        shape = (len(cond), self.spec.horizon, self.spec.action.dim)
        x = torch.randn(shape, generator=generator)
        for level in self.denoising.timesteps:
            said = self.net(x, level.expand(len(x)), cond)
            x = self.denoising.step(said, int(level), x, return_dict=False)[0]
        return x
