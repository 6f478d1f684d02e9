"""The control loop: what is seen, asked for, sent and told; and that the robot is stopped, however it ends."""

from __future__ import annotations

import numpy as np
import pytest

from robot_fb.errors import ActionError, ObservationError
from robot_fb.runtime import loop
from robot_fb.runtime.arbiter import PassThrough, Takeover
from robot_fb.runtime.loop import run
from robot_fb.teachers.scripted import ScriptedFeedback
from robot_fb.types import ActionChunk, Evaluation


class Listener:
    def __init__(self):
        self.steps, self.started, self.ended = [], 0, None

    def on_start(self, meta):
        self.started += 1

    def on_step(self, step):
        self.steps.append(step)

    def on_end(self, success, info):
        self.ended, self.info = success, info


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
    assert robot.stopped >= 1 and listener.ended is False and listener.info["aborted"] == "KeyboardInterrupt"


def test_a_wrong_shape_is_refused_by_the_robot(robot):
    robot.reset(0)
    with pytest.raises(ActionError, match="1 finite numbers"):
        robot.write(np.zeros(3))


def test_scripted_feedback_comes_when_its_time_has_come():
    source = ScriptedFeedback([Evaluation("e", 0.1, 1.0, "me"), Evaluation("e", 0.3, -1.0, "me")])
    assert [e.value for e in source.poll(0.2)] == [1.0]
    assert source.poll(0.2) == []
    assert [e.value for e in source.poll(9.0)] == [-1.0]


class Clock:
    """Time that passes only when somebody sleeps or thinks."""

    now = 100.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


class SlowPlanner:
    """Plans 0.1, 0.2, 0.3, 0.4 for the next four ticks; thinks for as long as it is told before each plan."""

    def __init__(self, clock, thinks_s):
        self.clock, self.thinks_s = clock, iter(thinks_s)

    def reset(self, seed=None):
        pass

    def act(self, obs):
        self.clock.now += next(self.thinks_s)
        return ActionChunk(np.array([[0.1], [0.2], [0.3], [0.4]], np.float32), 0.05)


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(loop, "time", clock)
    return clock


def test_when_paced_the_action_is_the_one_meant_for_now(robot, meta, clock):
    listener = Listener()
    planner = SlowPlanner(clock, [0.0, 0.1, 0.0])
    result = run(robot, planner, PassThrough(), {}, [listener], meta, max_steps=3, paced=True)
    assert [round(float(step.executed[0]), 1) for step in listener.steps] == [0.1, 0.3, 0.1]
    assert result.overruns == 1 and result.holds == 0


def test_in_simulation_time_stands_still_while_the_policy_thinks(robot, meta, clock):
    listener = Listener()
    run(robot, SlowPlanner(clock, [9.0, 9.0]), PassThrough(), {}, [listener], meta, max_steps=2)
    assert [round(float(step.executed[0]), 1) for step in listener.steps] == [0.1, 0.1]


def test_a_plan_that_is_too_old_holds_the_robot(robot, meta, clock):
    listener = Listener()
    result = run(robot, SlowPlanner(clock, [0.0, 0.3]), PassThrough(), {}, [listener], meta, max_steps=2, paced=True)
    assert [step.source for step in listener.steps] == ["policy", "hold"] and result.holds == 1
    assert robot.env.count == 1 and listener.steps[1].reward == 0.0


def test_a_person_may_move_the_robot_while_the_plan_is_too_old(robot, meta, clock):
    listener = Listener()
    command = np.array([0.05], np.float32)
    planner = SlowPlanner(clock, [0.3])
    run(robot, planner, Takeover(), {}, [listener], meta, human=lambda: command, max_steps=1, paced=True)
    assert listener.steps[0].source == "human" and robot.env.count == 1


class Failing(Listener):
    """A subscriber that cannot do its work at some moment."""

    def __init__(self, when):
        super().__init__()
        self.when = when

    def on_start(self, meta):
        super().on_start(meta)
        self._fail("start")

    def on_step(self, step):
        super().on_step(step)
        self._fail("step")

    def on_end(self, success, info):
        super().on_end(success, info)
        self._fail("end")

    def _fail(self, moment):
        if moment == self.when:
            raise OSError("no space left")


@pytest.mark.parametrize("when", ["start", "step", "end"])
def test_a_subscriber_that_fails_takes_no_other_with_it(robot, meta, forward, when):
    first, last = Listener(), Listener()
    with pytest.raises(OSError, match="no space"):
        run(robot, forward(0.5), PassThrough(), {}, [first, Failing(when), last], meta)
    assert first.ended is not None and last.started == (last.ended is not None)
    assert robot.stopped >= 1


def test_a_robot_that_fails_to_start_is_stopped_and_nothing_is_recorded(robot, meta, forward, monkeypatch):
    def broken(seed=None):
        raise ObservationError("no camera")

    monkeypatch.setattr(robot, "reset", broken)
    listener = Listener()
    with pytest.raises(ObservationError):
        run(robot, forward(), PassThrough(), {}, [listener], meta)
    assert robot.stopped >= 1 and listener.started == 0
