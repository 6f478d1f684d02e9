"""Policies that plan in chunks: history, re-planning and seamless hand-over; subclasses add a loss and a sampler."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from policies.encoder import EncoderConfig, ObsEncoder
from policies.normalise import ActionScale
from robot_fb.config import check_range
from robot_fb.errors import ConfigError, ObservationError
from robot_fb.types import ActionChunk, Obs, PolicySpec


@dataclass(frozen=True)
class ChunkedConfig:
    """What all chunked policies share.

    Attributes:
        encoder: how observations are seen.
        blend_steps: actions over which a new plan fades in over what is left of the old one.
        guide: weight of a plain guess of the chunk from the condition alone, beside the policy's own loss. It tells
            the encoder directly what matters in the pictures; a denoising loss alone tells it late, through noise.
    """

    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    blend_steps: int = 3
    guide: float = 1.0

    def __post_init__(self) -> None:
        """Refuses values that cannot work."""
        check_range(self, ("blend_steps", "guide"))


class ChunkedPolicy(nn.Module, ABC):
    """Plans `spec.horizon` actions, carries out `spec.execute` of them, plans again.

    Args:
        spec: streams to read, action, chunk lengths; `embed_dim` is filled in.
        config: an instance of `config_class`.

    Raises:
        ConfigError: chunk lengths that do not fit each other.
    """

    config_class: ClassVar[type[ChunkedConfig]] = ChunkedConfig

    def __init__(self, spec: PolicySpec, config: ChunkedConfig | None = None) -> None:
        super().__init__()
        if not 1 <= spec.execute <= spec.horizon or spec.obs_horizon < 1:
            found = f"execute {spec.execute}, horizon {spec.horizon}, obs_horizon {spec.obs_horizon}"
            raise ConfigError("chunk lengths do not fit", expected="1 <= execute <= horizon", found=found)
        self.config: Any = config or self.config_class()
        self.encoder = ObsEncoder(spec.obs, spec.obs_horizon, self.config.encoder)
        self.actions = ActionScale(spec.action.dim)
        size = spec.horizon * spec.action.dim
        self.guide = nn.Sequential(nn.Linear(self.encoder.cond_dim, 64), nn.ReLU(), nn.Linear(64, size))
        self.spec = dataclasses.replace(spec, embed_dim=self.encoder.dim)
        self._low, self._high = np.array(spec.action.low, np.float32), np.array(spec.action.high, np.float32)
        self.reset()

    @abstractmethod
    def loss(self, batch: Mapping[str, Any], generator: torch.Generator | None = None) -> torch.Tensor:
        """Scalar training loss.

        Args:
            batch: "obs": streams (B, obs_horizon, ...); "actions": (B, horizon, action_dim) in the action's units.
            generator: draws noise and picture shifts; without one, pictures stay as they are.
        """

    @abstractmethod
    def sample(self, cond: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """Plans (B, horizon, action_dim) in [-1, 1] for conditions (B, cond_dim)."""

    def guide_loss(self, cond: torch.Tensor, actions: torch.Tensor) -> torch.Tensor:
        """How far the guide is off: cond (B, cond_dim), actions (B, horizon, action_dim) in [-1, 1].

        Each action dimension counts by its spread in the batch, so that small motions weigh as much as large ones.
        """
        spread = actions.flatten(0, 1).std(0).clamp(min=0.05)
        said = self.guide(cond).view_as(actions)
        return self.config.guide * nn.functional.mse_loss(said / spread, actions / spread)

    def fit_scale(self, streams: Mapping[str, np.ndarray], actions: np.ndarray) -> None:
        """Sets every scale from training data: streams (N, ...) and actions (N, action_dim)."""
        self.encoder.fit_scale(streams)
        self.actions.fit(actions)

    def reset(self, seed: int | None = None) -> None:
        """Forgets the past; with a seed the following plans can be reproduced exactly."""
        self.reset_lanes(1, seed)

    def act(self, obs: Obs) -> ActionChunk:
        """The plan in force; see `interfaces.Policy.act`."""
        plan = self.act_lanes({key: np.asarray(obs[key])[None] for key in self._present(obs)}, np.zeros(1, bool))
        return ActionChunk(plan[0], self.spec.dt)

    def embed(self, obs: Obs) -> np.ndarray:
        """(embed_dim,) float32: the encoder's feature of one observation."""
        return self.embed_lanes({key: np.asarray(obs[key])[None] for key in self._present(obs)})[0]

    def draw_plans(self, count: int) -> np.ndarray:
        """(count, horizon, action_dim) plans that the first lane might have made when it made its last one.

        Drawn from a generator of their own: what the policy does next does not depend on whether somebody asked.
        """
        with torch.inference_mode():
            plans = self.eval().sample(self._cond.expand(count, -1), self._spare)
            return np.clip(self.actions.decode(plans.clamp(-1, 1)).numpy(), self._low, self._high)

    def reset_lanes(self, lanes: int, seed: int | None = None) -> None:
        """Forgets the past of all lanes."""
        self._spare = torch.Generator()
        self._spare.manual_seed(seed or 0)
        self._cond = torch.zeros(1, self.encoder.cond_dim)
        self._generator = torch.Generator()
        self._generator.manual_seed(seed) if seed is not None else self._generator.seed()
        self._history: dict[str, np.ndarray] = {}
        self._plan = np.zeros((lanes, self.spec.horizon, self.spec.action.dim), np.float32)
        self._used = np.zeros(lanes, int)
        self._begun = np.zeros(lanes, bool)

    def act_lanes(self, obs: Obs, fresh: np.ndarray) -> np.ndarray:
        """(lanes, horizon, action_dim) float32; see `interfaces.LanePolicy.act_lanes`.

        Raises:
            ObservationError: a stream is missing, has another shape, or holds a NaN.
        """
        lanes, horizon = self._plan.shape[:2]
        self._check(obs, lanes)
        fresh = np.asarray(fresh, bool) | ~self._begun
        self._remember(obs, fresh)
        due = np.flatnonzero(fresh | (self._used >= self.spec.execute))
        if len(due):
            self._replan(due, fresh[due])
        ahead = np.minimum(self._used[:, None] + np.arange(horizon), horizon - 1)
        self._used += 1
        self._begun[:] = True
        return np.take_along_axis(self._plan, ahead[:, :, None], axis=1)

    def embed_lanes(self, obs: Obs) -> np.ndarray:
        """(lanes, embed_dim) float32."""
        self._check(obs, len(np.asarray(obs[next(iter(self._present(obs)))])))
        with torch.inference_mode():
            return self.eval().encoder({key: _tensor(obs[key]) for key in self.spec.obs}).numpy()

    def _replan(self, due: np.ndarray, fresh: np.ndarray) -> None:
        """New plans for the lanes `due`, faded in over the old ones except where an episode is `fresh`."""
        with torch.inference_mode():
            cond = self.eval().encoder.condition({key: _tensor(past[due]) for key, past in self._history.items()})
            if due[0] == 0:
                self._cond = cond[:1]
            plan = self.actions.decode(self.sample(cond, self._generator).clamp(-1, 1)).numpy()
        plan = np.clip(plan, self._low, self._high)
        horizon, count = self.spec.horizon, self.config.blend_steps
        for row, lane in enumerate(due):
            tail = self._plan[lane, self._used[lane] :][: min(count, horizon)]
            if not fresh[row] and len(tail):
                weight = (np.arange(1, len(tail) + 1) / (count + 1))[:, None].astype(np.float32)
                plan[row, : len(tail)] = (1 - weight) * tail + weight * plan[row, : len(tail)]
        self._plan[due] = plan
        self._used[due] = 0

    def _remember(self, obs: Obs, fresh: np.ndarray) -> None:
        """Moves the newest observation into the history; the history of a fresh lane is that observation repeated."""
        for key in self.spec.obs:
            new = np.asarray(obs[key])
            if key not in self._history:
                self._history[key] = np.repeat(new[:, None], self.spec.obs_horizon, axis=1)
            past = self._history[key]
            past[:, :-1] = past[:, 1:]
            past[:, -1] = new
            past[fresh] = new[fresh][:, None]

    def _present(self, obs: Obs) -> list[str]:
        missing = [key for key in self.spec.obs if key not in obs]
        if missing:
            expected = ", ".join(self.spec.obs)
            raise ObservationError(
                f"observation lacks {', '.join(missing)}", expected=expected, found=", ".join(obs) or "nothing",
                do="use the task and the cameras that the policy was trained with",
            )
        return list(self.spec.obs)

    def _check(self, obs: Obs, lanes: int) -> None:
        for key in self._present(obs):
            value, shape = np.asarray(obs[key]), (lanes, *self.spec.obs[key].shape)
            if value.shape != shape:
                raise ObservationError(f"observation {key!r} has another shape", expected=shape, found=value.shape)
            if value.dtype.kind == "f" and not np.isfinite(value).all():
                raise ObservationError(f"observation {key!r} holds a NaN or an infinity", do="check that sensor")


def _tensor(value: np.ndarray) -> torch.Tensor:
    """A tensor that owns writable memory."""
    return torch.from_numpy(np.array(value))
