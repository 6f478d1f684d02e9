"""What all base policies see through: small CNNs for the cameras, scaled numbers for the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from policies.normalise import StreamScale
from robot_fb.types import StreamSpec

Tensors = Mapping[str, torch.Tensor]


@dataclass(frozen=True)
class EncoderConfig:
    """Shape of the observation encoder.

    Attributes:
        channels: of the convolutions; the first two halve the picture.
        keypoints: points that each camera's network looks for.
        camera_dim: length of each camera's feature.
        camera_horizon: newest pictures of the observation history that are looked at. The tool's velocity is a stream
            of its own, so one picture is enough and halves the cost.
        shift: random shift of the pictures in training [pixels], as in DrQ (Kostrikov et al. 2020).
    """

    channels: tuple[int, ...] = (16, 32, 32)
    keypoints: int = 32
    camera_dim: int = 64
    camera_horizon: int = 1
    shift: int = 3


def is_camera(spec: StreamSpec) -> bool:
    """Whether a stream is pictures: (H, W, 3) uint8."""
    return spec.dtype == "uint8" and len(spec.shape) == 3 and spec.shape[-1] == 3


class SpatialSoftmax(nn.Module):
    """Feature maps to the expected position of each (Levine et al. 2016): (B,C,H,W) -> (B,2C) in [-1, 1]."""

    grid: torch.Tensor

    def __init__(self, height: int, width: int) -> None:
        super().__init__()
        y, x = torch.meshgrid(torch.linspace(-1, 1, height), torch.linspace(-1, 1, width), indexing="ij")
        self.register_buffer("grid", torch.stack([x.flatten(), y.flatten()], 1), persistent=False)
        self.log_temperature = nn.Parameter(torch.zeros(()))

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        """See the class."""
        weights = torch.softmax(maps.flatten(2) * torch.exp(-self.log_temperature), dim=2)
        return (weights @ self.grid).flatten(1)


class CameraNet(nn.Module):
    """One camera's pictures (B,H,W,3) uint8 -> (B, camera_dim)."""

    def __init__(self, shape: tuple[int, ...], config: EncoderConfig) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        before = 3
        for i, after in enumerate(config.channels):
            kernel, stride = ((5, 2), (3, 2))[i] if i < 2 else (3, 1)
            layers += [nn.Conv2d(before, after, kernel, stride, kernel // 2), nn.GroupNorm(8, after), nn.ReLU()]
            before = after
        layers.append(nn.Conv2d(before, config.keypoints, 1))
        self.maps = nn.Sequential(*layers).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        height, width = (-(-side // 4) for side in shape[:2])
        self.points = SpatialSoftmax(height, width)
        self.out = nn.Sequential(nn.Linear(2 * config.keypoints, config.camera_dim), nn.LayerNorm(config.camera_dim))

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        """See the class."""
        scaled = pictures.permute(0, 3, 1, 2).float().div_(127.5).sub_(1.0)  # channels last in memory already
        return self.out(self.points(self.maps(scaled)))


class ObsEncoder(nn.Module):
    """Streams of an observation -> one feature vector; works with any mix of cameras and numbers.

    Args:
        streams: what is read, in a fixed order.
        obs_horizon: observations in the history.
        config: shape of the networks.

    Attributes:
        dim: length of one observation's feature.
        cond_dim: length of a history's feature.
    """

    def __init__(self, streams: Mapping[str, StreamSpec], obs_horizon: int, config: EncoderConfig) -> None:
        super().__init__()
        self.config, self.obs_horizon = config, obs_horizon
        self.cameras = {key: f"camera_{i}" for i, key in enumerate(k for k, s in streams.items() if is_camera(s))}
        self.numbers = tuple(key for key in streams if key not in self.cameras)
        self.nets = nn.ModuleDict({slot: CameraNet(streams[key].shape, config) for key, slot in self.cameras.items()})
        self.scale = StreamScale({key: streams[key] for key in self.numbers})
        self.pictures = min(config.camera_horizon, obs_horizon)
        size, seen = len(self.scale.mean), len(self.cameras) * config.camera_dim
        self.dim = seen + size
        self.cond_dim = self.pictures * seen + obs_horizon * size

    def forward(self, obs: Tensors) -> torch.Tensor:
        """One observation: streams (B, ...) -> (B, dim)."""
        features = [self.nets[slot](obs[key]) for key, slot in self.cameras.items()]
        return torch.cat([*features, self.scale(self.flatten(obs, 1))], dim=1)

    def condition(self, obs: Tensors, augment: torch.Generator | None = None) -> torch.Tensor:
        """A history: streams (B, obs_horizon, ...) -> (B, cond_dim). With a generator, pictures are shifted."""
        features = []
        for key, slot in self.cameras.items():
            pictures = obs[key][:, self.obs_horizon - self.pictures :].flatten(0, 1)
            if augment is not None and self.config.shift:
                pictures = shift_pictures(pictures, self.config.shift, augment)
            features.append(self.nets[slot](pictures).unflatten(0, (-1, self.pictures)).flatten(1))
        return torch.cat([*features, self.scale(self.flatten(obs, 2)).flatten(1)], dim=1)

    def flatten(self, obs: Tensors, leading: int) -> torch.Tensor:
        """The numbers among the streams, concatenated: (*leading axes, size) float32."""
        lead = next(iter(obs.values())).shape[:leading]
        flat = [obs[key].reshape(*lead, -1).float() for key in self.numbers]
        return torch.cat(flat, dim=-1) if flat else torch.zeros(*lead, 0)

    def fit_scale(self, streams: Mapping[str, np.ndarray]) -> None:
        """Measures the numbers' spread over (N, ...) streams."""
        if self.numbers:
            flat = [np.asarray(streams[key], np.float32).reshape(len(streams[key]), -1) for key in self.numbers]
            self.scale.fit(np.concatenate(flat, axis=1))


def shift_pictures(pictures: torch.Tensor, pixels: int, generator: torch.Generator) -> torch.Tensor:
    """Shifts each picture by up to `pixels` in x and y, edges repeated: (B,H,W,3) uint8 -> the same."""
    count, height, width, _ = pictures.shape
    moves = torch.randint(0, 2 * pixels + 1, (count, 2), generator=generator).tolist()
    planes = F.pad(pictures.permute(0, 3, 1, 2).float(), (pixels,) * 4, mode="replicate").byte()
    padded = planes.permute(0, 2, 3, 1)
    shifted = torch.empty_like(pictures)
    for i, (down, right) in enumerate(moves):
        shifted[i] = padded[i, down : down + height, right : right + width]
    return shifted
