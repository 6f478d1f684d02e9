"""FIPER (Römer et al. 2025): novel to the policy's eye, and plans that scatter, both over a window."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

import numpy as np

from robot_fb.failure.consistency import PLANS, Ace
from robot_fb.failure.detector import Detector, Reading
from robot_fb.failure.novelty import RndOE
from robot_fb.failure.trace import Glimpse, Trace

WINDOW = 3
"""Chunks over which both scores are averaged."""


class Fiper(Detector):
    """The smaller of two windowed scores, RND on the embedding and action-chunk entropy, each as a share of the
    threshold that it would have alone: both have to be high."""

    plans = PLANS

    def __init__(self) -> None:
        self._parts = {"rnd": RndOE(), "ace": Ace()}
        self._limits = {name: (0.0, 1.0) for name in self._parts}

    def fit(self, traces: Sequence[Trace], seed: int) -> None:
        """Fits both."""
        for part in self._parts.values():
            part.fit(traces, seed)

    def calibrate(self, successes: Sequence[Trace], alpha: float, seed: int = 0) -> None:
        """Brings both scores to one scale, then sets the band of the smaller."""
        for name in self._parts:
            self._limits[name] = (0.0, 1.0)
        curves = [self._windowed(trace) for trace in successes]
        for column, name in enumerate(self._parts):
            values = np.concatenate([curve[:, column] for curve in curves])
            middle = float(np.median(values))
            self._limits[name] = middle, max(float(np.quantile(values, 1 - alpha)) - middle, 1e-9)
        super().calibrate(successes, alpha, seed)

    def reset(self) -> None:
        """Start of an episode."""
        self._recent: deque[list[float]] = deque(maxlen=WINDOW)
        for part in self._parts.values():
            part.reset()

    def look(self, glimpse: Glimpse) -> Reading:
        """The smaller of both."""
        readings = [part.look(glimpse) for part in self._parts.values()]
        if glimpse.fresh:
            limits = self._limits.values()
            self._recent.append([(r.score - mid) / span for r, (mid, span) in zip(readings, limits, strict=True)])
        return Reading(float(np.mean(self._recent, axis=0).min()), readings[0].moment)

    def _windowed(self, trace: Trace) -> np.ndarray:
        """(T, 2) both windowed scores."""
        self.reset()
        rows = []
        for glimpse in trace.glimpses:
            self.look(glimpse)
            rows.append(np.mean(self._recent, axis=0))
        return np.stack(rows)

    def state(self) -> dict[str, np.ndarray]:
        """Both, and their scales."""
        weights = {f"{name}.{k}": v for name, part in self._parts.items() for k, v in part.state().items()}
        return weights | {f"limits.{name}": np.array(limit) for name, limit in self._limits.items()}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Puts them back."""
        for name, part in self._parts.items():
            part.restore({k.partition(".")[2]: v for k, v in state.items() if k.startswith(f"{name}.")})
            middle, span = state[f"limits.{name}"]
            self._limits[name] = float(middle), float(span)
