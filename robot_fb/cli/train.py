"""`robot-fb train bc|residual|intervention`."""

from __future__ import annotations

import dataclasses
import os
import sys
from pathlib import Path
from typing import Any

import torch
import tyro

from robot_fb import registry
from robot_fb.algorithms import bc
from robot_fb.cli import common
from robot_fb.config import read_yaml, to_mapping
from robot_fb.errors import ConfigError
from robot_fb.registry import closest
from robot_fb.training.callbacks import LogMetrics, SaveCheckpoints, ShowProgress, load_checkpoint
from robot_fb.training.fit import fit
from robot_fb.training.metrics import CsvMetrics, TensorBoardMetrics, read_metrics
from robot_fb.training.mixer import Mixer
from robot_fb.training.run_folder import RunFolder

USAGE = """usage: robot-fb train bc|residual|intervention ... [--help]

  bc            learn a policy from recorded episodes (behaviour cloning)
  residual      learn a tactile correction on top of a base policy
  intervention  let a policy go on learning from what people corrected"""

MAY_CHANGE = ("threads", "log_every", "checkpoint_every", "data", "out")
"""Options that a resumed run may change: they do not change what is learned (the folders may have moved)."""

PRESETS: dict[str, dict[str, Any]] = {
    "quick": {"steps": 500},
    "visual": {"steps": 2500, "batch": 64},
    # One observation: two would show how the tool moves, and a policy that sees that goes on instead of looking.
    "demo": {"obs_horizon": 1, "lr": 2e-3, "warmup": 50, "ema_decay": 0.99},
    "state": {"steps": 5000, "batch": 256, "policy": "chunk_mlp"},
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainBcArgs(bc.BcConfig):
    """Learn a policy from recorded episodes, and keep it in a run folder.

    The policy's own settings are --model.KEY. Ctrl-C saves a checkpoint; the same command with --resume goes on.

    Attributes:
        data: folder of recorded episodes (robot-fb record, robot-fb episodes import).
        out: run folder; must not exist yet, unless --resume.
        resume: go on with the run in --out.
        json: print one JSON document to stdout.
        threads: cores used; 0 is all.
        log_every: steps between rows of metrics.csv.
        checkpoint_every: steps between checkpoints.
    """

    data: Path = tyro.MISSING
    out: Path = tyro.MISSING
    resume: bool = False
    json: bool = False
    threads: int = 0
    log_every: int = 20
    checkpoint_every: int = 500

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, least in {"threads": 0, "log_every": 1, "checkpoint_every": 1}.items():
            if getattr(self, name) < least:
                flag = name.replace("_", "-")
                raise ConfigError(f"--{flag}", expected=f"at least {least}", found=getattr(self, name))


def main(argv: list[str]) -> int:
    """Dispatches on the algorithm."""
    if not argv or argv[0] in ("-h", "--help"):
        print(USAGE)
        return 0
    if argv[0] == "bc":
        return train_bc(argv[1:])
    if argv[0] == "residual":
        from robot_fb.cli import train_residual

        return train_residual.main(argv[1:])
    if argv[0] == "intervention":
        from robot_fb.cli import train_intervention

        return train_intervention.main(argv[1:])
    raise ConfigError(f"unknown algorithm {argv[0]!r}", do=closest(argv[0], ["bc", "residual", "intervention"]))


def train_bc(argv: list[str]) -> int:
    """`robot-fb train bc`."""
    argv = _config_of_resumed_run(argv)
    kind = _arguments_for(_policy_name(argv))
    args = common.parse(kind, argv, "robot-fb train bc", PRESETS)
    torch.set_num_threads(args.threads or cores())
    settings = {key: value for key, value in to_mapping(args).items() if key not in ("resume", "json")}
    arrays = _load(args)
    trainer, source = bc.prepare(arrays, args, args.model)
    run = RunFolder.resume(args.out, settings, MAY_CHANGE) if args.resume else RunFolder.create(args.out, settings)
    mixer = Mixer({"episodes": source}, args.batch, seed=args.seed)
    start = load_checkpoint(trainer, mixer, run.checkpoints) if args.resume else 0
    fit_run(f"train {args.policy}", run, trainer, mixer, start, args)
    _report(args, run, len(source), len(arrays.metas))
    return 0


def fit_run(
    what: str, run: RunFolder, trainer: bc.BcTrainer, mixer: Mixer, start: int, args: Any
) -> None:
    """Trains in a run folder, with a bar, metrics and checkpoints; Ctrl-C says how to go on.

    Args:
        what: is trained, for the bar.
        run: of a `train` verb.
        trainer, mixer: learn from each other.
        start: steps done in an earlier run.
        args: with `steps`, `log_every`, `checkpoint_every`.
    """
    writers = [CsvMetrics(run.metrics, start), TensorBoardMetrics(run.tensorboard, start)]
    with common.progress() as bar:
        callbacks = [
            LogMetrics(writers, args.log_every),
            SaveCheckpoints(trainer, mixer, run.checkpoints, args.checkpoint_every, run.policy),
            ShowProgress(bar, what),
        ]
        try:
            fit(trainer, mixer, callbacks, args.steps, start)
        except KeyboardInterrupt:
            bar.stop()
            print(f"stopped at step {trainer.steps_done} of {args.steps}; a checkpoint is saved", file=sys.stderr)
            print("go on with the same command and --resume", file=sys.stderr)
            raise


def _report(args: Any, run: RunFolder, decisions: int, episodes: int) -> None:
    rows = read_metrics(run.metrics)
    result = {
        "run": str(run.path), "policy": args.policy, "episodes": episodes, "decisions": decisions,
        "steps": args.steps, "loss": rows[-1].get("loss") if rows else None, "seed": args.seed,
    }
    if args.json:
        common.emit(result)
        return
    loss = "" if result["loss"] is None else f", loss {result['loss']:.4f}"
    source = f"{episodes} episodes ({decisions} decisions)"
    print(f"{args.policy} learned from {source} in {args.steps} steps{loss}: {run.path}")


def _load(args: Any) -> Any:
    """The episodes' arrays: only the streams that the policy may read."""
    from robot_fb.episodes.cache import load_arrays

    if not args.data.exists():
        raise ConfigError(f"there is no episode store at {args.data}", do="record one: robot-fb record --out STORE")
    return load_arrays(args.data)


def _arguments_for(policy: str) -> Any:
    """The arguments' class, with the policy's own config under `model`."""
    kind = registry.load("policies", policy)
    if not hasattr(kind, "loss"):
        bc.make_policy(None, bc.BcConfig(policy=policy))  # type: ignore[arg-type]  # raises, naming what can be cloned
    model = dataclasses.field(default_factory=kind.config_class)
    made = dataclasses.make_dataclass(
        "TrainBc", [("model", kind.config_class, model)], bases=(TrainBcArgs,), frozen=True, kw_only=True
    )
    made.__doc__ = (TrainBcArgs.__doc__ or "").split("Attributes:")[0].strip()
    return made


def _policy_name(argv: list[str]) -> str:
    """Which policy is asked for: flag, else YAML file, else preset, else the default."""
    given = {flag: _value(argv, flag) for flag in ("--policy", "--config", "--preset")}
    if given["--policy"]:
        return given["--policy"]
    from_file = read_yaml(Path(given["--config"])).get("policy") if given["--config"] else None
    preset = PRESETS.get(given["--preset"] or "", {}).get("policy")
    return str(from_file or preset or bc.BcConfig.policy)


def _config_of_resumed_run(argv: list[str]) -> list[str]:
    """A resumed run starts from its own config, so that `--out RUN --resume` is enough."""
    out = _value(argv, "--out")
    if "--resume" in argv and out and not _value(argv, "--config") and (Path(out) / "config.yaml").exists():
        return [*argv, "--config", str(Path(out) / "config.yaml")]
    return argv


def _value(argv: list[str], flag: str) -> str | None:
    """The word after `flag`, or after `flag=`."""
    for word, after in zip(argv, [*argv[1:], None], strict=True):
        if word == flag:
            return after
        if word.startswith(flag + "="):
            return word.split("=", 1)[1]
    return None


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
