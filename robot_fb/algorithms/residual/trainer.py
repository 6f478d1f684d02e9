"""The residual learner: TD3 on the summed action, with the touch encoder learned by the critic."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import nn

from robot_fb.algorithms.residual.config import ResidualConfig
from robot_fb.training.checkpoint import load_weights
from robot_fb.training.replay import ReplayBuffer
from robot_fb.training.state import optimizer_tensors, pack, restore_optimizer, unpack
from robot_fb.training.tensors import load_tensors, save_tensors

KIND = "residual trainer"

Batch = Mapping[str, np.ndarray]


class ResidualTrainer:
    """An `interfaces.Trainer` for the correction of a `residual` policy.

    In stage "bootstrap" only the critic and the touch encoder learn, on what the frozen base does; in stage "online"
    the actor learns too. A batch holds, each with a leading axis B: `proprio`, `touch`, `gate`, `alive`, `plan`,
    `visual`, `action` (in units of the residual's full scale, as `plan`), `reward` (n steps summed), `discount`, and
    the same of the state n steps later as `next_proprio` and so on.

    Args:
        policy: the `residual` policy; its head is trained in place.
        config: settings.
        seed: of weights and noise.
        replay: buffers that are saved and loaded with the networks.
    """

    def __init__(
        self, policy: Any, config: ResidualConfig, seed: int = 0, replay: Mapping[str, ReplayBuffer] | None = None
    ) -> None:
        torch.manual_seed(seed)
        self._replay = dict(replay or {})
        self._policy, self.config, self.head = policy, config, policy.head
        self.stage: Literal["bootstrap", "online"] = "bootstrap"
        self.updates = 0
        self._generator = torch.Generator().manual_seed(seed)
        head = self.head
        self.critic = head.critic
        self.target = nn.ModuleDict({"critic": copy.deepcopy(self.critic), "touch": copy.deepcopy(head.touch)})
        self.target.requires_grad_(False)
        self._value_parameters = [*self.critic.parameters(), *head.touch.parameters()]
        self.critic_optimiser = torch.optim.Adam(self._value_parameters, config.critic_lr, fused=True)
        self.actor_optimiser = torch.optim.Adam(head.actor.parameters(), config.actor_lr, fused=True)
        self._low, self._high = (torch.from_numpy(policy.units(np.float32(b))) for b in policy.bounds)

    def policy(self) -> Any:
        """The policy as it stands."""
        return self._policy

    def fit_scale(self, proprio: np.ndarray, touch: np.ndarray) -> None:
        """Sets normalisation from what the base met; before the first step."""
        self.head.fit_scale(proprio, touch)
        self.target["touch"].load_state_dict(self.head.touch.state_dict())

    def step(self, batch: Batch) -> dict[str, float]:
        """One critic update and, online, the actor's share."""
        tensors = {key: torch.as_tensor(value, dtype=torch.float32) for key, value in batch.items()}
        self._slow_down()
        metrics = self._critic_step(tensors)
        self.updates += 1
        if self.stage == "online" and self.updates % self.config.actor_every == 0:
            metrics |= self._actor_step(tensors)
        return metrics

    def _slow_down(self) -> None:
        """Lets the step sizes fall in a straight line while the correction learns, so that it comes to rest."""
        config = self.config
        online = max(self.updates - config.bootstrap_updates, 0) if self.stage == "online" else 0
        done = min(online / max(config.online_steps * config.updates_per_step, 1), 1.0)
        for optimiser, lr in ((self.critic_optimiser, config.critic_lr), (self.actor_optimiser, config.actor_lr)):
            optimiser.param_groups[0]["lr"] = lr * (1 - done * (1 - config.lr_end))

    def _critic_step(self, batch: dict[str, torch.Tensor]) -> dict[str, float]:
        config, head = self.config, self.head
        target = self._target_value(batch)
        touch = batch["touch"]
        if self.stage == "bootstrap" and config.touch_augment_n > 0:
            touch = head.touch.augment(touch, config.touch_augment_n, self._generator)
        z, scaled = head.touch(touch)
        values = self.critic(
            head.normalise(batch["proprio"]), batch["visual"], z * batch["gate"], batch["plan"], batch["action"]
        )
        td_loss = nn.functional.smooth_l1_loss(values, target.expand_as(values)) * len(values)
        touch_loss = nn.functional.mse_loss(head.touch.decode(z), scaled)
        loss = td_loss + config.reconstruction * touch_loss
        self.critic_optimiser.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(self._value_parameters, 10.0)
        self.critic_optimiser.step()
        head.follow()
        self._follow()
        return {"td_loss": td_loss.item(), "touch_loss": touch_loss.item(), "value": values.mean().item()}

    @torch.no_grad()
    def _target_value(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        """(B,) reward of n steps plus the discounted target value of what the policy would do next."""
        head, touch = self.head, self.target["touch"]
        z = touch(batch["next_touch"])[0] * batch["next_gate"]
        plan = batch["next_plan"]
        base = plan[:, 0]
        correction = torch.zeros_like(base)
        if self.stage == "online":
            correction = head.act(batch["next_proprio"], z, plan)
        acting = torch.rand((len(base), 1), generator=self._generator) < head.growth[1]
        correction = correction * batch["next_alive"] * acting
        noise = torch.randn(base.shape, generator=self._generator) * self.config.target_noise
        noise = noise.clamp(-2 * self.config.target_noise, 2 * self.config.target_noise)
        action = self._combine(base, (correction + noise * head.mask * batch["next_alive"]).clamp(-1, 1))
        values = self.target["critic"](head.normalise(batch["next_proprio"]), batch["next_visual"], z, plan, action)
        return batch["reward"] + batch["discount"] * subset_minimum(values, 2, self._generator)

    def _actor_step(self, batch: dict[str, torch.Tensor]) -> dict[str, float]:
        head = self.head
        with torch.no_grad():
            z = head.touch(batch["touch"])[0] * batch["gate"]
        correction = head.act(batch["proprio"], z, batch["plan"]) * batch["alive"]
        action = self._combine(batch["plan"][:, 0], correction)
        values = self.critic(head.normalise(batch["proprio"]), batch["visual"], z, batch["plan"], action)
        penalty = (correction**2).sum(1).mean()
        loss = -values.mean() + self.config.action_penalty * penalty
        self.actor_optimiser.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(head.actor.parameters(), 10.0)
        self.actor_optimiser.step()
        head.follow()
        return {"actor_loss": loss.item(), "correction": penalty.item()}

    def _combine(self, base: torch.Tensor, correction: torch.Tensor) -> torch.Tensor:
        """The summed action in units of the residual's scale."""
        summed = base + self.head.growth[0] * correction
        return torch.minimum(torch.maximum(summed, self._low), self._high)

    @torch.no_grad()
    def _follow(self) -> None:
        """Moves the target weights a little."""
        for slow, fast in (
            (self.target["critic"], self.critic),
            (self.target["touch"], self.head.touch),
        ):
            for behind, ahead in zip(slow.parameters(), fast.parameters(), strict=True):
                behind.lerp_(ahead, self.config.tau)
            for behind, ahead in zip(slow.buffers(), fast.buffers(), strict=True):
                behind.copy_(ahead)

    def snapshot(self) -> dict[str, Any]:
        """Networks and optimisers as they are, in memory, for `restore`."""
        return {name: copy.deepcopy(part.state_dict()) for name, part in self._learned().items()}

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Goes back to a `snapshot`; how far the correction has come in, and the buffers, stay as they are."""
        growth = self.head.growth.clone()
        for name, part in self._learned().items():
            part.load_state_dict(copy.deepcopy(snapshot[name]))
        self.head.growth[:] = growth

    def _learned(self) -> dict[str, Any]:
        return {
            "head": self.head, "target": self.target,
            "critic_optimiser": self.critic_optimiser, "actor_optimiser": self.actor_optimiser,
        }

    def save(self, path: Path) -> None:
        """Writes networks, targets, optimisers and random generators to a folder."""
        tensors = {
            **pack("head", self.head.state_dict()),
            **pack("target", self.target.state_dict()),
            **pack("critic_optimiser", optimizer_tensors(self.critic_optimiser)),
            **pack("actor_optimiser", optimizer_tensors(self.actor_optimiser)),
            "rng": self._generator.get_state(),
        }
        save_tensors(path, tensors, {"updates": self.updates, "stage": self.stage}, KIND)
        for name, buffer in self._replay.items():
            buffer.save(path / f"{name}.npz")

    def load(self, path: Path) -> None:
        """Goes back to what `save` wrote.

        Raises:
            CheckpointError: see `training.tensors`.
        """
        tensors, about = load_tensors(path, KIND)
        load_weights(self.head, unpack("head", tensors), path)
        load_weights(self.target, unpack("target", tensors), path)
        restore_optimizer(self.critic_optimiser, unpack("critic_optimiser", tensors), path)
        restore_optimizer(self.actor_optimiser, unpack("actor_optimiser", tensors), path)
        self._generator.set_state(tensors["rng"])
        self.updates = int(about["updates"])
        self.stage = "online" if about["stage"] == "online" else "bootstrap"
        for name, buffer in self._replay.items():
            rows = ReplayBuffer.load(path / f"{name}.npz").rows()
            if rows:
                buffer.add_batch(rows)


def subset_minimum(values: torch.Tensor, size: int, generator: torch.Generator) -> torch.Tensor:
    """The minimum over `size` randomly drawn members (REDQ): (E,B) -> (B,)."""
    if len(values) <= size:
        return values.min(0).values
    chosen = torch.randperm(len(values), generator=generator)[:size]
    return values[chosen].min(0).values
