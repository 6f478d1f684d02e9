"""The residual learner: its parts against hand-computed numbers, and a toy that only touch can solve."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from policies.residual import ResidualPolicy, ResidualPolicyConfig
from policies.value import Critic
from robot_fb.algorithms.residual.config import ResidualConfig
from robot_fb.algorithms.residual.trainer import ResidualTrainer, subset_minimum
from robot_fb.errors import ConfigError
from robot_fb.training.replay import ReplayBuffer
from robot_fb.types import ActionSpec, PolicySpec, StreamSpec

STREAMS = {"tcp/pose": StreamSpec((3,), unit="m"), "wrench/wrist": StreamSpec((16, 6), unit="N, N·m")}
SPEC = PolicySpec("toy", STREAMS, ActionSpec((-1.0, -1.0), (1.0, 1.0)), 0.05, embed_dim=4)
SMALL = ResidualConfig(batch=64, critic_lr=1e-3, actor_lr=1e-3, touch_augment_n=0.0, tau=0.02)


class Base:
    spec = SPEC


def make(
    config: ResidualConfig = SMALL, seed: int = 0, shape: ResidualPolicyConfig | None = None, **options
) -> ResidualTrainer:
    torch.manual_seed(seed)
    shape = shape or ResidualPolicyConfig(critic_width=32)
    return ResidualTrainer(ResidualPolicy(Base(), SPEC, shape), config, seed, **options)  # type: ignore[arg-type]


def rows(count: int, seed: int = 0) -> dict[str, np.ndarray]:
    """One-step episodes: the torque's sign says which way to push; pushing that way pays."""
    rng = np.random.default_rng(seed)
    side = rng.choice([-1.0, 1.0], size=count)
    wrench = 0.1 * rng.normal(size=(count, 16, 6))
    wrench[:, :, 3] += side[:, None]
    action = rng.uniform(-1, 1, size=(count, 2))
    state = {
        "proprio": rng.normal(size=(count, 3)),
        "touch": wrench.reshape(count, -1),
        "gate": np.ones((count, 1)),
        "alive": np.ones((count, 1)),
        "plan": np.zeros((count, 8, 2)),
        "visual": rng.normal(size=(count, 4)),
    }
    data = state | {f"next_{key}": value for key, value in state.items()}
    data |= {"action": action, "reward": side * action[:, 0], "discount": np.zeros(count)}
    return {key: value.astype(np.float32) for key, value in data.items()}


def test_target_is_reward_plus_discounted_minimum_of_the_target_critics():
    trainer = make(ResidualConfig(batch=8, target_noise=0.0))
    trainer.stage = "online"
    batch = {key: torch.from_numpy(value) for key, value in rows(8).items()}
    batch["discount"] = torch.full((8,), 0.5)
    found = trainer._target_value(batch)
    z = trainer.target["touch"](batch["next_touch"])[0]
    head = trainer.head
    plan = batch["next_plan"]  # the actor starts at zero, so the base's action is what follows
    values = trainer.target["critic"](head.normalise(batch["next_proprio"]), batch["next_visual"], z, plan, plan[:, 0])
    assert torch.allclose(found, batch["reward"] + 0.5 * torch.minimum(values[0], values[1]), atol=1e-6)


def test_ensemble_members_are_separate_functions():
    critic = Critic(3, 4, 8, 16, 2, members=2, width=16)
    parts = (torch.randn(5, 3), torch.randn(5, 4), torch.randn(5, 8), torch.randn(5, 8, 2), torch.randn(5, 2))
    before = critic(*parts)
    with torch.no_grad():
        critic.layers[0].weight[1] *= -1.0
    after = critic(*parts)
    assert torch.equal(before[0], after[0]) and not torch.allclose(before[1], after[1])


def test_subset_minimum_draws_two_of_many():
    values = torch.arange(5.0)[:, None].expand(5, 3)
    generator = torch.Generator().manual_seed(0)
    drawn = {subset_minimum(values, 2, generator)[0].item() for _ in range(200)}
    assert drawn == {0.0, 1.0, 2.0, 3.0}


def test_bootstrap_leaves_the_actor_alone():
    trainer = make()
    before = [p.clone() for p in trainer.head.actor.parameters()]
    for _ in range(3):
        trainer.step(rows(64))
    assert all(torch.equal(a, b) for a, b in zip(before, trainer.head.actor.parameters(), strict=True))


@pytest.mark.parametrize("lipschitz", [0.0, 4.0])
def test_learns_to_push_where_the_torque_points(lipschitz):
    trainer = make(shape=ResidualPolicyConfig(critic_width=32, lipschitz=lipschitz))
    buffer = ReplayBuffer(2048)
    buffer.add_batch(rows(2048))
    rng = np.random.default_rng(1)
    trainer.fit_scale(buffer.rows()["proprio"], buffer.rows()["touch"])
    for stage, updates in (("bootstrap", 300), ("online", 700)):
        trainer.stage = stage
        for _ in range(updates):
            trainer.step(buffer.sample(rng, 64))
    test = {key: torch.from_numpy(value) for key, value in rows(500, seed=9).items()}
    with torch.no_grad():
        z = trainer.head.touch(test["touch"])[0]
        push = trainer.head.act(test["proprio"], z, test["plan"])[:, 0]
    side = torch.sign(test["touch"].reshape(-1, 16, 6)[:, :, 3].mean(1))
    assert (torch.sign(push) == side).float().mean() > 0.97
    assert (push * side).mean() > 0.5
    if lipschitz:
        assert trainer.head.bound() <= 1.05 * lipschitz


def test_where_touch_is_dead_the_actor_is_not_asked():
    trainer = make()
    trainer.stage = "online"
    torch.nn.init.normal_(trainer.head.actor[-1].weight)
    batch = {key: torch.from_numpy(value) for key, value in rows(8).items()} | {"next_alive": torch.zeros(8, 1)}
    batch["discount"] = torch.ones(8)
    one = trainer._target_value(batch)
    torch.nn.init.normal_(trainer.head.actor[-1].weight)
    assert torch.equal(one, trainer._target_value(batch))


def test_a_snapshot_brings_networks_and_optimisers_back_but_not_the_growth():
    trainer, other = make(), make()
    for each in (trainer, other):
        each.stage = "online"
        for k in range(4):
            each.step(rows(64, k))
    good = trainer.snapshot()
    for k in range(4, 8):
        trainer.step(rows(64, k))
    trainer.head.growth[0] = 0.5
    trainer.restore(good)
    assert trainer.head.growth[0] == 0.5
    trainer.head.growth[0] = 1.0
    for name, value in other.head.state_dict().items():
        assert torch.equal(trainer.head.state_dict()[name], value), name
    moved = trainer.snapshot()["critic_optimiser"]["state"][0]["exp_avg"]
    assert torch.equal(moved, other.critic_optimiser.state_dict()["state"][0]["exp_avg"])


def test_save_and_load_go_on_to_the_same_curve(tmp_path):
    buffer = ReplayBuffer(256)
    buffer.add_batch(rows(256))
    straight = make(replay={"online": buffer})
    straight.stage = "online"
    for k in range(10):
        straight.step(rows(64, k))
    straight.save(tmp_path)
    other = ReplayBuffer(256)
    resumed = make(seed=7, replay={"online": other})
    resumed.load(tmp_path)
    assert np.array_equal(other.rows()["touch"], buffer.rows()["touch"])
    for k in range(10, 16):
        assert straight.step(rows(64, k)) == resumed.step(rows(64, k))


def test_values_that_cannot_work_are_refused():
    with pytest.raises(ConfigError, match="gamma"):
        ResidualConfig(gamma=1.5)
    with pytest.raises(ConfigError, match="lanes"):
        ResidualConfig(lanes=0)


def test_force_costs_from_where_the_task_calls_it_careless_or_from_where_it_is_told():
    force = np.array([0.0, 8.0, 11.0])
    assert ResidualConfig(force_penalty=0.1).force_cost(force, 10.0) == pytest.approx([0.0, 0.0, 0.1])
    told = ResidualConfig(force_penalty=0.1, force_threshold_n=6.0)
    assert told.force_cost(force, 10.0) == pytest.approx([0.0, 0.2, 0.5])
    assert not ResidualConfig().force_cost(force, np.inf).any()


def test_step_sizes_fall_while_the_correction_learns():
    config = ResidualConfig(online_steps=10, updates_per_step=1.0, bootstrap_updates=2, batch=8, lr_end=0.1)
    trainer = make(config)
    rates = []
    for step in range(12):
        trainer.stage = "bootstrap" if step < 2 else "online"
        trainer.step(rows(8))
        rates.append(trainer.actor_optimiser.param_groups[0]["lr"] / config.actor_lr)
    assert rates[:3] == [1.0] * 3 and rates[-1] == pytest.approx(1 - 0.9 * 0.9)
    assert np.diff(rates[2:]) == pytest.approx(np.full(9, -0.09))
