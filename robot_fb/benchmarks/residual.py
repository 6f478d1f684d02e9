"""`robot-fb bench residual`: the correction by touch against its base, its ablations, false touch and its peers.

What is there is not run again, and the result file is written anew from all that is there: the table may be filled over
several sittings, and on several machines.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import tyro

from robot_fb.benchmarks import residual_table
from robot_fb.benchmarks.common import FOLDER, write_result
from robot_fb.benchmarks.residual_cell import ABLATIONS, KNOWN, PEERS, Cell, Effort, Row, key
from robot_fb.errors import ConfigError
from robot_fb.registry import closest

BASE_STEPS = {"keyed_socket": 1200, "occluded_peg": 1200, "fragile_lift": 4000}
"""Gradient steps after which a base moves well on a task; a grip takes longer to learn than a direction."""

TASKS = tuple(BASE_STEPS)
SEEDS = 3

STEPS = 48_000
"""Decisions of the robot in the rows that learn, stage 1 included: 40 minutes."""

MAIN = ("base", "blind", "touch", "vision", "faults")
"""Rows of every task and seed, on a diffusion base."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ResidualArgs:
    """Train and evaluate what is missing in the table, and print it. One process a core may fill it at the same time.

    With no choice made, every task gets its main rows in three seeds; keyed_socket gets flow and chunk_mlp as bases,
    too, and in one seed the ablations; the peers learn on two tasks in one seed.

    Attributes:
        task: only this one of keyed_socket, occluded_peg and fragile_lift.
        base: only this frozen policy: diffusion, flow or chunk_mlp.
        seed: only this one of 0, 1 and 2.
        row: only this row: base, blind, touch, vision, faults, an ablation, sac or ppo.
        collect: run nothing; write and print what is there.
        steps: decisions of the robot in each row; half of them in the ablations.
        episodes: held-out episodes of each evaluation.
        trial_episodes: in each of the eight trials while learning.
        demonstrations: for the base.
        base_steps: gradient steps of the base; 0 for as many as the task takes.
        runs: folder of all runs.
        out: folder of the result.
    """

    task: str = ""
    base: Literal["", "diffusion", "flow", "chunk_mlp"] = ""
    seed: int = -1
    row: str = ""
    collect: bool = False
    steps: int = STEPS
    episodes: int = 200
    trial_episodes: int = 100
    demonstrations: int = 100
    base_steps: int = 0
    runs: Path = Path("runs/bench/residual")
    out: Path = FOLDER


def run(argv: list[str]) -> dict[str, Any]:
    """Fills the table and writes data/benchmarks/residual.json; returns the document."""
    args = tyro.cli(ResidualArgs, args=argv, prog="robot-fb bench residual")
    if args.row and args.row not in KNOWN:
        raise ConfigError(f"unknown row {args.row!r}", do=closest(args.row, list(KNOWN)))
    if args.task and args.task not in TASKS:
        raise ConfigError(f"no row of the table is on {args.task!r}", do=closest(args.task, TASKS))
    if not args.collect:
        for task, base, seed, row in chosen(args):
            steps = args.base_steps or BASE_STEPS[task]
            effort = Effort(args.steps, args.episodes, args.trial_episodes, args.demonstrations, steps)
            Cell(task, base, seed, effort, args.runs, _written(args.out)).fill(row)
    rows = {key(row): row for row in _written(args.out)}
    made = [json.loads(path.read_text(encoding="utf-8")) for path in args.runs.glob("*/*/[0-9]*/*.json")]
    rows |= {key(row): row for row in made}
    return write_result("residual", "robot-fb bench residual", residual_table.ordered(rows.values()), args.out)


def show(document: dict[str, Any]) -> str:
    """The table."""
    return residual_table.table(document["rows"])


def chosen(args: ResidualArgs) -> Iterator[tuple[str, str, int, str]]:
    """(task, base, seed, row) of what is to be filled, the most telling first."""
    seeds = range(SEEDS) if args.seed < 0 else [args.seed]
    if args.row:
        for task in [args.task] if args.task else TASKS:
            yield from ((task, args.base or "diffusion", seed, args.row) for seed in seeds)
        return
    for task, base, seed, row in _plan():
        if args.task in ("", task) and args.base in ("", base) and args.seed in (-1, seed):
            yield task, base, seed, row


def _plan() -> Iterator[tuple[str, str, int, str]]:
    for row in MAIN:
        yield from ((task, "diffusion", seed, row) for seed in range(SEEDS) for task in TASKS)
    for base in ("flow", "chunk_mlp"):
        yield from ((TASKS[0], base, seed, row) for seed in range(SEEDS) for row in ("base", "touch"))
    yield from ((TASKS[0], "diffusion", 0, row) for row in ABLATIONS)
    yield from ((task, "diffusion", 0, row) for row in PEERS for task in TASKS[:2])


def _written(folder: Path) -> list[Row]:
    """Rows of the result file as it stands."""
    path = folder / "residual.json"
    return json.loads(path.read_text(encoding="utf-8"))["rows"] if path.exists() else []
