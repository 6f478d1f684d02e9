"""`robot-fb bench residual`: the correction by touch against its base, its ablations, false touch and its peers.

Every row is a run of its own under `--runs`, made by commands that anyone can type; what is there is not run again,
and the result file is written anew from all that is there.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import tyro

from robot_fb import registry
from robot_fb.algorithms.residual.config import ResidualConfig
from robot_fb.benchmarks import residual_bound, residual_peers
from robot_fb.benchmarks.common import FOLDER, verb, write_result
from robot_fb.errors import ConfigError
from robot_fb.registry import closest
from robot_fb.runtime.evaluate import TRIAL, read_evals, wilson
from robot_fb.runtime.tasks import find_task
from robot_fb.training.checkpoint import load_policy

TASKS = ("keyed_socket", "occluded_peg", "fragile_lift")
GRIP = ("fragile_lift",)
"""Tasks on which the correction moves the gripper, too."""

STEPS = 48_000
"""Decisions of the robot in every row that learns, stage 1 included: 40 minutes."""

FALSE = ("delayed", "shuffled")
FAULTS = {
    "bias of 1 N": "touch=bias:1.0", "300 ms late": "touch=delayed:0.3", "20% dropout": "touch=dropout:0.2",
    "dead sensor": "touch=dead",
}

ROWS: dict[str, tuple[str, list[str], Sequence[str]]] = {
    "touch": ("the correction as it is", [], ("live", *FALSE)),
    "vision": ("the same without touch", ["--touch", "none"], ("none",)),
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


@dataclasses.dataclass(frozen=True, kw_only=True)
class ResidualArgs:
    """Train and evaluate what is missing in the table, and print it. One process a core may fill it at the same time.

    Attributes:
        task: only this one of keyed_socket, occluded_peg and fragile_lift.
        base: the frozen policy.
        seed: only this one of 0, 1 and 2.
        row: only this row: base, blind, touch, vision, faults, an ablation, sac or ppo.
        collect: run nothing; write and print what is there.
        steps: decisions of the robot in each row.
        episodes: held-out episodes of each evaluation.
        trial_episodes: in each of the eight trials while learning.
        demonstrations: for the base.
        base_steps: gradient steps of the base.
        runs: folder of all runs.
        out: folder of the result.
    """

    task: str = ""
    base: Literal["diffusion", "flow", "chunk_mlp"] = "diffusion"
    seed: int = -1
    row: str = ""
    collect: bool = False
    steps: int = STEPS
    episodes: int = 200
    trial_episodes: int = 100
    demonstrations: int = 100
    base_steps: int = 1600
    runs: Path = Path("runs/bench/residual")
    out: Path = FOLDER


def run(argv: list[str]) -> dict[str, Any]:
    """Fills the table and writes data/benchmarks/residual.json; returns the document."""
    args = tyro.cli(ResidualArgs, args=argv, prog="robot-fb bench residual")
    known = ["base", "blind", *ROWS, *PEERS]
    if args.row and args.row not in known:
        raise ConfigError(f"unknown row {args.row!r}", do=closest(args.row, known))
    if args.task:
        find_task(args.task)
    if not args.collect:
        for task in [args.task] if args.task else TASKS:
            for row in [args.row] if args.row else known:
                for seed in [args.seed] if args.seed >= 0 else range(3):
                    Cell(task, args.base, seed, args).fill(row)
    rows = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(args.runs.glob("*/*/*/*.json"))]
    return write_result("residual", "robot-fb bench residual", rows, args.out)


class Cell:
    """One task, base and seed: its demonstrations, its base and the rows on top.

    Args:
        task, base, seed: see `ResidualArgs`.
        args: the rest.
    """

    def __init__(self, task: str, base: str, seed: int, args: ResidualArgs) -> None:
        self.task, self.base, self.seed, self.args = task, base, seed, args
        self.folder = args.runs / task / base / str(seed)
        self.base_run = self.folder / "base"

    def fill(self, row: str) -> None:
        """Runs what is missing of a row; its figures lie in ROW-TOUCH.json."""
        self._make_base()
        if row == "base":
            self._evaluate(row, "the base alone", self.base_run, ["live"])
        elif row == "blind":
            self._evaluate(row, "scripted blind search", Path("blind"), ["live"])
        elif row in PEERS:
            self._peer(row)
        else:
            what, options, touches = ROWS[row]
            run = self.folder / row
            self._train(run, options)
            self._evaluate(row, what, run, touches)

    def _make_base(self) -> None:
        args, seeded = self.args, ["--seed", str(self.seed)]
        store = args.runs / self.task / f"demonstrations-{self.seed}"
        if not store.exists():
            words = ["record", "--task", self.task, "--by", "expert", "--episodes", str(args.demonstrations)]
            verb([*words, "--out", str(store), *seeded])
        if not (self.base_run / "done").exists():
            words = ["train", "bc", "--data", str(store), "--preset", "demo", "--policy", self.base, *seeded]
            words += ["--steps", str(args.base_steps), "--out", str(self.base_run), "--threads", "1"]
            verb(words + ["--resume"] * (self.base_run / "run.yaml").exists())
            (self.base_run / "done").touch()

    def _train(self, run: Path, options: list[str]) -> None:
        if (run / "done").exists():
            return
        every = self.args.steps // 8
        given = {"--bootstrap-steps": str(every), **dict(zip(options[::2], options[1::2], strict=True))}
        options = [word for option in given.items() for word in option]
        words = ["train", "residual", "--base", str(self.base_run), "--out", str(run), "--seed", str(self.seed)]
        online = self.args.steps - int(given["--bootstrap-steps"])
        words += [*options, "--online-steps", str(online), "--eval-every", str(every)]
        words += ["--eval-episodes", str(self.args.trial_episodes), *["--policy.correct-grip"] * (self.task in GRIP)]
        verb(words + ["--resume"] * (run / "run.yaml").exists())
        (run / "done").touch()

    def _evaluate(self, row: str, what: str, policy: Path, touches: Sequence[str]) -> None:
        for touch in touches:
            path = self._result(row, touch)
            if path.exists():
                continue
            words = ["eval", "--policy", str(policy), "--task", self.task, "--episodes", str(self.args.episodes)]
            found = verb([*words, "--seed", str(100 + self.seed), "--touch", touch])
            kept = {key: found[key] for key in ("episodes", "successes", "success_rate", "ci95", "peak_force_p95_n")}
            bound = residual_bound.sweep(load_policy(policy), self.task, self.seed) if row == "lipschitz" else {}
            self._write(path, row, what, touch, {**kept, **self._trials(policy), **bound})

    def _trials(self, run: Path) -> dict[str, Any]:
        tried = [row["success_rate"] for row in read_evals(run) if row["label"] == TRIAL]
        if not tried:
            return {}
        return {"trials": tried, "worst_trial_against_base": min(tried) - tried[0]}

    def _peer(self, name: str) -> None:
        path = self._result(name, "live")
        if path.exists():
            return
        base = load_policy(self.base_run)
        kind = registry.load("policies", "residual")
        task = find_task(self.task)
        env = task.make()
        spec = dataclasses.replace(base.spec, obs=env.unwrapped.stream_specs)  # type: ignore[attr-defined]
        env.close()
        scale = 0.1 if name == "ppo" else 0.15
        policy = kind(base, spec, kind.config_class(scale=scale, correct_grip=self.task in GRIP))
        config = ResidualConfig()
        model, features = residual_peers.learn(
            name, policy, self.task, self.args.steps, config, self.seed, lambda done: None
        )
        found = residual_peers.evaluate(model, features, self.task, self.args.episodes, 100 + self.seed)
        wins, forces = sum(ok for ok, _ in found), [force for _, force in found]
        self._write(path, name, PEERS[name], "live", {
            "episodes": len(found), "successes": wins, "success_rate": wins / len(found),
            "ci95": list(wilson(wins, len(found))), "peak_force_p95_n": float(np.percentile(forces, 95)),
        })

    def _result(self, row: str, touch: str) -> Path:
        return self.folder / f"{row}-{touch.replace('/', '_')}.json"

    def _write(self, path: Path, row: str, what: str, touch: str, found: dict[str, Any]) -> None:
        ceiling = find_task(self.task).ceiling()
        about = {"task": self.task, "base": self.base, "seed": self.seed, "row": row, "what": what, "touch": touch}
        document = {**about, **found, "ceiling": ceiling.success_rate if ceiling else None, "steps": self.args.steps}
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document), encoding="utf-8")
