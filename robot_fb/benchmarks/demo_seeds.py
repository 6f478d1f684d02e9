"""`robot-fb bench demo`: the demo in several seeds, from nothing, with what each evaluation found and what it cost."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import tyro

from robot_fb.benchmarks.common import FOLDER, verb, write_result


@dataclasses.dataclass(frozen=True, kw_only=True)
class DemoSeedsArgs:
    """Run robot-fb demo once a seed, and keep every evaluation's result. Seeds that are done are not run again.

    Attributes:
        seeds: demos, each with its own seed.
        runs: folder of the demos; one that was stopped goes on.
        quick: rehearse: see robot-fb demo --help.
        out: folder of the result.
    """

    seeds: int = 3
    runs: Path = Path("runs/bench/demo")
    quick: bool = False
    out: Path = FOLDER


def run(argv: list[str]) -> dict[str, Any]:
    """Runs the demos and writes data/benchmarks/demo.json; returns the document."""
    args = tyro.cli(DemoSeedsArgs, args=argv, prog="robot-fb bench demo")
    rows = []
    for seed in range(args.seeds):
        words = ["demo", "--seed", str(seed), "--out", str(args.runs / str(seed)), *(["--quick"] if args.quick else [])]
        found = verb(words)
        for row in found["rows"]:
            kept = {k: v for k, v in row.items() if k not in ("policy", "date", "peak_forces")}
            rows.append({**kept, "seed": seed, "whole_demo_minutes": round(found["seconds"] / 60, 2)})
    flags = " --quick" if args.quick else ""
    return write_result("demo", f"robot-fb bench demo --seeds {args.seeds}{flags}", rows, args.out)
