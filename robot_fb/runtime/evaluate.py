"""How often a policy succeeds on held-out episodes, with an honest interval."""

from __future__ import annotations

import contextlib
import datetime
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from robot_fb.failure.metrics import Watched, judge
from robot_fb.runtime.episodes import EpisodeResult, Job, run_episodes
from robot_fb.runtime.seeds import EVALUATION, SeedRange

EVALS = "evals.jsonl"


NEEDED = {"label", "robot_minutes", "task", "policy", "touch", "success_rate", "ci95", "episodes", "successes"}
"""What every row of an evaluation holds."""

LEARNING, TRIAL = "while learning", "trial"
"""Labels of what a learner notes about itself; every other label is an evaluation that somebody asked for."""


@dataclass(frozen=True)
class EvalResult:
    """An evaluation.

    Attributes:
        job: what was run.
        seed: the user's seed; the episodes' seeds follow from it.
        episodes: one result for each.
    """

    job: Job
    seed: int
    episodes: tuple[EpisodeResult, ...]

    @property
    def success_rate(self) -> float:
        """Share of successes."""
        return float(np.mean([e.success for e in self.episodes]))

    def to_json(self) -> dict[str, Any]:
        """The document that `robot-fb eval --json` prints."""
        wins, count = sum(e.success for e in self.episodes), len(self.episodes)
        forces = [e.peak_force for e in self.episodes if math.isfinite(e.peak_force)]
        return {
            "task": self.job.task,
            "policy": self.job.by,
            "episodes": count,
            "successes": wins,
            "success_rate": wins / count,
            "ci95": list(wilson(wins, count)),
            "peak_force_p95_n": float(np.percentile(forces, 95)) if forces else None,
            "mean_episode_s": float(np.mean([e.seconds for e in self.episodes])),
            "touch": self.job.touch,
            "seed": self.seed,
            **({"monitor": self.watched()} if self.job.monitor else {}),
        }

    def failures(self) -> dict[str, int]:
        """How many episodes failed in which way."""
        return _count([e.failure or "time" for e in self.episodes if not e.success])

    def watched(self) -> dict[str, Any]:
        """How good the monitor's alarms were; see `failure.metrics`."""
        return judge([Watched(e.success, e.seconds, e.alarm, e.onset) for e in self.episodes])


def evaluate(
    job: Job,
    episodes: int,
    seed: int,
    workers: int = 2,
    done: Callable[[EpisodeResult], None] = lambda result: None,
    seeds: SeedRange = EVALUATION,
) -> EvalResult:
    """Runs held-out episodes: their seeds are of a range that neither recording nor learning draws from.

    Args:
        job: policy, task and touch.
        episodes: how many.
        seed: chooses them.
        workers: processes.
        done: called after each episode.
        seeds: the range that the episodes' seeds are of.
    """
    drawn = [seeds.seed(seed, k) for k in range(episodes)]
    return EvalResult(job, seed, tuple(run_episodes(job, drawn, workers, done)))


def wilson(successes: int, count: int, z: float = 1.959964) -> tuple[float, float]:
    """95% interval of a success rate (Wilson 1927)."""
    rate = successes / count
    centre = rate + z * z / (2 * count)
    spread = z * math.sqrt(rate * (1 - rate) / count + z * z / (4 * count * count))
    scale = 1 + z * z / count
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)


def append_eval(run: Path, label: str, result: EvalResult, robot_minutes: float) -> None:
    """Adds an evaluation to `RUN/evals.jsonl`, which the report reads.

    Args:
        run: the run folder.
        label: what it shows, e.g. "base" or "touch delayed".
        result: the evaluation.
        robot_minutes: how long the robot had learned by then.
    """
    row = {
        **result.to_json(),
        "failures": result.failures(),
        "peak_forces": [round(e.peak_force, 3) for e in result.episodes if math.isfinite(e.peak_force)],
    }
    append_row(run, label, robot_minutes, row)


def append_row(run: Path, label: str, robot_minutes: float, row: Mapping[str, Any]) -> None:
    """Adds a line to `RUN/evals.jsonl`: the row with its label, robot time and date."""
    date = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    line = json.dumps({"label": label, "robot_minutes": robot_minutes, **row, "date": date}, ensure_ascii=False)
    path = run / EVALS
    whole = not path.exists() or path.read_bytes()[-1:] in (b"", b"\n")
    with path.open("a", encoding="utf-8") as file:
        file.write(line + "\n" if whole else "\n" + line + "\n")


def read_evals(run: Path) -> list[dict[str, Any]]:
    """Rows of `RUN/evals.jsonl`; none where nothing was evaluated. A line that a crash left half is passed over."""
    path = run / EVALS
    if not path.exists():
        return []
    rows = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        with contextlib.suppress(json.JSONDecodeError):
            row = json.loads(line)
            if isinstance(row, dict) and NEEDED <= row.keys():
                rows.append(row)
    return rows


def _count(words: Sequence[str]) -> dict[str, int]:
    return {word: words.count(word) for word in sorted(set(words))}
