"""How long the base policies take to plan, on one thread, with two 64x64 cameras: rows of `robot-fb bench speed`."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch

from robot_fb import registry
from robot_fb.types import ActionSpec, PolicySpec, StreamSpec

BASES = ("diffusion", "flow", "chunk_mlp")
WARM_UP, CALLS = 30, 500


def cell_spec() -> PolicySpec:
    """Streams, action and chunk lengths as in the simulated cell."""
    obs = {
        "camera/scene": StreamSpec((64, 64, 3), "uint8"),
        "camera/wrist": StreamSpec((64, 64, 3), "uint8"),
        "tcp/pose": StreamSpec((7,), unit="m, quaternion xyzw"),
        "tcp/velocity": StreamSpec((6,), unit="m/s, rad/s"),
        "gripper/width": StreamSpec((1,), unit="m"),
    }
    return PolicySpec("synthetic", obs, ActionSpec((-1.0,) * 5, (1.0,) * 5), 0.05)


def rows(calls: int = CALLS) -> list[dict[str, Any]]:
    """Milliseconds for one new plan, the encoder included, for each base.

    Args:
        calls: plans timed.

    Returns:
        One row a base: {"what", "policy", "parameters", "run_steps", "p50_ms", "p99_ms", "threads"}.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return [_row(name, calls) for name in BASES]
    finally:
        torch.set_num_threads(before)


def _row(name: str, calls: int) -> dict[str, Any]:
    spec = cell_spec()
    policy = registry.load("policies", name)(spec)
    observations = [_observation(spec, seed) for seed in range(16)]
    took = []
    for i in range(WARM_UP + calls):
        policy.reset(i)  # so that this call plans anew
        start = time.perf_counter()
        policy.act(observations[i % len(observations)])
        took.append(time.perf_counter() - start)
    p50, p99 = np.percentile(np.array(took[WARM_UP:]) * 1e3, [50, 99])
    return {
        "what": "chunk inference", "policy": name, "parameters": sum(p.numel() for p in policy.parameters()),
        "run_steps": getattr(policy.config, "run_steps", 1), "p50_ms": float(p50), "p99_ms": float(p99), "threads": 1,
    }


def _observation(spec: PolicySpec, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {
        key: rng.integers(0, 256, stream.shape).astype(np.uint8) if stream.dtype == "uint8"
        else rng.normal(size=stream.shape).astype(np.float32)
        for key, stream in spec.obs.items()
    }
