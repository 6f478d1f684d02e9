"""Where measured figures go: data/benchmarks/NAME.json, each with the command that made it."""

from __future__ import annotations

import datetime
import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from robot_fb.errors import RobotFbError
from robot_fb.training.run_folder import versions

FOLDER = Path("data/benchmarks")


def write_result(name: str, command: str, rows: Sequence[Mapping[str, Any]], folder: Path = FOLDER) -> dict[str, Any]:
    """Writes one benchmark's rows with what is needed to judge and repeat them.

    Args:
        name: of the file, without ".json".
        command: as typed.
        rows: one mapping for each figure.
        folder: made if missing.

    Returns:
        The document.
    """
    document = {
        "command": command,
        "versions": versions(),
        "machine": machine(),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "rows": list(rows),
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return document


def machine() -> str:
    """Processor, cores and system in a line."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line.split(":", 1)[1].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        model = names[0] if names else model
    return f"{model}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}"


def verb(words: Sequence[str]) -> dict[str, Any]:
    """Runs `robot-fb WORDS --json` as a user would, its progress shown on stderr.

    Returns:
        The document that it printed.

    Raises:
        RobotFbError: the command failed; it said why.
    """
    command = [sys.executable, "-m", "robot_fb.cli.main", *words, "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise RobotFbError(f"robot-fb {' '.join(words)} failed with exit status {done.returncode}")
    return json.loads(done.stdout)
