"""`robot-fb demo`: the whole story on one task, told through the commands that anyone can type."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import importlib
import os
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.table import Table

from robot_fb.cli import common
from robot_fb.config import read_yaml, write_yaml
from robot_fb.episodes.store import Store
from robot_fb.errors import ConfigError
from robot_fb.runtime.evaluate import LEARNING, TRIAL, read_evals
from robot_fb.runtime.tasks import find_task
from robot_fb.training.metrics import read_metrics

BASE, RESIDUAL = "base, by sight", "base + touch"
STAGES = "stages.csv"
"""Seconds and command of every stage."""

PLACEBOS = {"none": "touch taken away", "delayed": "touch 300 ms late", "shuffled": "touch of another episode"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class DemoArgs:
    """Watch a robot that fails by sight learn by touch: record, clone, evaluate, learn, evaluate, report.

    Every stage is one robot-fb command, printed as it starts. A demo that was stopped goes on where it was when it is
    started again with the same --out.

    Attributes:
        out: folder for everything.
        task: the task; one on which touch matters.
        seed: of everything.
        demonstrations: episodes by the expert.
        steps: gradient steps of the base policy.
        episodes: held-out episodes in each evaluation.
        quick: a rehearsal in a minute or two that shows every stage and reaches nothing.
        json: print one JSON document to stdout.
    """

    out: Path = Path("runs/demo")
    task: str = "keyed_socket"
    seed: int = 0
    demonstrations: int = 100
    steps: int = 1200
    episodes: int = 100
    quick: bool = False
    json: bool = False


def main(argv: list[str]) -> int:
    """Runs every stage that is not done yet."""
    args = common.parse(DemoArgs, argv, "robot-fb demo")
    if args.quick:
        args = dataclasses.replace(args, demonstrations=4, steps=20, episodes=4)
    _same_demo(args)
    demos, base, residual = args.out / "demonstrations", args.out / "base", args.out / "residual"
    _record(args, demos)
    _train(base, ["bc", "--data", str(demos), "--preset", "demo", "--steps", str(args.steps)], args)
    _eval(args, base, BASE, 0.0)
    _train(residual, ["residual", "--base", str(base), "--preset", "quick" if args.quick else "demo"], args)
    minutes = read_metrics(residual / "metrics.csv")[-1]["robot_minutes"]
    _eval(args, residual, RESIDUAL, minutes, log=args.out / "episodes")
    for touch, label in PLACEBOS.items():
        _eval(args, residual, label, minutes, touch)
    report = args.out / "report.html"
    words = ["report", str(base), str(residual), "--episodes", str(args.out / "episodes"), "--out", str(report)]
    _stage(args, words)
    _tell(args, base, residual, report)
    return 0


def _same_demo(args: DemoArgs) -> None:
    """Refuses to go on with a demo that was started otherwise."""
    note = args.out / "demo.yaml"
    asked = {k: v for k, v in dataclasses.asdict(args).items() if k not in ("out", "json")}
    if note.exists():
        was = read_yaml(note)
        if was != asked:
            changed = next((k for k in asked if was.get(k) != asked[k]), "options")
            raise ConfigError(
                f"the demo in {args.out} was started with another {changed}", expected=was.get(changed),
                found=asked.get(changed), do="use the same options, or another --out",
            )
        return
    args.out.mkdir(parents=True, exist_ok=True)
    write_yaml(note, asked)


def _record(args: DemoArgs, demos: Path) -> None:
    have = len(Store(demos).query(success=True)) if demos.exists() else 0
    if have < args.demonstrations:
        seed = args.seed if not have else args.seed + 250  # other episodes than those that are there
        words = ["record", "--task", args.task, "--by", "expert", "--episodes", str(args.demonstrations - have)]
        _stage(args, [*words, "--out", str(demos), "--seed", str(seed)])


def _train(run: Path, words: list[str], args: DemoArgs) -> None:
    if (run / "done").exists():
        return
    resume = ["--resume"] if (run / "run.yaml").exists() else []
    _stage(args, ["train", *words, "--out", str(run), "--seed", str(args.seed), *resume])
    (run / "done").touch()


def _eval(
    args: DemoArgs, run: Path, label: str, minutes: float, touch: str = "live", log: Path | None = None
) -> None:
    if label in {row["label"] for row in read_evals(run)}:
        return
    words = ["eval", "--policy", str(run), "--task", args.task, "--episodes", str(args.episodes), "--touch", touch]
    words += ["--label", label, "--robot-minutes", f"{minutes:.2f}", "--seed", str(100 + args.seed)]
    _stage(args, words + (["--log", str(log)] if log else []))


def _stage(args: DemoArgs, words: list[str]) -> None:
    """Runs one command of ours, printed so that it can be typed again; its results go to stderr with the progress.

    How long it took, also when it was stopped, becomes a line of stages.csv.
    """
    common.stderr.print(f"\n[bold]$ robot-fb {shlex.join(words)}[/bold]", soft_wrap=True)
    verb: Callable[[list[str]], int] = importlib.import_module(f"robot_fb.cli.{words[0]}").main
    started = time.monotonic()
    try:
        with contextlib.redirect_stdout(sys.stderr):
            verb(words[1:])
    finally:
        with open(args.out / STAGES, "a", newline="", encoding="utf-8") as file:
            csv.writer(file).writerow([f"{time.monotonic() - started:.1f}", shlex.join(words)])


def _tell(args: DemoArgs, base: Path, residual: Path, report: Path) -> None:
    with open(args.out / STAGES, newline="", encoding="utf-8") as file:
        seconds = sum(float(row[0]) for row in csv.reader(file))
    rows = [row for run in (base, residual) for row in read_evals(run) if row["label"] not in (LEARNING, TRIAL)]
    ceiling = find_task(args.task).ceiling()
    if args.json:
        common.emit({"report": report, "seconds": seconds, "ceiling": ceiling, "rows": rows})
        return
    table = Table("policy", "robot minutes", "success", "95% interval", "peak force p95")
    for row in rows:
        table.add_row(*_cells(row))
    common.Console().print(table)
    if ceiling is not None:
        print(f"Without touch nothing can pass {ceiling.success_rate:.0%}: {ceiling.reason}.")
    print(f"This took {seconds / 60:.1f} minutes. Report: {os.path.abspath(report)}")


def _cells(row: dict[str, Any]) -> list[str]:
    low, high = row["ci95"]
    force = row.get("peak_force_p95_n")
    return [
        row["label"], f"{row['robot_minutes']:.1f}", f"{row['successes']} of {row['episodes']}",
        f"{low:.0%} to {high:.0%}", "" if force is None else f"{force:.1f} N",
    ]
