"""Made-up episodes: a success walks along a curve in sight; a failure leaves it half way, and presses."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from robot_fb.failure.trace import Glimpse, Trace

EXECUTE, HORIZON, DIM = 4, 8, 3


def make_trace(rng: np.random.Generator, success: bool, speed: float = 1.0, id: str = "") -> Trace:
    """One episode of about 40 decisions at speed 1; a failure goes wrong from half way on."""
    steps = int(rng.integers(36, 44) / speed)
    wrong = steps if success else steps // 2
    glimpses = []
    for i in range(steps):
        along = i / steps
        off = max(i - wrong, 0) / 10
        sight = np.array([np.cos(3 * along), np.sin(3 * along), along, off, 0.0, 0.0], np.float32)
        touch = np.array([2.0 * along + 5 * off, 0.5], np.float32)
        plan = np.tile([0.1 * np.cos(3 * along), 0.1, 0.0], (HORIZON, 1)) + rng.normal(size=(HORIZON, DIM)) * 0.01
        plan = plan + 1.5 * min(off, 1.0) * rng.normal(size=DIM)  # it makes up its mind anew every time
        scatter = rng.normal(size=(16, HORIZON, DIM)) * (0.01 + 0.2 * min(off, 1.0))
        glimpses.append(
            Glimpse(
                0.05 * i, sight + rng.normal(size=6).astype(np.float32) * 0.03, touch + rng.normal(size=2) * 0.1,
                plan, i % EXECUTE == 0, plan + scatter,
            )
        )
    return Trace(glimpses, success, None if success else 0.05 * wrong, "" if success else "left", id)


@pytest.fixture(scope="session")
def traces() -> Callable[[int, int, int], list[Trace]]:
    """`traces(successes, failures, seed)`."""

    def make(good: int, bad: int, seed: int) -> list[Trace]:
        rng = np.random.default_rng(seed)
        made = [make_trace(rng, True, id=f"good{i}") for i in range(good)]
        return made + [make_trace(rng, False, id=f"bad{i}") for i in range(bad)]

    return make
