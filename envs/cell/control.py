"""The compliant controller: a Cartesian spring-damper whose rest pose is the measured pose plus the commanded change.

The springs are MuJoCo actuators on the `tcp` site, so all physics steps of a decision run inside `mj_step(nstep)`. An
action of `dx` metres pulls with `STIFFNESS * dx` newtons: in free space that is a velocity, in contact a force, and
no command can push harder than its own bound. Roll and pitch are held.
"""

from __future__ import annotations

import mujoco
import numpy as np

from robot_fb.types import ActionSpec

STIFFNESS = 1000.0
"""Translational spring of cell.xml [N/m]."""

MAX_WIDTH = 0.08
"""Gripper opening [m]."""

ACTION = ActionSpec(
    low=(-0.02, -0.02, -0.02, -0.1, -1.0),
    high=(0.02, 0.02, 0.02, 0.1, 1.0),
    names=("dx [m]", "dy [m]", "dz [m]", "dyaw [rad]", "grip (-1 open, +1 closed)"),
)
"""Pose change in the base frame, and grip."""


def command(model: mujoco.MjModel, data: mujoco.MjData, action: np.ndarray) -> None:
    """Sets the actuators for one decision.

    Args:
        model: the compiled cell.
        data: its state; `ctrl` is written.
        action: (5,) within `ACTION`.
    """
    data.ctrl[0:3] = data.site("tcp").xpos + action[:3]
    data.ctrl[3:5] = 0.0
    data.ctrl[5] = data.actuator_length[5] - action[3]  # the angular frame points down: world yaw is minus its z
    data.ctrl[6:8] = (1.0 - action[4]) * 0.25 * MAX_WIDTH


def solve_pose(model: mujoco.MjModel, data: mujoco.MjData, position: np.ndarray, yaw: float = 0.0) -> None:
    """Puts the arm so that the tcp points down at `position` [m] (base frame); damped least squares on the 7 joints.

    Raises:
        ValueError: the pose is out of reach.
    """
    site = data.site("tcp").id
    goal = np.zeros(4)
    mujoco.mju_mulQuat(goal, np.array([np.cos(yaw / 2), 0, 0, np.sin(yaw / 2)]), np.array([0.0, 1.0, 0.0, 0.0]))
    data.qpos[:7] = HOME
    jacobian, here, error = np.zeros((6, model.nv)), np.zeros(4), np.zeros(6)
    for _ in range(50):
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mju_mat2Quat(here, data.site_xmat[site])
        error[:3] = position - data.site_xpos[site]
        inverse = np.zeros(4)
        mujoco.mju_negQuat(inverse, here)
        difference = np.zeros(4)
        mujoco.mju_mulQuat(difference, goal, inverse)
        mujoco.mju_quat2Vel(error[3:], difference, 1.0)
        if np.abs(error).max() < 1e-5:
            return
        mujoco.mj_jacSite(model, data, jacobian[:3], jacobian[3:], site)
        j = jacobian[:, :7]
        data.qpos[:7] += j.T @ np.linalg.solve(j @ j.T + 1e-6 * np.eye(6), error)
    raise ValueError(f"the arm cannot reach {np.round(position, 3)} m; residual {np.abs(error).max():.4f}")


HOME = np.array([0.0, 0.05, 0.0, -2.37, 0.0, 2.42, 0.785])
"""Joint angles [rad] with the tcp about 0.2 m above the table at x = 0.5 m."""
