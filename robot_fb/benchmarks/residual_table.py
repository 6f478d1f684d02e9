"""The residual's figures as a table that a person reads."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any

from robot_fb.benchmarks.residual_cell import KNOWN, Row

HEAD = ("row", "what", "touch", "seeds", "success", "worst", "gain", "lowest trial", "peak p95 [N]", "over cap")


def ordered(rows: Iterable[Row]) -> list[Row]:
    """Rows by task, base, row and touch, in the order of the table."""
    return sorted(rows, key=lambda row: (*_group(row), KNOWN.index(row["row"]), row["touch"] != "live", row["touch"],
                                         row["seed"]))


def table(rows: Iterable[Row]) -> str:
    """One block for each task and base; success is the mean over seeds, "gain" that over the base's, in points.

    "lowest trial" is the lowest success of any trial while learning, against the base's own, in points.
    """
    blocks = []
    for (task, base), group in groupby(ordered(rows), _group):
        found = list(group)
        bases = {row["seed"]: row["success_rate"] for row in found if row["row"] == "base"}
        ceiling = found[0]["ceiling"]
        title = f"{task} on a {base} base" + (f"; without touch at most {ceiling:.0%}" if ceiling else "")
        lines = [_line(list(same), bases) for _, same in groupby(found, lambda row: (row["row"], row["touch"]))]
        blocks.append("\n".join([title, *_aligned([list(HEAD), *lines])]))
    return "\n\n".join(blocks)


def _group(row: Row) -> tuple[str, str]:
    return row["task"], row["base"]


def _line(seeds: list[Row], bases: dict[int, float]) -> list[str]:
    first, rates = seeds[0], [row["success_rate"] for row in seeds]
    gains = [row["success_rate"] - bases[row["seed"]] for row in seeds if row["seed"] in bases]
    lowest = [row["worst_trial_against_base"] for row in seeds if "worst_trial_against_base" in row]
    over = sum(row["over_cap"] for row in seeds) / sum(row["episodes"] for row in seeds)
    return [
        first["row"], first["what"], first["touch"], str(len(seeds)), f"{sum(rates) / len(rates):.1%}",
        f"{min(rates):.1%}", _points(gains, sum) if first["row"] != "base" else "", _points(lowest, min),
        f"{max(row['peak_force_p95_n'] for row in seeds):.1f}", f"{over:.1%}",
    ]


def _points(values: list[float], how: Any) -> str:
    """Percentage points; the mean for `sum`."""
    if not values:
        return ""
    return f"{100 * (how(values) / len(values) if how is sum else how(values)):+.1f}"


def _aligned(lines: list[list[str]]) -> list[str]:
    widths = [max(len(line[k]) for line in lines) for k in range(len(HEAD))]
    return ["  ".join(word.ljust(width) for word, width in zip(line, widths, strict=True)).rstrip() for line in lines]
