"""Which seeds are for what: recording, learning and evaluation never see the same episode."""

from __future__ import annotations

from dataclasses import dataclass

SPAN = 1_000_000
"""Seeds in one range of one user's seed."""


@dataclass(frozen=True)
class SeedRange:
    """Seeds of one purpose.

    Attributes:
        purpose: 0 recording, 1 learning, 2 evaluation.
    """

    purpose: int

    def seed(self, seed: int, episode: int) -> int:
        """The seed of an episode: distinct for every purpose, user's seed (below 500) and episode (below a million)."""
        return (self.purpose + 4 * (seed % 500)) * SPAN + episode % SPAN


RECORD, TRAINING, EVALUATION = SeedRange(0), SeedRange(1), SeedRange(2)
