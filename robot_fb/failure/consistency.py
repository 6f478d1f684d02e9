"""Detectors that ask how well a policy agrees with itself: with its last plan, or among plans it might have made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from robot_fb.failure.detector import Detector, Reading, successes
from robot_fb.failure.trace import Glimpse, Trace

PLANS = 16
"""Plans drawn with each new one."""

TINY = 1e-9


class ChunkDetector(Detector):
    """Scores every new plan against the one before; between plans the last score stands.

    Actions are measured in the standard deviations that they have in the successes' plans.
    """

    cumulative: ClassVar[bool] = False

    def fit(self, traces: Sequence[Trace], seed: int) -> None:
        """Measures the scale of actions."""
        plans = [glimpse.plan for trace in successes(traces) for glimpse in trace.glimpses if glimpse.fresh]
        actions = np.concatenate(plans)
        self._centre, self._spread = actions.mean(axis=0), np.maximum(actions.std(axis=0), 1e-6)

    def reset(self) -> None:
        """Start of an episode."""
        self._chunk, self._score, self._ticks = -1, 0.0, 0
        self._before: Glimpse | None = None

    def look(self, glimpse: Glimpse) -> Reading:
        """The score of the plan in force."""
        if glimpse.fresh:
            self._chunk += 1
            score = self.compare(self._before, glimpse)
            self._score = score + (self._score if self.cumulative else 0.0)
            self._before, self._ticks = glimpse, 0
        self._ticks += 1
        return Reading(self._score, max(self._chunk, 0))

    def compare(self, before: Glimpse | None, now: Glimpse) -> float:
        """The score of a new plan; `before` is the glimpse of the last one, None at the first."""
        raise NotImplementedError

    def state(self) -> dict[str, np.ndarray]:
        """Centre and spread of actions."""
        return {"centre": self._centre, "spread": self._spread}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Puts them back."""
        self._centre, self._spread = np.array(state["centre"]), np.array(state["spread"])

    def _scaled(self, plans: np.ndarray) -> np.ndarray:
        return (plans - self._centre) / self._spread

    def _overlap(self, before: np.ndarray, now: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The steps that two sets of plans (n, H, A) have in common, as (n, D) each, `_ticks` apart."""
        late, early = self._scaled(before)[:, self._ticks :], self._scaled(now)
        steps = min(late.shape[1], early.shape[1])
        return late[:, :steps].reshape(len(late), -1), early[:, :steps].reshape(len(early), -1)


class Stac(ChunkDetector):
    """STAC (Agia et al. 2024): distance between the plans of now and of before where they overlap, summed up.

    Squared maximum mean discrepancy with a Gaussian kernel of median bandwidth.
    """

    plans = PLANS
    cumulative = True

    def compare(self, before: Glimpse | None, now: Glimpse) -> float:
        """MMD² of the overlap."""
        if before is None or not len(before.plans) or not len(now.plans):
            return 0.0
        return mmd2(*self._overlap(before.plans, now.plans))


class Ace(ChunkDetector):
    """Action-chunk entropy (FIPER 2025): how much the plans that might be made now differ, as entropy over bins."""

    plans = PLANS
    BIN = 0.3

    def compare(self, before: Glimpse | None, now: Glimpse) -> float:
        """Mean entropy of each action of each step [nat], over bins of `BIN` standard deviations."""
        if not len(now.plans):
            return 0.0
        bins = np.floor(self._scaled(now.plans) / self.BIN)
        share = (bins[:, None] == bins[None]).mean(axis=1)  # of the plans that fall into the bin of each
        return float(-np.log(share).mean())


class Acc(ChunkDetector):
    """Action-chunk consistency: error of the overlap of two plans, over the speed of the new one."""

    def compare(self, before: Glimpse | None, now: Glimpse) -> float:
        """Relative error."""
        if before is None:
            return 0.0
        late, early = self._overlap(before.plan[None], now.plan[None])
        if not late.size:
            return 0.0
        speed = np.linalg.norm(now.plan / self._spread, axis=1).mean()
        return float(np.abs(late - early).mean() / max(speed, TINY))


def mmd2(first: np.ndarray, second: np.ndarray) -> float:
    """Squared maximum mean discrepancy between two samples (n, D) and (m, D), biased estimate, Gaussian kernel whose
    bandwidth is the median distance of all pairs."""
    both = np.concatenate([first, second])
    squared = ((both[:, None] - both[None]) ** 2).sum(axis=-1)
    apart = squared[~np.eye(len(both), dtype=bool)]
    kernel = np.exp(-squared / max(float(np.median(apart)), TINY))
    n = len(first)
    return float(kernel[:n, :n].mean() + kernel[n:, n:].mean() - 2 * kernel[:n, n:].mean())
