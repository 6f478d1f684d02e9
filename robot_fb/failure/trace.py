"""What a failure detector sees of a decision, and of a whole episode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from robot_fb.interfaces import Policy
from robot_fb.types import ActionChunk, Obs, is_touch

RECENT = 5
"""Samples of a wrench window that are averaged: the last 50 ms at 100 Hz."""


@dataclass(frozen=True)
class Glimpse:
    """One decision.

    Attributes:
        t: since the episode began [s].
        sight: (E,) what the policy sees, `Policy.embed`.
        touch: (F,) summary of force and tactile streams, empty where there are none; see `touch_summary`.
        plan: (H, action_dim) the plan in force, from now on.
        fresh: whether that plan was made at this decision.
        plans: (n, H, action_dim) other plans that the policy might have made; none unless `fresh` and asked for.
    """

    t: float
    sight: np.ndarray
    touch: np.ndarray
    plan: np.ndarray
    fresh: bool
    plans: np.ndarray


@dataclass(frozen=True)
class Trace:
    """All decisions of an episode.

    Attributes:
        glimpses: in order.
        success: how the episode ended.
        onset: when the failure began [s]; None where it is not known, or nothing failed.
        failure: the task's word for it.
        id: of the episode.
    """

    glimpses: Sequence[Glimpse]
    success: bool
    onset: float | None = None
    failure: str = ""
    id: str = ""

    def sight(self, fresh_only: bool = False) -> np.ndarray:
        """(T, E) of all decisions, or of those that made a plan."""
        return np.stack([glimpse.sight for glimpse in self.glimpses if glimpse.fresh or not fresh_only])

    def touch(self) -> np.ndarray:
        """(T, F)."""
        return np.stack([glimpse.touch for glimpse in self.glimpses])


class Watch:
    """Makes glimpses while a policy acts, or while its observations are played back.

    Args:
        policy: the policy that is watched.
        plans: how many other plans are drawn with each new one; 0 for none.
    """

    def __init__(self, policy: Policy, plans: int = 0) -> None:
        self._policy, self._count = policy, plans
        self._dt, self._every = policy.spec.dt, policy.spec.execute
        self.reset()

    def reset(self) -> None:
        """Start of an episode."""
        self._tick = -1

    def look(self, obs: Obs, chunk: ActionChunk) -> Glimpse:
        """The glimpse of this decision; called once at each, after the policy's `act`."""
        self._tick += 1
        fresh = self._tick % self._every == 0
        none = np.zeros((0, *chunk.actions.shape), np.float32)
        draw = getattr(self._policy, "draw_plans", None)
        plans = draw(self._count) if fresh and self._count and draw is not None else none
        return Glimpse(
            self._tick * self._dt, self._policy.embed(obs), touch_summary(obs), chunk.actions, fresh, plans
        )


def touch_summary(obs: Obs) -> np.ndarray:
    """(F,) float32: of a wrench window (T, 6) the recent mean [N, N·m] and the range of each axis; of a taxel pad
    (3, R, C) the summed force [N] and the largest taxel; of any other touch stream its values."""
    return np.concatenate([np.zeros(0, np.float32), *[_summary(obs[key]) for key in sorted(obs) if is_touch(key)]])


def _summary(value: np.ndarray) -> np.ndarray:
    if value.ndim == 2:
        return np.concatenate([value[-RECENT:].mean(axis=0), np.ptp(value, axis=0)]).astype(np.float32)
    if value.ndim == 3:
        return np.append(value.sum(axis=(1, 2)), np.abs(value).max()).astype(np.float32)
    return np.ravel(value).astype(np.float32)


def play_back(policy: Policy, streams: Mapping[str, np.ndarray], plans: int, seed: int) -> list[Glimpse]:
    """The glimpses of a recorded episode: the policy plans anew from what it saw then.

    Args:
        policy: that acted, or would have.
        streams: (T, ...) each, by name.
        plans: see `Watch`.
        seed: of the policy's draws.
    """
    watch = Watch(policy, plans)
    policy.reset(seed)
    glimpses = []
    for i in range(len(next(iter(streams.values())))):
        obs = {name: values[i] for name, values in streams.items()}
        glimpses.append(watch.look(obs, policy.act(obs)))
    return glimpses
