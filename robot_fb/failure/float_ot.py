"""FLOAT (ARMADA, 2025): how much it costs to carry what was seen so far onto the nearest demonstration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from robot_fb.failure.detector import Detector, Reading, successes
from robot_fb.failure.trace import Glimpse, Trace

CANDIDATES = 50
"""Demonstrations that are kept at the start of an episode."""

EPSILON, ITERATIONS, TOLERANCE = 0.1, 1000, 1e-6
"""Entropic regularisation, and when the scaling stops."""


class FloatOT(Detector):
    """Optimal transport between the chunks of an episode and those of demonstrations, in the policy's embedding.

    At every chunk the cheapest of the candidate demonstrations is found by transport of what was seen so far; then the
    episode is filled up with free columns for the chunks to come, and the score is what the columns so far cost.
    """

    constant = True

    def fit(self, traces: Sequence[Trace], seed: int) -> None:
        """Keeps the successes' embeddings, one for each chunk, all filled up to the longest with their last."""
        found = [unit(trace.sight(fresh_only=True)) for trace in successes(traces)]
        longest = max(len(rows) for rows in found)
        self._bank = np.stack([np.pad(rows, ((0, longest - len(rows)), (0, 0)), mode="edge") for rows in found])

    def reset(self) -> None:
        """Start of an episode."""
        self._seen: list[np.ndarray] = []
        self._near = np.zeros((0, 0, 0))
        self._score = 0.0

    def look(self, glimpse: Glimpse) -> Reading:
        """The cost so far."""
        if glimpse.fresh:
            self._seen.append(unit(glimpse.sight[None])[0])
            if len(self._seen) == 1:
                costs = (1 - self._bank @ self._seen[0]).mean(axis=1)
                self._near = self._bank[np.argsort(costs)[:CANDIDATES]]
            self._score = self._cost()
        return Reading(self._score, max(len(self._seen) - 1, 0))

    def _cost(self) -> float:
        seen = np.stack(self._seen)
        cost = 1 - self._near @ seen.T  # (candidates, chunks of a demonstration, chunks so far)
        whole = (transport(cost) * cost).sum(axis=(1, 2))
        best = cost[int(np.argmin(whole))]
        to_come = max(len(best) - len(seen), 0)
        filled = np.pad(best, ((0, 0), (0, to_come)))
        return float((transport(filled[None])[0] * filled)[:, : len(seen)].sum())

    def state(self) -> dict[str, np.ndarray]:
        """The bank."""
        return {"bank": self._bank}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Puts it back."""
        self._bank = np.array(state["bank"])


def unit(rows: np.ndarray) -> np.ndarray:
    """(N, E) float64 of length one, so that a dot product is the cosine."""
    rows = np.asarray(rows, float)
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


def transport(cost: np.ndarray) -> np.ndarray:
    """Entropic optimal transport plans between uniform marginals (Sinkhorn; Cuturi 2013).

    Args:
        cost: (B, n, m).

    Returns:
        (B, n, m); rows sum to 1/n, columns to 1/m.
    """
    kernel = np.exp(-cost / EPSILON)
    _, n, m = cost.shape
    columns = np.full((len(cost), m), 1.0 / m)
    rows = np.full((len(cost), n), 1.0 / n)
    for _ in range(ITERATIONS):
        new = (1.0 / n) / np.einsum("bnm,bm->bn", kernel, columns)
        columns = (1.0 / m) / np.einsum("bnm,bn->bm", kernel, new)
        change, rows = np.abs(new / rows - 1).max(), new
        if change < TOLERANCE:
            break
    return rows[:, :, None] * kernel * columns[:, None, :]
