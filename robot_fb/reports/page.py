"""One self-contained HTML page about one or more runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2

from robot_fb.config import read_yaml
from robot_fb.episodes.store import Store
from robot_fb.errors import ConfigError, RobotFbError
from robot_fb.reports import figures
from robot_fb.runtime.evaluate import read_evals
from robot_fb.runtime.tasks import find_task
from robot_fb.training.atomic import write_atomically

LEARNING = "while learning"


@dataclass(frozen=True)
class RunPage:
    """What the page shows of one run.

    Attributes:
        name: of its folder.
        config: resolved config, as YAML text.
        started: every start: command, date, git revision.
        versions: of packages.
        machine: that it ran on.
    """

    name: str
    config: str
    started: list[dict[str, Any]]
    versions: dict[str, str]
    machine: str


def write_report(runs: Sequence[Path], out: Path, episodes: Path | None = None) -> Path:
    """Writes the page.

    Args:
        runs: run folders; their evaluations are shown together.
        out: the file.
        episodes: store with logged evaluation episodes for the film strips.

    Raises:
        ConfigError: a folder is not a run.
    """
    rows = [row for run in runs for row in _evals(run)]
    tasks = list(dict.fromkeys(row["task"] for row in rows))
    ceiling = find_task(tasks[0]).ceiling() if tasks else None
    template = _environment().get_template("report.html.j2")
    html = template.render(
        title=f"{', '.join(tasks) or 'run'}: {', '.join(run.name for run in runs)}",
        rows=[row for row in rows if row["label"] != LEARNING],
        ceiling=ceiling,
        curve=figures.learning_curve(rows, ceiling.success_rate if ceiling else None) if rows else None,
        forces=figures.force_histogram(rows) if any(row.get("peak_forces") for row in rows) else None,
        strips=_strips(episodes) if episodes is not None else [],
        runs=[_run_page(run) for run in runs],
    )
    out.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(out, lambda path: path.write_text(html, encoding="utf-8"))
    return out


def _evals(run: Path) -> list[dict[str, Any]]:
    if not (run / "run.yaml").exists():
        found = "nothing" if not run.exists() else "another folder"
        what = f"{run} is not a run"
        raise ConfigError(what, expected="a folder with run.yaml", found=found, do="see robot-fb train")
    return read_evals(run)


def _run_page(run: Path) -> RunPage:
    about = read_yaml(run / "run.yaml")
    config = (run / "config.yaml").read_text(encoding="utf-8")
    return RunPage(run.name, config, about.get("started", []), about.get("versions", {}), about.get("machine", ""))


def _strips(path: Path) -> list[str]:
    """A success and a failure from a store, where it has them."""
    store = Store(path)
    strips = []
    for success in (True, False):
        ids = store.query(success=success)
        if not ids:
            continue
        try:
            episode = store.read(ids[0])
        except RobotFbError:
            continue
        info = episode.info
        end = "success" if success else f"failure: {info.get('failure') or 'out of time'}"
        hidden = f", hidden {info['hidden']}" if "hidden" in info else ""
        strips.append(figures.film_strip(episode.columns, episode.meta.dt, f"{end}{hidden} (episode {episode.id})"))
    return strips


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("robot_fb.reports", "."), autoescape=True, undefined=jinja2.StrictUndefined
    )
    environment.filters["percent"] = lambda value: f"{100 * value:.0f}%"
    return environment
