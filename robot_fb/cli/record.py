"""`robot-fb record`: episodes by an expert or a policy, kept in a store."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import tyro

from robot_fb.cli import common
from robot_fb.errors import ConfigError, RobotFbError
from robot_fb.runtime.episodes import EXPERT, EpisodeResult, Job, check, run_episodes
from robot_fb.runtime.seeds import RECORD


@dataclasses.dataclass(frozen=True, kw_only=True)
class RecordArgs:
    """Run an expert or a policy on a task and keep the episodes in a store.

    Episodes that fail are thrown away and made up for by others, unless --keep-failures. A store that exists already
    is added to.

    Attributes:
        task: task name (see robot-fb tasks), or gym:ID.
        out: folder of the store; made if missing.
        by: expert, or the run folder of a policy.
        episodes: how many to keep.
        keep_failures: keep failed episodes, too.
        touch: live, or how touch is spoiled: none, delayed, shuffled.
        seed: chooses the episodes; another seed gives other episodes.
        workers: processes.
        json: print one JSON document to stdout.
    """

    task: str = tyro.MISSING
    out: Path = tyro.MISSING
    by: str = EXPERT
    episodes: int = 100
    keep_failures: bool = False
    touch: str = "live"
    seed: int = 0
    workers: int = 2
    json: bool = False


def main(argv: list[str]) -> int:
    """Records until enough episodes are kept."""
    args = common.parse(RecordArgs, argv, "robot-fb record")
    if args.episodes < 1:
        raise ConfigError("--episodes must be at least 1", found=args.episodes)
    job = Job(args.task, args.by, args.touch, args.out, args.keep_failures)
    check(job)
    kept: list[EpisodeResult] = []
    tried = 0
    with common.progress() as bar:
        shown = bar.add_task(f"record {args.task}", total=args.episodes)
        while len(kept) < args.episodes:
            missing = args.episodes - len(kept)
            seeds = [RECORD.seed(args.seed, tried + k) for k in range(missing)]
            tried += missing
            results = run_episodes(job, seeds, args.workers, lambda r: _advance(bar, shown, r, args.keep_failures))
            good = [r for r in results if r.success or args.keep_failures]
            if not good and tried >= 50:
                raise RobotFbError(
                    f"none of {tried} episodes succeeded", do="use --keep-failures, or a better --by"
                )
            kept += good
    result = {
        "store": str(args.out), "task": args.task, "by": args.by, "episodes": len(kept), "tried": tried,
        "steps": sum(r.steps for r in kept), "successes": sum(r.success for r in kept), "seed": args.seed,
    }
    if args.json:
        common.emit(result)
    else:
        print(f"{len(kept)} episodes ({result['steps']} decisions) in {args.out}; {tried} tried")
    return 0


def _advance(bar: object, shown: object, result: EpisodeResult, keep_failures: bool) -> None:
    if result.success or keep_failures:
        bar.advance(shown)  # type: ignore[attr-defined]
