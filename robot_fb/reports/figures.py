"""Pictures of a run as PNG data URIs."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from robot_fb.episodes.episode import Columns
from robot_fb.types import StreamSpec

INK, ACCENT, SOFT, PALE = "#22303c", "#0b7285", "#868e96", "#e9ecef"
WIDTH = 8.4
Row = Mapping[str, Any]

STYLE: dict[Any, Any] = {
    "font.size": 9, "axes.edgecolor": SOFT, "axes.labelcolor": INK, "text.color": INK, "xtick.color": INK,
    "ytick.color": INK, "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False,
}


@matplotlib.rc_context(STYLE)
def learning_curve(
    learning: Sequence[Row], trials: Sequence[Row], evaluations: Sequence[Row], ceiling: float | None
) -> str:
    """Success against robot minutes, with 95% intervals and the ceiling of a policy without touch.

    Args:
        learning: stretches of learning itself, with "robot_minutes", "success_rate", "ci95" and "policy"; a line for
            each policy.
        trials: the same of trials in between, without exploration.
        evaluations: rows with "label" besides; a point for each.
        ceiling: success rate, or None.
    """
    figure = Figure(figsize=(WIDTH, 3.4))
    axes = figure.subplots()
    for policy in dict.fromkeys(row["policy"] for row in learning):
        minutes, rate, low, high = _columns([row for row in learning if row["policy"] == policy])
        axes.fill_between(minutes, low, high, color=ACCENT, alpha=0.13, linewidth=0)
        axes.plot(minutes, rate, color=ACCENT, linewidth=1.6, label="while learning, exploration included")
    for policy in dict.fromkeys(row["policy"] for row in trials):
        minutes, rate, _, _ = _columns([row for row in trials if row["policy"] == policy])
        axes.plot(minutes, rate, "--", color=INK, marker=".", linewidth=0.8, label="trials in between")
    for row in evaluations:
        minutes, rate, low, high = _columns([row])
        axes.errorbar(minutes, rate, [rate - low, high - rate], fmt="o", color=INK, capsize=4, zorder=3)
        axes.annotate(row["label"], (minutes[0], rate[0]), xytext=(7, 6), textcoords="offset points")
    if ceiling is not None:
        axes.axhline(100 * ceiling, color=SOFT, linestyle="--", linewidth=1)
        where = (1.0, 100 * ceiling)
        axes.annotate("without touch at best", where, xycoords=("axes fraction", "data"), xytext=(0, 3),
                      textcoords="offset points", ha="right", color=SOFT)
    axes.set(xlabel="robot minutes", ylabel="success [%]", ylim=(0, 104))
    axes.set_xlim(right=1.12 * max([axes.get_xlim()[1], 0.1]))
    if learning or trials:
        axes.legend(loc="lower right")
    return _uri(figure)


@matplotlib.rc_context(STYLE)
def intervals(rows: Sequence[Row], ceiling: float | None) -> str:
    """Success of every evaluation with its 95% interval, one under the other: true touch dark, false touch pale."""
    figure = Figure(figsize=(WIDTH, 0.9 + 0.34 * len(rows)))
    axes = figure.subplots()
    for place, row in enumerate(rows):
        _, rate, low, high = _columns([row])
        color = ACCENT if row["touch"] == "live" else SOFT
        axes.errorbar(rate, [place], xerr=[rate - low, high - rate], fmt="o", color=color, capsize=4)
        axes.annotate(f"{rate[0]:.0f}%", (rate[0], place), xytext=(0, 5), textcoords="offset points", ha="center",
                      color=color)
    if ceiling is not None:
        axes.axvline(100 * ceiling, color=SOFT, linestyle="--", linewidth=1)
        axes.annotate("without touch at best", (100 * ceiling, 1.0), xycoords=("data", "axes fraction"), xytext=(3, -2),
                      textcoords="offset points", color=SOFT, va="bottom")
    axes.set(yticks=range(len(rows)), yticklabels=[row["label"] for row in rows], xlim=(0, 104), xlabel="success [%]")
    axes.set_ylim(len(rows) - 0.5, -0.6)
    axes.grid(axis="x", color=PALE)
    axes.set_axisbelow(True)
    return _uri(figure)


@matplotlib.rc_context(STYLE)
def force_histograms(rows: Sequence[Row]) -> str:
    """Peak contact force of every episode: a histogram for each row, one under the other, on one axis."""
    top = max(max(row["peak_forces"]) for row in rows)
    bins = np.linspace(0, 1.02 * max(top, 1e-3), 40).tolist()
    figure = Figure(figsize=(WIDTH, 0.7 + 0.75 * len(rows)))
    all_axes = figure.subplots(len(rows), 1, sharex=True, sharey=True, squeeze=False)
    for axes, row in zip(all_axes[:, 0], rows, strict=True):
        axes.hist(row["peak_forces"], bins=bins, color=ACCENT if row["touch"] == "live" else SOFT, alpha=0.75)
        p95 = row["peak_force_p95_n"]
        axes.axvline(p95, color=INK, linewidth=1)
        axes.annotate(f" 95% below {p95:.1f} N", (p95, 0.98), xycoords=("data", "axes fraction"), va="top", fontsize=8)
        axes.set_ylabel(row["label"], rotation=0, ha="right", va="center")
        axes.set_yticks([])
    all_axes[-1, 0].set_xlabel("peak contact force of an episode [N]")
    return _uri(figure)


@matplotlib.rc_context(STYLE)
def film_strip(columns: Columns, streams: Mapping[str, StreamSpec], dt: float, frames: int = 10) -> str:
    """Pictures of an episode's cameras in even steps, and the force at the wrist under them on the same time axis.

    Args:
        columns: the episode, as read from its log.
        streams: what its streams are.
        dt: decision period [s].
        frames: pictures in a row.
    """
    cameras = [key for key in columns.streams if key.startswith("camera/")]
    wrenches = [key for key in columns.streams if key.startswith("wrench/")]
    shown = np.unique(np.linspace(0, len(columns) - 1, frames).astype(int))
    height = WIDTH / max(len(shown), 4)
    rows = [height] * len(cameras) + [1.1]
    figure = Figure(figsize=(WIDTH, sum(rows) + 0.1))
    grid = figure.add_gridspec(len(rows), len(shown), height_ratios=rows, hspace=0.04, wspace=0.04)
    for r, camera in enumerate(cameras):
        for c, step in enumerate(shown):
            axes = figure.add_subplot(grid[r, c])
            axes.imshow(columns.streams[camera][step], interpolation="nearest")
            axes.set(xticks=[], yticks=[])
            if c == 0:
                axes.set_ylabel(camera.removeprefix("camera/"))
            if r == 0:
                axes.set_title(f"{step * dt:.1f} s", fontsize=8)
    trace = figure.add_subplot(grid[-1, :])
    for key in wrenches:
        _trace_force(trace, columns.streams[key], streams[key], dt, key)
    trace.set(xlabel="time [s]", ylabel="force [N]", xlim=(0, max(len(columns) - 1, 1) * dt))
    trace.set_ylim(bottom=0)
    return _uri(figure)


def _trace_force(axes: Axes, wrench: np.ndarray, spec: StreamSpec, dt: float, label: str) -> None:
    """Every sample of a wrench stream (steps, window, 6) or (steps, 6), not only the newest of each decision."""
    window = wrench[:, None] if wrench.ndim == 2 else wrench
    new = min(max(round(spec.rate_hz * dt), 1), window.shape[1])
    force = np.linalg.norm(window[:, -new:, :3], axis=2).ravel()
    times = (np.arange(len(force)) - (new - 1)) * dt / new
    axes.plot(times, force, color=ACCENT, linewidth=1.2, label=label)


def _columns(rows: Sequence[Row]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Minutes, and success with its interval in percent, in order of time."""
    rows = sorted(rows, key=lambda row: row["robot_minutes"])
    minutes = np.array([row["robot_minutes"] for row in rows], float)
    low, high = 100 * np.array([row["ci95"] for row in rows], float).T
    return minutes, 100 * np.array([row["success_rate"] for row in rows], float), low, high


def _uri(figure: Figure) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=130, bbox_inches="tight")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
