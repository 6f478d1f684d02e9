"""Alarm, takeover, correction, way back and hand-back, through the loop, on the simulated cell."""

from __future__ import annotations

import numpy as np
import pytest

from robot_fb.runtime import poses
from robot_fb.runtime.arbiter import blend, nudge
from robot_fb.runtime.desk import LocalDesk
from robot_fb.runtime.gym_robot import GymRobot
from robot_fb.runtime.handshake import Event, State
from robot_fb.runtime.loop import run
from robot_fb.runtime.shared_control import SharedControl
from robot_fb.runtime.tasks import find_task
from robot_fb.types import ActionChunk, EpisodeMeta, PolicySpec

SIDEWAYS = np.array([0.006, 0.0, 0.0, 0.02, 1.0], np.float32)


class Planner:
    """Asks for the same motion for ever, and counts how often it had to plan afresh."""

    def __init__(self, robot: GymRobot) -> None:
        self.spec = PolicySpec("keyed_socket", robot.streams, robot.action, robot.dt)
        self.resets = 0

    def reset(self, seed=None):
        self.resets += 1

    def act(self, obs):
        return ActionChunk(SIDEWAYS[None], self.spec.dt)

    def embed(self, obs):
        return np.zeros(0, np.float32)


class Scores:
    """A monitor that says what a list says, and its last word for ever."""

    def __init__(self, scores):
        self._scores = list(scores)

    def calibrate(self, successes, alpha):
        pass

    def reset(self):
        self._left = list(self._scores)

    def score(self, obs, chunk):
        return self._left.pop(0) if len(self._left) > 1 else self._left[0]


class Stage:
    """A cell, its desk, and a person who follows a script: decision -> what they do."""

    def __init__(self, scores, script, mix=None):
        task = find_task("keyed_socket")
        self.robot, self.desk = GymRobot(task.make(cameras=False)), LocalDesk()
        options = {} if mix is None else {"mix": mix}
        self.control = SharedControl(self.robot, self.desk, **options)
        self.policy, self.scores, self.script = Planner(self.robot), Scores(scores), dict(script)
        self.steps, self.states = [], []

    def human(self):
        doing = self.script.get(len(self.steps))
        if isinstance(doing, Event):
            self.desk.say(doing)
            return None
        return doing

    def on_start(self, meta):
        pass

    def on_step(self, step):
        self.steps.append(step)
        self.states.append(self.control.handshake.state)

    def on_end(self, success, info):
        pass

    def play(self, decisions):
        robot = self.robot
        meta = EpisodeMeta("keyed_socket", "planner", robot.streams, robot.action, robot.dt, 3)
        with robot:
            return run(
                robot, self.policy, self.control, {"scripted": self.scores}, [self.control, self], meta,
                human=self.human, max_steps=decisions,
            )

    def moved(self, first, last):
        """Between two decisions: (metres, degrees)."""
        a, b = (poses.pose_of(self.steps[i].obs) for i in (first, last))
        away = poses.change(a, b)
        return float(np.linalg.norm(away[:3])), float(np.degrees(abs(away[3])))


def up(z=0.01):
    return np.array([0.0, 0.0, z, 0.0, 1.0], np.float32)


def test_without_an_alarm_nothing_is_different():
    stage = Stage([0.5], {})
    stage.play(10)
    assert {step.source for step in stage.steps} == {"policy"} and set(stage.states) == {State.AUTONOMOUS}
    assert not stage.desk.reason


def test_an_alarm_stops_the_robot_at_that_decision_and_asks():
    stage = Stage([0.0] * 5 + [2.0], {})
    stage.play(25)
    assert [step.source for step in stage.steps] == ["policy"] * 5 + ["hold"] * 20
    assert stage.states[5:8] == [State.ALARM, State.FROZEN, State.REQUESTED]
    assert stage.desk.reason == "risk 2.00 of 1" and stage.desk.risk == 2.0
    brakes, _ = stage.moved(5, 8)
    rests, degrees = stage.moved(14, 24)
    assert brakes < 0.004 and rests < 0.001 and degrees < 0.5
    assert stage.steps[6].proposed == pytest.approx(SIDEWAYS)  # what the policy wanted is still in the log


def full_takeover(mix=None, push=None):
    """Alarm at 4, lease at 10, twenty decisions by a person from 12, hand-back at 34."""
    push = up() if push is None else push
    script = {10: Event.GRANTED, **dict.fromkeys(range(12, 32), push), 34: Event.HANDED_BACK}
    stage = Stage([0.0] * 4 + [3.0] * 28 + [0.0], script, mix)
    stage.play(50)
    return stage


def test_a_correction_of_one_second_is_one_second_of_human_steps():
    stage = full_takeover()
    sources = [step.source for step in stage.steps]
    assert sources == ["policy"] * 4 + ["hold"] * 8 + ["human"] * 20 + ["hold"] * 3 + ["policy"] * 15
    assert sources.count("human") * stage.robot.dt == pytest.approx(1.0)
    assert stage.steps[12].executed == pytest.approx(up())


def test_the_policy_sees_afresh_before_it_goes_on():
    stage = full_takeover()
    assert stage.policy.resets == 2  # at the start, and at the hand-back
    returning = stage.states.index(State.RETURNING)
    assert stage.states[returning + 1] is State.AUTONOMOUS


def test_nothing_jumps_when_a_person_takes_over_or_hands_back():
    stage = full_takeover(push=up(0.0))
    for first in range(5, 35):  # from the freeze to the hand-back
        metres, degrees = stage.moved(first, first + 1)
        assert metres < 0.002 and degrees < 0.5


def test_a_person_without_a_lease_moves_nothing():
    stage = Stage([0.0] * 3 + [2.0], dict.fromkeys(range(4, 20), up()))
    stage.play(20)
    assert "human" not in {step.source for step in stage.steps}


def test_a_deadman_that_is_let_go_freezes_the_robot_and_keeps_the_lease():
    script = {6: Event.GRANTED, 8: up(), 9: up(), 12: up()}
    stage = Stage([0.0] * 3 + [2.0], script)
    stage.play(15)
    assert [i for i, step in enumerate(stage.steps) if step.source == "human"] == [8, 9, 12]


def test_a_lost_lease_freezes_and_asks_again():
    script = {6: Event.GRANTED, 8: up(), 9: Event.LOST}
    stage = Stage([0.0] * 3 + [2.0], script)
    stage.play(14)
    assert stage.states[8:11] == [State.HUMAN, State.FROZEN, State.REQUESTED]
    assert {step.source for step in stage.steps[9:]} == {"hold"}


def test_a_false_alarm_is_not_raised_again_at_once_but_a_rising_risk_is():
    script = {8: Event.HANDED_BACK}
    stage = Stage([0.0] * 3 + [2.0] * 20 + [2.5], script)
    stage.play(30)
    sources = [step.source for step in stage.steps]
    assert sources[10:23] == ["policy"] * 13 and sources[24] == "hold"


def test_the_way_back_leads_to_where_the_risk_was_low():
    script = {26: Event.GRANTED, 28: Event.BACK_UP}
    stage = Stage([0.0] * 10 + [0.9] * 10 + [2.0], script)
    stage.play(120)
    back = [i for i, step in enumerate(stage.steps) if step.source == "rewind"]
    assert back and stage.states[back[-1] + 2] is State.LEASED
    metres, _ = stage.moved(9, back[-1] + 1)
    gone, _ = stage.moved(9, back[0])
    assert metres < 0.5 * gone and metres < 0.008


def test_stop_holds_until_somebody_resets():
    script = {3: Event.STOP, 10: Event.GRANTED, 12: Event.HANDED_BACK, 14: Event.RESET}
    stage = Stage([0.0], script)
    stage.play(20)
    assert stage.states[5:14] == [State.STOPPED] * 9 and stage.states[-1] is State.REQUESTED
    assert {step.source for step in stage.steps[5:]} == {"hold"}


@pytest.mark.parametrize(
    ("mix", "sent"), [(blend(0.25), 0.25 * up() + 0.75 * SIDEWAYS), (nudge, up(0.004) + SIDEWAYS)]
)
def test_other_ways_of_mixing(mix, sent):
    stage = full_takeover(mix, up() if mix is not nudge else up(0.004))
    step = stage.steps[15]
    assert step.source == "blend"
    assert step.executed == pytest.approx(np.clip(sent, stage.robot.action.low, stage.robot.action.high))
