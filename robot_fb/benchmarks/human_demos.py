"""`robot-fb bench human`: cloning people's demonstrations, against ridge regression on the same inputs."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import torch
import tyro

from robot_fb import registry
from robot_fb.algorithms import bc
from robot_fb.benchmarks.common import write_result
from robot_fb.episodes.cache import EpisodeArrays, load_arrays
from robot_fb.errors import ConfigError
from robot_fb.training.mixer import Mixer


@dataclasses.dataclass(frozen=True, kw_only=True)
class HumanArgs:
    """Clone all but the last episodes of a store, and measure the action error on those.

    Attributes:
        data: store of demonstrations, e.g. made by robot-fb episodes import.
        held_out: episodes at the end that are not learned from.
        steps: gradient steps.
        seeds: runs, each with its own seed.
        out: folder of the result.
    """

    data: Path
    held_out: int = 5
    steps: int = 2000
    seeds: int = 3
    out: Path = Path("data/benchmarks")


def run(argv: list[str]) -> dict[str, Any]:
    """Measures and writes data/benchmarks/human.json; returns the document."""
    args = tyro.cli(HumanArgs, args=argv, prog="robot-fb bench human")
    torch.set_num_threads(1)
    arrays = load_arrays(args.data)
    count = len(arrays.episode_ends)
    if not 0 < args.held_out < count:
        raise ConfigError("--held-out", expected=f"1 to {count - 1}", found=args.held_out)
    split = count - args.held_out
    train = load_arrays(args.data, ids=arrays.ids[:split])
    test = load_arrays(args.data, ids=arrays.ids[split:])
    ridge = _ridge_error(train, test)
    errors = [_policy_error(train, test, args.steps, seed) for seed in range(args.seeds)]
    split_row = {"train_episodes": split, "test_episodes": args.held_out}
    rows: list[dict[str, Any]] = [{"what": "ridge regression", "mean_square_error": ridge, **split_row}]
    for seed, error in enumerate(errors):
        below = 100 * (1 - error / ridge)
        rows.append({"what": "chunk_mlp", "seed": seed, "mean_square_error": error, "below_ridge_percent": below})
    return write_result("human", f"robot-fb bench human --data {args.data.name}", rows, args.out)


def _ridge_error(train: EpisodeArrays, test: EpisodeArrays, penalty: float = 1.0) -> float:
    """Ridge regression with an intercept, by its normal equations."""
    x, y = _inputs(train), train.actions.astype(float)
    mean_x, mean_y = x.mean(0), y.mean(0)
    centred = x - mean_x
    weights = np.linalg.solve(centred.T @ centred + penalty * np.eye(x.shape[1]), centred.T @ (y - mean_y))
    said = (_inputs(test) - mean_x) @ weights + mean_y
    return float(((said - test.actions) ** 2).mean())


def _policy_error(train: EpisodeArrays, test: EpisodeArrays, steps: int, seed: int) -> float:
    """Mean square error of the policy's action for each held-out decision."""
    config = bc.BcConfig(
        policy="chunk_mlp", seed=seed, steps=steps, batch=256, weight_decay=1e-2, horizon=1, execute=1, obs_horizon=1
    )
    model = registry.load("policies", "chunk_mlp").config_class(dropout=0.1, guide=0.0)
    trainer, source = bc.prepare(train, config, model)
    mixer = Mixer({"episodes": source}, config.batch, seed=seed)
    for _ in range(steps):
        trainer.step(mixer.next())
    policy = trainer.policy()
    policy.reset_lanes(len(test.actions), seed)
    obs = {key: np.asarray(test.streams[key]) for key in policy.spec.obs}
    plans = policy.act_lanes(obs, np.ones(len(test.actions), bool))
    return float(((plans[:, 0] - test.actions) ** 2).mean())


def _inputs(arrays: EpisodeArrays) -> np.ndarray:
    flat = [np.asarray(value, float).reshape(len(value), -1) for value in arrays.streams.values()]
    return np.concatenate(flat, axis=1)
