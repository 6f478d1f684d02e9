"""One self-contained HTML page about one or more runs."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2

from robot_fb.config import read_yaml
from robot_fb.episodes.episode import Episode
from robot_fb.episodes.store import Store
from robot_fb.errors import ConfigError, EpisodeError
from robot_fb.reports import figures
from robot_fb.runtime.evaluate import LEARNING, TRIAL, read_evals
from robot_fb.runtime.tasks import find_task
from robot_fb.training.atomic import write_atomically


@dataclass(frozen=True)
class Strip:
    """A logged episode in pictures.

    Attributes:
        title: how it ended.
        image: film strip with the force trace, as data URI.
    """

    title: str
    image: str


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
    noted = [row for run in runs for row in _evals(run)]
    rows = [row for row in noted if row["label"] not in (LEARNING, TRIAL)]
    tasks = list(dict.fromkeys(row["task"] for row in noted))
    ceiling = find_task(tasks[0]).ceiling() if tasks else None
    best = ceiling.success_rate if ceiling else None
    live = [row for row in rows if row["touch"] == "live"]
    forced = [row for row in rows if row.get("peak_forces")]
    learning, trials = _labelled(noted, LEARNING), _labelled(noted, TRIAL)
    html = _environment().get_template("report.html.j2").render(
        title=", ".join(tasks) or "run",
        names=[run.name for run in runs],
        headline=[live[0], live[-1]] if len(live) > 1 else live,
        rows=rows,
        ceiling=ceiling,
        curve=figures.learning_curve(learning, trials, live, best) if noted else None,
        intervals=figures.intervals(rows, best) if rows else None,
        forces=figures.force_histograms(forced) if forced else None,
        strips=_strips(episodes) if episodes is not None else [],
        runs=[_run_page(run) for run in runs],
    )
    out.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(out, lambda path: path.write_text(html, encoding="utf-8"))
    return out


def _labelled(rows: Sequence[dict[str, Any]], label: str) -> list[dict[str, Any]]:
    return [row for row in rows if row["label"] == label]


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


def _strips(path: Path) -> list[Strip]:
    """A success and a failure from a store, where it has them and they can be read."""
    store = Store(path)
    strips = []
    for success in (True, False):
        for id in store.query(success=success):
            with contextlib.suppress(EpisodeError):
                strips.append(_strip(store.read(id)))
                break
    return strips


def _strip(episode: Episode) -> Strip:
    info = episode.outcome.info
    ending = "Success" if episode.outcome.success else f"Failure: {info.get('failure') or 'out of time'}"
    hidden = f"; hidden from every camera: {info['hidden']}" if info.get("hidden") else ""
    force = f"; peak contact force {float(info['peak_force']):.1f} N" if info.get("peak_force") else ""
    image = figures.film_strip(episode.columns, episode.meta.streams, episode.meta.dt)
    return Strip(f"{ending}{hidden}{force}", image)


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("robot_fb.reports", "."), autoescape=True, undefined=jinja2.StrictUndefined
    )
    environment.filters["percent"] = lambda value: f"{100 * value:.0f}%"
    return environment
