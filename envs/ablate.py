"""Removes or spoils observation streams: the placebo rows of every touch result, and the faults of real sensors.

An ablation is written `TARGET=MODE[:VALUE]`, several separated by commas: `touch=delayed`, `touch=delayed:0.3`,
`wrench/wrist=bias:1.0`, `tactile/*=dropout:0.2`. `touch` stands for every force and touch stream; a target may be a
pattern. Shapes never change, so one policy can be run under every ablation.
"""

from __future__ import annotations

import fnmatch
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np

from robot_fb.errors import ConfigError
from robot_fb.registry import closest
from robot_fb.types import is_touch

DEFAULTS = {
    "live": 0.0, "none": 0.0, "dead": 0.0, "delayed": 0.3, "shuffled": 0.0, "bias": 1.0, "dropout": 0.2, "faults": 0.5,
}
"""Mode -> its value when none is given: delay [s], bias [N], share of lost samples, share of faulty episodes.

live: untouched. none, dead: zeros. delayed: as it was a while ago. shuffled: from another episode. bias: a constant
offset in a random direction, drawn anew each episode. dropout: samples lost at random, the last one kept instead.
faults: to learn from; in some episodes one of `FAULTS`, drawn evenly, with its usual value.
"""

FAULTS = ("bias", "delayed", "dropout", "dead")
"""What goes wrong with real sensors."""

SHUFFLE_SEED = 7_919
"""Keeps the faults' random numbers apart from the episode's own."""


@dataclass(frozen=True)
class Ablation:
    """One `TARGET=MODE[:VALUE]`."""

    target: str
    mode: str
    value: float

    def covers(self, key: str) -> bool:
        """Whether it acts on a stream."""
        return is_touch(key) if self.target == "touch" else fnmatch.fnmatch(key, self.target)


def parse(text: str) -> tuple[Ablation, ...]:
    """Reads a comma-separated list of ablations.

    Raises:
        ConfigError: a part that is not `TARGET=MODE[:VALUE]`, or an unknown mode.
    """
    found = []
    for part in filter(None, (p.strip() for p in text.split(","))):
        target, equals, rest = part.partition("=")
        mode, _, value = rest.partition(":")
        if not equals:
            raise ConfigError(f"ablation {part!r}", expected="TARGET=MODE[:VALUE], e.g. touch=delayed:0.3")
        if mode not in DEFAULTS:
            raise ConfigError(f"unknown ablation mode {mode!r}", do=closest(mode, list(DEFAULTS)))
        try:
            number = float(value) if value else DEFAULTS[mode]
        except ValueError as error:
            raise ConfigError(f"ablation {part!r}", expected="a number after ':'", found=repr(value)) from error
        if mode != "live":
            found.append(Ablation(target, mode, number))
    return tuple(found)


Donor = Callable[[int], Sequence[Mapping[str, np.ndarray]]]
"""Seed -> the observations of a whole other episode, one for each decision."""


class Ablate(gym.ObservationWrapper[Any, Any, Any]):
    """Spoils streams of a `Dict` observation.

    Args:
        env: an environment with `unwrapped.dt` [s].
        ablations: text for `parse`.
        donor: gives the episode whose streams `shuffled` shows; without one, `shuffled` is refused.
    """

    def __init__(self, env: gym.Env, ablations: str, donor: Donor | None = None) -> None:
        super().__init__(env)
        self._ablations = parse(ablations)
        keys = list(env.observation_space.spaces)  # type: ignore[attr-defined]
        for ablation in self._ablations:
            if not any(ablation.covers(key) for key in keys):
                target = ablation.target
                raise ConfigError(f"ablation target {target!r} covers no stream", do=closest(target, keys))
        shuffles = any(a.mode == "shuffled" for a in self._ablations)
        if shuffles and donor is None:
            raise ConfigError("this task cannot shuffle streams", do="it has no expert to record another episode")
        self._donor = donor if shuffles else None
        self._dt: float = env.unwrapped.dt  # type: ignore[attr-defined]
        self._other: Sequence[Mapping[str, np.ndarray]] = ()
        self._count = 0
        self._memory: dict[tuple[Ablation, str], Any] = {}
        self._drawn: dict[Ablation, Ablation] = {}
        self._rng = np.random.default_rng()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Starts an episode; faults are drawn from the same seed."""
        obs, info = self.env.reset(seed=seed, options=options)
        if seed is not None:
            self._rng = np.random.default_rng([seed, SHUFFLE_SEED])
        self._memory, self._count = {}, 0
        self._drawn = {a: self._draw(a) for a in self._ablations if a.mode == "faults"}
        if self._donor is not None:
            self._other = self._donor(int(self._rng.integers(2**31)))
        return self.observation(obs), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Steps the environment."""
        self._count += 1
        return super().step(action)

    def observation(self, observation: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The observation with every ablation applied in order."""
        spoiled = dict(observation)
        for ablation in self._ablations:
            for key in spoiled:
                if ablation.covers(key):
                    spoiled[key] = self._spoil(self._drawn.get(ablation, ablation), key, spoiled[key])
        return spoiled

    def _draw(self, faults: Ablation) -> Ablation:
        """What is wrong in this episode."""
        mode = str(self._rng.choice(FAULTS)) if self._rng.random() < faults.value else "live"
        return Ablation(faults.target, mode, DEFAULTS[mode])

    def _spoil(self, ablation: Ablation, key: str, value: np.ndarray) -> np.ndarray:
        memory, slot = self._memory, (ablation, key)
        if ablation.mode == "live":
            return value
        if ablation.mode in ("none", "dead"):
            return np.zeros_like(value)
        if ablation.mode == "shuffled":
            return self._other[min(self._count, len(self._other) - 1)][key]
        if ablation.mode == "delayed":
            past = memory.setdefault(slot, deque([value], maxlen=round(ablation.value / self._dt) + 1))
            past.append(value)
            return past[0]
        if ablation.mode == "bias":
            if slot not in memory:
                memory[slot] = _bias(key, value.shape, ablation.value, self._rng)
            return (value + memory[slot]).astype(value.dtype)
        if self._rng.random() < ablation.value:  # dropout
            return memory.get(slot, np.zeros_like(value))
        memory[slot] = value
        return value


def _bias(key: str, shape: tuple[int, ...], size: float, rng: np.random.Generator) -> np.ndarray:
    """A constant offset of `size` [N] in a random direction; a wrench's torque is offset by a hundredth of it [N·m]."""
    offset = np.zeros(shape)
    if key.startswith("wrench/"):
        force, torque = rng.normal(size=(2, 3))
        offset[..., :3] = size * force / np.linalg.norm(force)
        offset[..., 3:] = 0.01 * size * torque / np.linalg.norm(torque)
    elif key.startswith("tactile/"):
        force = rng.normal(size=3)
        offset += (size * force / np.linalg.norm(force) / np.prod(shape[1:]))[:, None, None]
    else:
        offset += size * rng.choice([-1.0, 1.0], size=shape)
    return offset
