"""A functional conformal band: how high a score may be at each moment of an episode, so that few successes pass it.

Diquigiovanni, Fontana, Vantini 2024 (the modulated sup-norm band), one-sided. A score passes the band somewhere in at
most a share `alpha` of new successes, if they are like the ones that it was fitted to.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robot_fb.errors import CalibrationError

CALM = 0.9
"""Share of the successes in the first half whose deviations set the width of the band; the wildest are left out."""

NARROWEST = 1e-3
"""Smallest width of the band against the largest spread of the scores."""


@dataclass(frozen=True)
class Band:
    """Scores above `level` alarm.

    Attributes:
        mean, width: (N,) at each moment; the last value holds from there on.
        height: the band reaches `mean + height * width`.
        alpha: share of successes that may pass it.
        successes: how many it was fitted to.
    """

    mean: np.ndarray
    width: np.ndarray
    height: float
    alpha: float
    successes: int

    def level(self, moment: int) -> float:
        """Highest score that is no alarm."""
        i = min(moment, len(self.mean) - 1)
        return float(self.mean[i] + self.height * self.width[i])

    def excess(self, score: float, moment: int) -> float:
        """How far a score is out: 0 on the mean, 1 on the band's edge, more is an alarm."""
        i = min(moment, len(self.mean) - 1)
        return float((score - self.mean[i]) / max(self.height * self.width[i], 1e-12))


def needed(alpha: float, halves: int = 2) -> int:
    """Successes without which no band can promise `alpha`, both halves together; or no threshold, with one."""
    return halves * (math.ceil(1 / alpha) - 1)


def fit_band(scores: Sequence[np.ndarray], alpha: float, seed: int = 0) -> Band:
    """Fits a band to the scores of successes.

    Half of them, drawn at random, give mean and width; the other half give the height: the
    `ceil((n + 1) (1 - alpha))`-th smallest of their largest deviations.

    Args:
        scores: (T_i,) each, one for each success; shorter ones count on with their last value.
        alpha: share of successes that may alarm, between 0 and 1.
        seed: of the split.

    Raises:
        CalibrationError: too few successes for `alpha` (it says how many), a success without a score, or a NaN.
    """
    _check(scores, alpha, 2)
    order = np.random.default_rng(seed).permutation(len(scores))
    padded = _padded([scores[i] for i in order])
    first, second = padded[: len(scores) // 2], padded[len(scores) // 2 :]
    mean = first.mean(axis=0)
    deviation = np.abs(first - mean)
    calm = deviation.max(axis=1) <= np.quantile(deviation.max(axis=1), CALM)
    width = np.maximum(deviation[calm].max(axis=0), NARROWEST * max(float(deviation.max()), 1e-9))
    furthest = np.sort(((second - mean) / width).max(axis=1))
    height = float(furthest[math.ceil((len(second) + 1) * (1 - alpha)) - 1])
    return Band(mean, width, max(height, 1e-6), alpha, len(scores))


def fit_threshold(scores: Sequence[np.ndarray], alpha: float, seed: int = 0) -> Band:
    """The same promise with one threshold for all moments, from the highest score of every success.

    Args, raises: as `fit_band`; nothing is split, so `seed` has no part in it.
    """
    _check(scores, alpha, 1)
    highest = np.sort([float(np.max(each)) for each in scores])
    middle = float(np.median(highest))
    edge = float(highest[math.ceil((len(scores) + 1) * (1 - alpha)) - 1])
    return Band(np.array([middle]), np.ones(1), max(edge - middle, 1e-6), alpha, len(scores))


def _check(scores: Sequence[np.ndarray], alpha: float, halves: int) -> None:
    if not 0 < alpha < 1:
        raise CalibrationError("alpha is no share", expected="between 0 and 1", found=alpha)
    for i, each in enumerate(scores):
        if not len(each) or not np.isfinite(each).all():
            raise CalibrationError(f"success {i} has no usable scores", expected="finite numbers", found=each)
    if len(scores) < needed(alpha, halves):
        raise CalibrationError(
            f"too few successes for an alpha of {alpha:g}", expected=f"at least {needed(alpha, halves)}",
            found=len(scores), do="record more successful episodes, or raise --alpha",
        )


def _padded(scores: Sequence[np.ndarray]) -> np.ndarray:
    """(n, longest), each score held at its last value to the end."""
    longest = max(len(each) for each in scores)
    return np.stack([np.pad(np.asarray(each, float), (0, longest - len(each)), mode="edge") for each in scores])
