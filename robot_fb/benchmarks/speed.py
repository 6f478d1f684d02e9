"""`robot-fb bench speed`: steps a second with two cameras, against peers in the same run, and time per plan."""

from __future__ import annotations

import dataclasses
import shlex
import subprocess
import sys
import venv
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import tyro

from robot_fb.benchmarks import contenders, inference
from robot_fb.benchmarks.common import write_result
from robot_fb.errors import RobotFbError

PEER = ("robosuite==1.5.2", "mujoco==3.3.7")
PEER_VENV = Path("~/.cache/robot_fb/robosuite-1.5.2")

WHAT = {
    "cell": "keyed_socket, two 64x64 cameras, one process",
    "lanes": f"keyed_socket, two 64x64 cameras, {contenders.LANES} processes side by side",
    "robosuite": "robosuite 1.5.2 Lift, two cameras at its defaults (256x256), one process",
    "robosuite-64": "robosuite 1.5.2 Lift, two 64x64 cameras, one process",
    "gymnasium": "gymnasium Pusher-v5, two 64x64 pictures by its own renderer, one process",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class SpeedArgs:
    """Measure visual steps a second of our cell and of its peers, in turns, and how long each base policy plans.

    The first time this makes an environment for the peer, which takes minutes and about 2 GB.

    Attributes:
        rounds: turns that each contender gets; the median counts.
        seconds: length of a turn [s].
        plans: plans timed for each base policy.
        peer_venv: environment with the peer; made where it is missing.
        peer: measure against robosuite, too.
        out: folder of the result.
    """

    rounds: int = 5
    seconds: float = 6.0
    plans: int = inference.CALLS
    peer_venv: Path = PEER_VENV
    peer: bool = True
    out: Path = Path("data/benchmarks")


def run(argv: list[str]) -> dict[str, Any]:
    """Measures and writes data/benchmarks/speed.json; returns the document."""
    args = tyro.cli(SpeedArgs, args=argv, prog="robot-fb bench speed")
    names = [name for name in WHAT if args.peer or not name.startswith("robosuite")]
    peer = peer_python(args.peer_venv.expanduser()) if args.peer else sys.executable
    pythons = {name: peer if name.startswith("robosuite") else sys.executable for name in names}
    rows = speed_rows(race(pythons, args.rounds, args.seconds)) + inference.rows(args.plans)
    return write_result("speed", shlex.join(["robot-fb", "bench", "speed", *argv]), rows, args.out)


def race(pythons: Mapping[str, str], rounds: int, seconds: float) -> dict[str, list[float]]:
    """Lets contenders run one after another, round by round, so that a machine that slows down slows all of them.

    Args:
        pythons: contender -> interpreter that has it.
        rounds: turns for each.
        seconds: length of a turn [s].

    Returns:
        Contender -> steps a second in each round.
    """
    rates: dict[str, list[float]] = {name: [] for name in pythons}
    with ExitStack() as stack:
        running = {name: stack.enter_context(Contender(name, python)) for name, python in pythons.items()}
        for _ in range(rounds):
            for name, contender in running.items():
                rates[name].append(contender.steps_per_s(seconds))
    return rates


def speed_rows(rates: Mapping[str, list[float]]) -> list[dict[str, Any]]:
    """One row a contender; `cell_is_times_as_fast` is the median over rounds of the ratio within a round."""
    return [
        {
            "what": "visual steps", "who": name, "setting": WHAT[name],
            "steps_per_s": float(np.median(rounds)), "rounds": [round(rate, 2) for rate in rounds],
            "cell_is_times_as_fast": float(np.median(np.divide(rates["cell"], rounds))),
        }
        for name, rounds in rates.items()
    ]


class Contender:
    """One simulator in a process of its own. A context manager.

    Args:
        name: key of `contenders.CONTENDERS`.
        python: interpreter that has what it needs.
    """

    def __init__(self, name: str, python: str) -> None:
        self._name = name
        self._process = subprocess.Popen(
            [python, "-P", contenders.__file__, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        )

    def __enter__(self) -> Contender:
        self._answer()
        return self

    def __exit__(self, *exc: object) -> None:
        self._process.kill()
        self._process.communicate()

    def steps_per_s(self, seconds: float) -> float:
        """Steps for a while; the others wait meanwhile."""
        assert self._process.stdin is not None
        print(seconds, file=self._process.stdin, flush=True)
        return float(self._answer())

    def _answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            _, said = self._process.communicate()
            last = said.strip().splitlines()[-1:] or ["nothing was said"]
            raise RobotFbError(f"the contender {self._name!r} stopped", found=last[0], do="try again, or --no-peer")
        return line.strip()


def peer_python(folder: Path) -> str:
    """Interpreter of an environment with the peer, made where it is missing.

    Raises:
        RobotFbError: it cannot be installed.
    """
    python, done = folder / "bin" / "python", folder / "robot_fb_peer"
    wanted = " ".join(PEER)
    if python.exists() and (not done.exists() or done.read_text() == wanted):
        if done.exists() or _can_import(python):
            return str(python)
    print(f"making {folder} with {wanted}; this takes minutes", file=sys.stderr)
    venv.create(folder, clear=True, with_pip=True)
    made = subprocess.run([python, "-m", "pip", "install", "--quiet", *PEER], capture_output=True, text=True)
    if made.returncode:
        said = made.stderr.strip().splitlines()[-1:] or [""]
        do = "give an environment that has it with --peer-venv, or leave it out with --no-peer"
        raise RobotFbError(f"{wanted} cannot be installed", found=said[0], do=do)
    # In its first process numba compiles, and its pictures are broken (see `contenders.drawn`): let that one pass.
    subprocess.run([python, "-P", contenders.__file__, "robosuite-64"], input="2\n", capture_output=True, text=True)
    done.write_text(wanted)
    return str(python)


def _can_import(python: Path) -> bool:
    return subprocess.run([python, "-c", "import robosuite"], capture_output=True).returncode == 0
