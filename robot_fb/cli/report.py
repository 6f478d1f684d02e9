"""`robot-fb report`: one HTML page about one or more runs."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

import tyro

from robot_fb.cli import common
from robot_fb.errors import ConfigError
from robot_fb.reports import write_report


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReportArgs:
    """Write one self-contained HTML page about runs: success against robot time, evaluations with false touch and the
    ceiling, forces, film strips, config, versions and commands. Example:
    robot-fb report runs/base runs/touch --episodes tries

    Attributes:
        runs: run folders, shown together.
        out: the page; report.html in the first run if not given.
        episodes: store with logged evaluation episodes (robot-fb eval --log STORE) for the film strips.
        json: print one JSON document to stdout.
    """

    runs: Annotated[tuple[Path, ...], tyro.conf.Positional]
    out: Path | None = None
    episodes: Path | None = None
    json: bool = False


def main(argv: list[str]) -> int:
    """Writes the page and says where it is."""
    args = common.parse(ReportArgs, argv, "robot-fb report")
    if not args.runs:
        raise ConfigError("no run to report on", expected="run folders", do="robot-fb report RUN...")
    path = write_report(args.runs, args.out or args.runs[0] / "report.html", args.episodes)
    if args.json:
        common.emit({"report": str(path), "runs": [str(run) for run in args.runs]})
    else:
        print(path)
    return 0
