"""Which decisions of an episode log teach what, and in which shares: one data path for all weightings.

Sources of the weightings: HG-DAgger (Kelly et al. 2019), IWR (Mandlekar et al. 2020), Sirius (Liu et al. 2023).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum

import numpy as np

from robot_fb.errors import ConfigError, EpisodeError
from robot_fb.registry import closest
from robot_fb.training.chunks import NOBODY, Arrays, ChunkSource
from robot_fb.training.mixer import Together
from robot_fb.types import SOURCES, PolicySpec

BEFORE_STEPS = 15
"""The decisions just before a person takes over are what made them do it (Sirius)."""

BEFORE_SHARE = 0.002
"""Sirius: share of a batch that those decisions get."""

PERSON = tuple(SOURCES.index(source) for source in ("human", "blend"))
SHOWN = (*PERSON, SOURCES.index("expert"))


class Kind(IntEnum):
    """What a decision teaches."""

    NOTHING = 0
    """Nobody decided, or the robot did and the episode failed."""
    DEMO = 1
    """A whole episode was shown."""
    HUMAN = 2
    """A person had taken over."""
    BEFORE = 3
    """The robot, shortly before a person took over."""
    ROBOT = 4
    """The robot by itself, in an episode that ended well."""


def kinds(arrays: Arrays) -> np.ndarray:
    """(decisions,) of `Kind`."""
    sources, found = np.asarray(arrays.sources), np.full(len(arrays.sources), Kind.NOTHING, np.int8)
    start = 0
    for end, success in zip(np.asarray(arrays.episode_ends, int), arrays.success, strict=True):
        rows = slice(start, end)
        found[rows] = _episode(sources[rows], bool(success))
        start = end
    return found


def _episode(sources: np.ndarray, success: bool) -> np.ndarray:
    decided = ~np.isin(sources, NOBODY)
    person = np.isin(sources, PERSON)
    if np.isin(sources, SHOWN)[decided].all():
        return np.where(decided, Kind.DEMO, Kind.NOTHING)
    found = np.where(decided & success, Kind.ROBOT, Kind.NOTHING)
    order = np.flatnonzero(decided)
    for place in np.flatnonzero(np.diff(person[order].astype(int)) == 1):
        before = order[max(0, place + 1 - BEFORE_STEPS) : place + 1]
        found[before[~person[before]]] = Kind.BEFORE if success else Kind.NOTHING
    found[person] = Kind.HUMAN
    return found


Counts = Mapping[Kind, int]

Shares = Mapping[str, tuple[tuple[Kind, ...], float]]
"""Name of a source -> the kinds of decisions in it, and its share of a batch."""


def _plain(count: Counts) -> Shares:
    return {"all": ((Kind.DEMO, Kind.HUMAN, Kind.BEFORE, Kind.ROBOT), 1.0)}


def _hg_dagger(count: Counts) -> Shares:
    return {"shown": ((Kind.DEMO, Kind.HUMAN), 1.0)}


def _iwr(count: Counts) -> Shares:
    return {"human": ((Kind.HUMAN,), 0.5), "rest": ((Kind.DEMO, Kind.BEFORE, Kind.ROBOT), 0.5)}


def _sirius(count: Counts) -> Shares:
    demos = count[Kind.DEMO] / max(1, sum(count.values()))
    demos = min(demos, 0.5 - 2 * BEFORE_SHARE)  # in the first rounds most of the data are demonstrations
    rest = 0.5 - demos - BEFORE_SHARE
    return {
        "demo": ((Kind.DEMO,), max(demos, BEFORE_SHARE)), "human": ((Kind.HUMAN,), 0.5),
        "before": ((Kind.BEFORE,), BEFORE_SHARE), "robot": ((Kind.ROBOT,), rest),
    }


WEIGHTS: Mapping[str, Callable[[Counts], Shares]] = {
    "hg_dagger": _hg_dagger, "iwr": _iwr, "sirius": _sirius, "plain": _plain,
}
"""Weighting -> its shares, given how many decisions there are of each kind."""


def sources_of(
    stores: Sequence[Arrays], spec: PolicySpec, weights: str
) -> tuple[dict[str, Together], dict[str, float], dict[str, int]]:
    """What a `Mixer` needs.

    Args:
        stores: demonstrations and rollouts.
        spec: of the policy that learns.
        weights: of `WEIGHTS`.

    Returns:
        Sources by name, the shares of a batch, and the number of decisions of each kind.

    Raises:
        ConfigError: another weighting.
        EpisodeError: nothing to learn from.
    """
    if weights not in WEIGHTS:
        raise ConfigError(f"unknown weights {weights!r}", do=closest(weights, list(WEIGHTS)))
    parts = [(ChunkSource(arrays, spec), kinds(arrays)) for arrays in stores]
    counts = {
        kind: sum(int((found[every.rows] == kind).sum()) for every, found in parts)
        for kind in Kind if kind is not Kind.NOTHING
    }
    shares = WEIGHTS[weights](counts)
    sources = {
        name: Together([every.only(np.isin(found, chosen)) for every, found in parts])
        for name, (chosen, _) in shares.items()
    }
    named = {kind.name.lower(): count for kind, count in counts.items()}
    if not any(map(len, sources.values())):
        raise EpisodeError(f"there is nothing that {weights} learns from", found=named)
    return sources, {name: share for name, (_, share) in shares.items()}, named
