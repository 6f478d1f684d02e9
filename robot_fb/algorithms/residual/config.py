"""Everything that can be turned on the residual learner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from robot_fb.config import check_range


@dataclass(frozen=True)
class ResidualConfig:
    """Settings of both stages.

    Attributes:
        bootstrap_steps: stage 1, decision steps of the frozen base (all lanes together) that fill the buffer.
        bootstrap_updates: gradient steps of stage 1 on critic and touch encoder.
        bootstrap_noise: size of the uniform noise on half of the stage-1 episodes, in units of the residual's scale.
        online_steps: stage 2, decision steps with the correction learning.
        lanes: simulations side by side.
        updates_per_step: critic updates for each online decision step (UTD).
        actor_every: critic updates for each actor update.
        growth_steps: online steps over which the correction comes in; 0 for all of it at once.
        growth: how it comes in: its scale grows from 0 to full size, or (Policy Decorator) it acts at full size in a
            share of the decisions that grows from 0 to 1.
        prefix_steps: the base alone acts for up to that many decisions at the start of each online episode, a number
            drawn anew; these are not learned from (PLD).
        faults: share of the episodes with a fault of a touch sensor: bias, delay, dropout or dead.
        noise: standard deviation of the exploration on the correction, in its units.
        noise_memory: how much of the noise is kept from one decision to the next, 0 to 1.
        batch: transitions in a batch; half from successful episodes once there are any.
        success_share: that half.
        n_step: rewards summed before the bootstrap.
        gamma: discount of one decision.
        tau: how far target weights move at each critic update.
        critic_lr, actor_lr: Adam's step sizes.
        lr_end: share of them that is left at the end, reached in a straight line.
        target_noise: noise on target actions (target smoothing), in units of the residual's scale.
        reconstruction: weight of the touch reconstruction in the critic's loss.
        touch_augment_n: size of the random force offset on touch in stage 1 [N].
        action_penalty: weight of the squared correction in the actor's loss.
        force_penalty: reward is lowered by `force_penalty * relu(|F| - threshold)` [1/N].
        force_threshold_n: that threshold [N]; by default the force that the task calls careful.
        buffer: transitions kept.
        eval_every: online steps between trials on episodes of their own; the best policy so far is the run's, and one
            that falls `fall` under the base goes back to the last that did not. 0 for none.
        eval_episodes: in each trial.
        fall: success rate.
    """

    bootstrap_steps: int = 6_000
    bootstrap_updates: int = 2_000
    bootstrap_noise: float = 1.0
    online_steps: int = 30_000
    lanes: int = 8
    updates_per_step: float = 1.5
    actor_every: int = 2
    growth_steps: int = 2_000
    growth: Literal["scale", "share"] = "scale"
    prefix_steps: int = 0
    faults: float = 0.0
    noise: float = 0.15
    noise_memory: float = 0.7
    batch: int = 128
    success_share: float = 0.5
    n_step: int = 3
    gamma: float = 0.9
    tau: float = 0.02
    critic_lr: float = 1e-3
    actor_lr: float = 1e-3
    lr_end: float = 0.1
    target_noise: float = 0.2
    reconstruction: float = 0.1
    touch_augment_n: float = 3.0
    action_penalty: float = 0.003
    force_penalty: float = 0.2
    force_threshold_n: float | None = None
    buffer: int = 60_000
    eval_every: int = 0
    eval_episodes: int = 100
    fall: float = 0.05

    def __post_init__(self) -> None:
        """Refuses values that cannot work."""
        check_range(self, ("bootstrap_steps", "lanes", "batch", "n_step", "buffer", "actor_every", "eval_episodes"), 1)
        check_range(self, (
            "bootstrap_updates", "online_steps", "growth_steps", "prefix_steps", "eval_every", "noise",
            "bootstrap_noise", "target_noise", "touch_augment_n", "reconstruction", "action_penalty", "force_penalty",
        ))
        check_range(self, ("critic_lr", "actor_lr", "updates_per_step"), open_low=True)
        check_range(self, ("gamma", "tau", "success_share", "noise_memory", "faults", "lr_end"), high=1)

    def force_cost(self, force: np.ndarray, careful_n: float) -> np.ndarray:
        """By how much contact forces [N] lower the reward, on a task that calls less than `careful_n` careful."""
        threshold = careful_n if self.force_threshold_n is None else self.force_threshold_n
        return self.force_penalty * np.maximum(force - threshold, 0.0)
