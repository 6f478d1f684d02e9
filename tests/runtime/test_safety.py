"""Limits and the watchdog: what holds whoever commands."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from robot_fb.errors import ConfigError
from robot_fb.runtime.gym_robot import GymRobot
from robot_fb.runtime.poses import POSE
from robot_fb.runtime.safety import WRENCH, Limited, Limits, Watchdog
from robot_fb.types import ActionSpec, StepOutcome, StreamSpec

DOWN = (0.0, 1.0, 0.0, 0.0)  # the tool's z points to the floor: x stays, y and z turn round


class Still:
    """A robot that shows what it is told to show, and notes what it is sent."""

    streams = {POSE: StreamSpec((7,)), WRENCH: StreamSpec((2, 6))}  # noqa: RUF012
    action = ActionSpec((-1.0,) * 5, (1.0,) * 5, ("dx [m]", "dy [m]", "dz [m]", "dyaw [rad]", "grip"))
    dt = 0.05

    def __init__(self, position=(0.5, 0.0, 0.2), force=(0.0, 0.0, 0.0), quaternion=DOWN):
        self.obs = {POSE: np.array([*position, *quaternion], np.float32), WRENCH: np.zeros((2, 6), np.float32)}
        self.obs[WRENCH][-1, :3] = force
        self.sent, self.stopped = [], threading.Event()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        pass

    def reset(self, seed=None):
        return self.obs

    def read(self):
        return self.obs

    def write(self, action):
        self.sent.append(action)
        return action

    def outcome(self):
        return StepOutcome()

    def still(self):
        return np.zeros(5, np.float32)

    def stop(self):
        self.stopped.set()


def sent(limits, action, **shown):
    robot = Limited(Still(**shown), limits)
    executed = robot.write(np.array(action, np.float32))
    assert executed is robot.robot.sent[-1]
    return executed, robot.cut


def test_what_is_within_the_limits_passes_unchanged():
    limits = Limits(0.5, 1.0, (0, -1, 0), (1, 1, 1), 20.0)
    executed, cut = sent(limits, [0.01, 0, -0.01, 0.02, 1], force=(0, 0, 5.0))
    assert executed == pytest.approx([0.01, 0, -0.01, 0.02, 1]) and cut == 0


def test_speed_is_cut_without_a_change_of_direction():
    executed, cut = sent(Limits(speed_m_s=0.2, turn_rad_s=1.0), [0.03, 0.04, 0, -0.2, 1])
    assert executed == pytest.approx([0.006, 0.008, 0, -0.05, 1]) and cut == 1


def test_the_workspace_ends_where_it_ends():
    limits = Limits(low=(0.3, -0.2, 0.19), high=(0.7, 0.2, 0.4))
    executed, _ = sent(limits, [0.5, 0, -0.5, 0, 0])
    assert executed == pytest.approx([0.2, 0, -0.01, 0, 0])


def test_from_outside_the_workspace_the_way_in_is_open_and_nobody_is_pushed():
    limits = Limits(low=(0.3, -0.2, 0.25), high=(0.7, 0.2, 0.4))
    assert sent(limits, [0, 0, -0.01, 0, 0])[0] == pytest.approx(np.zeros(5))
    assert sent(limits, [0, 0, 0.01, 0, 0])[0] == pytest.approx([0, 0, 0.01, 0, 0])


def test_a_high_force_is_not_pushed_against():
    # the tool points down, and the table pushes it back against its own z: upwards in the base frame
    table = {"force": (0.0, 0.0, -30.0)}
    assert sent(Limits(force_n=20.0), [0.01, 0, -0.01, 0, 1], **table)[0] == pytest.approx([0.01, 0, 0, 0, 1])
    assert sent(Limits(force_n=20.0), [0.01, 0, 0.01, 0, 1], **table)[0] == pytest.approx([0.01, 0, 0.01, 0, 1])
    assert sent(Limits(force_n=40.0), [0.01, 0, -0.01, 0, 1], **table)[0] == pytest.approx([0.01, 0, -0.01, 0, 1])


@pytest.mark.parametrize(
    "wrong", [{"speed_m_s": 0.0}, {"force_n": float("nan")}, {"low": (0, 0, 0), "high": (1, 0, 1)}]
)
def test_limits_that_nothing_can_keep_are_refused(wrong):
    with pytest.raises(ConfigError):
        Limits(**wrong)


def test_a_robot_without_a_pose_is_refused(robot):
    with pytest.raises(ConfigError, match="tcp/pose"):
        Limited(robot, Limits())


def test_the_cell_keeps_a_force_limit_that_its_commands_would_break():
    from robot_fb.runtime.tasks import find_task

    push, limit, forces = np.array([0, 0, -0.01, 0, 1.0], np.float32), 4.0, []
    with GymRobot(find_task("keyed_socket").make(cameras=False)) as cell:
        robot = Limited(cell, Limits(force_n=limit))
        robot.reset(0)
        for _ in range(60):
            assert not robot.outcome().terminated
            robot.write(push)
            forces.append(np.linalg.norm(robot.read()[WRENCH][-5:, :3], axis=1).max())
        for _ in range(20):
            robot.write(-push)
    assert max(forces[-20:]) < 1.1 * limit < 8.0 < max(forces)
    assert robot.cut and robot.read()[POSE][2] > 0.1


def test_the_watchdog_stops_a_robot_whose_commands_stay_away():
    robot = Still()
    with Watchdog(robot, 0.05) as watched:
        assert not robot.stopped.wait(0.2)  # nothing was sent yet: nothing to watch
        watched.write(np.zeros(5, np.float32))
        assert robot.stopped.wait(2.0) and watched.stops == 1
        robot.stopped.clear()
        assert not robot.stopped.wait(0.2)  # once is enough


def test_the_watchdog_leaves_a_fed_robot_alone():
    robot = Still()
    with Watchdog(robot, 1.0) as watched:
        for _ in range(20):
            watched.write(np.zeros(5, np.float32))
            time.sleep(0.01)
        watched.stop()
    assert watched.stops == 0 and robot.stopped.is_set()
