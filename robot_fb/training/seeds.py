"""Random numbers that reproduce: one seed a run, a stream of its own for every part."""

from __future__ import annotations

import random
import zlib
from typing import Any

import numpy as np
import torch


def seed_everything(seed: int) -> None:
    """Seeds Python, numpy's legacy generator and torch, for libraries that draw from them."""
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002 (libraries still draw from it)
    torch.manual_seed(seed)


def rng(seed: int, name: str) -> np.random.Generator:
    """A numpy generator for one part of a run: the same seed and name give the same numbers."""
    return np.random.default_rng([seed, zlib.crc32(name.encode())])


def torch_generator(seed: int, name: str) -> torch.Generator:
    """A torch generator for one part of a run."""
    generator = torch.Generator()
    generator.manual_seed(int(rng(seed, name).integers(2**63)))
    return generator


def rng_state(generator: np.random.Generator) -> dict[str, Any]:
    """State as plain data that YAML takes."""
    return dict(generator.bit_generator.state)


def restore_rng(generator: np.random.Generator, state: dict[str, Any]) -> None:
    """Puts a generator back to a state from `rng_state`."""
    generator.bit_generator.state = state
