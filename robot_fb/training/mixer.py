"""Batches from several named sources in fixed shares: half demonstrations and half the robot's own, for example."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from typing import Any, Protocol

import numpy as np

from robot_fb.errors import ConfigError
from robot_fb.training import seeds

Batch = Mapping[str, Any]


class BatchSource(Protocol):
    """Gives rows: a `ReplayBuffer`, a dataset of chunks. One with `len(source) == 0` is passed over for now."""

    def sample(self, rng: np.random.Generator, n: int) -> Batch:
        """`n` rows; each leaf of the (possibly nested) mapping has a leading axis n."""
        ...


class Mixer:
    """Draws batches.

    Args:
        sources: by name.
        batch: rows in one batch.
        shares: of each source, any positive scale; equal where not given.
        seed: of the draws.

    Raises:
        ConfigError: no sources, an unknown name among the shares, or a share that is not positive.
    """

    def __init__(
        self, sources: Mapping[str, BatchSource], batch: int, shares: Mapping[str, float] | None = None, seed: int = 0
    ) -> None:
        self.sources, self.batch = dict(sources), batch
        self.shares = {name: 1.0 for name in sources} | dict(shares or {})
        unknown = sorted(self.shares.keys() - self.sources.keys())
        if unknown or not sources:
            found = ", ".join(unknown) or "none"
            raise ConfigError("shares need sources", expected=", ".join(sources) or "at least one source", found=found)
        if min(self.shares.values()) <= 0 or batch < 1:
            raise ConfigError("shares and batch must be positive", found=f"{self.shares}, batch {batch}")
        self._rng = seeds.rng(seed, "mixer")

    def next(self) -> dict[str, Any]:
        """The next batch, sources one after another.

        Raises:
            ConfigError: every source is empty.
        """
        ready = [name for name, source in self.sources.items() if not isinstance(source, Sized) or len(source)]
        if not ready:
            raise ConfigError("there is nothing to learn from", expected="rows in " + ", ".join(self.sources))
        counts = split(self.batch, [self.shares[name] for name in ready])
        parts = [self.sources[name].sample(self._rng, n) for name, n in zip(ready, counts, strict=True) if n]
        return join(parts)

    def state(self) -> dict[str, Any]:
        """Where the draws stand, as plain data; the sources keep themselves."""
        return {"rng": seeds.rng_state(self._rng)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Puts the draws back to a `state`."""
        seeds.restore_rng(self._rng, state["rng"])


class Together:
    """Several sources as one: every row of each is as likely as any other.

    Args:
        sources: with a length each.
    """

    def __init__(self, sources: Sequence[Any]) -> None:
        self._sources = [source for source in sources if len(source)]

    def __len__(self) -> int:
        return sum(map(len, self._sources))

    def sample(self, rng: np.random.Generator, n: int) -> Batch:
        """`n` rows."""
        counts = rng.multinomial(n, np.array([len(source) for source in self._sources]) / len(self))
        return join([source.sample(rng, int(k)) for source, k in zip(self._sources, counts, strict=True) if k])


def split(total: int, shares: Sequence[float]) -> list[int]:
    """`total` in whole numbers by shares (largest remainders): `split(5, [1, 1]) == [3, 2]`."""
    exact = np.asarray(shares, float) * total / np.sum(shares)
    counts = np.floor(exact).astype(int)
    order = np.argsort(-(exact - counts), kind="stable")
    counts[order[: total - counts.sum()]] += 1
    return counts.tolist()


def join(parts: Sequence[Batch]) -> dict[str, Any]:
    """Nested batches with the same keys, one after another."""
    if len(parts) == 1:
        return dict(parts[0])
    first = parts[0]
    return {
        key: join([part[key] for part in parts]) if isinstance(first[key], Mapping)
        else np.concatenate([part[key] for part in parts])
        for key in first
    }
