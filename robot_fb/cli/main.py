"""`robot-fb VERB ...`: finds the verb, runs it, and turns every user's mistake into one line and exit status 2."""

from __future__ import annotations

import importlib
import sys
import warnings

from robot_fb.errors import RobotFbError
from robot_fb.registry import closest

VERBS: dict[str, str] = {
    "tasks": "the tasks that can be run, with their ceilings",
    "record": "run an expert or a policy on a task and keep the episodes",
    "train": "train a policy: bc (from episodes), residual (by touch), intervention (from corrections)",
    "eval": "run a policy on held-out episodes and say how often it succeeds",
    "monitor": "fit a failure detector to a policy and what it did",
    "fleet": "many robots, one operator, and a policy that learns from every correction",
    "console": "a hub that robots join, and the page from which people help them",
    "enrol": "a key for a robot that may join",
    "member": "a simulated robot that joins a hub",
    "episodes": "look into, check, mend, import and play recorded episodes",
    "report": "write one HTML page about one or more runs",
    "bench": "measure what the README claims",
    "demo": "the whole story on one task: record, train, evaluate, learn by touch, report",
    "doctor": "say what works on this machine",
}


def _usage() -> str:
    width = max(map(len, VERBS))
    lines = [f"  {verb:<{width}}  {what}" for verb, what in VERBS.items()]
    return "\n".join(["robot-fb: robots that learn from feedback", "", "usage: robot-fb VERB [--help]", "", *lines])


def main(argv: list[str] | None = None) -> int:
    """Entry point of the `robot-fb` command. Each verb is `robot_fb.cli.VERB` with `main(argv) -> int`."""
    args = list(sys.argv[1:] if argv is None else argv)
    if not args or args[0] in ("-h", "--help"):
        print(_usage())
        return 0
    verb = args[0]
    if verb not in VERBS:
        print(f"robot-fb: unknown verb {verb!r}; {closest(verb, list(VERBS))}", file=sys.stderr)
        return 2
    warnings.showwarning = lambda message, *_: print(f"robot-fb {verb}: {message}", file=sys.stderr)
    try:
        return importlib.import_module(f"robot_fb.cli.{verb}").main(args[1:]) or 0
    except RobotFbError as error:
        print(f"robot-fb {verb}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"robot-fb {verb}: stopped; what was finished is kept", file=sys.stderr)
        return 130
    except BrokenPipeError:
        return 0
    except OSError as error:  # a full disk, a folder that may not be read, a file where a folder should be
        refused = RobotFbError(f"cannot use {error.filename or 'a file'}", found=error.strerror or str(error))
        print(f"robot-fb {verb}: {refused}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
