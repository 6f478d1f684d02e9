"""An episode as a film: its cameras side by side, the contact force under them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import imageio_ffmpeg
import numpy as np

from robot_fb.episodes.episode import Columns, Episode
from robot_fb.errors import EpisodeError

HEIGHT, TRACE = 240, 80
INK, FAINT, PAPER = (40, 40, 40), (200, 200, 200), 255
COLOURS = {"policy": (31, 119, 180), "residual": (148, 103, 189), "human": (214, 39, 40), "blend": (255, 127, 14),
           "expert": (44, 160, 44), "hold": (127, 127, 127), "rewind": (23, 190, 207)}


def write_film(
    episode: Episode, path: Path, speed: float = 1.0, progress: Callable[[int, int], None] | None = None
) -> int:
    """Writes an mp4 (H.264).

    Args:
        episode: with at least one camera stream.
        path: of the film.
        speed: 2 plays twice as fast.
        progress: called with (frames done, frames to do).

    Returns:
        Number of frames.

    Raises:
        EpisodeError: the episode has no pictures or no steps, or the film cannot be written.
    """
    columns = episode.columns
    cameras = [n for n, v in columns.streams.items() if v.dtype == np.uint8 and v.ndim == 4 and v.shape[3] in (1, 3, 4)]
    if not cameras or not len(columns):
        raise EpisodeError(f"episode {episode.id} has no pictures", found=", ".join(columns.streams) or "no streams")
    force = _force(columns)
    first = _frame(columns, cameras, force, 0)
    rate: Any = speed / episode.meta.dt  # ffmpeg takes fractions
    writer = imageio_ffmpeg.write_frames(
        str(path), (first.shape[1], first.shape[0]), fps=rate, quality=8, macro_block_size=2,
        ffmpeg_log_level="error",
    )
    try:
        writer.send(None)
        for i in range(len(columns)):
            writer.send(np.ascontiguousarray(_frame(columns, cameras, force, i)))
            if progress:
                progress(i + 1, len(columns))
    except OSError as error:
        raise EpisodeError(f"cannot write {path}", found=str(error).strip().splitlines()[-1]) from error
    finally:
        writer.close()
    return len(columns)


def _force(columns: Columns) -> np.ndarray | None:
    """(N,) size of the contact force at each step [N]; None where nothing feels."""
    for name, values in columns.streams.items():
        if name.startswith("wrench/"):
            now = values if values.ndim == 2 else values[:, -1]
            return np.linalg.norm(now[:, :3], axis=1)
    for name, values in columns.streams.items():
        if name.startswith("tactile/"):
            return np.abs(values[:, 0]).sum(axis=(1, 2))
    return None


def _frame(columns: Columns, cameras: list[str], force: np.ndarray | None, i: int) -> np.ndarray:
    pictures = [_scaled(columns.streams[name][i]) for name in cameras]
    top = np.concatenate(pictures, axis=1)
    step = columns.step(i)
    _label(top, f"t = {step.t:.2f} s   {step.source}", (6, HEIGHT - 8), COLOURS[step.source])
    if force is None:
        return top
    return np.concatenate([top, _trace(force, columns.sources, i, top.shape[1])], axis=0)


def _scaled(picture: np.ndarray) -> np.ndarray:
    width = round(picture.shape[1] * HEIGHT / picture.shape[0] / 2) * 2
    colour = np.repeat(picture, 3, axis=2) if picture.shape[2] == 1 else picture[:, :, :3]
    return cv2.resize(np.ascontiguousarray(colour), (width, HEIGHT), interpolation=cv2.INTER_NEAREST)


def _trace(force: np.ndarray, sources: np.ndarray, i: int, width: int) -> np.ndarray:
    """The force up to step `i`, over a faint outline of the whole."""
    sheet = np.full((TRACE, width, 3), PAPER, np.uint8)
    top = max(float(force.max()), 1e-6)
    x = np.linspace(4, width - 5, len(force))
    y = TRACE - 6 - force / top * (TRACE - 24)
    points = np.stack([x, y], axis=1).round().astype(np.int32)
    cv2.polylines(sheet, [points[:, None]], False, FAINT, 1, cv2.LINE_AA)
    cv2.polylines(sheet, [points[: i + 1, None]], False, INK, 2, cv2.LINE_AA)
    _label(sheet, f"{force[i]:.1f} N of at most {top:.1f} N", (6, 14), INK)
    return sheet


def _label(picture: np.ndarray, words: str, place: tuple[int, int], colour: tuple[int, int, int]) -> None:
    for ink, thickness in ((PAPER,) * 3, 3), (colour, 1):
        cv2.putText(picture, words, place, cv2.FONT_HERSHEY_SIMPLEX, 0.45, ink, thickness, cv2.LINE_AA)
