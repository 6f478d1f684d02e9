"""The shared cell: what a command does, and what the sensors say."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import pytest

from envs.cell import control, sensing
from envs.cell.env import CellEnv, Judgement

BLOCK_MASS, BLOCK = 0.2, 0.03


class BareCell(CellEnv):
    """The arm 0.15 m above the table; `block=True` adds a block in the gripper, in the air."""

    def __init__(self, block: bool = False, **options: Any) -> None:
        self.block = block
        super().__init__(**{"cameras": False, "noise": sensing.SensorNoise.none()} | options)

    def build(self, spec: mujoco.MjSpec) -> None:
        sensor = spec.add_sensor(name="contact_force", type=mujoco.mjtSensor.mjSENS_CONTACT)
        sensor.objtype, sensor.objname = mujoco.mjtObj.mjOBJ_XBODY, "hand"
        sensor.intprm = [1 << int(mujoco.mjtConDataField.mjCONDATA_FORCE), 3, 1]
        if self.block:
            body = spec.worldbody.add_body(name="block")
            body.add_freejoint(name="block")
            body.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, size=[BLOCK / 2] * 3, mass=BLOCK_MASS, solref=[0.004, 1])

    def place(self) -> None:
        here = np.array([0.5, 0.0, 0.15]) + self.np_random.uniform(-0.01, 0.01, 3)
        control.solve_pose(self.model, self.data, here)
        self.data.qpos[7:9] = self.data.ctrl[6:8] = 0.04
        if self.block:
            self.data.joint("block").qpos[:3] = here
            self.data.qpos[7:9] = BLOCK / 2
            self.data.ctrl[6:8] = 0.0
        mujoco.mj_forward(self.model, self.data)
        self.settle(4)

    def judge(self) -> Judgement:
        return Judgement(0.0)


@pytest.fixture
def cell() -> BareCell:
    env = BareCell()
    env.reset(seed=0)
    return env


def pose(cell: CellEnv) -> np.ndarray:
    """(4,) position [m] and yaw [rad] of the tcp in the base frame."""
    site = cell.data.site("tcp")
    return np.append(site.xpos, np.arctan2(site.xmat[3], site.xmat[0]))


def act(*values: float, grip: float = -1.0) -> np.ndarray:
    action = np.zeros(5, np.float32)
    action[: len(values)] = values
    action[4] = grip
    return action


@pytest.mark.parametrize("axis", range(4))
@pytest.mark.parametrize("sign", [-1, 1])
def test_each_command_moves_along_its_own_axis(cell: BareCell, axis: int, sign: int) -> None:
    before, command = pose(cell), act(grip=-1.0)
    command[axis] = sign * control.ACTION.high[axis]
    for _ in range(6):
        cell.step(command)
    moved = pose(cell) - before
    assert sign * moved[axis] > 0.03
    assert np.abs(np.delete(moved, axis)).max() < 0.2 * abs(moved[axis])


def test_in_free_space_a_command_is_a_velocity(cell: BareCell) -> None:
    speeds = []
    for dy in (0.004, 0.008):
        cell.reset(seed=0)
        for _ in range(12):
            obs, *_ = cell.step(act(0.0, dy))
        speeds.append(obs["tcp/velocity"][1])
        # the actuator's own damping of 90 N s/m allows this speed; that of the joints takes some of it
        assert 0.6 < speeds[-1] / (dy * control.STIFFNESS / 90.0) < 1.0
    assert speeds[1] == pytest.approx(2 * speeds[0], rel=0.1)


def test_velocity_is_the_change_of_the_pose(cell: BareCell) -> None:
    for _ in range(12):
        obs, *_ = cell.step(act(0.005, -0.008, 0.004, 0.05))
    before = pose(cell)
    mujoco.mj_step(cell.model, cell.data)
    change = (pose(cell) - before) / cell.model.opt.timestep
    assert obs["tcp/velocity"][[0, 1, 2, 5]] == pytest.approx(change, rel=0.03, abs=1e-3)
    assert np.abs(obs["tcp/velocity"][3:5]).max() < 0.05


def test_the_gripper_opens_and_closes(cell: BareCell) -> None:
    for _ in range(6):
        obs, *_ = cell.step(act(grip=1.0))
    assert obs["gripper/width"][0] < 0.002
    for _ in range(6):
        obs, *_ = cell.step(act(grip=-1.0))
    assert obs["gripper/width"][0] == pytest.approx(control.MAX_WIDTH, abs=0.002)


def test_an_action_beyond_its_bounds_is_clipped(cell: BareCell) -> None:
    obs, *_ = cell.step(np.full(5, 9.0, np.float32))
    assert np.array_equal(obs["command/last"], np.array(control.ACTION.high, np.float32))


def press(cell: BareCell, dz: float) -> dict[str, np.ndarray]:
    """Lowers the closed gripper onto the table, then presses with a constant command until all is at rest."""
    for _ in range(40):
        cell.step(act(0, 0, -0.01, grip=1.0))
    for _ in range(30):
        obs, *_ = cell.step(act(0, 0, dz, grip=1.0))
    return obs


@pytest.mark.parametrize("dz", [-0.004, -0.012, -0.02])
def test_in_contact_a_command_is_a_force(cell: BareCell, dz: float) -> None:
    press(cell, dz)
    assert cell.contact_force() == pytest.approx(-dz * control.STIFFNESS, rel=0.05)


def test_no_command_presses_harder_than_its_bound(cell: BareCell) -> None:
    press(cell, -5.0)
    assert cell.contact_force() <= 1.05 * control.STIFFNESS * control.ACTION.high[2]


def test_the_wrench_is_zero_at_the_start_and_in_free_motion_small() -> None:
    for block in (False, True):  # tared with and without a load in the gripper
        cell = BareCell(block=block)
        obs, _ = cell.reset(seed=0)
        assert np.abs(obs["wrench/wrist"]).max() < 0.02
        for _ in range(20):
            obs, *_ = cell.step(act(0.005, grip=1.0 if block else -1.0))
        assert np.abs(obs["wrench/wrist"][-1]).max() < 0.3


def test_the_wrench_is_what_the_surroundings_do_to_the_tool(cell: BareCell) -> None:
    """The table pushes up; the tcp's z points down: minus 8 N along it."""
    wrench = press(cell, -0.008)["wrench/wrist"]
    assert wrench[-1, :3] == pytest.approx([0, 0, -8.0], abs=0.4)
    assert wrench.shape == (sensing.WINDOW, 6)


@pytest.mark.parametrize("lever", [(0, 0, 0), (0.02, 0, 0), (0, 0.03, 0), (0, 0, 0.05)])
def test_the_torque_is_about_the_tcp(cell: BareCell, lever: tuple[float, float, float]) -> None:
    """A force that acts on the hand at `lever` from the tcp (base frame) turns with lever x force."""
    force, arm = np.array([0.5, -0.4, 0.8]), np.array(lever)
    for _ in range(20):  # at rest against the damping: constant slow drift, no acceleration
        point = cell.data.site("tcp").xpos + arm
        cell.data.body("hand").xfrc_applied[:3] = force
        cell.data.body("hand").xfrc_applied[3:] = np.cross(point - cell.data.body("hand").xipos, force)
        obs, *_ = cell.step(act())
    axes = cell.data.site("tcp").xmat.reshape(3, 3)
    wrench = obs["wrench/wrist"][-1]
    assert axes @ wrench[:3] == pytest.approx(force, abs=0.03)
    assert axes @ wrench[3:] == pytest.approx(np.cross(arm, force), abs=0.004)


def test_the_window_holds_the_last_160_ms_oldest_first(cell: BareCell) -> None:
    first = cell.step(act(0.02))[0]["wrench/wrist"]
    second = cell.step(act(0.02))[0]["wrench/wrist"]
    shift = sensing.WINDOW - 5  # five new samples a decision
    assert np.array_equal(second[:shift], first[5:])
    assert not np.array_equal(second[shift:], first[:5])


def test_taxels_sum_to_the_forces_on_the_pads() -> None:
    # given a block of 0.2 kg held in the air at rest
    cell = BareCell(block=True)
    obs, _ = cell.reset(seed=0)
    left, right = (obs[f"tactile/{pad}"].sum(axis=(1, 2)) for pad in ("left", "right"))
    # then each pad presses with what its actuator gives
    grip = -cell.data.actuator_force[6:8]
    assert (left[0], right[0]) == pytest.approx(tuple(grip), rel=0.02)
    # and the block's weight pulls both pads towards the fingertips, and nothing aside
    assert left[2] + right[2] == pytest.approx(BLOCK_MASS * 9.81, rel=0.02)
    assert left[1] + right[1] == pytest.approx(0.0, abs=0.05)


def test_taxels_sum_to_the_net_contact_force_in_every_channel() -> None:
    cell = BareCell(block=True)
    cell.reset(seed=0)
    for _ in range(5):
        cell.step(act(0.02, 0.01, 0.02, 0.1, grip=1.0))
    force = np.zeros(6)
    for pad, inward in (("left", -1.0), ("right", 1.0)):
        geom, net = cell.model.geom(f"{pad}_pad").id, np.zeros(3)
        for i, contact in enumerate(cell.data.contact):
            if geom in contact.geom:
                mujoco.mj_contactForce(cell.model, cell.data, i, force)
                net += (1 if contact.geom[1] == geom else -1) * contact.frame.reshape(3, 3).T @ force[:3]
        along = cell.data.geom_xmat[geom].reshape(3, 3).T @ net
        sums = sensing.taxels(cell.model, cell.data, pad).sum(axis=(1, 2))
        assert sums == pytest.approx([-inward * along[1], along[0], along[2]], abs=1e-4)
        assert sums[0] > 1.0


def test_untouched_pads_feel_nothing(cell: BareCell) -> None:
    obs, *_ = cell.step(act())
    assert not obs["tactile/left"].any() and not obs["tactile/right"].any()


def test_observations_fit_their_space_and_specs() -> None:
    cell = BareCell(cameras=True, image_size=32, noise=sensing.SensorNoise())
    obs, _ = cell.reset(seed=0)
    for _ in range(3):
        assert cell.observation_space.contains(obs)
        assert {k: (v.shape, str(v.dtype)) for k, v in obs.items()} == {
            k: (s.shape, s.dtype) for k, s in cell.stream_specs.items()
        }
        obs, *_ = cell.step(cell.action_space.sample())
    cell.close()


def test_quaternions_are_unit_and_keep_their_sign() -> None:
    cell = BareCell(noise=sensing.SensorNoise())
    obs, _ = cell.reset(seed=0)
    for _ in range(20):
        quat = obs["tcp/pose"][3:]
        assert np.linalg.norm(quat) == pytest.approx(1.0, abs=1e-5) and quat[0] > 0.5
        obs, *_ = cell.step(act(0, 0, 0, 0.1))


def test_cameras_are_optional_and_see_the_arm() -> None:
    assert not [key for key in BareCell().observation_space if key.startswith("camera/")]
    cell = BareCell(cameras=True)
    before, _ = cell.reset(seed=0)
    for _ in range(10):
        after, *_ = cell.step(act(0.02, 0, -0.02, grip=1.0))
    assert (before["camera/scene"] != after["camera/scene"]).any(axis=2).mean() > 0.02  # the arm moved
    assert (before["camera/wrist"] != after["camera/wrist"]).any(axis=2).mean() > 0.005  # the fingers closed
    cell.close()


def test_render_gives_a_large_picture() -> None:
    cell = BareCell(render_mode="rgb_array")
    cell.reset(seed=0)
    picture = cell.render()
    assert picture is not None and picture.shape == (480, 480, 3) and picture.std() > 10
    assert BareCell().render() is None
    cell.close()


def test_the_same_seed_and_actions_give_the_same_bits() -> None:
    def episode() -> list[dict[str, np.ndarray]]:
        cell = BareCell(block=True, noise=sensing.SensorNoise())
        rng = np.random.default_rng(3)
        frames = [cell.reset(seed=11)[0]]
        for _ in range(30):
            frames.append(cell.step(rng.uniform(cell.action_space.low, cell.action_space.high))[0])
        return frames

    for a, b in zip(episode(), episode(), strict=True):
        assert all(np.array_equal(a[key], b[key]) for key in a)


def test_another_seed_gives_another_start() -> None:
    cell = BareCell()
    first, second = cell.reset(seed=1)[0], cell.reset(seed=2)[0]
    assert not np.array_equal(first["tcp/pose"], second["tcp/pose"])


def test_a_pose_out_of_reach_is_refused(cell: BareCell) -> None:
    with pytest.raises(ValueError, match="cannot reach"):
        control.solve_pose(cell.model, cell.data, np.array([1.5, 0.0, 0.2]))
