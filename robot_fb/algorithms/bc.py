"""Behaviour cloning: any registered policy with a `loss` learns to do what was done in recorded episodes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from robot_fb import registry
from robot_fb.config import check_range
from robot_fb.errors import ConfigError, EpisodeError, RobotFbError
from robot_fb.training import chunks, seeds
from robot_fb.training.checkpoint import load_weights
from robot_fb.training.state import Ema, optimizer_tensors, pack, restore_optimizer, unpack
from robot_fb.training.tensors import load_tensors, save_tensors
from robot_fb.types import PolicySpec

KIND = "bc trainer"


@dataclass(frozen=True, kw_only=True)
class BcConfig:
    """How a policy is cloned.

    Attributes:
        policy: registered policy: diffusion, flow, chunk_mlp, or a plugin's.
        seed: of weights, batches and noise; the same seed trains the same policy.
        steps: gradient steps.
        batch: windows in one step.
        lr: peak learning rate, after `warmup` steps; then a cosine down to nothing.
        warmup: steps of linear growth.
        weight_decay: of AdamW.
        grad_clip: largest gradient norm.
        ema_decay: memory of the averaged weights, which are the ones that act.
        horizon: actions in one chunk.
        execute: actions carried out before planning again.
        obs_horizon: observations looked back on.
        streams: what the policy reads; by default all cameras and the arm's own measurements, never touch.
        use: which episodes are learned from.
    """

    policy: str = "diffusion"
    seed: int = 0
    steps: int = 2000
    batch: int = 64
    lr: float = 1e-3
    warmup: int = 100
    weight_decay: float = 1e-4
    grad_clip: float = 1.0
    ema_decay: float = 0.995
    horizon: int = 16
    execute: int = 8
    obs_horizon: int = 2
    streams: tuple[str, ...] = ()
    use: Literal["all", "success"] = "all"

    def __post_init__(self) -> None:
        check_range(self, ("steps", "batch", "lr", "grad_clip"), open_low=True)
        check_range(self, ("seed", "warmup", "weight_decay"))
        if not 0 <= self.ema_decay < 1:
            raise ConfigError("config key 'ema_decay'", expected="0 to below 1", found=self.ema_decay)


class BcTrainer:
    """An `interfaces.Trainer`.

    Args:
        policy: a torch module with `loss(batch, generator)`; it is trained in place.
        config: settings.
    """

    def __init__(self, policy: Any, config: BcConfig) -> None:
        self.config, self.model = config, policy
        self.steps_done = 0
        self._ema = Ema(policy, config.ema_decay)
        self._generator = seeds.torch_generator(config.seed, "bc noise")
        self._optimizer = torch.optim.AdamW(
            policy.parameters(), lr=config.lr, weight_decay=config.weight_decay, fused=True
        )
        torch.manual_seed(config.seed)  # dropout draws from torch's own generator

    def step(self, batch: Mapping[str, Any]) -> dict[str, float]:
        """One gradient step on {"obs": {stream: (B, obs_horizon, ...)}, "actions": (B, horizon, action_dim)}.

        Raises:
            RobotFbError: the loss is not a number any more.
        """
        lr = self._learning_rate()
        for group in self._optimizer.param_groups:
            group["lr"] = lr
        tensors = {
            "obs": {key: torch.from_numpy(value) for key, value in batch["obs"].items()},
            "actions": torch.from_numpy(batch["actions"]),
        }
        loss = self.model.train().loss(tensors, self._generator)
        self._optimizer.zero_grad(set_to_none=True)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.grad_clip)
        value = loss.item()
        if not math.isfinite(value):
            what = f"the loss became {value} at step {self.steps_done + 1}"
            raise RobotFbError(what, do="lower --lr or check the data")
        self._optimizer.step()
        self._ema.update(self.model, self.steps_done)
        self.steps_done += 1
        return {"loss": value, "grad_norm": norm.item(), "lr": lr}

    def policy(self) -> Any:
        """The policy with averaged weights, ready to act; it goes on changing with later steps."""
        return self._ema.average

    def save(self, path: Path) -> None:
        """Writes weights, averages, optimizer and random generators to a folder."""
        tensors = {
            **pack("model", self.model.state_dict()),
            **pack("ema", self._ema.average.state_dict()),
            **pack("optimizer", optimizer_tensors(self._optimizer)),
            "rng/noise": self._generator.get_state(),
            "rng/torch": torch.get_rng_state(),
        }
        save_tensors(path, tensors, {"steps_done": self.steps_done}, KIND)

    def load(self, path: Path) -> None:
        """Goes back to what `save` wrote.

        Raises:
            CheckpointError: see `training.tensors`.
        """
        tensors, about = load_tensors(path, KIND)
        load_weights(self.model, unpack("model", tensors), path)
        load_weights(self._ema.average, unpack("ema", tensors), path)
        restore_optimizer(self._optimizer, unpack("optimizer", tensors), path)
        self._generator.set_state(tensors["rng/noise"])
        torch.set_rng_state(tensors["rng/torch"])
        self.steps_done = int(about["steps_done"])

    def _learning_rate(self) -> float:
        config, step = self.config, self.steps_done
        if step < config.warmup:
            return config.lr * (step + 1) / config.warmup
        done = (step - config.warmup) / max(config.steps - config.warmup, 1)
        return config.lr * 0.5 * (1 + math.cos(math.pi * min(done, 1.0)))


def make_policy(spec: PolicySpec, config: BcConfig, model: Any = None) -> Any:
    """A fresh policy, its weights drawn from the config's seed.

    Args:
        spec: what it reads and gives.
        config: names the policy.
        model: the policy's own config; its defaults if not given.

    Raises:
        UnknownNameError: nobody registered the policy.
        ConfigError: the policy cannot be cloned.
    """
    kind = registry.load("policies", config.policy)
    if not hasattr(kind, "loss"):
        what = f"policy {config.policy!r} does not learn from episodes"
        raise ConfigError(what, do="choose diffusion, flow or chunk_mlp")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        return kind(spec, model)


def prepare(arrays: chunks.Arrays, config: BcConfig, model: Any = None) -> tuple[BcTrainer, chunks.ChunkSource]:
    """Trainer and data for recorded episodes, scales measured.

    Raises:
        EpisodeError: nothing to learn from, a NaN, missing streams, or several tasks.
    """
    spec = chunks.make_spec(
        arrays, config.streams, horizon=config.horizon, execute=config.execute, obs_horizon=config.obs_horizon
    )
    chosen = np.flatnonzero(arrays.success) if config.use == "success" else np.arange(len(arrays.metas))
    source = chunks.ChunkSource(arrays, spec, chosen.tolist())
    if not len(source):
        raise EpisodeError("no episode to learn from succeeded", found=f"{len(arrays.metas)} episodes", do="--use all")
    chunks.refuse_bad_values(arrays, tuple(spec.obs))
    policy = make_policy(spec, config, model)
    numbers = {key: arrays.streams[key][source.rows] for key in spec.obs if spec.obs[key].dtype != "uint8"}
    policy.fit_scale(numbers, np.asarray(arrays.actions[source.rows], np.float32))
    return BcTrainer(policy, config), source
