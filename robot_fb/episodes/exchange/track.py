"""What every kind of foreign recording is turned into before it is logged."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from robot_fb.types import ActionSpec, Obs


@dataclass(frozen=True)
class Row:
    """One decision step.

    Attributes:
        obs: what was seen.
        action: (action_dim,) float32, what was sent.
        reward: for it.
    """

    obs: Obs
    action: np.ndarray
    reward: float = 0.0


@dataclass(frozen=True)
class Track:
    """One episode, read while it is gone through.

    Attributes:
        action: bounds.
        rows: the steps, in order, `1 / rate_hz` apart.
        success: of the whole.
    """

    action: ActionSpec
    rows: Iterable[Row]
    success: bool
