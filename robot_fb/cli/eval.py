"""`robot-fb eval`: how often a policy succeeds on held-out episodes."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import tyro

from robot_fb.cli import common
from robot_fb.errors import ConfigError
from robot_fb.runtime.episodes import SCRIPTED, Job
from robot_fb.runtime.evaluate import EvalResult, append_eval, evaluate
from robot_fb.training.checkpoint import read_spec


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvalArgs:
    """Run a policy on held-out episodes and say how often it succeeds, with a 95% interval.

    The episodes are never those of recording or learning. With --touch the same policy is run blind or with false
    touch: a gain by touch counts only where these rows fail.

    Example: robot-fb eval --policy runs/touch --episodes 200 --touch delayed

    Attributes:
        policy: run folder of the policy; or expert, or blind: the task's scripted search without touch.
        task: task name; the policy's own if not given.
        episodes: how many.
        touch: live, none, delayed, shuffled, or an ablation such as wrench/wrist=bias:1.0.
        log: store to keep the episodes in.
        monitor: folder of a failure detector that watches; its scores go into every logged step.
        label: what the evaluation is called in RUN/evals.jsonl and in the report.
        robot_minutes: how long the robot had learned by then, for the report.
        seed: chooses the episodes.
        workers: processes.
        json: print one JSON document to stdout.
    """

    policy: str = tyro.MISSING
    task: str = ""
    episodes: int = 200
    touch: str = "live"
    log: Path | None = None
    monitor: Path | None = None
    label: str = ""
    robot_minutes: float = 0.0
    seed: int = 7
    workers: int = 2
    json: bool = False


def main(argv: list[str]) -> int:
    """Evaluates, prints, and notes the result in the policy's run folder."""
    args = common.parse(EvalArgs, argv, "robot-fb eval")
    if args.episodes < 1:
        raise ConfigError("--episodes must be at least 1", found=args.episodes)
    if not 0 <= args.robot_minutes < math.inf:
        raise ConfigError("--robot-minutes", expected="a number, at least 0", found=args.robot_minutes)
    if args.policy in SCRIPTED and not args.task:
        raise ConfigError(f"--policy {args.policy} needs a --task")
    task = args.task or read_spec(args.policy).task
    result = run_eval(Job(task, args.policy, args.touch, args.log, monitor=args.monitor), args)
    if args.json:
        common.emit(result.to_json())
    else:
        print(sentence(result))
    return 0


def run_eval(job: Job, args: EvalArgs) -> EvalResult:
    """Evaluates with a progress bar; a policy's run folder keeps the result."""
    with common.progress() as bar:
        shown = bar.add_task(args.label or f"evaluate, touch {job.touch}", total=args.episodes)
        result = evaluate(job, args.episodes, args.seed, args.workers, lambda _: bar.advance(shown))
    folder = Path(job.by)
    if job.by not in SCRIPTED and (folder / "run.yaml").exists():
        append_eval(folder, args.label or f"touch {job.touch}", result, args.robot_minutes)
    return result


def sentence(result: EvalResult) -> str:
    """The result in words."""
    found = result.to_json()
    low, high = found["ci95"]
    force = found["peak_force_p95_n"]
    return (
        f"{found['task']}, touch {found['touch']}: {found['successes']} of {found['episodes']} succeeded "
        f"({found['success_rate']:.0%}, 95% interval {low:.0%} to {high:.0%}), "
        f"{found['mean_episode_s']:.1f} s an episode"
        + ("" if force is None else f", 95% of peak forces below {force:.1f} N")
        + (f"; {_alarms(found['monitor'])}" if "monitor" in found else "")
    )


def _alarms(found: dict[str, Any]) -> str:
    """The monitor's figures in words."""
    caught = "" if found["tpr"] is None else f"caught {found['tpr']:.0%} of {found['failures']} failures"
    false = "" if found["tnr"] is None else f"{found['false_alarms']} of {found['successes']} successes alarmed"
    return "monitor: " + ", ".join(part for part in (caught, false) if part)
