"""Seeds, averaged weights and optimizer state."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from robot_fb.errors import CheckpointError
from robot_fb.training import seeds
from robot_fb.training.state import Ema, optimizer_tensors, pack, restore_optimizer, unpack


def test_every_part_of_a_run_has_its_own_numbers():
    def draw(seed, name):
        return seeds.rng(seed, name).random(3).tolist()

    assert draw(1, "mixer") == draw(1, "mixer")
    assert draw(1, "mixer") != draw(1, "noise") and draw(1, "mixer") != draw(2, "mixer")
    first, second = (torch.rand(2, generator=seeds.torch_generator(4, "x")) for _ in range(2))
    assert torch.equal(first, second)


def test_seed_everything_covers_the_global_generators():
    def draw():
        seeds.seed_everything(3)
        return np.random.rand(), torch.rand(1).item()  # noqa: NPY002

    assert draw() == draw()


def test_ema_forgets_its_start_quickly_and_then_remembers():
    module = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.zeros_(module.weight)
    ema = Ema(module, 0.9)
    torch.nn.init.ones_(module.weight)

    ema.update(module, 0)  # decay 1/10
    assert ema.average.weight.item() == pytest.approx(0.9)
    ema.update(module, 10_000)  # decay 0.9
    assert ema.average.weight.item() == pytest.approx(0.91)


def test_an_optimizer_goes_on_where_it_was():
    def train(module, optimizer, steps):
        for _ in range(steps):
            optimizer.zero_grad()
            module(torch.ones(1, 2)).square().sum().backward()
            optimizer.step()

    torch.manual_seed(0)
    straight = torch.nn.Linear(2, 1)
    start = {k: v.clone() for k, v in straight.state_dict().items()}
    train(straight, torch.optim.AdamW(straight.parameters(), 0.1), 6)

    first = torch.nn.Linear(2, 1)
    first.load_state_dict(start)
    optimizer = torch.optim.AdamW(first.parameters(), 0.1)
    train(first, optimizer, 3)
    kept = unpack("opt", pack("opt", optimizer_tensors(optimizer)))
    again = torch.optim.AdamW(first.parameters(), 0.1)
    restore_optimizer(again, kept, Path("run"))
    train(first, again, 3)

    assert torch.equal(first.weight, straight.weight)


def test_optimizer_state_of_another_network_is_refused():
    first, second = torch.nn.Linear(2, 1), torch.nn.Linear(3, 1)
    optimizer = torch.optim.AdamW(first.parameters())
    first(torch.ones(1, 2)).sum().backward()
    optimizer.step()

    with pytest.raises(CheckpointError, match="other parameters"):
        restore_optimizer(torch.optim.AdamW(second.parameters()), optimizer_tensors(optimizer), Path("run"))
