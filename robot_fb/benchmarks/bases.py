"""`robot-fb bench pick_place`: what a diffusion policy learns from many and from few demonstrations."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import tyro

from robot_fb.benchmarks.common import FOLDER, verb, write_result
from robot_fb.runtime.evaluate import read_evals


@dataclasses.dataclass(frozen=True, kw_only=True)
class BasesArgs:
    """Record demonstrations of pick_place, clone them, evaluate; runs that are there already are not trained again.

    Attributes:
        demonstrations: how many to learn from; one row each and seed.
        seeds: runs for each, with other demonstrations and other weights.
        steps: gradient steps.
        episodes: held-out episodes of each evaluation.
        runs: folder for episodes and runs.
        out: folder of the result.
    """

    demonstrations: tuple[int, ...] = (200, 20)
    seeds: int = 3
    steps: int = 7000
    episodes: int = 200
    runs: Path = Path("runs/bench/pick_place")
    out: Path = FOLDER


def run(argv: list[str]) -> dict[str, Any]:
    """Trains, evaluates and writes data/benchmarks/pick_place.json; returns the document."""
    args = tyro.cli(BasesArgs, args=argv, prog="robot-fb bench pick_place")
    rows = [_row(count, seed, args) for count in args.demonstrations for seed in range(args.seeds)]
    counts = " ".join(map(str, args.demonstrations))
    command = f"robot-fb bench pick_place --demonstrations {counts} --seeds {args.seeds} --steps {args.steps}"
    return write_result("pick_place", f"{command} --episodes {args.episodes}", rows, args.out)


def _row(count: int, seed: int, args: BasesArgs) -> dict[str, Any]:
    store, base = args.runs / f"demonstrations-{count}-{seed}", args.runs / f"base-{count}-{seed}"
    seeded = ["--seed", str(seed)]
    if not store.exists():
        words = ["record", "--task", "pick_place", "--by", "expert", "--episodes", str(count)]
        verb([*words, "--out", str(store), *seeded])
    words = ["train", "bc", "--data", str(store), "--preset", "demo", "--steps", str(args.steps), "--out", str(base)]
    trained = verb([*words, *seeded, *(["--resume"] if (base / "run.yaml").exists() else [])])
    done = [row for row in read_evals(base) if row["episodes"] == args.episodes]
    words = ["eval", "--policy", str(base), "--episodes", str(args.episodes), "--seed", str(100 + seed)]
    found = done[-1] if done else verb(words)
    kept = {key: found[key] for key in ("task", "episodes", "successes", "success_rate", "ci95", "mean_episode_s")}
    return {"demonstrations": trained["episodes"], "steps": args.steps, "seed": seed, **kept}
