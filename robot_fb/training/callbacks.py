"""What usually goes on around training steps: metrics, checkpoints, a progress bar."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import yaml
from rich.progress import Progress

from robot_fb.config import read_yaml
from robot_fb.errors import CheckpointError
from robot_fb.interfaces import Trainer
from robot_fb.training.atomic import write_atomically
from robot_fb.training.checkpoint import save_policy
from robot_fb.training.mixer import Mixer

PLACE = "fit.yaml"


class MetricsWriter(Protocol):
    """Takes scalars."""

    def write(self, step: int, values: Mapping[str, float]) -> None: ...
    def close(self) -> None: ...


class LogMetrics:
    """Writes the mean of every scalar over each `every` steps.

    Args:
        writers: where they go.
        every: steps between rows.
    """

    def __init__(self, writers: Sequence[MetricsWriter], every: int) -> None:
        self._writers, self._every = writers, every
        self._sums: dict[str, list[float]] = {}

    def on_start(self, start: int, steps: int) -> None:
        """Nothing to do."""

    def on_step(self, step: int, metrics: Mapping[str, float]) -> None:
        """Collects."""
        for key, value in metrics.items():
            total = self._sums.setdefault(key, [0.0, 0.0])
            total[0] += value
            total[1] += 1
        if step % self._every == 0:
            means = {key: total / count for key, (total, count) in self._sums.items()}
            self._sums = {}
            for writer in self._writers:
                writer.write(step, means)

    def on_end(self, step: int, error: BaseException | None) -> None:
        """Closes the writers."""
        for writer in self._writers:
            writer.close()


class SaveCheckpoints:
    """Saves trainer and mixer every so often, at the end, and on Ctrl-C; never after an error in a step.

    Args:
        trainer, mixer: what is saved.
        folder: a subfolder for each checkpoint; the newest is kept.
        every: steps between checkpoints.
        policy: where the policy itself is saved, too, ready to act.
    """

    def __init__(self, trainer: Trainer, mixer: Mixer, folder: Path, every: int, policy: Path | None = None) -> None:
        self._trainer, self._mixer, self._folder, self._every, self._policy = trainer, mixer, folder, every, policy
        self._saved = -1

    def on_start(self, start: int, steps: int) -> None:
        """Nothing to do."""
        self._saved = start

    def on_step(self, step: int, metrics: Mapping[str, float]) -> None:
        """Saves when it is time."""
        if step % self._every == 0:
            self._save(step)

    def on_end(self, step: int, error: BaseException | None) -> None:
        """Saves unless this step is saved already."""
        if step != self._saved and (error is None or isinstance(error, KeyboardInterrupt)):
            self._save(step)

    def _save(self, step: int) -> None:
        target = self._folder / f"step_{step:08d}"
        self._trainer.save(target)
        place = yaml.safe_dump({"step": step, "mixer": self._mixer.state()}, sort_keys=False)
        write_atomically(target / PLACE, lambda path: path.write_text(place, encoding="utf-8"))
        if self._policy is not None:
            save_policy(self._policy, self._trainer.policy())
        for old in self._folder.glob("step_*"):
            if old != target:
                shutil.rmtree(old)
        self._saved = step


def load_checkpoint(trainer: Trainer, mixer: Mixer, folder: Path) -> int:
    """Puts trainer and mixer back to the newest checkpoint in `folder`.

    Returns:
        Steps done; 0 where there is no checkpoint yet.

    Raises:
        CheckpointError: the checkpoint is damaged or belongs to something else.
    """
    whole = sorted(path.parent for path in folder.glob(f"step_*/{PLACE}"))
    if not whole:
        return 0
    place: dict[str, Any] = read_yaml(whole[-1] / PLACE)
    trainer.load(whole[-1])
    try:
        mixer.restore(place["mixer"])
        return int(place["step"])
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{whole[-1] / PLACE} is damaged", found=str(error)) from error


class ShowProgress:
    """A bar with time left and the newest loss.

    Args:
        progress: a started rich progress display.
        what: shown before the bar.
        shown: the scalar shown, if the trainer gives it.
    """

    def __init__(self, progress: Progress, what: str = "train", shown: str = "loss") -> None:
        self._progress, self._what, self._shown = progress, what, shown

    def on_start(self, start: int, steps: int) -> None:
        """Shows the bar."""
        self._task = self._progress.add_task(self._what, total=steps, completed=start)

    def on_step(self, step: int, metrics: Mapping[str, float]) -> None:
        """Moves it."""
        text = f"{self._what} {self._shown} {metrics[self._shown]:.4f}" if self._shown in metrics else self._what
        self._progress.update(self._task, completed=step, description=text)

    def on_end(self, step: int, error: BaseException | None) -> None:
        """Leaves it."""
