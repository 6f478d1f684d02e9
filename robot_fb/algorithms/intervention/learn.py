"""A policy goes on learning from where it stands, with what people corrected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from robot_fb.algorithms.bc import BcConfig, BcTrainer
from robot_fb.algorithms.intervention.data import sources_of
from robot_fb.errors import CheckpointError, ConfigError, EpisodeError
from robot_fb.training.checkpoint import check_fits
from robot_fb.training.chunks import Arrays, refuse_bad_values
from robot_fb.training.mixer import Mixer


@dataclass(frozen=True, kw_only=True)
class InterventionConfig:
    """How a policy learns from corrections.

    Attributes:
        weights: which decisions count how much: hg_dagger (demonstrations and what people did), iwr (people's
            corrections make half of a batch), sirius (the same, and what led to a correction next to nothing), plain.
        seed: of batches and noise.
        steps: gradient steps.
        batch: windows in one step.
        lr: peak learning rate; below that of the first training, for the policy is not to forget.
        warmup: steps of linear growth.
        ema_decay: memory of the averaged weights.
    """

    weights: str = "sirius"
    seed: int = 0
    steps: int = 1000
    batch: int = 64
    lr: float = 5e-4
    warmup: int = 50
    ema_decay: float = 0.99

    @property
    def bc(self) -> BcConfig:
        """The same, for cloning."""
        return BcConfig(
            seed=self.seed, steps=self.steps, batch=self.batch, lr=self.lr, warmup=self.warmup,
            ema_decay=self.ema_decay,
        )


def prepare(
    policy: Any, stores: Sequence[Arrays], config: InterventionConfig
) -> tuple[BcTrainer, Mixer, dict[str, int]]:
    """Trainer and batches.

    Args:
        policy: that learns, in place; its scales stay as they were first measured.
        stores: demonstrations and rollouts.
        config: settings.

    Returns:
        The trainer, the batches, and how many decisions there are of each kind.

    Raises:
        ConfigError: the policy cannot be cloned, or the weighting is unknown.
        CheckpointError: the episodes lack what the policy reads.
        EpisodeError: another task, a NaN, or nothing to learn from.
    """
    if not hasattr(policy, "loss"):
        raise ConfigError("this policy does not learn from episodes", do="choose its base policy")
    for arrays in stores:
        for meta in arrays.metas:
            if meta.task != policy.spec.task:
                raise EpisodeError("episodes are of another task", expected=policy.spec.task, found=meta.task)
            check_fits(policy.spec, meta.streams, meta.action)
        missing = [name for name in policy.spec.obs if name not in arrays.streams]
        if missing:
            raise CheckpointError("the policy reads what was not recorded", found=", ".join(missing))
        refuse_bad_values(arrays, tuple(policy.spec.obs))
    sources, shares, counts = sources_of(stores, policy.spec, config.weights)
    return BcTrainer(policy, config.bc), Mixer(sources, config.batch, shares, config.seed), counts
