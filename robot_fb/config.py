"""Configuration: frozen dataclasses, filled from preset < YAML file < command line.

A config never changes itself. Values are checked in `__post_init__` by raising, never by assigning.
"""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml

from robot_fb.errors import ConfigError
from robot_fb.registry import closest

C = TypeVar("C")


def from_mapping(kind: type[C], values: Mapping[str, Any], base: C | None = None, where: str = "") -> C:
    """Builds a config from plain data over `base`'s values (or the class defaults).

    Args:
        kind: a frozen dataclass; nested dataclasses are filled from nested mappings.
        values: plain data, e.g. read from YAML.
        base: values to keep where `values` says nothing.
        where: a prefix for messages.

    Raises:
        ConfigError: an unknown key (names the nearest known one) or a value of the wrong type.
    """
    if not isinstance(values, Mapping):
        raise ConfigError(f"{where or 'config'} must be a mapping", found=type(values).__name__)
    fields = {f.name: f for f in dataclasses.fields(kind)}  # type: ignore[arg-type]
    hints = typing.get_type_hints(kind)
    given: dict[str, Any] = {}
    for key, value in values.items():
        path = f"{where}.{key}" if where else str(key)
        if key not in fields:
            raise ConfigError(f"unknown config key {path!r}", do=closest(str(key), list(fields)))
        given[key] = _convert(hints[key], value, getattr(base, key, None), path)
    try:
        return dataclasses.replace(base, **given) if base is not None else kind(**given)  # type: ignore[type-var]
    except TypeError as error:
        raise ConfigError(f"{where or kind.__name__} is incomplete", found=str(error)) from error


def to_mapping(config: Any) -> dict[str, Any]:
    """Plain data that `from_mapping` reads back: YAML and JSON take it."""
    return {f.name: _plain(getattr(config, f.name)) for f in dataclasses.fields(config)}


def check_range(
    config: Any, names: Sequence[str], low: float = 0.0, high: float = math.inf, open_low: bool = False
) -> None:
    """Refuses settings outside `low` to `high`; for a config's `__post_init__`.

    Args:
        config: whose attributes are checked.
        names: of the attributes.
        low, high: smallest and largest value; an infinite `high` itself is refused.
        open_low: refuse `low` itself, too.

    Raises:
        ConfigError: names the first such setting.
    """
    expected = f"more than {low:g}" if open_low else f"at least {low:g}"
    if high < math.inf:
        expected += f", at most {high:g}"
    for name in names:
        value = getattr(config, name)
        fits = (value > low if open_low else value >= low) and (value <= high and value < math.inf)
        if not fits:  # a NaN fits nowhere
            raise ConfigError(f"config key {name!r}", expected=expected, found=value)


def read_yaml(path: Path) -> dict[str, Any]:
    """A YAML mapping from a file, or a clear error."""
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigError(f"no config file at {path}", do="check the path") from error
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"{path} is not readable YAML", found=str(error).splitlines()[0]) from error
    if not isinstance(data, dict):
        raise ConfigError(f"{path} must hold a YAML mapping", found=type(data).__name__)
    return data


def write_yaml(path: Path, data: Any) -> None:
    """Writes a config or plain data as YAML."""
    plain = to_mapping(data) if dataclasses.is_dataclass(data) else _plain(data)
    path.write_text(yaml.safe_dump(plain, sort_keys=False, allow_unicode=True), encoding="utf-8")


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return to_mapping(value)
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(v) for v in value]
    if isinstance(value, Path):
        return str(value)
    return value


def _convert(hint: Any, value: Any, base: Any, path: str) -> Any:
    """`value` as type `hint`, or a ConfigError that names `path`."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if dataclasses.is_dataclass(hint):
        return from_mapping(hint, value, base, path)  # type: ignore[arg-type]
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in args:
            return None
        return _convert(next(a for a in args if a is not type(None)), value, base, path)
    if origin is typing.Literal:
        if value not in args:
            raise ConfigError(f"config key {path!r}", expected=f"one of {', '.join(map(str, args))}", found=repr(value))
        return value
    if origin in (tuple, list) and isinstance(value, list | tuple):
        inner = args[0] if args else Any
        return (origin or tuple)(_convert(inner, v, None, path) for v in value)
    if origin in (dict, Mapping) or (isinstance(origin, type) and issubclass(origin, Mapping)):
        if not isinstance(value, Mapping):
            raise ConfigError(f"config key {path!r}", expected="a mapping", found=repr(value))
        return {str(k): _convert(args[1] if args else Any, v, None, path) for k, v in value.items()}
    if hint is Path:
        return Path(value)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(hint, type) and (not isinstance(value, hint) or (isinstance(value, bool) and hint is not bool)):
        raise ConfigError(f"config key {path!r}", expected=hint.__name__, found=repr(value))
    return value
