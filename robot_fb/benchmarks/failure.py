"""`robot-fb bench failure`: all failure detectors on the same rollouts of the same policies, over calibration seeds."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tyro
from rich.console import Console
from scipy.stats import binomtest

from robot_fb import registry
from robot_fb.benchmarks.common import FOLDER, verb, write_result
from robot_fb.episodes.store import Store
from robot_fb.failure.detector import Detector
from robot_fb.failure.metrics import judge
from robot_fb.failure.trace import Trace
from robot_fb.runtime.monitor import trace_of, watched
from robot_fb.training.checkpoint import load_policy

BASES = {
    "pick_place": (80, 4000), "keyed_socket": (100, 1600), "occluded_peg": (100, 1600), "fragile_lift": (100, 4000),
}
"""Task -> demonstrations and gradient steps of the policy that is watched: it fails often, and by itself."""

PLANS = 16


@dataclasses.dataclass(frozen=True, kw_only=True)
class FailureArgs:
    """Let policies fail, fit every detector to some of it, and see what they make of the rest.

    Attributes:
        tasks: to watch on.
        detectors: to compare; all if none is named.
        fit_episodes: rollouts to fit and calibrate on.
        test_episodes: rollouts to test on.
        seeds: ways to split the successes into those to fit to and those to calibrate on.
        alpha: declared share of successes that alarm.
        demonstrations, base_steps: for the policies; 0 for as many as the task takes.
        runs: folder of policies and rollouts; what is there is used.
        out: folder of the result.
    """

    tasks: tuple[str, ...] = tuple(BASES)
    detectors: tuple[str, ...] = ()
    fit_episodes: int = 600
    test_episodes: int = 300
    seeds: int = 5
    alpha: float = 0.05
    demonstrations: int = 0
    base_steps: int = 0
    runs: Path = Path("runs/bench/failure")
    out: Path = FOLDER


def run(argv: list[str]) -> dict[str, Any]:
    """Fills data/benchmarks/failure.json; returns the document."""
    args = tyro.cli(FailureArgs, args=argv, prog="robot-fb bench failure")
    names = args.detectors or registry.names("detectors")
    rows = []
    for task in args.tasks:
        policy = load_policy(_policy(task, args))
        fit, test = (_traces(task, part, policy, args) for part in ("fit", "test"))
        for name in names:
            found = [_one(name, fit, test, args, seed, policy.spec.dt) for seed in range(args.seeds)]
            rows.append({"task": task, "detector": name, "alpha": args.alpha, **_mean(found)})
    command = f"robot-fb bench failure --tasks {' '.join(args.tasks)} --seeds {args.seeds} --alpha {args.alpha:g}"
    return write_result("failure", command, rows, args.out)


def show(document: dict[str, Any]) -> str:
    """A line for each task and detector, and the mean over tasks."""
    rows = document["rows"]
    means = []
    for name in sorted({row["detector"] for row in rows}):
        means.append({"task": "mean", "detector": name, **_mean([row for row in rows if row["detector"] == name])})
    words = ("bal. acc.", "TWA", "TPR", "false", "delay [s]", "p99 [ms]")
    head = f"{'task':<13} {'detector':<11} " + " ".join(f"{word:>9}" for word in words)
    return "\n".join([head, *map(_line, [*rows, *means])])


def _line(row: dict[str, Any]) -> str:
    delay = math.nan if row["median_delay_s"] is None else row["median_delay_s"]
    figures = (row["balanced_accuracy"], row["twa"], row["tpr"], 1 - row["tnr"], delay, row["p99_ms"])
    return f"{row['task']:<13} {row['detector']:<11} " + " ".join(f"{figure:>9.3f}" for figure in figures)


def _policy(task: str, args: FailureArgs) -> Path:
    """The policy that is watched, trained unless it is there."""
    count, steps = BASES[task]
    folder, base = args.runs / task, args.runs / task / "base"
    if not (folder / "demonstrations").exists() and not base.exists():
        words = ["record", "--task", task, "--by", "expert", "--episodes", str(args.demonstrations or count)]
        verb([*words, "--out", str(folder / "demonstrations")])
    if not (base / "policy").exists():
        words = ["train", "bc", "--data", str(folder / "demonstrations"), "--preset", "demo", "--threads", "1"]
        resume = ["--resume"] * (base / "run.yaml").exists()
        verb([*words, "--steps", str(args.base_steps or steps), "--out", str(base), *resume])
    return base


def _traces(task: str, part: str, policy: Any, args: FailureArgs) -> list[Trace]:
    """What the policy saw in the rollouts of a part, which are made unless they are there."""
    store = args.runs / task / part
    count, seed = (args.fit_episodes, "200") if part == "fit" else (args.test_episodes, "201")
    if not store.exists():
        words = ["eval", "--policy", str(args.runs / task / "base"), "--episodes", str(count)]
        verb([*words, "--seed", seed, "--log", str(store)])
    log = Store(store)
    traces = []
    with Console(stderr=True).status(f"what the policy saw: {task}, {part}"):
        for i, id in enumerate(log.query(task=task)):
            traces.append(trace_of(policy, log.read(id), PLANS, i))
    return traces


def _one(
    name: str, fit: Sequence[Trace], test: Sequence[Trace], args: FailureArgs, seed: int, dt: float
) -> dict[str, Any]:
    """One detector with one split."""
    good = [trace for trace in fit if trace.success]
    order = np.random.default_rng(seed).permutation(len(good))
    learned = [good[i] for i in order[len(good) // 2 :]] + [trace for trace in fit if not trace.success]
    detector: Detector = registry.load("detectors", name)()
    detector.fit(learned, seed)
    detector.calibrate([good[i] for i in order[: len(good) // 2]], args.alpha, seed)
    found = judge([watched(detector, trace, dt) for trace in test])
    inside = binomtest(found["false_alarms"], found["successes"], args.alpha).pvalue > 0.05
    return {**found, "false_alarms_as_declared": float(inside), "p99_ms": _p99_ms(detector, test[:20])}


def _p99_ms(detector: Detector, traces: Sequence[Trace]) -> float:
    """The 99th percentile of the time that a decision takes [ms]."""
    took = []
    for trace in traces:
        detector.reset()
        for glimpse in trace.glimpses:
            start = time.perf_counter()
            detector.excess(detector.look(glimpse))
            took.append(1e3 * (time.perf_counter() - start))
    return float(np.percentile(took, 99))


def _mean(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The mean of every figure; where one is missing, of the others."""
    numbers = [key for key, value in found[0].items() if not isinstance(value, str) and key != "alpha"]
    means = {}
    for key in numbers:
        values = [row[key] for row in found if row[key] is not None]
        means[key] = float(np.mean(values)) if values else None
    return means
