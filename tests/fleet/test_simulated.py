"""A simulated fleet in step with its clock, worked by a simulated operator."""

from __future__ import annotations

import numpy as np
import pytest

from robot_fb.episodes.store import Store
from robot_fb.fleet.hand import Guided
from robot_fb.fleet.hub import Hub
from robot_fb.fleet.member import Crew, Member, hello
from robot_fb.fleet.operator import SimulatedOperator
from robot_fb.fleet.simulated import SimulatedFleet
from robot_fb.runtime.handshake import State
from robot_fb.teachers.operator import Hand, Skill
from robot_fb.types import SOURCES

from .conftest import Rail, Risk, Slow

ALARM = 5


class Late(Risk):
    """Alarms from the fifth decision on, until the robot has been helped past the half."""

    def __init__(self, robot):
        super().__init__()
        self._robot, self._asked = robot, 0

    def reset(self):
        self._asked = 0

    def score(self, obs, chunk):
        self._asked += 1
        return 2.0 if self._asked > ALARM and self._robot.x < 0.5 else 0.0


class Pull:
    """An expert that pulls as far as it may."""

    def reset(self):
        pass

    def act(self):
        return np.array([0.1])


def fleet(folder, count, skill, episodes=1, work=None):
    """Runs `count` robots; returns (hub, control of each, store)."""
    store, hub, controls = Store(folder, create=True), Hub(), {}
    operator = SimulatedOperator(skill)
    clock = SimulatedFleet(hub, Rail.dt, operator.tick)

    def robot(name):
        def run(port, wait):
            robot = Rail()
            member = Member(
                name, robot, Crew(Slow(), "abc", {"late": Late(robot)}), "rail", "slow", port, store, paced=False,
                clock=clock.clock, human=lambda: (wait(), guided())[1],
            )
            controls[name] = member.control
            hand = Hand(Pull(), robot.action.low, robot.action.high, skill, np.random.default_rng(0))
            guided = Guided(port, hand, lambda: member.control.handshake.state)
            port.send(hello(robot, "rail", "abc", "autonomous"))
            for seed in range(episodes):
                member.episode(seed, 400)

        return run

    clock.run(work or {f"robot-{i}": robot(f"robot-{i}") for i in range(count)})
    return hub, controls, store


STEADY = Skill(reaction_s=0.5, spread=0.0, tremor=0.0, stint_s=2.0)


def test_the_operator_helps_a_robot_that_asked_and_hands_it_back(tmp_path):
    hub, _controls, store = fleet(tmp_path / "store", 1, STEADY)
    [id] = store.query()
    episode = store.read(id)
    sources = [SOURCES[i] for i in episode.columns.sources]
    first = sources.index("human")
    assert episode.success and hub.waits and hub.waits[0] == pytest.approx(0.5, abs=0.15)
    assert set(sources[:ALARM]) == {"policy"} and set(sources[ALARM:first]) == {"hold"}


def test_one_operator_has_one_robot_at_a_time_and_all_are_helped(tmp_path):
    hub, controls, store = fleet(tmp_path / "store", 4, STEADY, episodes=2)
    assert len(hub.waits) == 8 and len(store.query(success=True)) == 8
    assert max(hub.waits) > 1.0 > min(hub.waits)  # they waited for one another
    assert {control.handshake.state for control in controls.values()} <= set(State)


def test_the_same_seed_is_the_same_fleet(tmp_path):
    first, second = (fleet(tmp_path / name, 3, Skill())[0].waits for name in ("a", "b"))
    assert first == second and len(set(first)) == 3


def test_an_error_in_one_robot_ends_all(tmp_path):
    def breaks(port, wait):
        wait()
        raise ValueError("broken")

    def goes_on(port, wait):
        while True:
            wait()

    with pytest.raises(ValueError, match="broken"):
        fleet(tmp_path / "store", 2, STEADY, work={"one": goes_on, "two": breaks})
