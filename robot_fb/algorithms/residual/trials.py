"""Trials while the correction learns: the best policy is kept, and one that falls under its base is taken back."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from robot_fb.algorithms.residual.config import ResidualConfig
from robot_fb.algorithms.residual.rollout import Rollout
from robot_fb.algorithms.residual.trainer import ResidualTrainer
from robot_fb.runtime import seeds
from robot_fb.runtime.episodes import Job
from robot_fb.runtime.evaluate import TRIAL, EvalResult, append_eval, evaluate, read_evals
from robot_fb.training.checkpoint import save_policy
from robot_fb.training.run_folder import RunFolder


class Trials:
    """A callback of `fit`: every so often the policy as it stands acts on episodes that are always the same.

    Their seeds are of a range of their own, so choosing by them leaves the held-out episodes held out.

    Args:
        rollout: says how long the robot has learned.
        trainer: what is tried, and taken back.
        run: gets the best policy so far, and a line for each trial in its evaluations.
        task, touch: as learned on.
        config: settings.
        seed: chooses the episodes.
    """

    def __init__(
        self, rollout: Rollout, trainer: ResidualTrainer, run: RunFolder, task: str, touch: str,
        config: ResidualConfig, seed: int,
    ) -> None:
        self._rollout, self._trainer, self._run, self._config, self._seed = rollout, trainer, run, config, seed
        self._job = Job(task, str(run.path / TRIAL), touch)
        before = [row["success_rate"] for row in read_evals(run.path) if row["label"] == TRIAL]
        self._base = before[0] if before else math.nan
        self._best = max(before, default=-math.inf)
        self._tried_at = -1
        self._good: dict[str, Any] | None = None

    def on_start(self, start: int, steps: int) -> None:
        """Tries the base alone, unless an earlier run did."""
        self._tried_at = self._rollout.steps
        if math.isnan(self._base):
            growth = self._trainer.head.growth.clone()
            self._trainer.head.growth[0] = 0.0
            self._base = self._try().success_rate
            self._trainer.head.growth[:] = growth
            save_policy(self._run.policy, self._trainer.policy())
        self._good = self._trainer.snapshot()

    def on_step(self, step: int, metrics: Mapping[str, float]) -> None:
        """Tries the policy when it is time."""
        if self._rollout.steps - self._tried_at >= self._config.eval_every:
            self._judge()

    def on_end(self, step: int, error: BaseException | None) -> None:
        """Tries what was learned last."""
        if error is None and self._rollout.steps > self._tried_at:
            self._judge()

    def _judge(self) -> None:
        self._tried_at = self._rollout.steps
        success = self._try().success_rate
        if success < self._base - self._config.fall and self._good is not None:
            self._trainer.restore(self._good)
            return
        self._good = self._trainer.snapshot()
        if success >= self._best:
            self._best = success
            save_policy(self._run.policy, self._trainer.policy())

    def _try(self) -> EvalResult:
        save_policy(Path(self._job.by), self._trainer.policy())
        result = evaluate(self._job, self._config.eval_episodes, self._seed, seeds=seeds.TRIAL)
        shown = dataclasses.replace(result, job=dataclasses.replace(self._job, by=str(self._run.path)))
        append_eval(self._run.path, TRIAL, shown, self._rollout.steps * self._rollout.lanes.dt / 60)
        return result
