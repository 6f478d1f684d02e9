"""Scalars of a run: a plain CSV that any tool reads, and TensorBoard beside it."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

from robot_fb.errors import ConfigError
from robot_fb.training.atomic import write_atomically


class CsvMetrics:
    """`metrics.csv`: a column "step" and one for every scalar, in order of appearance.

    Args:
        path: the file; with `start`, rows up to that step stay and later ones (of a run that was cut off) go.
        start: steps already done.
    """

    def __init__(self, path: Path, start: int = 0) -> None:
        self.path = path
        self._rows = [row for row in read_metrics(path) if row["step"] <= start] if start and path.exists() else []
        self._columns = ["step"]
        for row in self._rows:
            self._columns += [key for key in row if key not in self._columns]
        self._rewrite()

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Adds one row; it is on the disk when this returns."""
        row = {"step": float(step), **values}
        self._rows.append(row)
        new = [key for key in row if key not in self._columns]
        if new:
            self._columns += new
            self._rewrite()
            return
        with self.path.open("a", newline="", encoding="utf-8") as file:
            csv.DictWriter(file, self._columns).writerow(_text(row))

    def close(self) -> None:
        """Nothing is held open."""

    def _rewrite(self) -> None:
        def write(temporary: Path) -> None:
            with temporary.open("w", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, self._columns)
                writer.writeheader()
                writer.writerows(_text(row) for row in self._rows)

        write_atomically(self.path, write)


class TensorBoardMetrics:
    """TensorBoard event files.

    Args:
        folder: where they go.
        start: steps already done; events after it are hidden.
    """

    def __init__(self, folder: Path, start: int = 0) -> None:
        from torch.utils.tensorboard import SummaryWriter  # slow to import

        self._writer = SummaryWriter(str(folder), purge_step=start + 1 if start else None)

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Adds one point to every curve."""
        for key, value in values.items():
            self._writer.add_scalar(key, value, step)

    def close(self) -> None:
        """Flushes and closes."""
        self._writer.close()


def read_metrics(path: Path) -> list[dict[str, float]]:
    """Rows of a `metrics.csv`; empty cells are left out.

    Raises:
        ConfigError: the file holds something else.
    """
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = [{key: float(value) for key, value in row.items() if value} for row in csv.DictReader(file)]
    except (ValueError, TypeError, csv.Error) as error:
        raise ConfigError(f"{path} is damaged", found=str(error), do="remove it; the run goes on without") from error
    if any("step" not in row for row in rows):
        raise ConfigError(f"{path} is damaged", expected="a column step", do="remove it; the run goes on without")
    return rows


def _text(row: Mapping[str, float]) -> dict[str, str]:
    """Numbers as short text; steps without a point."""
    return {key: str(int(value)) if key == "step" else f"{value:.8g}" for key, value in row.items()}
