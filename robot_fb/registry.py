"""Plugin look-up by entry point. Our own parts come in through the same groups as an outside package's."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal

from robot_fb.errors import RobotFbError, UnknownNameError

Group = Literal["tasks", "policies", "robots", "sensors", "detectors"]

GROUPS: tuple[Group, ...] = ("tasks", "policies", "robots", "sensors", "detectors")


def closest(name: str, known: Sequence[str]) -> str:
    """A "did you mean" clause, or the known names where none is near."""
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"known: {', '.join(sorted(known)) or 'none'}"


@cache
def _entries(group: Group) -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=f"robot_fb.{group}")}


def names(group: Group) -> list[str]:
    """All registered names of a group, sorted."""
    return sorted(_entries(group))


def name_of(group: Group, kind: type) -> str | None:
    """The name under which a class is registered, or None."""
    value = f"{kind.__module__}:{kind.__qualname__}"
    return next((name for name, entry in _entries(group).items() if entry.value == value), None)


def load(group: Group, name: str) -> Any:
    """The object behind a registered name.

    Raises:
        UnknownNameError: nobody registered the name.
        RobotFbError: the plugin is registered but cannot be imported.
    """
    entries = _entries(group)
    if name not in entries:
        singular = {"policies": "policy"}.get(group, group[:-1])
        raise UnknownNameError(f"unknown {singular} {name!r}", do=closest(name, list(entries)))
    try:
        return entries[name].load()
    except (ImportError, AttributeError) as error:
        raise RobotFbError(
            f"plugin {name!r} of robot_fb.{group} cannot be loaded",
            expected=entries[name].value,
            found=str(error),
            do="reinstall the package that provides it",
        ) from error
