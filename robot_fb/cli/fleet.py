"""`robot-fb fleet`: simulated robots, one simulated operator, and a policy that gets better from round to round."""

from __future__ import annotations

import dataclasses
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

import torch
import tyro
from rich.progress import Progress

from robot_fb.cli import common
from robot_fb.config import to_mapping
from robot_fb.console.app import Fleet
from robot_fb.console.serve import Console, ConsoleConfig
from robot_fb.console.talk import Shift
from robot_fb.errors import ConfigError
from robot_fb.fleet.collect import Desk
from robot_fb.fleet.rounds import Rounds, RoundsConfig
from robot_fb.runtime.monitor import load_monitor
from robot_fb.training.checkpoint import load_policy, read_spec
from robot_fb.training.run_folder import RunFolder


@dataclasses.dataclass(frozen=True, kw_only=True)
class FleetArgs(RoundsConfig):
    """Let simulated robots work, ask for help and be helped; learn from it; roll the better policy out; again.

    The simulated operator has one attention for all robots, a while to react, a hand that is late and trembles. With
    --operator console or both the robots move in real time, and the page whose address is printed is yours to work at;
    with both, the simulated operator works until you take its place there. A round's policy is deployed only if it is
    better on the gate's episodes than the one before. Stopped with Ctrl-C, the same command with --resume begins the
    round that was not finished again.

    Example: robot-fb fleet --robots 8 --policy runs/base --monitor runs/monitor --data demos --out runs/fleet

    Attributes:
        policy: run folder to begin with.
        monitor: fitted for that policy, by robot-fb monitor fit; without one, one is fitted to its trials.
        task: the policy's own if not given.
        operator: who helps: a simulated one, a person at the console, or both.
        console: where the page is served.
        data: stores of demonstrations that the policy has learned from.
        out: folder of the rounds; must not exist yet, unless --resume.
        resume: go on with the rounds in --out.
        json: print one JSON document to stdout.
    """

    policy: Path = tyro.MISSING
    monitor: Path | None = None
    task: str = ""
    operator: Literal["simulated", "console", "both"] = "simulated"
    console: ConsoleConfig = dataclasses.field(default_factory=ConsoleConfig)
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
        RunFolder.resume(args.out, settings, ("out", "rounds", "operator", "console", "workers"))
    else:
        RunFolder.create(args.out, settings)
    torch.set_num_threads(1)
    with ExitStack() as stack:
        shift, desk = Shift(simulated=args.operator == "both"), None
        if args.operator != "simulated":
            fleet = Fleet(shift)
            page = stack.enter_context(Console(fleet, args.console))
            print(f"console: {page.address}\nto look on: {page.viewers_address}", file=sys.stderr, flush=True)
            desk = Desk(fleet.attach, lambda: shift.simulated and not shift.person)
        rows = _run(args, stack.enter_context(common.progress()), shift, desk)
    if args.json:
        common.emit({"run": str(args.out), "task": spec.task, "operator": args.operator, "rounds": rows})
    else:
        print(table(rows, args.operator))
    return 0


def _run(args: FleetArgs, bar: Progress, shift: Shift, desk: Desk | None) -> list[dict[str, Any]]:
    """The rounds, with a bar for each part of one."""
    shown: dict[str, Any] = {}

    def tell(what: str, done: int, total: int) -> None:
        if what not in shown:
            shown[what] = bar.add_task(what, total=total)
        bar.update(shown[what], completed=done)
        shift.doing = (what, done, total)

    try:
        return Rounds(args, args.out, args.policy, args.monitor, args.data, tell, desk=desk).run()
    except KeyboardInterrupt:
        bar.stop()
        print("stopped; go on with the same command and --resume", file=sys.stderr)
        raise


def table(rows: list[dict[str, Any]], operator: str) -> str:
    """A line for each round."""
    who = {"simulated": "a simulated operator", "console": "a person", "both": "a person or a simulated operator"}
    words = ("on its own", "with help", "asked", "human s", "wait s")
    lines = [f"{who[operator]}; success on the gate's episodes, then what the round before it took"]
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
