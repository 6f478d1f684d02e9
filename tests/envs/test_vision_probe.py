"""A network that sees all that a camera policy sees before contact cannot guess keyed_socket's open side.

The same network, trained the same way on the same pictures, reads what is visible: that shows that the probe works.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import binom
from torch import nn

from envs.cell.task import CellTask
from envs.keyed_socket.env import SIDES
from envs.keyed_socket.task import KeyedSocketTask

UNLIKELY = 1e-3
"""How seldom a guess would leave the band that the tests allow, on either side."""


@dataclass(frozen=True)
class Looks:
    """One moment before contact from each of many episodes.

    Attributes:
        pictures: (N,6,64,64) both cameras, 0 to 1.
        hidden: (N,) class of what is hidden, one of four.
        far: (N,) 1 where the thing stands beyond x = 0.5 m, which the pictures do show.
    """

    pictures: torch.Tensor
    hidden: torch.Tensor
    far: torch.Tensor


def look(
    task: CellTask,
    episodes: range,
    moments: int,
    near: Callable[[Any, np.ndarray], bool],
    secret: Callable[[Any, dict[str, Any]], int],
    far: Callable[[Any], bool],
) -> Looks:
    """Has the expert approach for a random number of decisions below `moments`, and looks once an episode.

    Args:
        task: of which the expert is.
        episodes: their seeds.
        moments: see above.
        near: whether the next decision, given cell and action, may touch.
        secret: class of what is hidden, given cell and the reset's info.
        far: something that the pictures do show, given the cell.
    """
    env = task.make()
    cell: Any = env.unwrapped
    pictures, hidden, visible = [], [], []
    for seed in episodes:
        obs, info = env.reset(seed=seed)
        expert = task.expert(env)
        for _ in range(np.random.default_rng([seed, 1]).integers(moments)):  # not the stream that drew the secret
            action = expert.act()
            if near(cell, action):
                break
            obs, *_ = env.step(action)
        assert cell.peak_force == 0.0
        pictures.append(np.concatenate([obs["camera/scene"], obs["camera/wrist"]], axis=2))
        hidden.append(secret(cell, info))
        visible.append(int(far(cell)))
    env.close()
    stack = torch.from_numpy(np.stack(pictures)).permute(0, 3, 1, 2).float() / 255
    return Looks(stack, torch.tensor(hidden), torch.tensor(visible))


def probe(train: Looks, test: Looks, label: str, classes: int, steps: int) -> int:
    """Trains a small CNN to read a label from the pictures; how often it is right on the held-out ones."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    mean, deviation = train.pictures.mean(0), train.pictures.std() + 1e-6
    net = nn.Sequential(
        nn.Conv2d(6, 16, 5, stride=2), nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2), nn.ReLU(),
        nn.Conv2d(32, 32, 3, stride=2), nn.ReLU(),
        nn.Flatten(), nn.LazyLinear(classes),
    )  # fmt: skip
    net(train.pictures[:1])
    optimiser = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=1e-2)
    inputs, labels = (train.pictures - mean) / deviation, getattr(train, label)
    for _ in range(steps):
        batch = torch.randint(len(labels), (32,))
        loss = nn.functional.cross_entropy(net(inputs[batch]), labels[batch])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    with torch.no_grad():
        guesses = net((test.pictures - mean) / deviation).argmax(1)
    torch.set_num_threads(threads)
    return int((guesses == getattr(test, label)).sum())


def check(train: Looks, test: Looks, steps: int, visible: float) -> None:
    """The hidden side stays within what guessing gives; the visible one is read at a rate of `visible` or better."""
    count = len(test.hidden)
    low, high = (binom.ppf(q, count, 1 / len(SIDES)) for q in (UNLIKELY, 1 - UNLIKELY))
    hits = probe(train, test, "hidden", len(SIDES), steps)
    assert low <= hits <= high, f"{hits} of {count} right; guessing gives {low:.0f} to {high:.0f}"
    seen = probe(train, test, "far", 2, steps)
    assert seen > binom.ppf(1 - UNLIKELY, count, 0.5) and seen >= visible * count, f"{seen} of {count}"


def look_at_sockets(episodes: int, moments: int, first_seed: int) -> Looks:
    """What is hidden is the open side."""
    return look(
        KeyedSocketTask(), range(first_seed, first_seed + episodes), moments,
        near=lambda cell, action: cell.displacement()[2] < 0.012,
        secret=lambda cell, info: SIDES.index(info["hidden"]),
        far=lambda cell: cell.model.body("socket").pos[0] > 0.5,
    )


def test_sight_guesses_the_open_side_at_chance() -> None:
    check(look_at_sockets(240, 6, first_seed=0), look_at_sockets(120, 6, first_seed=10_000), steps=150, visible=0.85)


@pytest.mark.slow
def test_sight_guesses_the_open_side_at_chance_with_many_pictures() -> None:
    check(look_at_sockets(1000, 20, first_seed=0), look_at_sockets(500, 20, first_seed=10_000), steps=600, visible=0.9)
