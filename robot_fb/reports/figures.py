"""Pictures of a run as PNG data URIs."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from robot_fb.episodes.episode import Columns

INK, ACCENT, SOFT = "#22303c", "#0b7285", "#adb5bd"
Row = Mapping[str, Any]


def learning_curve(rows: Sequence[Row], ceiling: float | None) -> str:
    """Success against robot minutes, with 95% intervals and the ceiling of a policy without touch.

    Args:
        rows: evaluations with "label", "robot_minutes", "success_rate" and "ci95".
        ceiling: success rate, or None.
    """
    figure, axes = plt.subplots(figsize=(7.2, 3.6))
    for label in dict.fromkeys(row["label"] for row in rows):
        mine = sorted((row for row in rows if row["label"] == label), key=lambda row: row["robot_minutes"])
        minutes = [row["robot_minutes"] for row in mine]
        rate = 100 * np.array([row["success_rate"] for row in mine])
        low, high = 100 * np.array([row["ci95"] for row in mine]).T
        if len(mine) > 1:
            line = axes.plot(minutes, rate, label=label)[0]
            axes.fill_between(minutes, low, high, alpha=0.15, color=line.get_color())
        else:
            axes.errorbar(minutes, rate, [rate - low, high - rate], fmt="o", capsize=4, label=label)
    if ceiling is not None:
        axes.axhline(100 * ceiling, color=INK, linestyle="--", linewidth=1)
        where = (0.01, 100 * ceiling + 1.5)
        axes.annotate("ceiling without touch", where, xycoords=("axes fraction", "data"), color=INK)
    axes.set(xlabel="robot minutes", ylabel="success [%]", ylim=(-2, 102))
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    return _uri(figure)


def force_histogram(rows: Sequence[Row]) -> str:
    """Peak contact force of every episode, one histogram for each evaluation that has forces."""
    rows = [row for row in rows if row.get("peak_forces")]
    figure, axes = plt.subplots(figsize=(7.2, 3.0))
    if rows:
        top = max(max(row["peak_forces"]) for row in rows)
        bins = np.linspace(0, top * 1.02, 40).tolist()
        for row in rows:
            axes.hist(row["peak_forces"], bins=bins, histtype="step", linewidth=1.6, label=row["label"])
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    axes.set(xlabel="peak force of an episode [N]", ylabel="episodes")
    return _uri(figure)


def film_strip(columns: Columns, dt: float, title: str, frames: int = 10) -> str:
    """Pictures of an episode's cameras in even steps, and the contact force under them.

    Args:
        columns: the episode, as read from its log.
        dt: decision period [s].
        title: above the strip.
        frames: pictures in a row.
    """
    cameras = [key for key in columns.streams if key.startswith("camera/")]
    wrenches = [key for key in columns.streams if key.startswith("wrench/")]
    shown = np.unique(np.linspace(0, len(columns) - 1, frames).astype(int))
    heights = [1.0] * len(cameras) + [1.3]
    figure = plt.figure(figsize=(9, 1.1 * len(cameras) + 1.7))
    grid = figure.add_gridspec(len(heights), len(shown), height_ratios=heights, hspace=0.08, wspace=0.04)
    for r, camera in enumerate(cameras):
        for c, step in enumerate(shown):
            axes = figure.add_subplot(grid[r, c])
            axes.imshow(columns.streams[camera][step])
            axes.set(xticks=[], yticks=[])
            if c == 0:
                axes.set_ylabel(camera.removeprefix("camera/"))
            if r == 0:
                axes.set_title(f"{step * dt:.1f} s", fontsize=8)
    trace = figure.add_subplot(grid[-1, :])
    for key in wrenches:
        force = np.linalg.norm(columns.streams[key][:, -1, :3], axis=1)
        trace.plot(np.arange(len(force)) * dt, force, color=ACCENT, label=key)
    trace.set(xlabel="time [s]", ylabel="force [N]", xlim=(0, max(len(columns) - 1, 1) * dt))
    figure.suptitle(title, fontsize=10, y=1.0)
    return _uri(figure)


def _uri(figure: Figure) -> str:
    buffer = io.BytesIO()
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(buffer, format="png", dpi=130, bbox_inches="tight")
    plt.close(figure)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
