"""A simulated operator: one attention for all robots, a while to react, limited skill, and less of all when tired.

It is no person. Whatever was learned from it is named as simulated wherever it is reported.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from robot_fb.errors import ConfigError
from robot_fb.interfaces import Expert


@dataclass(frozen=True)
class Skill:
    """How good a simulated operator is.

    Attributes:
        reaction_s: from a request on top of the queue to a hand on the robot, median [s].
        spread: of the reaction, as the standard deviation of its logarithm.
        delay: decisions between what the hand sees and what it does.
        tremor: of the hand, as a share of the action's bounds.
        stint_s: the longest that one correction takes [s].
        tires_s: work after which the reaction takes twice as long and the hand trembles twice as much [s].
    """

    reaction_s: float = 0.6
    spread: float = 0.3
    delay: int = 1
    tremor: float = 0.08
    stint_s: float = 12.0
    tires_s: float = 3600.0

    def __post_init__(self) -> None:
        """Refuses what nobody can be."""
        if min(self.reaction_s, self.stint_s, self.tires_s) <= 0 or min(self.spread, self.delay, self.tremor) < 0:
            raise ConfigError("a simulated operator's skill is not below 0", found=str(self))


class Hand:
    """Does what an expert would do, a little later and less surely.

    Args:
        expert: that looks at the simulation itself.
        low, high: (action_dim,) bounds of the action.
        skill: of the operator.
        rng: of the tremor.
    """

    def __init__(self, expert: Expert, low: np.ndarray, high: np.ndarray, skill: Skill, rng: np.random.Generator):
        self._expert, self._skill, self._rng = expert, skill, rng
        self._low, self._high = np.asarray(low, float), np.asarray(high, float)
        self._meant: deque[np.ndarray] = deque(maxlen=skill.delay + 1)

    def reset(self) -> None:
        """Takes hold anew."""
        self._meant.clear()
        self._expert.reset()

    def act(self, tired: float = 0.0) -> np.ndarray:
        """(action_dim,) for this decision.

        Args:
            tired: 0 rested, 1 after `Skill.tires_s` of work.
        """
        self._meant.append(np.asarray(self._expert.act(), float))
        spread = self._skill.tremor * (1.0 + tired) * (self._high - self._low) / 2
        found = self._meant[0] + self._rng.normal(size=len(spread)) * spread
        return np.clip(found, self._low, self._high).astype(np.float32)


class Attention:
    """To what one operator attends, in time: to nothing, to a robot that they are about to take, to one that they have.

    Args:
        skill: of the operator.
        rng: of the reactions.

    Attributes:
        robot: that has the attention, None where nothing has.
        worked_s: with a hand on a robot [s].
    """

    def __init__(self, skill: Skill, rng: np.random.Generator) -> None:
        self.robot: str | None = None
        self.worked_s = 0.0
        self._skill, self._rng = skill, rng
        self._takes_at, self._took_at, self._now = 0.0, np.inf, 0.0

    @property
    def tired(self) -> float:
        """0 rested, 1 after `Skill.tires_s` of work."""
        return self.worked_s / self._skill.tires_s

    def turn_to(self, robot: str, now: float) -> None:
        """Sees that a robot waits, and reaches for it."""
        reaction = self._skill.reaction_s * (1.0 + self.tired)
        self.robot, self._took_at = robot, np.inf
        self._takes_at = now + reaction * float(np.exp(self._skill.spread * self._rng.normal()))

    @property
    def reaching(self) -> bool:
        """Whether a hand is on its way to a robot."""
        return self.robot is not None and self._took_at == np.inf

    def reaches(self, now: float) -> bool:
        """Whether the hand gets there now."""
        return self.reaching and now >= self._takes_at

    def take(self, now: float) -> None:
        """The hand is on the robot."""
        self._took_at = self._now = now

    def has_enough(self, now: float) -> bool:
        """Time has passed with the hand on the robot; whether the correction has taken as long as one may."""
        self.worked_s += now - self._now
        self._now = now
        return now - self._took_at >= self._skill.stint_s

    def turn_away(self) -> None:
        """To nothing."""
        self.robot, self._took_at = None, np.inf
