"""What all tests share."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest
import torch

from robot_fb.algorithms import bc
from robot_fb.episodes.cache import load_arrays
from robot_fb.episodes.store import Store
from robot_fb.episodes.writer import WriterConfig
from robot_fb.runtime.episodes import Job, run_episodes
from robot_fb.training.checkpoint import save_policy

REPOSITORY = Path(__file__).resolve().parents[1]

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs start deaf to Ctrl-C


@pytest.fixture(scope="session")
def third_party_data() -> Path:
    """Folder of recordings that nobody in this project made; they are no part of the repository."""
    folder = Path(os.environ.get("ROBOT_FB_DATA", REPOSITORY.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no third-party data at {folder}; set ROBOT_FB_DATA to the folder that holds it")
    return folder


@pytest.fixture(scope="session")
def beginner(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """(a policy of pick_place that knows next to nothing, the demonstrations that it saw)."""
    from policies.chunk_mlp import ChunkMlpPolicy

    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("beginner")
    Store(folder / "demos", create=True, writer=WriterConfig(wait=True))
    run_episodes(Job("pick_place", log=folder / "demos"), [1, 2], 0)
    config = bc.BcConfig(policy="chunk_mlp", steps=20, batch=16, streams=("tcp/pose",), obs_horizon=1)
    trainer, source = bc.prepare(load_arrays(folder / "demos"), config, ChunkMlpPolicy.config_class(width=16))
    for _ in range(config.steps):
        trainer.step(source.sample(np.random.default_rng(0), 16))
    save_policy(folder / "policy", trainer.policy())
    return folder / "policy", folder / "demos"
