"""A person's commands: how long they count, and what refuses them."""

from __future__ import annotations

import numpy as np
import pytest

from robot_fb.runtime.teleop import Clutch, Command, Deadman


class Clock:
    now = 50.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def deadman(clock):
    return Deadman(clock=clock)


def command(clock, sequence=0, held=True, age=0.05, action=(0.01, 0.0)):
    return Command(np.array(action, np.float32), held, sequence, clock.now - age)


def test_nobody_commands_at_first(deadman):
    assert deadman.command() is None


def test_a_command_counts_until_it_expires(deadman, clock):
    assert deadman.give(command(clock)) == ""
    clock.now += 0.039
    assert deadman.command() == pytest.approx([0.01, 0.0])
    clock.now += 0.002
    assert deadman.command() is None


def test_letting_go_counts_at_once(deadman, clock):
    deadman.give(command(clock))
    deadman.give(command(clock, 1, held=False))
    assert deadman.command() is None


def test_a_late_message_neither_moves_nor_keeps_moving(deadman, clock):
    deadman.give(command(clock, 5, held=False))
    assert "older" in deadman.give(command(clock, 4)) and deadman.command() is None
    assert "older" in deadman.give(command(clock, 5)) and deadman.command() is None


@pytest.mark.parametrize("age", [0.301, 10.0, -0.01, -10.0, float("nan")])
def test_a_command_on_an_old_picture_or_one_from_the_future_is_refused_and_lets_go(deadman, clock, age):
    deadman.give(command(clock))
    assert "picture" in deadman.give(command(clock, 1, age=age)) and deadman.command() is None


def test_a_nan_is_refused_and_lets_go(deadman, clock):
    deadman.give(command(clock))
    assert "NaN" in deadman.give(command(clock, 1, action=(np.nan, 0.0))) and deadman.command() is None


def test_the_next_operator_counts_from_nought(deadman, clock):
    deadman.give(command(clock, 900))
    deadman.let_go()
    assert deadman.command() is None
    assert deadman.give(command(clock, 0)) == "" and deadman.command() is not None


def test_an_open_clutch_asks_for_no_motion():
    assert Clutch(np.full(3, 0.02)).change(np.ones(3), np.zeros(3)).tolist() == [0, 0, 0]


def test_closing_the_clutch_far_from_the_robot_does_not_make_it_jump():
    clutch, leader, measured = Clutch(np.full(3, 0.02)), np.array([4.0, 5.0, 6.0]), np.array([0.5, 0.0, 0.3])
    clutch.close(leader, measured)
    assert clutch.closed
    assert clutch.change(leader, measured) == pytest.approx([0, 0, 0])
    assert clutch.change(leader + np.array([0.01, 0, 0]), measured) == pytest.approx([0.01, 0, 0])


def test_what_was_pushed_into_a_contact_is_not_let_loose_after_it():
    clutch, measured = Clutch(np.full(1, 0.02)), np.zeros(1)
    clutch.close(np.zeros(1), measured)
    for i in range(50):  # the leader moves 0.5 m, the robot is blocked
        pushed = clutch.change(np.array([0.01 * (i + 1)]), measured)
    assert pushed == pytest.approx([0.02])
    back = clutch.change(np.array([0.48]), measured)  # two centimetres back are two centimetres back
    assert back == pytest.approx([0.0])


def test_an_opened_clutch_forgets_its_target():
    clutch = Clutch(np.full(1, 0.02))
    clutch.close(np.zeros(1), np.zeros(1))
    clutch.change(np.ones(1), np.zeros(1))
    clutch.open()
    clutch.close(np.ones(1), np.ones(1))
    assert clutch.change(np.ones(1), np.ones(1)) == pytest.approx([0.0])
