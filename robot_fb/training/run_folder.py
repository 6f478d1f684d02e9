"""A run on disk: what was asked for, with which code, and everything that came of it.

    config.yaml   the resolved config: `--config` reads it back
    run.yaml      the commands, git revision, versions, start times
    metrics.csv   tensorboard/   checkpoints/   policy/
"""

from __future__ import annotations

import datetime
import platform
import shlex
import subprocess
import sys
from collections.abc import Collection, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from robot_fb.config import read_yaml, to_mapping, write_yaml
from robot_fb.errors import ConfigError
from robot_fb.training.atomic import write_atomically

PACKAGES = ("robot-fb", "numpy", "torch", "diffusers", "gymnasium", "mujoco")


class RunFolder:
    """Paths inside a run folder. Use `create` or `resume`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config = path / "config.yaml"
        self.about = path / "run.yaml"
        self.metrics = path / "metrics.csv"
        self.tensorboard = path / "tensorboard"
        self.checkpoints = path / "checkpoints"
        self.policy = path / "policy"

    @classmethod
    def create(cls, path: Path, config: Any, command: str | None = None) -> RunFolder:
        """Starts a run.

        Args:
            path: a folder that is not there or empty.
            config: a config dataclass or plain data.
            command: what was typed; the process's own command line if not given.

        Raises:
            ConfigError: something lies there already.
        """
        if path.is_file() or (path.is_dir() and any(path.iterdir())):
            known = (path / "run.yaml").exists()
            what = "holds a run already" if known else "is not empty"
            do = "add --resume to go on with it, or choose another --out" if known else "choose another --out"
            raise ConfigError(f"{path} {what}", do=do)
        path.mkdir(parents=True, exist_ok=True)
        run = cls(path)
        write_atomically(run.config, lambda file: write_yaml(file, config))
        run._note(command, [])
        return run

    @classmethod
    def resume(
        cls, path: Path, config: Any, free: Collection[str] = (), command: str | None = None
    ) -> RunFolder:
        """Goes on with a run.

        Args:
            path: its folder.
            config: must be as it was, except for the keys in `free`.
            free: top-level keys that may change, e.g. "steps".
            command: what was typed.

        Raises:
            ConfigError: there is no run, or the config differs.
        """
        run = cls(path)
        if not run.about.exists():
            raise ConfigError(f"there is no run at {path} to resume", do="leave out --resume to start one")
        asked = to_mapping(config) if not isinstance(config, Mapping) else dict(config)
        difference = _difference({**read_yaml(run.config), **{key: asked.get(key) for key in free}}, asked)
        if difference is not None:
            key, was, now = difference
            raise ConfigError(
                f"the run at {path} was started with another {key}", expected=was, found=now,
                do="resume with the same options, or start a new run",
            )
        write_atomically(run.config, lambda file: write_yaml(file, config))
        run._note(command, read_yaml(run.about).get("started", []))
        return run

    def _note(self, command: str | None, before: list[Any]) -> None:
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        command = shlex.join(["robot-fb", *sys.argv[1:]]) if command is None else command
        data = {
            "started": [*before, {"date": now, "command": command, "git": git_revision()}],
            "versions": versions(),
            "machine": f"{platform.machine()}, {platform.system()} {platform.release()}",
        }
        write_atomically(self.about, lambda file: write_yaml(file, data))


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that results depend on."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def git_revision() -> str | None:
    """Revision of the source tree that this package runs from, "+" where it has changes; None outside git."""
    folder = Path(__file__).parent
    try:
        def ask(*words: str) -> str:
            found = subprocess.run(
                ["git", "-C", str(folder), *words], capture_output=True, text=True, timeout=10, check=True
            )
            return found.stdout.strip()

        dirty = ask("status", "--porcelain", "--untracked-files=no")
        return ask("rev-parse", "HEAD") + ("+" if dirty else "")
    except (OSError, subprocess.SubprocessError):
        return None


def _difference(was: Any, now: Any, where: str = "") -> tuple[str, Any, Any] | None:
    """The first key whose value changed: (key, before, now)."""
    if isinstance(was, Mapping) and isinstance(now, Mapping):
        for key in [*was, *(key for key in now if key not in was)]:
            found = _difference(was.get(key), now.get(key), f"{where}.{key}" if where else str(key))
            if found is not None:
                return found
        return None
    plain_was, plain_now = (list(v) if isinstance(v, tuple) else v for v in (was, now))
    return None if plain_was == plain_now else (where, plain_was, plain_now)
