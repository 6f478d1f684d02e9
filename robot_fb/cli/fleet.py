"""`robot-fb fleet`: simulated robots, one simulated operator, and a policy that gets better from round to round."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any, Literal

import torch
import tyro

from robot_fb.cli import common
from robot_fb.config import to_mapping
from robot_fb.errors import ConfigError
from robot_fb.fleet.rounds import Rounds, RoundsConfig
from robot_fb.runtime.monitor import load_monitor
from robot_fb.training.checkpoint import load_policy, read_spec
from robot_fb.training.run_folder import RunFolder


@dataclasses.dataclass(frozen=True, kw_only=True)
class FleetArgs(RoundsConfig):
    """Let simulated robots work, ask for help and be helped; learn from it; roll the better policy out; again.

    The operator is simulated: one attention for all robots, a while to react, a hand that is late and trembles. A
    round's policy is deployed only if it is better on the gate's episodes than the one before. Stopped with Ctrl-C, the
    same command with --resume begins the round that was not finished again.

    Example: robot-fb fleet --robots 8 --policy runs/base --monitor runs/monitor --data demos --out runs/fleet

    Attributes:
        policy: run folder to begin with.
        monitor: fitted for that policy, by robot-fb monitor fit; without one, one is fitted to its trials.
        task: the policy's own if not given.
        operator: who helps.
        data: stores of demonstrations that the policy has learned from.
        out: folder of the rounds; must not exist yet, unless --resume.
        resume: go on with the rounds in --out.
        json: print one JSON document to stdout.
    """

    policy: Path = tyro.MISSING
    monitor: Path | None = None
    task: str = ""
    operator: Literal["simulated"] = "simulated"
    data: tuple[Path, ...] = ()
    out: Path = tyro.MISSING
    resume: bool = False
    json: bool = False


def main(argv: list[str]) -> int:
    """Runs the rounds that are missing and prints the table."""
    args = common.parse(FleetArgs, argv, "robot-fb fleet")
    spec = read_spec(args.policy)
    if args.task and args.task != spec.task:
        raise ConfigError("the policy is for another task", expected=args.task, found=spec.task)
    for path in args.data:
        if not path.exists():
            raise ConfigError(f"there is no episode store at {path}", do="record one: robot-fb record --out STORE")
    if args.monitor is not None:
        load_monitor(args.monitor, load_policy(args.policy), args.policy)
    settings = {key: value for key, value in to_mapping(args).items() if key not in ("resume", "json")}
    if args.resume:
        RunFolder.resume(args.out, settings, ("out", "rounds"))
    else:
        RunFolder.create(args.out, settings)
    torch.set_num_threads(1)
    with common.progress() as bar:
        shown: dict[str, Any] = {}

        def tell(what: str, done: int, total: int) -> None:
            if what not in shown:
                shown[what] = bar.add_task(what, total=total)
            bar.update(shown[what], completed=done)

        try:
            rows = Rounds(args, args.out, args.policy, args.monitor, args.data, tell).run()
        except KeyboardInterrupt:
            bar.stop()
            print("stopped; go on with the same command and --resume", file=sys.stderr)
            raise
    if args.json:
        common.emit({"run": str(args.out), "task": spec.task, "operator": "simulated", "rounds": rows})
    else:
        print(table(rows))
    return 0


def table(rows: list[dict[str, Any]]) -> str:
    """A line for each round."""
    words = ("on its own", "with help", "asked", "human s", "wait s")
    lines = ["a simulated operator; success on the gate's episodes, then what the round before it took"]
    lines.append(f"{'round':<6} {'deployed':<9}" + " ".join(f"{word:>10}" for word in words))
    for row in rows:
        work = row.get("work")
        figures = [f"{row['gate']['success_rate']:.0%}"]
        if work is not None:
            wait = "-" if work["median_wait_s"] is None else f"{work['median_wait_s']:.1f}"
            helped = f"{work['successes']}/{work['episodes']}"
            figures += [helped, str(work["asked"]), f"{work['human_s']:.0f}", wait]
        deployed = "yes" if row["deployed"] else "no"
        lines.append(f"{row['round']:<6} {deployed:<9}" + " ".join(f"{figure:>10}" for figure in figures))
    return "\n".join(lines)
