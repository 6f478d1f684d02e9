"""Nothing unusable reaches a policy or a robot, and the message names what it was."""

from __future__ import annotations

import numpy as np
import pytest

from robot_fb.errors import ActionError, ObservationError
from robot_fb.runtime.arbiter import PassThrough
from robot_fb.runtime.guard import check_observation, checked_action
from robot_fb.runtime.loop import run
from robot_fb.types import ActionChunk, StreamSpec

STREAMS = {"tcp/pose": StreamSpec((7,)), "camera/wrist": StreamSpec((2, 2, 3), "uint8")}
GOOD = {"tcp/pose": np.ones(7, np.float32), "camera/wrist": np.zeros((2, 2, 3), np.uint8)}


def test_a_good_observation_passes_also_with_more_than_was_promised():
    check_observation({**GOOD, "joint/position": np.zeros(7)}, STREAMS)


@pytest.mark.parametrize(
    ("change", "hint"),
    [
        ({"tcp/pose": np.ones(6)}, r"'tcp/pose' has another shape; expected \(7,\); found \(6,\)"),
        ({"tcp/pose": np.full(7, np.inf)}, "'tcp/pose' holds a NaN or an infinity"),
        ({"wrench/wrist": np.array([np.nan])}, "'wrench/wrist' holds a NaN"),
    ],
)
def test_a_bad_observation_is_refused(change, hint):
    with pytest.raises(ObservationError, match=hint):
        check_observation({**GOOD, **change}, STREAMS)


def test_a_missing_stream_is_named():
    with pytest.raises(ObservationError, match="'camera/wrist' is missing; found tcp/pose"):
        check_observation({"tcp/pose": GOOD["tcp/pose"]}, STREAMS)


@pytest.mark.parametrize("action", [np.zeros(2), np.zeros((1, 3)), np.zeros(0), np.array([0, np.nan, 0])])
def test_a_bad_action_is_refused(action):
    with pytest.raises(ActionError):
        checked_action(action, 3)


def test_an_action_of_another_robot_never_moves_this_one(robot, meta, forward, monkeypatch):
    policy = forward()
    monkeypatch.setattr(policy, "act", lambda obs: ActionChunk(np.zeros((4, 2), np.float32), 0.05))
    with pytest.raises(ActionError, match=r"expected \(1,\); found \(2,\); the robot was stopped"):
        run(robot, policy, PassThrough(), {}, [], meta)
    assert robot.env.count == 0 and robot.stopped >= 1


@pytest.mark.parametrize(
    ("actions", "dt", "hint"),
    [
        (np.zeros((0, 1)), 0.05, r"planned no action; expected \(horizon, action_dim\); found \(0, 1\)"),
        (np.zeros(1), 0.05, r"planned no action.*found \(1,\)"),
        (np.zeros((1, 1)), 0.0, "dt is no time; expected seconds above 0; found 0.0"),
        (np.zeros((1, 1)), np.nan, "dt is no time.*found nan"),
    ],
)
def test_a_plan_that_cannot_be_followed_stops_the_robot(robot, meta, forward, monkeypatch, actions, dt, hint):
    policy = forward()
    monkeypatch.setattr(policy, "act", lambda obs: ActionChunk(actions, dt))
    with pytest.raises(ActionError, match=hint):
        run(robot, policy, PassThrough(), {}, [], meta)
    assert robot.env.count == 0 and robot.stopped >= 1
