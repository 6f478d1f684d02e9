"""`robot-fb train residual`."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any, Literal

import torch
import tyro

from robot_fb import registry
from robot_fb.algorithms.residual.config import ResidualConfig
from robot_fb.algorithms.residual.learn import learn
from robot_fb.cli import common
from robot_fb.config import to_mapping
from robot_fb.runtime.tasks import find_task
from robot_fb.training.checkpoint import load_policy
from robot_fb.training.run_folder import RunFolder

PRESETS: dict[str, dict[str, Any]] = {
    "quick": {
        "bootstrap_steps": 800, "bootstrap_updates": 50, "online_steps": 800, "growth_steps": 400, "eval_every": 400,
        "eval_episodes": 2,
    },
    "demo": {"online_steps": 22_000, "eval_every": 5_500},
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainResidualArgs(ResidualConfig):
    """Learn a correction by touch on top of a frozen base policy, and keep both in a run folder.

    First the base acts alone and a critic learns what its actions and touch lead to; then the correction learns
    online. Ctrl-C saves a checkpoint; the same command with --resume goes on.

    Attributes:
        base: run of the base policy, of any kind.
        task: task to learn on; the base's own if not given.
        out: run folder; must not exist yet, unless --resume.
        touch: what the correction feels: live, or a placebo.
        seed: of everything.
        resume: go on with the run in --out.
        json: print one JSON document to stdout.
    """

    base: Path = tyro.MISSING
    out: Path = tyro.MISSING
    task: str = ""
    touch: Literal["live", "none", "delayed", "shuffled"] = "live"
    seed: int = 0
    resume: bool = False
    json: bool = False


def main(argv: list[str]) -> int:
    """Runs both stages."""
    args = common.parse(_arguments(), argv, "robot-fb train residual", PRESETS)
    torch.set_num_threads(1)  # the nets are small, and the other cores simulate
    base = load_policy(args.base, args.task or None)
    task = base.spec.task
    find_task(task)
    settings = {key: value for key, value in to_mapping(args).items() if key not in ("resume", "json")}
    run = RunFolder.resume(args.out, settings, ("out", "base")) if args.resume else RunFolder.create(args.out, settings)
    with common.progress() as bar:
        try:
            rollout = learn(base, task, args, run, bar, args.touch, args.seed, args.policy)
        except KeyboardInterrupt:
            bar.stop()
            print("stopped; go on with the same command and --resume", file=sys.stderr)
            raise
    minutes = rollout.steps * rollout.lanes.dt / 60
    result = {
        "run": str(run.path), "task": task, "touch": args.touch, "seed": args.seed, "episodes": rollout.episodes,
        "decisions": rollout.steps, "robot_minutes": minutes, "success_while_learning": rollout.success_rate(),
    }
    if args.json:
        common.emit(result)
    else:
        print(
            f"{minutes:.1f} robot minutes, {rollout.episodes} episodes; the last {len(rollout.recent)} succeeded at "
            f"{rollout.success_rate():.0%} while exploring: {run.path}"
        )
    return 0


def _arguments() -> Any:
    """The arguments' class, with the correction's own config under `policy`."""
    shape = registry.load("policies", "residual").config_class
    made = dataclasses.make_dataclass(
        "TrainResidual", [("policy", shape, dataclasses.field(default_factory=shape))], bases=(TrainResidualArgs,),
        frozen=True, kw_only=True,
    )
    made.__doc__ = (TrainResidualArgs.__doc__ or "").split("Attributes:")[0].strip()
    return made
