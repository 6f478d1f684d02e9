"""The correction: nothing before it learns, bounded after, blind to the base's inside."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from policies.chunk_mlp import ChunkMlpPolicy
from policies.residual import ResidualHead, ResidualPolicy, ResidualPolicyConfig
from policies.touch import TouchEncoder, alive, contact_gate, pool
from robot_fb.errors import ConfigError
from robot_fb.training.checkpoint import load_policy, save_policy
from robot_fb.types import ActionSpec, PolicySpec, StreamSpec

STREAMS = {
    "tcp/pose": StreamSpec((7,), unit="m, quaternion xyzw"),
    "gripper/width": StreamSpec((1,), unit="m"),
    "wrench/wrist": StreamSpec((16, 6), unit="N, N·m"),
    "tactile/left": StreamSpec((3, 8, 8), unit="N"),
}
ACTION = ActionSpec((-0.02, -0.02, -0.02, -0.1, -1.0), (0.02, 0.02, 0.02, 0.1, 1.0), ("x", "y", "z", "yaw", "grip"))
SPEC = PolicySpec("keyed_socket", STREAMS, ACTION, 0.05, embed_dim=4)


class Constant:
    """A base of which nothing but its plan can be known."""

    spec = SPEC

    def reset_lanes(self, lanes, seed=None):
        self.lanes = lanes

    def act_lanes(self, obs, fresh):
        plan = np.zeros((self.lanes, 16, 5), np.float32)
        plan[..., 0], plan[..., 4] = 0.01, 1.0
        return plan

    def embed_lanes(self, obs):
        return np.zeros((self.lanes, 4), np.float32)


def observation(lanes: int, newtons: float = 8.0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    obs = {key: rng.normal(size=(lanes, *spec.shape)).astype(np.float32) for key, spec in STREAMS.items()}
    obs["wrench/wrist"][..., :3] *= newtons
    return obs


@pytest.fixture
def policy() -> ResidualPolicy:
    torch.manual_seed(0)
    made = ResidualPolicy(Constant(), SPEC)  # type: ignore[arg-type]
    made.reset_lanes(3)
    return made


def wake(policy: ResidualPolicy, size: float = 50.0) -> None:
    """Gives the actor's last layer large random weights."""
    torch.nn.init.normal_(policy.head.actor[-1].weight, std=size)  # type: ignore[arg-type]


def test_before_learning_the_base_acts_alone(policy):
    plan = policy.act_lanes(observation(3), np.ones(3, bool))
    assert np.array_equal(plan, policy.base.act_lanes(observation(3), np.ones(3, bool)))


def test_the_correction_stays_within_its_scale_and_never_moves_the_grip(policy):
    wake(policy)
    plan = policy.act_lanes(observation(3), np.ones(3, bool))
    added = plan[:, 0] - policy.base.act_lanes({}, None)[:, 0]
    limit = 0.15 * np.array([0.02, 0.02, 0.02, 0.1, 1.0])
    assert (np.abs(added) <= limit + 1e-7).all()
    assert np.abs(added[:, :4]).max() > 0.9 * limit[0]
    assert not added[:, 4].any()


def test_the_sum_is_clipped_to_the_action_bounds(policy):
    high = np.tile(np.float32(ACTION.high), (3, 1))
    assert (policy.combine(high, np.ones((3, 5))) <= high).all()


def test_growth_scales_the_correction(policy):
    base, full = np.zeros((1, 5), np.float32), np.ones((1, 5))
    policy.head.growth[0] = 0.5
    assert np.allclose(policy.combine(base, full)[0], 0.5 * 0.15 * np.array(ACTION.high))


def test_gate_opens_with_contact():
    assert contact_gate(observation(2, newtons=0.01), 1.0).max() < 0.01
    assert contact_gate(observation(2, newtons=8.0), 1.0).min() > 0.99


def test_without_contact_touch_does_not_reach_the_actor(policy):
    wake(policy)
    free = observation(3, newtons=0.0)
    felt = free | {"tactile/left": free["tactile/left"] + 5}
    plan = policy.base.act_lanes({}, None)
    difference = np.abs(policy.correction(free, plan) - policy.correction(felt, plan)).max()
    pressed = observation(3)
    other = pressed | {"tactile/left": pressed["tactile/left"] + 5}
    contrast = np.abs(policy.correction(pressed, plan) - policy.correction(other, plan)).max()
    assert difference < 0.05 < contrast


def test_while_it_comes_in_it_acts_in_its_share_of_the_decisions(policy):
    wake(policy)
    policy.head.growth[1] = 0.3
    policy.reset_lanes(3, seed=0)
    base = policy.base.act_lanes({}, None)[:, 0]
    acted = [(policy.act_lanes(observation(3), None)[:, 0] != base).any(1) for _ in range(400)]
    assert 0.25 < np.mean(acted) < 0.35


@pytest.mark.parametrize("key", ["wrench/wrist", "tactile/left"])
def test_a_dead_sensor_leaves_the_base_alone_in_that_lane(policy, key):
    wake(policy)
    obs = observation(3)
    obs[key][1] = 0.0
    added = np.abs(policy.correction(obs, policy.base.act_lanes({}, None))).max(axis=1)
    assert added[1] == 0.0 and added[[0, 2]].min() > 0.0


def test_a_wrench_that_repeats_itself_is_dead_whatever_it_says():
    obs = observation(2)
    obs["wrench/wrist"][0] = obs["wrench/wrist"][0, :1]
    assert list(alive(obs)) == [False, True]


def test_a_correction_without_a_promised_gain_is_left_out():
    config = ResidualPolicyConfig(trust="lower_bound", doubt=1.0)
    torch.manual_seed(0)
    made = ResidualPolicy(Constant(), SPEC, config)  # type: ignore[arg-type]
    wake(made)
    made.reset_lanes(3)
    base = made.base.act_lanes({}, None)[:, 0]
    gains = {"sure": (2.0, 3.0), "unsure": (3.0, -2.0), "loss": (-1.0, -2.0)}
    for name, (one, two) in gains.items():
        made.head.critic = Promise(one, two, made.units(base)[0, 0])
        changed = bool((made.act_lanes(observation(3), None)[:, 0] != base).any())
        assert changed == (name == "sure"), name


class Promise(torch.nn.Module):
    """Two critics to whom every action but the base's is worth so much more."""

    def __init__(self, one: float, two: float, base: float) -> None:
        super().__init__()
        self.gain, self.base = torch.tensor([one, two]), float(base)

    def forward(self, proprio, visual, z, plan, action):
        return self.gain[:, None] * (action[:, 0] != self.base)


def test_the_printed_bound_holds_for_every_disturbance_of_touch():
    torch.manual_seed(0)
    head = ResidualHead(SPEC, ResidualPolicyConfig(lipschitz=2.0))
    for weight in head.actor.parameters():
        torch.nn.init.normal_(weight)
    for _ in range(30):
        head.follow()
    rng = torch.Generator().manual_seed(0)
    bound, worst = head.bound(), 0.0
    proprio, plan = torch.zeros(200, head.proprio_dim), torch.zeros(200, 8, 5)
    for size in (0.01, 0.1, 1.0, 10.0):
        touch = torch.randn(200, head.touch.size, generator=rng)
        other = touch + size * torch.randn(touch.shape, generator=rng)
        (z, x), (z2, x2) = head.touch(touch), head.touch(other)
        moved = (head.act(proprio, z, plan) - head.act(proprio, z2, plan)).norm(dim=1)
        worst = max(worst, (moved / (x - x2).norm(dim=1)).max().item())
    assert 0 < worst <= bound <= 2.1


def test_plain_layers_have_no_bound(policy):
    with pytest.raises(ConfigError, match="no bound"):
        policy.head.bound()


def test_act_is_act_lanes_for_one_robot(policy):
    wake(policy)
    policy.reset(0)
    one = {key: value[0] for key, value in observation(1).items()}
    chunk = policy.act(one)
    policy.reset(0)
    assert np.array_equal(chunk.actions, policy.act_lanes(observation(1), np.ones(1, bool))[0])


def test_taxels_are_pooled_by_sum_and_wrenches_left_alone():
    taxels = np.arange(192.0).reshape(1, 3, 8, 8)
    assert pool("tactile/left", taxels).shape == (1, 3, 4, 4)
    assert pool("tactile/left", taxels)[0, 0, 0, 0] == taxels[0, 0, :2, :2].sum()
    wrench = np.zeros((3, 16, 6))
    assert pool("wrench/wrist", wrench) is wrench


def test_augmentation_shifts_forces_alone_and_alike_over_the_window():
    encoder = TouchEncoder(STREAMS)
    flat = torch.zeros(4, encoder.size)
    moved = encoder.augment(flat, 3.0, torch.Generator().manual_seed(0))
    wrench = moved[:, -96:].reshape(4, 16, 6)
    assert (wrench[:, :, :3] == wrench[:, :1, :3]).all() and 1.0 < wrench.abs().max() <= 3.0
    assert not wrench[:, :, 3:].any() and not moved[:, :-96].any()


def test_a_saved_policy_acts_the_same(tmp_path):
    numbers = {key: STREAMS[key] for key in ("tcp/pose", "gripper/width")}
    base = ChunkMlpPolicy(PolicySpec("keyed_socket", numbers, ACTION, 0.05))
    made = ResidualPolicy(base, SPEC, ResidualPolicyConfig(scale=0.1))
    wake(made)
    save_policy(tmp_path / "policy", made)
    again = load_policy(tmp_path / "policy")
    for each in (made, again):
        each.reset_lanes(3, 5)
    fresh = np.ones(3, bool)
    assert np.array_equal(made.act_lanes(observation(3), fresh), again.act_lanes(observation(3), fresh))


@pytest.mark.parametrize(("correct", "mask"), [("arm", [1, 1, 0]), ("grip", [0, 0, 1]), ("all", [1, 1, 1])])
def test_the_part_of_the_action_that_is_corrected_can_be_chosen(correct, mask):
    action = ActionSpec((-1.0,) * 3, (1.0,) * 3, ("dx [m]", "dy [m]", "grip"))
    spec = PolicySpec("toy", {"wrench/wrist": StreamSpec((16, 6))}, action, 0.05, 8, 4, embed_dim=2)
    assert ResidualHead(spec, ResidualPolicyConfig(correct=correct)).mask.tolist() == mask


def test_a_grip_that_is_not_there_cannot_be_corrected():
    spec = PolicySpec("toy", {"wrench/wrist": StreamSpec((16, 6))}, ActionSpec((-1.0,), (1.0,), ("x",)), 0.05, 8, 4)
    with pytest.raises(ConfigError, match="no action is a grip"):
        ResidualHead(spec, ResidualPolicyConfig(correct="grip"))
    assert ResidualHead(spec, ResidualPolicyConfig()).mask.tolist() == [1]
