"""Our detector: sight and touch, read by a small recurrent network that does not care how fast an episode goes.

At every decision the network says how likely the episode is to end in failure, and how far along it is. The alarm band
runs over how far along it is instead of over time, so that a slow success is held against others at the same place; in
training, episodes are replayed faster and slower at random for the same reason. Failures to learn from are the policy's
own; where a store has none, novelty alone is scored: the distance to what successes saw and felt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import nn

from robot_fb.failure.detector import Detector, Reading, successes
from robot_fb.failure.nets import Scale, arrays, load_arrays
from robot_fb.failure.trace import Glimpse, Trace

SIGHTS = 24
"""Principal components of the policy's embedding that are looked at."""

WIDTH = 64
MOMENTS = 25
"""Places along an episode at which the band has a height of its own."""

EPOCHS, BATCH, LR, DROPOUT = 60, 16, 2e-3, 0.3
FASTEST, SLOWEST = 0.6, 1.8
"""Speeds at which episodes are replayed in training, against their own."""

NEIGHBOURS, KNOWN = 5, 4000
"""Neighbours whose distance is the novelty, and decisions of successes that are kept to find them among."""

ODD = 3.0
"""Novelty, in deviations above the successes' own, from which it counts."""


class Reader(nn.Module):
    """Features (B, T, D) -> logit of failure (B, T) and share of the way (B, T)."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.scale = Scale(size)
        self.enter = nn.Sequential(nn.Linear(size, WIDTH), nn.SiLU(), nn.Dropout(DROPOUT))
        self.gru = nn.GRU(WIDTH, WIDTH, batch_first=True)
        self.leave = nn.Sequential(nn.Dropout(DROPOUT), nn.Linear(WIDTH, 2))

    def forward(
        self, rows: torch.Tensor, memory: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Both heads, and the memory to go on from."""
        seen, kept = self.gru(self.enter(self.scale(rows)), memory)
        said = self.leave(seen)
        return said[..., 0], torch.sigmoid(said[..., 1]), kept


class Fused(Detector):
    """See the module."""

    def fit(self, traces: Sequence[Trace], seed: int) -> None:
        """Learns components, reader and neighbours."""
        torch.manual_seed(seed)
        rng = np.random.default_rng(seed)
        good = successes(traces)
        sights = np.concatenate([trace.sight() for trace in good])
        self._mean = sights.mean(axis=0)
        _, size, axes = np.linalg.svd(sights - self._mean, full_matrices=False)
        self._axes = axes[:SIGHTS] / np.maximum(size[:SIGHTS, None] / np.sqrt(len(sights)), 1e-6)
        episodes = [self._features(trace) for trace in traces]
        known = np.concatenate([rows for rows, trace in zip(episodes, traces, strict=True) if trace.success])
        self._reader = Reader(known.shape[1])
        self._reader.scale.fit(torch.from_numpy(known))
        self._seen_failures = len(good) < len(traces)
        self._learn(episodes, [not trace.success for trace in traces], rng)
        self._remember(known, rng)

    def reset(self) -> None:
        """Start of an episode."""
        self._memory: torch.Tensor | None = None
        self._along = 0.0

    def look(self, glimpse: Glimpse) -> Reading:
        """Logit of failure, plus novelty where it is odd, at how far along the episode is."""
        row = self._row(glimpse)
        with torch.inference_mode():
            logit, along, self._memory = self._reader(torch.from_numpy(row)[None, None], self._memory)
        self._along = max(self._along, float(along))
        novelty = (self._novelty(row) - self._usual) / self._spread
        score = max(novelty - ODD, 0.0) + float(logit) if self._seen_failures else novelty
        return Reading(score, min(int(self._along * MOMENTS), MOMENTS - 1))

    def state(self) -> dict[str, np.ndarray]:
        """Everything that was learned."""
        mine = {
            "mean": self._mean, "axes": self._axes, "known": self._known,
            "usual": np.array([self._usual, self._spread, float(self._seen_failures)]),
        }
        return mine | {f"reader.{name}": value for name, value in arrays(self._reader).items()}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Puts it back."""
        self._mean, self._axes, self._known = (np.array(state[name]) for name in ("mean", "axes", "known"))
        self._usual, self._spread, seen = (float(value) for value in state["usual"])
        self._seen_failures = bool(seen)
        self._reader = Reader(len(state["reader.scale.mean"]))
        load_arrays(self._reader, {k.partition(".")[2]: v for k, v in state.items() if k.startswith("reader.")})

    def _row(self, glimpse: Glimpse) -> np.ndarray:
        """(D,) float32: components of sight, and touch with its large forces drawn in."""
        sight = self._axes @ (glimpse.sight - self._mean)
        return np.concatenate([sight, np.arcsinh(glimpse.touch)]).astype(np.float32)

    def _features(self, trace: Trace) -> np.ndarray:
        """(T, D)."""
        return np.stack([self._row(glimpse) for glimpse in trace.glimpses])

    def _learn(self, episodes: Sequence[np.ndarray], failed: Sequence[bool], rng: np.random.Generator) -> None:
        optimiser = torch.optim.AdamW(self._reader.parameters(), LR, weight_decay=1e-2)
        batches = max(len(episodes) // BATCH, 1)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, LR, EPOCHS * batches)
        share = min(max(float(np.mean(failed)), 0.05), 0.95)
        weight = torch.tensor((1 - share) / share)
        self._reader.train()
        for _ in range(EPOCHS):
            for chosen in np.array_split(rng.permutation(len(episodes)), batches):
                rows, along, there = _batch([warped(episodes[i], rng) for i in chosen])
                logit, said, _ = self._reader(rows)
                bad = torch.tensor([float(failed[i]) for i in chosen])[:, None].expand_as(logit)
                doubt = nn.functional.binary_cross_entropy_with_logits(logit, bad, pos_weight=weight, reduction="none")
                lost = (said - along) ** 2 * (1 - bad)
                loss = ((doubt + 5 * lost) * there).sum() / there.sum()
                optimiser.zero_grad(set_to_none=True)
                loss.backward()
                nn.utils.clip_grad_norm_(self._reader.parameters(), 1.0)
                optimiser.step()
                schedule.step()
        self._reader.eval()

    def _remember(self, known: np.ndarray, rng: np.random.Generator) -> None:
        """Keeps decisions of successes, and how novel other decisions of successes are to them."""
        scaled = self._reader.scale(torch.from_numpy(known)).numpy()
        order = rng.permutation(len(scaled))
        self._known = scaled[order[:KNOWN]]
        others = known[order[-min(len(known) // 2, 500) :]]
        novelty = np.array([self._novelty(row, skip=1) for row in others])
        self._usual = float(np.median(novelty))
        self._spread = max(float(np.quantile(novelty, 0.9)) - self._usual, 1e-6)

    def _novelty(self, row: np.ndarray, skip: int = 0) -> float:
        """Mean distance to the nearest neighbours; `skip` leaves out the row itself."""
        scaled = self._reader.scale(torch.from_numpy(row)).numpy()
        squared = ((self._known - scaled) ** 2).sum(axis=1)
        count = min(NEIGHBOURS + skip, len(squared))
        nearest = np.sort(np.partition(squared, count - 1)[:count])[skip:]
        return float(np.sqrt(nearest).mean()) if len(nearest) else 0.0


def warped(rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """An episode (T, D) replayed at a speed that changes as it goes, every row one that was there."""
    rate = np.exp(np.interp(np.linspace(0, 1, len(rows)), np.linspace(0, 1, 5),
                            rng.uniform(np.log(FASTEST), np.log(SLOWEST), 5)))
    stretched = np.cumsum(rate)
    count = max(int(stretched[-1]), 1)
    return rows[np.minimum(np.searchsorted(stretched, np.arange(count) + 0.5), len(rows) - 1)]


def _batch(episodes: Sequence[np.ndarray]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Rows (B, T, D), share of the way (B, T), and 1 where there is a row."""
    longest = max(len(rows) for rows in episodes)
    rows = np.stack([np.pad(each, ((0, longest - len(each)), (0, 0))) for each in episodes])
    along = np.stack([np.minimum(np.arange(longest) / max(len(each) - 1, 1), 1.0) for each in episodes])
    there = np.stack([np.arange(longest) < len(each) for each in episodes])
    return torch.from_numpy(rows), torch.from_numpy(along).float(), torch.from_numpy(there).float()
