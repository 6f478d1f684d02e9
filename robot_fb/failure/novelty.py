"""Detectors that know what successes look like, and score how unlike that the present is."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from scipy.cluster.vq import kmeans2
from torch import nn

from robot_fb.failure.detector import Detector, Reading, successes
from robot_fb.failure.nets import Scale, arrays, load_arrays, mlp, train
from robot_fb.failure.trace import Glimpse, Trace


class NoveltyDetector(Detector):
    """Scores each new plan's decision on its own; between plans the last score stands."""

    def fit(self, traces: Sequence[Trace], seed: int) -> None:
        """Learns the successes' decisions by heart."""
        rows = [self.rows(glimpse) for trace in successes(traces) for glimpse in trace.glimpses if glimpse.fresh]
        self.learn(np.stack(rows), seed)

    def reset(self) -> None:
        """Start of an episode."""
        self._chunk, self._score = -1, 0.0

    def look(self, glimpse: Glimpse) -> Reading:
        """The novelty of what was seen when the plan in force was made."""
        if glimpse.fresh:
            self._chunk += 1
            self._score = self.score(self.rows(glimpse))
        return Reading(self._score, max(self._chunk, 0))

    def rows(self, glimpse: Glimpse) -> np.ndarray:
        """(D,) what is judged: by default what the policy sees."""
        return glimpse.sight

    @abstractmethod
    def learn(self, rows: np.ndarray, seed: int) -> None:
        """Learns (N, D) decisions of successes."""

    @abstractmethod
    def score(self, row: np.ndarray) -> float:
        """How novel a (D,) decision is."""


class NetDetector(NoveltyDetector):
    """A novelty detector that is one network."""

    steps = 2000
    net: nn.Module

    @abstractmethod
    def build(self, size: int) -> nn.Module:
        """The network for rows of `size`."""

    def state(self) -> dict[str, np.ndarray]:
        """Weights."""
        return arrays(self.net)

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Builds the network that has these weights."""
        self.net = self.build(len(state["scale.mean"]))
        load_arrays(self.net, state)


class FlowNet(nn.Module):
    """A velocity field that carries features to noise."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.scale, self.velocity = Scale(size), mlp(size + 1, size, 256)

    def forward(self, rows: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        """Velocities (B, D) at points (B, D) and times (B, 1)."""
        return self.velocity(torch.cat([rows, time], 1))


class LogpZO(NetDetector):
    """logpZO (FAIL-Detect, Xu et al. 2025): a rectified flow from features to noise; unlikely where it lands far out.

    x = (1 - t) o + t z with z normal; v regresses z - o; the score is |o + v(o, 0)|².
    """

    net: FlowNet

    def build(self, size: int) -> FlowNet:
        """The velocity field."""
        return FlowNet(size)

    def learn(self, rows: np.ndarray, seed: int) -> None:
        """Flow matching."""
        torch.manual_seed(seed)
        self.net, data = self.build(rows.shape[1]), torch.from_numpy(rows).float()
        self.net.scale.fit(data)

        def loss(batch: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
            seen = self.net.scale(batch)
            noise = torch.randn(seen.shape, generator=generator)
            time = torch.rand((len(seen), 1), generator=generator)
            said = self.net((1 - time) * seen + time * noise, time)
            return nn.functional.mse_loss(said, noise - seen)

        train(self.net, data, loss, self.steps, seed)

    def score(self, row: np.ndarray) -> float:
        """|o + v(o, 0)|²."""
        with torch.inference_mode():
            seen = self.net.scale(torch.from_numpy(row[None]).float())
            landed = seen + self.net(seen, torch.zeros(1, 1))
        return float((landed**2).sum())


class DistilledNet(nn.Module):
    """A fixed random network, and one that learns to say the same."""

    def __init__(self, size: int, outputs: int = 32) -> None:
        super().__init__()
        self.scale, self.target, self.guess = Scale(size), mlp(size, outputs), mlp(size, outputs, 128, 3)
        self.target.requires_grad_(False)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """(B,) squared disagreement of the two."""
        seen = self.scale(rows)
        return ((self.guess(seen) - self.target(seen)) ** 2).mean(1)


class RndOE(NetDetector):
    """Random network distillation on the frozen policy's embedding (Burda et al. 2018; RND-OE of FIPER 2025)."""

    net: DistilledNet

    def build(self, size: int) -> DistilledNet:
        """Target and guess."""
        return DistilledNet(size)

    def learn(self, rows: np.ndarray, seed: int) -> None:
        """The guess learns the target where successes have been."""
        torch.manual_seed(seed)
        self.net, data = self.build(rows.shape[1]), torch.from_numpy(rows).float()
        self.net.scale.fit(data)
        train(self.net, data, lambda batch, _: self.net(batch).mean(), self.steps, seed)

    def score(self, row: np.ndarray) -> float:
        """The disagreement."""
        with torch.inference_mode():
            return float(self.net(torch.from_numpy(row[None]).float()))


class Rnd(RndOE):
    """Random network distillation on what the policy sees together with what it plans."""

    def rows(self, glimpse: Glimpse) -> np.ndarray:
        """(E + H * action_dim,)."""
        return np.concatenate([glimpse.sight, glimpse.plan.ravel()])


class PcaKMeans(NoveltyDetector):
    """Distance to the nearest of 64 clusters in principal components (Liu et al. 2024)."""

    CLUSTERS, COMPONENTS = 64, 16

    def learn(self, rows: np.ndarray, seed: int) -> None:
        """Components, then clusters."""
        self._mean = rows.mean(axis=0)
        _, _, axes = np.linalg.svd(rows - self._mean, full_matrices=False)
        self._axes = axes[: self.COMPONENTS]
        projected = (rows - self._mean) @ self._axes.T
        clusters = min(self.CLUSTERS, len(np.unique(projected, axis=0)))
        self._centres, _ = kmeans2(projected, clusters, minit="++", rng=seed)

    def score(self, row: np.ndarray) -> float:
        """Distance to the nearest centre."""
        return float(np.linalg.norm(self._centres - self._axes @ (row - self._mean), axis=1).min())

    def state(self) -> dict[str, np.ndarray]:
        """Mean, components, centres."""
        return {"mean": self._mean, "axes": self._axes, "centres": self._centres}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Puts them back."""
        self._mean, self._axes, self._centres = (np.array(state[name]) for name in ("mean", "axes", "centres"))
