"""A frozen base policy plus a small correction that reads touch: `a = a_base + s * range * a_residual`.

The correction sees proprioception, touch behind a contact gate, the base's action and the base's plan, and nothing of
the base's inside, so that any base works (OmniTacTune; ResFiT and Policy Decorator for the details). The base acts
alone where a touch sensor is dead and, with `trust: lower_bound`, wherever the learned value cannot promise a gain.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import nn

from policies.lipschitz import LipschitzLinear, product_of_norms
from policies.touch import TouchEncoder, alive, contact_gate
from policies.value import Critic
from robot_fb.config import check_range
from robot_fb.errors import ConfigError
from robot_fb.interfaces import LanePolicy
from robot_fb.types import ActionChunk, Obs, PolicySpec, StreamSpec, is_touch


@dataclass(frozen=True)
class ResidualPolicyConfig:
    """Shape of the correction.

    Attributes:
        width: hidden width of the actor.
        touch_dim: length of the touch feature.
        plan_steps: actions of the base's plan that the actor sees.
        gate_n: contact force at which touch is let through [N]; 0 leaves the gate open.
        scale: share of each action's half range that the correction may add, fully grown.
        correct: which part of the action: the arm, the grip, or all of it.
        lipschitz: bound on how fast the correction moves with touch, in its units for each scaled unit of touch; 0 for
            plain layers without a bound.
        dead_off: the base acts alone while a touch sensor is dead. Off for a correction that learned without touch.
        trust: "always", or "lower_bound": the base acts alone where the gain that the critics promise is below `doubt`
            of their standard deviations.
        doubt: how many.
        critics: Q functions that value the summed action.
        critic_width: their hidden width.
    """

    width: int = 128
    touch_dim: int = 32
    plan_steps: int = 8
    gate_n: float = 1.0
    scale: float = 0.15
    correct: Literal["arm", "grip", "all"] = "arm"
    lipschitz: float = 0.0
    dead_off: bool = True
    trust: Literal["always", "lower_bound"] = "always"
    doubt: float = 1.0
    critics: int = 2
    critic_width: int = 128

    def __post_init__(self) -> None:
        """Refuses values that cannot work."""
        check_range(self, ("width", "touch_dim", "plan_steps", "critics", "critic_width"), 1)
        check_range(self, ("gate_n", "scale", "lipschitz", "doubt"))


def proprioception_keys(streams: Mapping[str, StreamSpec]) -> tuple[str, ...]:
    """Flat float streams that are not touch."""
    return tuple(k for k, s in streams.items() if not is_touch(k) and s.dtype != "uint8" and len(s.shape) == 1)


class ResidualHead(nn.Module):
    """Touch encoder, actor, critics. The actor's last layer starts at zero: before it learns, the base acts alone."""

    mean: torch.Tensor
    std: torch.Tensor
    mask: torch.Tensor
    growth: torch.Tensor
    """How far the correction has come in: the share of its scale, and the share of decisions in which it acts."""

    def __init__(self, spec: PolicySpec, config: ResidualPolicyConfig) -> None:
        super().__init__()
        self.keys = proprioception_keys(spec.obs)
        self.config = config
        bounded = config.lipschitz > 0
        self.touch = TouchEncoder(spec.obs, config.touch_dim, bounded=bounded)
        size = sum(int(np.prod(spec.obs[k].shape)) for k in self.keys)
        self.proprio_dim, self.action_dim = size, spec.action.dim
        self.plan_dim = config.plan_steps * self.action_dim
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("std", torch.ones(size))
        self.register_buffer("growth", torch.ones(2))
        self.register_buffer("mask", _mask(spec, config.correct))
        inputs, width = size + config.touch_dim + self.plan_dim, config.width
        self.actor = (
            nn.Sequential(
                LipschitzLinear(inputs, width), nn.ReLU(), LipschitzLinear(width, width), nn.ReLU(),
                LipschitzLinear(width, self.action_dim),
            )
            if bounded
            else nn.Sequential(
                nn.Linear(inputs, width), nn.LayerNorm(width), nn.ReLU(),
                nn.Linear(width, width), nn.LayerNorm(width), nn.ReLU(),
                nn.Linear(width, self.action_dim),
            )
        )
        nn.init.zeros_(self.actor[-1].weight)  # type: ignore[arg-type]
        nn.init.zeros_(self.actor[-1].bias)  # type: ignore[arg-type]
        self.critic = Critic(
            size, spec.embed_dim, config.touch_dim, self.plan_dim, self.action_dim, config.critics, config.critic_width
        )

    def proprioception(self, obs: Obs) -> np.ndarray:
        """(B, proprio_dim) float32, unscaled, from streams with a leading batch axis."""
        return np.concatenate([np.asarray(obs[k], np.float32) for k in self.keys], axis=1)

    def fit_scale(self, proprio: np.ndarray, touch: np.ndarray) -> None:
        """Sets normalisation from base rollouts: (N, proprio_dim) and (N, touch size)."""
        self.mean[:] = torch.from_numpy(proprio.mean(0))
        self.std[:] = torch.from_numpy(np.maximum(proprio.std(0), 1e-3))
        self.touch.fit_scale(touch)

    def normalise(self, proprio: torch.Tensor) -> torch.Tensor:
        """Proprioception in standard deviations, clipped at 5."""
        return ((proprio - self.mean) / self.std).clamp(-5, 5)

    def act(self, proprio: torch.Tensor, z: torch.Tensor, plan: torch.Tensor) -> torch.Tensor:
        """The correction in [-1, 1].

        Args:
            proprio: (B, proprio_dim) unscaled.
            z: (B, touch_dim) behind the gate.
            plan: (B, plan_steps, action_dim) of the base, in units of the correction's scale.

        Returns:
            (B, action_dim).
        """
        if self.config.lipschitz:
            z = self.config.lipschitz * z
        return torch.tanh(self.actor(torch.cat([self.normalise(proprio), z, plan.flatten(1)], 1))) * self.mask

    def follow(self) -> None:
        """After a gradient step: keeps bounded layers bounded."""
        for layer in self.modules():
            if isinstance(layer, LipschitzLinear):
                layer.follow()

    def bound(self) -> float:
        """How far the correction (2-norm, its units) can move for each unit that scaled, gated touch moves.

        Raises:
            ConfigError: plain layers have no bound.
        """
        if not self.config.lipschitz:
            raise ConfigError("this correction has no bound", do="train with --policy.lipschitz 1.0, say")
        return self.config.lipschitz * product_of_norms(self.actor) * product_of_norms(self.touch.encode)


def _mask(spec: PolicySpec, correct: str) -> torch.Tensor:
    """(action_dim,) 1 where the correction acts.

    Raises:
        ConfigError: the grip is to be corrected, and no action is one.
    """
    grip = torch.tensor(["grip" in name for name in spec.action.names], dtype=torch.float32)
    if correct == "all" or (correct == "arm" and not grip.any()):
        return torch.ones(spec.action.dim)
    if not grip.any():
        raise ConfigError("no action is a grip", found=", ".join(spec.action.names) or "unnamed actions")
    return 1 - grip if correct == "arm" else grip


class ResidualPolicy:
    """A base and its correction as one `LanePolicy`.

    Args:
        base: the frozen policy to correct, of any kind.
        spec: streams of the task (the correction also reads touch) and the action.
        config: shape of the correction.
    """

    config_class = ResidualPolicyConfig

    def __init__(self, base: LanePolicy, spec: PolicySpec, config: ResidualPolicyConfig | None = None) -> None:
        self.base, self.spec = base, spec
        self.config = config or ResidualPolicyConfig()
        self.head = ResidualHead(spec, self.config)
        low, high = np.array(spec.action.low, np.float32), np.array(spec.action.high, np.float32)
        self.bounds, self.centre = (low, high), (low + high) / 2
        self.unit = self.config.scale * (high - low) / 2

    def reset(self, seed: int | None = None) -> None:
        """Forget the past."""
        self.reset_lanes(1, seed)

    def reset_lanes(self, lanes: int, seed: int | None = None) -> None:
        """Forget the past of all lanes."""
        self.base.reset_lanes(lanes, seed)
        self._rng = np.random.default_rng(seed)
        self._fresh = np.ones(lanes, bool)

    def act(self, obs: Obs) -> ActionChunk:
        """The base's plan with the present action corrected."""
        plan = self.act_lanes({k: np.asarray(v)[None] for k, v in obs.items()}, self._fresh)
        self._fresh = np.zeros(1, bool)
        return ActionChunk(plan[0], self.spec.dt)

    def act_lanes(self, obs: Obs, fresh: np.ndarray) -> np.ndarray:
        """(lanes, horizon, action_dim): the base's plans with `[:, 0]` corrected."""
        plan = self.base.act_lanes(obs, fresh)
        correction = self.correction(obs, plan)
        correction *= self.acting(len(correction))
        if self.config.trust == "lower_bound":
            correction *= self.promises(obs, plan, correction)[:, None]
        corrected = plan.copy()
        corrected[:, 0] = self.combine(plan[:, 0], correction)
        return corrected

    def correction(self, obs: Obs, plan: np.ndarray) -> np.ndarray:
        """(lanes, action_dim) in [-1, 1] for base plans (lanes, horizon, action_dim)."""
        head = self.head
        with torch.inference_mode():
            z, _ = head.touch(torch.from_numpy(head.touch.flatten(obs)))
            z = z * torch.from_numpy(self.gate(obs))
            proprio = torch.from_numpy(head.proprioception(obs))
            said = head.act(proprio, z, torch.from_numpy(self.plan_features(plan))).numpy()
        return said * self.alive(obs)

    def acting(self, lanes: int) -> np.ndarray:
        """(lanes, 1) float32: 1 where the correction acts in this decision, all of them once it has come in."""
        share = float(self.head.growth[1])
        return (self._rng.random((lanes, 1)) < share).astype(np.float32)

    def alive(self, obs: Obs) -> np.ndarray:
        """(lanes, 1) float32: 0 where a touch sensor is dead, so that the base has to act alone."""
        if not self.config.dead_off:
            return np.ones((len(next(iter(obs.values()))), 1), np.float32)
        return alive(obs).astype(np.float32)[:, None]

    def promises(self, obs: Obs, plan: np.ndarray, correction: np.ndarray) -> np.ndarray:
        """(lanes,) bool: whether the lower bound of what the correction gains over the base alone is above zero."""
        head = self.head
        actions = [self.units(self.combine(plan[:, 0], each)) for each in (correction, 0 * correction)]
        with torch.inference_mode():
            z = head.touch(torch.from_numpy(head.touch.flatten(obs)))[0] * torch.from_numpy(self.gate(obs))
            state = (
                head.normalise(torch.from_numpy(head.proprioception(obs))), torch.from_numpy(self.embed_lanes(obs)), z,
                torch.from_numpy(self.plan_features(plan)),
            )
            ours, base = (head.critic(*state, torch.from_numpy(action)) for action in actions)
        gain = (ours - base).numpy()
        return gain.mean(0) - self.config.doubt * gain.std(0) > 0

    def gate(self, obs: Obs) -> np.ndarray:
        """(lanes, 1) contact gate."""
        if self.config.gate_n <= 0:
            return np.ones((len(next(iter(obs.values()))), 1), np.float32)
        return contact_gate(obs, self.config.gate_n)

    def plan_features(self, plan: np.ndarray) -> np.ndarray:
        """(lanes, plan_steps, action_dim) in units; a shorter plan is padded with its last action."""
        seen = self.units(plan[:, : self.config.plan_steps])
        missing = self.config.plan_steps - seen.shape[1]
        return np.pad(seen, ((0, 0), (0, max(missing, 0)), (0, 0)), mode="edge")

    def units(self, action: np.ndarray) -> np.ndarray:
        """Actions (..., action_dim) in units of the full-grown correction, as the learner sees them."""
        return ((action - self.centre) / self.unit).astype(np.float32)

    def combine(self, base: np.ndarray, correction: np.ndarray) -> np.ndarray:
        """The summed action, clipped to its bounds; the correction counts `growth[0] * scale` of half the range."""
        return np.clip(base + float(self.head.growth[0]) * self.unit * correction, *self.bounds)

    def draw_plans(self, count: int) -> np.ndarray:
        """(count, horizon, action_dim) plans that the base might have made when it made its last one."""
        return self.base.draw_plans(count)  # type: ignore[attr-defined]

    def embed(self, obs: Obs) -> np.ndarray:
        """What the base sees."""
        return self.base.embed(obs)

    def embed_lanes(self, obs: Obs) -> np.ndarray:
        """What the base sees, for all lanes."""
        return self.base.embed_lanes(obs)
