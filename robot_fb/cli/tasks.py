"""`robot-fb tasks`: what can be run."""

from __future__ import annotations

import dataclasses

from robot_fb import registry
from robot_fb.cli import common
from robot_fb.runtime.tasks import find_task


@dataclasses.dataclass(frozen=True, kw_only=True)
class TasksArgs:
    """List the registered tasks: what each asks for, and the best that a policy without touch can reach.

    Any gymnasium environment can be used as well, as gym:ID.

    Attributes:
        json: print one JSON document to stdout.
    """

    json: bool = False


def main(argv: list[str]) -> int:
    """Prints the tasks."""
    args = common.parse(TasksArgs, argv, "robot-fb tasks")
    rows = [_row(name) for name in registry.names("tasks")]
    if args.json:
        common.emit(rows)
        return 0
    for row in rows:
        print(f"{row['task']} ({row['env_id']})\n    {row['what']}")
        if row["ceiling"] is not None:
            print(f"    without touch at best {row['ceiling']:.0%}: {row['ceiling_reason']}")
    return 0


def _row(name: str) -> dict[str, object]:
    task = find_task(name)
    ceiling = task.ceiling()
    return {
        "task": name,
        "env_id": task.env_id,
        "what": (type(task).__doc__ or "").strip().splitlines()[0],
        "ceiling": ceiling.success_rate if ceiling else None,
        "ceiling_reason": ceiling.reason if ceiling else None,
    }
