"""`robot-fb train intervention`."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import torch
import tyro

from robot_fb.algorithms.intervention.gate import Gate, better
from robot_fb.algorithms.intervention.learn import InterventionConfig, prepare
from robot_fb.cli import common
from robot_fb.cli.train import MAY_CHANGE, cores, fit_run
from robot_fb.config import to_mapping
from robot_fb.episodes.cache import load_arrays
from robot_fb.errors import ConfigError
from robot_fb.runtime.evaluate import append_eval
from robot_fb.training.callbacks import load_checkpoint
from robot_fb.training.checkpoint import load_policy, save_policy
from robot_fb.training.run_folder import RunFolder

PRESETS: dict[str, dict[str, Any]] = {"quick": {"steps": 50, "gate_episodes": 4}}

BEFORE, AFTER = "before the corrections", "after the corrections"


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainInterventionArgs(InterventionConfig):
    """Let a policy go on learning from where it stands, with demonstrations and with what people corrected.

    Afterwards the old and the new policy are tried on the same simulated episodes. The new one is kept in the run
    folder only if it is better; else the old one is, and the document says "deployed": false.

    Example: robot-fb train intervention --base runs/base --data demos tries --weights sirius --out runs/corrected

    Attributes:
        base: run folder of the policy.
        data: stores: demonstrations, and episodes in which people took over.
        out: run folder; must not exist yet, unless --resume.
        gate_episodes: to try both on; 0 keeps the new policy without a trial.
        workers: processes of the trial.
        resume: go on with the run in --out.
        json: print one JSON document to stdout.
        threads: cores used; 0 is all.
        log_every: steps between rows of metrics.csv.
        checkpoint_every: steps between checkpoints.
    """

    base: Path = tyro.MISSING
    data: tuple[Path, ...] = tyro.MISSING
    out: Path = tyro.MISSING
    gate_episodes: int = 50
    workers: int = 2
    resume: bool = False
    json: bool = False
    threads: int = 0
    log_every: int = 20
    checkpoint_every: int = 500


def main(argv: list[str]) -> int:
    """Trains, tries, keeps the better one."""
    args = common.parse(TrainInterventionArgs, argv, "robot-fb train intervention", PRESETS)
    if args.gate_episodes < 0:
        raise ConfigError("--gate-episodes cannot be negative", found=args.gate_episodes)
    torch.set_num_threads(args.threads or cores())
    policy = load_policy(args.base)
    for path in args.data:
        if not path.exists():
            raise ConfigError(f"there is no episode store at {path}", do="record one: robot-fb record --out STORE")
    trainer, mixer, counts = prepare(policy, [load_arrays(path) for path in args.data], args)
    settings = {key: value for key, value in to_mapping(args).items() if key not in ("resume", "json")}
    may_change = (*MAY_CHANGE, "base", "workers", "gate_episodes")
    run = RunFolder.resume(args.out, settings, may_change) if args.resume else RunFolder.create(args.out, settings)
    start = load_checkpoint(trainer, mixer, run.checkpoints) if args.resume else 0
    fit_run(f"train {args.weights}", run, trainer, mixer, start, args)
    found: dict[str, Any] = {"run": str(run.path), "weights": args.weights, "decisions": counts, "steps": args.steps}
    found |= {"deployed": True, "before": None, "after": None, "seed": args.seed}
    if args.gate_episodes:
        found |= _gate(args, run, policy.spec.task)
    if args.json:
        common.emit(found)
    else:
        print(_sentence(found))
    return 0


def _gate(args: TrainInterventionArgs, run: RunFolder, task: str) -> dict[str, Any]:
    """Tries both, and keeps the old policy where the new one is not better."""
    gate = Gate(task, args.gate_episodes, args.seed, args.workers)
    with common.progress() as bar:
        shown = bar.add_task("try both", total=2 * args.gate_episodes)
        before, after = (gate.try_out(path, done=lambda _: bar.advance(shown)) for path in (args.base, run.path))
    append_eval(run.path, BEFORE, before, 0.0)
    append_eval(run.path, AFTER, after, 0.0)
    deployed = better(after, before)
    if not deployed:
        save_policy(run.policy, load_policy(args.base))
    return {"deployed": deployed, "before": before.to_json(), "after": after.to_json()}


def _sentence(found: dict[str, Any]) -> str:
    learned = ", ".join(f"{count} {kind}" for kind, count in found["decisions"].items() if count)
    words = f"{found['weights']} learned from {learned} decisions: {found['run']}"
    if found["before"] is None:
        return words
    before, after = (f"{found[side]['success_rate']:.0%}" for side in ("before", "after"))
    kept = "the new policy is kept" if found["deployed"] else "the old policy is kept: the new one is not better"
    return f"{words}; {before} of {found['before']['episodes']} episodes before, {after} after: {kept}"
