"""What every verb shares: typed arguments with presets and YAML beneath them, progress on stderr, results on stdout."""

from __future__ import annotations

import dataclasses
import inspect
import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import tyro
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from robot_fb.config import from_mapping, read_yaml
from robot_fb.errors import ConfigError, RobotFbError
from robot_fb.registry import closest
from robot_fb.training.atomic import write_atomically

A = TypeVar("A")

stderr = Console(stderr=True)

_document: Path | None = None
"""Where the JSON document goes; stdout if None."""


def parse(kind: type[A], argv: list[str], prog: str, presets: Mapping[str, Mapping[str, Any]] | None = None) -> A:
    """Command-line arguments as a frozen dataclass: preset < `--config FILE` < flags.

    Args:
        kind: dataclass of the verb's arguments; its docstring is the help page.
        argv: what was typed after the verb.
        prog: e.g. "robot-fb record".
        presets: named sets of values, chosen with `--preset NAME`.

    Every verb takes --seed and --out. Where it draws nothing the seed changes nothing; where it makes no file or folder
    of its own, --out names the file that gets the JSON document in place of stdout.
    """
    argv, extra = _common_options(kind, argv)
    argv, config = _take(argv, "--config")
    argv, preset = _take(argv, "--preset")
    base: A | None = None
    if preset is not None:
        known = presets or {}
        if preset not in known:
            raise ConfigError(f"unknown preset {preset!r}", do=closest(preset, list(known)))
        base = from_mapping(kind, known[preset])
    if config is not None:
        base = from_mapping(kind, read_yaml(Path(config)), base)
    extra += f"\n\n--config FILE reads these from YAML first; --preset is one of: {', '.join(presets or {}) or 'none'}."
    help_page = inspect.cleandoc(kind.__doc__ or "").split("Attributes:")[0].strip() + extra
    if base is None:
        return tyro.cli(kind, args=argv, prog=prog, description=help_page)
    return tyro.cli(kind, args=argv, prog=prog, default=base, description=help_page)


def _common_options(kind: type, argv: list[str]) -> tuple[list[str], str]:
    """Takes --seed and --out where a verb has none of its own; the rest, and what the help page says of them."""
    global _document
    own, words, _document = {field.name for field in dataclasses.fields(kind)}, "", None
    if "out" not in own:
        argv, out = _take(argv, "--out")
        words += "\n\n--out FILE writes the JSON document there."
        if out is not None:
            _document = Path(out)
            argv = [*argv, *["--json"] * ("--json" not in argv)]
    if "seed" not in own:
        argv, seed = _take(argv, "--seed")
        words += "\n\n--seed N is taken, too; nothing is drawn here."
        if seed is not None and not seed.isdecimal():
            raise ConfigError("--seed", expected="a whole number, at least 0", found=seed)
    return argv, words


def _take(argv: list[str], flag: str) -> tuple[list[str], str | None]:
    """Removes `flag VALUE` or `flag=VALUE` from argv."""
    for i, word in enumerate(argv):
        if word == flag:
            if i + 1 == len(argv):
                raise ConfigError(f"{flag} needs a value")
            return argv[:i] + argv[i + 2 :], argv[i + 1]
        if word.startswith(flag + "="):
            return argv[:i] + argv[i + 1 :], word.split("=", 1)[1]
    return argv, None


@contextmanager
def progress() -> Iterator[Progress]:
    """A bar on stderr with time left. Where a mistake comes before it moved, only the mistake is shown."""
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        TextColumn("left"), TimeRemainingColumn(), console=stderr,
    )
    with bar:
        try:
            yield bar
        except RobotFbError:
            for task in bar.tasks:
                bar.update(task.id, visible=task.completed > 0)
            raise


def emit(document: Any) -> None:
    """Prints exactly one JSON document to stdout, or writes it to the file that --out named."""
    text = json.dumps(jsonable(document), ensure_ascii=False)
    if _document is None:
        print(text)
    else:
        write_atomically(_document, lambda path: path.write_text(text + "\n", encoding="utf-8"))


def jsonable(value: Any) -> Any:
    """Plain JSON data: numpy and paths converted, NaN as null."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: jsonable(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(k): jsonable(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(v) for v in value]
    if isinstance(value, np.ndarray):
        return jsonable(value.tolist())
    if isinstance(value, np.generic):
        return jsonable(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Path):
        return str(value)
    return value
