"""`robot-fb enrol`: a key for a robot that may join."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import tyro

from robot_fb.cli import common
from robot_fb.fleet import keys


@dataclasses.dataclass(frozen=True, kw_only=True)
class EnrolArgs:
    """Make a robot's key, on the hub's machine. Copy NAME.key_secret, NAME.key and hub.key to the robot's machine.

    Example: robot-fb enrol bench-2 --keys keys

    Attributes:
        name: of the robot: small letters, digits, - and _.
        keys: folder of the hub's keys.
        json: print one JSON document to stdout.
    """

    name: tyro.conf.Positional[str] = tyro.MISSING
    keys: Path = Path("keys")
    json: bool = False


def main(argv: list[str]) -> int:
    """Makes what is missing."""
    args = common.parse(EnrolArgs, argv, "robot-fb enrol")
    keys.make_hub(args.keys)
    keys.enrol(args.keys, args.name)
    files = [str(args.keys / f) for f in (f"{args.name}.key_secret", f"{args.name}.key", f"{keys.HUB}.key")]
    if args.json:
        common.emit({"name": args.name, "files": files})
    else:
        print(f"{args.name} may join; its machine needs {', '.join(files)}")
    return 0
