"""Diffusion, flow and MLP: losses against sums by hand, overfitting, one mode and two, seeds, runtime steps."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from policies.chunk_mlp import ChunkMlpConfig, ChunkMlpPolicy
from policies.diffusion import DiffusionConfig, DiffusionPolicy
from policies.encoder import EncoderConfig
from policies.flow import TIME_SCALE, FlowConfig, FlowPolicy

STILL = EncoderConfig(shift=0)
SMALL = {
    "diffusion": lambda spec: DiffusionPolicy(spec, DiffusionConfig(channels=(24, 24), encoder=STILL, run_steps=8)),
    "flow": lambda spec: FlowPolicy(spec, FlowConfig(channels=(24, 24), encoder=STILL)),
    "chunk_mlp": lambda spec: ChunkMlpPolicy(spec, ChunkMlpConfig(width=64, encoder=STILL)),
}


@pytest.fixture(params=list(SMALL))
def base(request):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    return request.param, SMALL[request.param]


def make_batch(spec, look, count=8):
    obs = [look(spec, seed) for seed in range(count)]
    stacked = {key: np.stack([np.stack([o[key]] * spec.obs_horizon) for o in obs]) for key in spec.obs}
    actions = np.random.default_rng(1).uniform(-1, 1, (count, spec.horizon, spec.action.dim)).astype(np.float32)
    return {"obs": {k: torch.from_numpy(v) for k, v in stacked.items()}, "actions": torch.from_numpy(actions)}


def train(policy, batch, steps, lr=3e-3):
    generator = torch.Generator().manual_seed(0)
    optimizer = torch.optim.Adam(policy.parameters(), lr)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(steps):
        loss = policy.train().loss(batch, generator)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return policy.eval()


def test_overfits_one_batch(base, visual_spec, look):
    name, make = base
    batch = make_batch(visual_spec, look)
    policy = train(make(visual_spec), batch, 300 if name != "chunk_mlp" else 150)

    with torch.inference_mode():
        cond = policy.encoder.condition(batch["obs"])
        sampled = policy.actions.decode(policy.sample(cond, torch.Generator().manual_seed(1)))

    error = (sampled - batch["actions"]).square().mean().item()
    assert error < 0.05 * batch["actions"].square().mean().item()


def test_two_modes(base, state_spec):
    """Half the data say -0.8, half 0.8: samplers give both, a regressor the useless mean."""
    name, make = base
    sign = torch.tensor([-1.0, 1.0]).repeat(12)[:, None, None]
    batch = {"obs": {"state": torch.zeros(24, 1, 1)}, "actions": 0.8 * sign.expand(24, 4, 1)}
    policy = train(make(state_spec), batch, 300)

    with torch.inference_mode():
        cond = policy.encoder.condition({"state": torch.zeros(200, 1, 1)})
        sampled = policy.sample(cond, torch.Generator().manual_seed(1)).mean((1, 2))

    if name == "chunk_mlp":
        assert sampled.abs().max() < 0.1
    else:
        assert ((sampled.abs() - 0.8).abs() < 0.25).float().mean() > 0.9
        assert 0.3 < (sampled > 0).float().mean() < 0.7


@pytest.mark.parametrize("prediction", ["epsilon", "v_prediction", "sample"])
def test_diffusion_loss_is_the_papers(state_spec, prediction):
    """Noise levels by the squared-cosine rule (Nichol & Dhariwal 2021), written out in numpy."""
    policy = DiffusionPolicy(state_spec, DiffusionConfig(prediction=prediction)).eval()
    rng = np.random.default_rng(0)
    actions = torch.from_numpy(rng.uniform(-1, 1, (3, 4, 1)).astype(np.float32))
    noise = torch.from_numpy(rng.normal(size=(3, 4, 1)).astype(np.float32))
    level, cond = torch.tensor([0, 40, 99]), torch.zeros(3, policy.encoder.cond_dim)

    def share(t):
        return np.cos((t + 0.008) / 1.008 * np.pi / 2) ** 2

    steps = np.arange(100)
    beta = np.minimum(1 - share((steps + 1) / 100) / share(steps / 100), 0.999)
    kept = torch.from_numpy(np.cumprod(1 - beta)[level.numpy()].astype(np.float32))[:, None, None]
    noisy = kept.sqrt() * actions + (1 - kept).sqrt() * noise
    velocity = kept.sqrt() * noise - (1 - kept).sqrt() * actions
    target = {"epsilon": noise, "v_prediction": velocity, "sample": actions}[prediction]
    expected = (policy.net(noisy, level, cond) - target).square().mean()

    found = policy.denoising_loss(actions, cond, noise, level)

    assert found.item() == pytest.approx(expected.item(), rel=1e-4)


def test_flow_loss_is_the_papers(state_spec):
    policy = FlowPolicy(state_spec).eval()
    actions, noise = torch.full((2, 4, 1), 0.5), torch.full((2, 4, 1), -1.0)
    time, cond = torch.tensor([0.0, 0.25]), torch.zeros(2, policy.encoder.cond_dim)
    points = torch.stack([torch.full((4, 1), -1.0), torch.full((4, 1), -0.625)])  # -1 + 0.25 * 1.5
    expected = (policy.net(points, time * TIME_SCALE, cond) - 1.5).square().mean()

    assert policy.velocity_loss(actions, cond, noise, time).item() == pytest.approx(expected.item(), rel=1e-5)


def test_a_seed_reproduces_every_plan(base, visual_spec, look):
    policy = base[1](visual_spec).eval()

    def episode(seed):
        policy.reset(seed)
        return np.array([policy.act(look(visual_spec, i)).actions for i in range(9)])

    first, again, other = episode(3), episode(3), episode(4)

    np.testing.assert_array_equal(first, again)
    assert np.array_equal(first, other) == (base[0] == "chunk_mlp")


def test_acting_turns_training_mode_off(base, visual_spec, look):
    policy = base[1](visual_spec).train()
    policy.act(look(visual_spec))

    assert not policy.training


@pytest.mark.parametrize("steps", [1, 2, 4])
def test_run_steps_are_chosen_by_config(state_spec, steps):
    for kind in (DiffusionPolicy, FlowPolicy):
        policy = kind(state_spec, dataclasses.replace(kind.config_class(), run_steps=steps)).eval()
        calls = []
        policy.net.register_forward_hook(lambda *_, calls=calls: calls.append(1))
        policy.act({"state": np.zeros(1, np.float32)})
        assert len(calls) == steps


def test_odd_and_deep_chunks_pass_through_the_unet(state_spec):
    spec = dataclasses.replace(state_spec, horizon=11)
    policy = DiffusionPolicy(spec, DiffusionConfig(channels=(16, 24, 32)))

    assert policy.act({"state": np.zeros(1, np.float32)}).actions.shape == (11, 1)
