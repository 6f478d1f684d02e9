"""Kills recordings with SIGKILL at random moments and looks at what is left.

    python -m robot_fb.benchmarks.crash STORE      records episodes of one second into STORE until it is killed
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from robot_fb.benchmarks.cell_episode import DT, META, CellEpisode
from robot_fb.episodes.repair import repair
from robot_fb.episodes.store import Store
from robot_fb.errors import RobotFbError

STEPS = 20


@dataclass(frozen=True)
class Killed:
    """What one kill left.

    Attributes:
        finished: episodes that were closed before.
        finished_intact: all of them read back with all their steps.
        repaired: the open one is whole again, or had not begun.
        lost_s: how long before the kill the oldest lost step was added [s]; all that is older is safe.
    """

    finished: int
    finished_intact: bool
    repaired: bool
    lost_s: float


def record_until_killed(path: Path) -> None:
    """Records in real time; reports each event as one JSON line on stdout the moment it has happened."""
    store = Store(path, create=True)
    episode = 0
    while True:
        source = CellEpisode(episode)
        writer = store.open(META)
        _say({"open": writer.id})
        begun = time.monotonic()
        for i in range(STEPS):
            time.sleep(max(0.0, begun + i * DT - time.monotonic()))
            writer.add_step(source.step())
            _say({"step": i, "at": time.monotonic()})
        writer.close(True)
        _say({"closed": writer.id})
        episode += 1


def kill_one(path: Path, after_s: float) -> Killed:
    """Starts a recording, kills it `after_s` after its first step and repairs the store."""
    command = [sys.executable, "-m", "robot_fb.benchmarks.crash", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        lines = [child.stdout.readline(), child.stdout.readline()]
        time.sleep(after_s)
        killed_at = time.monotonic()  # one clock for all processes
        child.send_signal(signal.SIGKILL)
        lines += child.stdout.readlines()
    said = [json.loads(line) for line in lines if line.endswith("\n")]
    finished = [event["closed"] for event in said if "closed" in event]
    last_open = next(event["open"] for event in reversed(said) if "open" in event)
    store = Store(path)
    intact = all(len(store.read(id)) == STEPS for id in finished)
    if last_open in finished:
        last_open = None
    added = [] if last_open is None else _steps_after_last_open(said)
    repaired = True
    for part in store.parts():
        try:
            repair(part)
        except RobotFbError:
            repaired = False
    saved = 0
    if last_open is not None and store.file(last_open).exists():
        saved = len(store.read(last_open))
    lost_s = max(0.0, killed_at - added[saved]) if saved < len(added) else 0.0
    return Killed(len(finished), intact, repaired and not store.parts(), lost_s)


def row(kills: int, seed: int = 0, at_once: int = 2) -> dict[str, Any]:
    """One row of `robot-fb bench log`."""
    moments = np.random.default_rng(seed).uniform(0.0, 2.5, kills)
    with TemporaryDirectory() as folder, ThreadPoolExecutor(at_once) as pool:
        jobs = [pool.submit(kill_one, Path(folder) / str(i), float(moment)) for i, moment in enumerate(moments)]
        results = [job.result() for job in jobs]
    return {
        "what": "kill -9 while recording", "kills": kills, "finished_episodes": sum(r.finished for r in results),
        "finished_intact": all(r.finished_intact for r in results), "repaired": sum(r.repaired for r in results),
        "lost_s_max": max(r.lost_s for r in results), "lost_s_median": float(np.median([r.lost_s for r in results])),
        "target": "all intact, all repaired, lost_s_max <= 0.5",
    }


def _steps_after_last_open(said: list[dict[str, Any]]) -> list[float]:
    """When each step of the open episode was added."""
    times: list[float] = []
    for event in said:
        if "open" in event:
            times = []
        elif "step" in event:
            times.append(event["at"])
    return times


def _say(event: dict[str, Any]) -> None:
    os.write(1, (json.dumps(event) + "\n").encode())


if __name__ == "__main__":
    record_until_killed(Path(sys.argv[1]))
