"""Which seeds are for what: recording, learning and evaluation never see the same episode."""

from __future__ import annotations

from dataclasses import dataclass

from robot_fb.errors import ConfigError

SPAN = 1_000_000
"""Episodes of one user's seed and purpose."""

SEEDS = 500
"""User's seeds; with more, the episodes' seeds would leave the 31 bits that every simulator takes."""


@dataclass(frozen=True)
class SeedRange:
    """Seeds of one purpose.

    Attributes:
        purpose: 0 recording, 1 learning, 2 evaluation, 3 trials while learning.
    """

    purpose: int

    def seed(self, seed: int, episode: int) -> int:
        """The seed of an episode, another one for every purpose, user's seed and episode.

        Args:
            seed: the user's, below `SEEDS`.
            episode: below `SPAN`.

        Raises:
            ConfigError: one of them is out of range; two different runs would see the same episodes.
        """
        if not 0 <= seed < SEEDS:
            raise ConfigError("--seed is out of range", expected=f"0 to {SEEDS - 1}", found=seed)
        if not 0 <= episode < SPAN:
            raise ConfigError("too many episodes of one seed", expected=f"at most {SPAN}", do="use another --seed")
        return (self.purpose + 4 * seed) * SPAN + episode


RECORD, TRAINING, EVALUATION, TRIAL = SeedRange(0), SeedRange(1), SeedRange(2), SeedRange(3)
