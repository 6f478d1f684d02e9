"""The control loop: what is seen, asked for, sent and told; and that the robot is stopped, however it ends."""

from __future__ import annotations

import numpy as np
import pytest

from robot_fb.errors import ActionError, ObservationError
from robot_fb.runtime.arbiter import PassThrough, Takeover
from robot_fb.runtime.loop import run
from robot_fb.teachers.scripted import ScriptedFeedback
from robot_fb.types import Evaluation


class Listener:
    def __init__(self):
        self.steps, self.started, self.ended = [], 0, None

    def on_start(self, meta):
        self.started += 1

    def on_step(self, step):
        self.steps.append(step)

    def on_end(self, success, info):
        self.ended = success


class Alarm:
    """A monitor that counts."""

    def calibrate(self, successes, alpha):
        pass

    def reset(self):
        self.count = 0

    def score(self, obs, chunk):
        self.count += 1
        return float(self.count)


def test_runs_to_success_and_tells_every_step(robot, meta, forward):
    listener = Listener()
    result = run(robot, forward(0.3), PassThrough(), {"count": Alarm()}, [listener], meta)
    assert result.success and result.steps == 4 and result.ret == 1.0
    assert [step.t for step in listener.steps] == pytest.approx([0.0, 0.05, 0.10, 0.15])
    assert [step.scores["count"] for step in listener.steps] == [1, 2, 3, 4]
    assert listener.steps[0].obs["state"][0] == 0.0 and listener.steps[-1].success
    assert listener.ended is True and robot.stopped >= 1


def test_executed_is_what_was_really_sent(robot, meta, forward):
    listener = Listener()
    run(robot, forward(2.0), PassThrough(), {}, [listener], meta)
    assert listener.steps[0].proposed[0] == 2.0 and listener.steps[0].executed[0] == 0.5


def test_a_person_takes_over_and_the_log_says_so(robot, meta, forward):
    listener = Listener()
    commands = iter([None, np.array([0.1], np.float32), None, None, None, None])
    run(robot, forward(0.3), Takeover(), {}, [listener], meta, human=lambda: next(commands))
    assert [step.source for step in listener.steps][:3] == ["policy", "human", "policy"]
    assert listener.steps[1].proposed[0] == pytest.approx(0.3) and listener.steps[1].executed[0] == pytest.approx(0.1)


def test_a_nan_action_never_reaches_the_robot(robot, meta, forward):
    listener = Listener()
    with pytest.raises(ActionError, match="NaN"):
        run(robot, forward(float("nan")), PassThrough(), {}, [listener], meta)
    assert robot.env.count == 0 and robot.stopped >= 1 and listener.ended is False


def test_a_nan_observation_stops_the_robot_and_keeps_the_steps_before(robot, meta, forward):
    listener = Listener()
    robot.env.breaks_at = 2
    with pytest.raises(ObservationError, match="state"):
        run(robot, forward(0.1), PassThrough(), {}, [listener], meta)
    assert len(listener.steps) == 2 and listener.ended is False and robot.stopped >= 1


def test_ctrl_c_stops_the_robot(robot, meta, forward):
    def interrupt():
        raise KeyboardInterrupt

    listener = Listener()
    with pytest.raises(KeyboardInterrupt):
        run(robot, forward(), PassThrough(), {}, [listener], meta, human=interrupt)
    assert robot.stopped >= 1 and listener.ended is False


def test_a_wrong_shape_is_refused_by_the_robot(robot):
    robot.reset(0)
    with pytest.raises(ActionError, match="1 finite numbers"):
        robot.write(np.zeros(3))


def test_scripted_feedback_comes_when_its_time_has_come():
    source = ScriptedFeedback([Evaluation("e", 0.1, 1.0, "me"), Evaluation("e", 0.3, -1.0, "me")])
    assert [e.value for e in source.poll(0.2)] == [1.0]
    assert source.poll(0.2) == []
    assert [e.value for e in source.poll(9.0)] == [-1.0]
