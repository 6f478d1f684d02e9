"""`robot-fb record`: episodes by an expert or a policy, kept in a store."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path

import tyro

from robot_fb.cli import common
from robot_fb.episodes.store import Store
from robot_fb.errors import ConfigError, RobotFbError
from robot_fb.runtime.episodes import EXPERT, EpisodeResult, Job, check, run_episodes
from robot_fb.runtime.seeds import RECORD

HOPELESS = 50
"""Failures in a row after which recording gives up."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class RecordArgs:
    """Run an expert or a policy on a task and keep the episodes in a store.

    Episodes that fail are thrown away and made up for by others, unless --keep-failures. A store that exists already
    is added to, with episodes that it does not hold yet.

    Example: robot-fb record --task keyed_socket --episodes 100 --out demos

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
    kept, tried = _record(job, args)
    failed = tried - sum(result.success for result in kept)
    result = {
        "store": str(args.out), "task": args.task, "by": args.by, "episodes": len(kept), "tried": tried,
        "steps": sum(r.steps for r in kept), "successes": sum(r.success for r in kept), "seed": args.seed,
    }
    if args.json:
        common.emit(result)
    else:
        fate = "are among them" if args.keep_failures else "were left out"
        print(f"{len(kept)} episodes ({result['steps']} decisions) in {args.out}; {failed} that failed {fate}")
    return 0


def _record(job: Job, args: RecordArgs) -> tuple[list[EpisodeResult], int]:
    """The episodes that were kept, and how many were tried."""
    unused = _unused_seeds(args)
    kept: list[EpisodeResult] = []
    tried = 0
    with common.progress() as bar:
        shown = bar.add_task(f"record {args.task}", total=args.episodes)

        def advance(result: EpisodeResult) -> None:
            bar.advance(shown, float(result.success or args.keep_failures))

        while (missing := args.episodes - len(kept)) > 0:
            results = run_episodes(job, list(islice(unused, missing)), args.workers, advance)
            tried += missing
            kept += [result for result in results if result.success or args.keep_failures]
            if not kept and tried >= HOPELESS:
                do = "use --keep-failures, or a better --by"
                raise RobotFbError(f"none of {tried} episodes succeeded", do=do)
    return kept, tried


def _unused_seeds(args: RecordArgs) -> Iterator[int]:
    """Seeds of episodes that the store does not hold yet."""
    entries = Store(args.out).entries() if args.out.exists() else []
    used = {entry.seed for entry in entries if entry.task == args.task and entry.by == args.by}
    return (seed for seed in (RECORD.seed(args.seed, k) for k in count()) if seed not in used)
