"""One task, base and seed of the residual's table: its demonstrations, its base, and the rows that build on it.

Every row is a run of its own, made by commands that anyone can type.
"""

from __future__ import annotations

import dataclasses
import datetime
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from robot_fb import registry
from robot_fb.algorithms.residual.config import ResidualConfig
from robot_fb.benchmarks import residual_bound, residual_peers
from robot_fb.benchmarks.common import verb
from robot_fb.runtime.episodes import Job
from robot_fb.runtime.evaluate import TRIAL, append_eval, evaluate, read_evals, wilson
from robot_fb.runtime.tasks import find_task
from robot_fb.training.checkpoint import load_policy

GRIP = {"--policy.correct": "grip", "--policy.scale": "0.3", "--gamma": "0.97"}
OPTIONS: dict[str, dict[str, str]] = {"keyed_socket": {}, "occluded_peg": {}, "fragile_lift": GRIP}
"""What differs on a task: on fragile_lift the correction moves the grip alone, by as much as there is between a weak
and a strong one, and looks ahead for as long as a lift takes."""

TRIALS = 8
"""Trials while a row learns."""

OVER_THE_CAP = ("force cap", "crushed")
"""Failures by too much force."""

Row = dict[str, Any]

FALSE = ("delayed", "shuffled")
FAULTS = {
    "bias of 1 N": "touch=bias:1.0", "300 ms late": "touch=delayed:0.3", "20% dropout": "touch=dropout:0.2",
    "dead sensor": "touch=dead",
}

ROWS: dict[str, tuple[str, list[str], Sequence[str]]] = {
    "touch": ("the correction as it is", [], ("live", *FALSE)),
    "vision": ("the same without touch", ["--touch", "none"], ("none",)),
    "half": ("the correction as it is, half the steps", [], ("live",)),
    "faults": ("learned with faulty sensors", ["--faults", "0.5"], ("live", *FAULTS.values())),
    "no_stage1": ("without stage 1", ["--bootstrap-steps", "800", "--bootstrap-updates", "0"], ("live",)),
    "no_augment": ("without touch augmentation", ["--touch-augment-n", "0"], ("live",)),
    "no_gate": ("without the contact gate", ["--policy.gate-n", "0"], ("live",)),
    "no_growth": ("the scale full from the start", ["--growth-steps", "0"], ("live",)),
    "share": ("coming in by share of decisions", ["--growth", "share"], ("live",)),
    "scale_half": ("scale 0.5 instead of 0.15", ["--policy.scale", "0.5"], ("live",)),
    "one_step": ("returns of one step", ["--n-step", "1"], ("live",)),
    "five_critics": ("five critics, minimum of two", ["--policy.critics", "5"], ("live",)),
    "low_utd": ("half an update for each decision", ["--updates-per-step", "0.5"], ("live",)),
    "no_mixing": ("without the buffer of successes", ["--success-share", "0"], ("live",)),
    "prefix": ("behind a random prefix of the base", ["--prefix-steps", "20"], ("live",)),
    "no_penalty": ("without the force penalty", ["--force-penalty", "0"], ("live",)),
    "lower_bound": ("only where a gain is promised", ["--policy.trust", "lower_bound"], ("live",)),
    "lipschitz": ("layers with a bound", ["--policy.lipschitz", "2"], ("live",)),
}
"""Row -> what it is, its options for `robot-fb train residual`, and the touch that it is evaluated with."""

PEERS = {"sac": "Stable-Baselines3 SAC", "ppo": "Stable-Baselines3 PPO"}


ABLATIONS = tuple(ROWS)[tuple(ROWS).index("faults") + 1 :]
"""Rows with one option turned; they learn for half the steps, as row "half" does, to compare with."""

KNOWN = ("base", "blind", *ROWS, *PEERS)


@dataclasses.dataclass(frozen=True)
class Effort:
    """How much is done for a row.

    Attributes:
        steps: decisions of the robot, stage 1 included.
        episodes: held-out episodes of each evaluation.
        trial_episodes: in each trial while learning.
        demonstrations: for the base.
        base_steps: gradient steps of the base.
    """

    steps: int
    episodes: int
    trial_episodes: int
    demonstrations: int
    base_steps: int


class Cell:
    """What is learned on one task with one kind of base and one seed.

    Args:
        task, base, seed: which.
        effort: how much.
        runs: folder of all runs.
        known: rows that are there already, found elsewhere.
    """

    def __init__(self, task: str, base: str, seed: int, effort: Effort, runs: Path, known: Sequence[Row] = ()) -> None:
        self.task, self.base, self.seed, self.effort, self.runs = task, base, seed, effort, runs
        self.folder = runs / task / base / str(seed)
        self.base_run = self.folder / "base"
        self._known = {key(row) for row in known}
        self._options = OPTIONS.get(task, {})

    def fill(self, row: str) -> None:
        """Runs what is missing of a row; its figures lie in ROW-TOUCH.json."""
        touches = ROWS[row][2] if row in ROWS else ("live",)
        if not [touch for touch in touches if not self._has(row, touch)]:
            return
        self._make_base()
        if row == "base":
            self._evaluate(row, "the base alone", self.base_run, touches)
        elif row == "blind":
            self._evaluate(row, "scripted blind search", Path("blind"), touches)
        elif row in PEERS:
            self._peer(row)
        else:
            what, options, _ = ROWS[row]
            self._train(row, options)
            self._evaluate(row, what, self.folder / row, touches)

    def _make_base(self) -> None:
        effort, seeded = self.effort, ["--seed", str(self.seed)]
        store = self.runs / self.task / f"demonstrations-{self.seed}"
        if not store.exists():
            words = ["record", "--task", self.task, "--by", "expert", "--episodes", str(effort.demonstrations)]
            verb([*words, "--out", str(store), *seeded])
        words = ["train", "bc", "--data", str(store), "--preset", "demo", "--policy", self.base, *seeded]
        words += ["--steps", str(effort.base_steps), "--out", str(self.base_run), "--threads", "1"]
        _once(self.base_run, words)

    def _steps(self, row: str) -> int:
        return self.effort.steps // 2 if row in ABLATIONS else self.effort.steps

    def _train(self, row: str, options: list[str]) -> None:
        run, steps = self.folder / row, self._steps(row)
        every = self.effort.steps // TRIALS
        given = self._options | {"--bootstrap-steps": str(every)}
        given |= dict(zip(options[::2], options[1::2], strict=True))
        words = ["train", "residual", "--base", str(self.base_run), "--out", str(run), "--seed", str(self.seed)]
        words += [word for option in given.items() for word in option]
        words += ["--online-steps", str(steps - int(given["--bootstrap-steps"])), "--eval-every", str(every)]
        words += ["--eval-episodes", str(self.effort.trial_episodes)]
        _once(run, words)

    def _evaluate(self, row: str, what: str, policy: Path, touches: Sequence[str]) -> None:
        for touch in touches:
            if self._has(row, touch):
                continue
            result = evaluate(Job(self.task, str(policy), touch), self.effort.episodes, 100 + self.seed)
            if policy.is_dir():
                append_eval(policy, f"touch {touch}", result, 0.0)
            found, failures = result.to_json(), result.failures()
            kept = {key: found[key] for key in ("episodes", "successes", "success_rate", "ci95", "peak_force_p95_n")}
            over = sum(failures.get(word, 0) for word in OVER_THE_CAP)
            bound = residual_bound.sweep(load_policy(policy), self.task, self.seed) if row == "lipschitz" else {}
            cost = {"minutes": _minutes(policy)} if row != "blind" and row != "base" else {}
            self._write(row, what, touch, {**kept, "over_cap": over, **self._trials(policy), **cost, **bound})

    def _trials(self, run: Path) -> Row:
        tried = [row["success_rate"] for row in read_evals(run) if row["label"] == TRIAL]
        if not tried:
            return {}
        return {"trials": tried, "worst_trial_against_base": min(tried) - tried[0]}

    def _peer(self, name: str) -> None:
        base = load_policy(self.base_run)
        kind = registry.load("policies", "residual")
        task = find_task(self.task)
        env = task.make()
        spec = dataclasses.replace(base.spec, obs=env.unwrapped.stream_specs)  # type: ignore[attr-defined]
        env.close()
        scale = float(self._options.get("--policy.scale", 0.15)) * (2 / 3 if name == "ppo" else 1)
        correct = self._options.get("--policy.correct", "arm")
        policy = kind(base, spec, kind.config_class(scale=scale, correct=correct))
        start = time.monotonic()
        model, features = residual_peers.learn(
            name, policy, self.task, self.effort.steps, ResidualConfig(gamma=float(self._options.get("--gamma", 0.9))),
            self.seed, lambda done: None,
        )
        minutes = (time.monotonic() - start) / 60
        found = residual_peers.evaluate(model, features, self.task, self.effort.episodes, 100 + self.seed)
        wins, forces = sum(ok for ok, _, _ in found), [force for _, force, _ in found]
        self._write(name, PEERS[name], "live", {
            "episodes": len(found), "successes": wins, "success_rate": wins / len(found),
            "ci95": list(wilson(wins, len(found))), "peak_force_p95_n": float(np.percentile(forces, 95)),
            "over_cap": sum(failure in OVER_THE_CAP for _, _, failure in found), "minutes": minutes,
        })

    def _about(self, row: str, touch: str) -> Row:
        return {"task": self.task, "base": self.base, "seed": self.seed, "row": row, "touch": touch}

    def _has(self, row: str, touch: str) -> bool:
        return self._result(row, touch).exists() or key(self._about(row, touch)) in self._known

    def _result(self, row: str, touch: str) -> Path:
        return self.folder / f"{row}-{touch.replace('/', '_')}.json"

    def _write(self, row: str, what: str, touch: str, found: Row) -> None:
        ceiling = find_task(self.task).ceiling()
        learned = {"steps": self._steps(row)} if row in ROWS or row in PEERS else {}
        document = {
            **self._about(row, touch), "what": what, **found, **learned,
            "ceiling": ceiling.success_rate if ceiling else None,
            "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        }
        path = self._result(row, touch)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document), encoding="utf-8")


def key(row: Row) -> tuple[Any, ...]:
    """What tells one row of the table from another."""
    return tuple(row[name] for name in ("task", "base", "seed", "row", "touch"))


def _once(run: Path, words: list[str]) -> None:
    """Trains, unless that is done; goes on with what was stopped. `RUN/done` keeps the seconds of the last stretch."""
    done = run / "done"
    if done.exists():
        return
    start = time.monotonic()
    verb(words + ["--resume"] * (run / "run.yaml").exists())
    done.write_text(f"{time.monotonic() - start:.1f}\n", encoding="utf-8")


def _minutes(run: Path) -> float:
    return round(float((run / "done").read_text(encoding="utf-8")) / 60, 2)
