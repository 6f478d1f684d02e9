"""How far a correction with bounded layers moves when touch is disturbed, against the bound that it certifies."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from robot_fb.runtime.seeds import EVALUATION
from robot_fb.runtime.tasks import find_task

SIZES_N = (0.1, 0.3, 1.0, 3.0)
EPISODES = 5


def sweep(policy: Any, task: str, seed: int) -> dict[str, Any]:
    """Disturbs the touch that the policy met in a few episodes, at every size, in random directions.

    Args:
        policy: a `residual` policy with `lipschitz` above 0.
        task: where it acts.
        seed: chooses episodes and disturbances.

    Returns:
        "bound": certified, in the correction's units for each unit of scaled touch; "steepest": the largest slope that
        was met at each size [N]; "holds": whether none passed the bound.
    """
    touch, proprio, plans = _met(policy, task, seed)
    head, rng = policy.head, np.random.default_rng(seed)
    steepest = {}
    for size in SIZES_N:
        moved = touch + rng.normal(size=touch.shape).astype(np.float32) * size
        with torch.inference_mode():
            (z, x), (z2, x2) = head.touch(torch.from_numpy(touch)), head.touch(torch.from_numpy(moved))
            difference = head.act(proprio, z, plans) - head.act(proprio, z2, plans)
            steepest[str(size)] = float((difference.norm(dim=1) / (x - x2).norm(dim=1)).max())
    bound = head.bound()
    return {"bound": bound, "steepest": steepest, "holds": max(steepest.values()) <= bound}


def _met(policy: Any, task: str, seed: int) -> tuple[np.ndarray, torch.Tensor, torch.Tensor]:
    """Touch, proprioception and plans of all decisions in a few episodes."""
    env, head = find_task(task).make(), policy.head
    touch, proprio, plans = [], [], []
    for episode in range(EPISODES):
        obs, _ = env.reset(seed=EVALUATION.seed(seed, episode))
        policy.reset(episode)
        over = False
        while not over:
            plan = policy.act(obs).actions
            lane = {key: np.asarray(value)[None] for key, value in obs.items()}
            touch.append(head.touch.flatten(lane))
            proprio.append(head.proprioception(lane))
            plans.append(policy.plan_features(plan[None]))
            obs, _, terminated, truncated, _ = env.step(plan[0])
            over = terminated or truncated
    env.close()
    return np.concatenate(touch), torch.from_numpy(np.concatenate(proprio)), torch.from_numpy(np.concatenate(plans))
