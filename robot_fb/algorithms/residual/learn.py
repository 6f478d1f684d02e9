"""Both stages of residual learning, one after the other, in one run folder."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.progress import Progress

from robot_fb import registry
from robot_fb.algorithms.residual.config import ResidualConfig
from robot_fb.algorithms.residual.rollout import OnlineMixer, Rollout
from robot_fb.algorithms.residual.trainer import ResidualTrainer
from robot_fb.algorithms.residual.trials import Trials
from robot_fb.runtime.evaluate import LEARNING, append_row, wilson
from robot_fb.runtime.lanes import Lanes
from robot_fb.runtime.seeds import TRAINING
from robot_fb.training.callbacks import LogMetrics, MetricsWriter, SaveCheckpoints, load_checkpoint
from robot_fb.training.checkpoint import check_fits
from robot_fb.training.fit import Callback, fit
from robot_fb.training.metrics import CsvMetrics, TensorBoardMetrics
from robot_fb.training.mixer import Mixer
from robot_fb.training.run_folder import RunFolder

LOG_EVERY, CHECKPOINT_EVERY = 200, 6_000
"""Updates between rows of metrics.csv, and between checkpoints."""


def learn(
    base: Any,
    task: str,
    config: ResidualConfig,
    run: RunFolder,
    bar: Progress,
    touch: str = "live",
    seed: int = 0,
    shape: Any = None,
) -> Rollout:
    """Bootstraps critic and touch encoder on what the base does, then learns the correction online.

    A run that was stopped while the correction was learned goes on from its last checkpoint, with new episodes; one
    that was stopped earlier begins again.

    Args:
        base: the frozen policy, of any kind.
        task: the task it acts on.
        config: settings.
        run: where metrics, checkpoints and the policy go.
        bar: a started progress display.
        touch: "live", or how touch is spoiled while learning.
        seed: of everything.
        shape: config of the `residual` policy.

    Returns:
        The rollout, with its last episodes' success.
    """
    spoiled = [f"touch={touch}"] * (touch != "live") + [f"touch=faults:{config.faults}"] * (config.faults > 0)
    options = {"ablate": ",".join(spoiled)} if spoiled else {}
    with Lanes(task, config.lanes, TRAINING.seed(seed, 0), **options) as lanes:
        check_fits(base.spec, lanes.streams, base.spec.action, "the base policy")
        kind = registry.load("policies", "residual")
        spec = dataclasses.replace(base.spec, obs=lanes.streams)
        shape = shape or kind.config_class()
        policy = kind(base, spec, dataclasses.replace(shape, dead_off=shape.dead_off and touch != "none"))
        rollout = Rollout(lanes, policy, config, seed)
        replay = {"online": rollout.online, "successes": rollout.successes}
        trainer = ResidualTrainer(policy, config, seed, replay)
        mixer = OnlineMixer(rollout, config, seed, before=lambda: _grow(policy, rollout, config))
        start = load_checkpoint(trainer, mixer, run.checkpoints)
        if not start:
            _bootstrap(trainer, rollout, config, seed, bar)
        writers = [CsvMetrics(run.metrics, start), TensorBoardMetrics(run.tensorboard, start)]
        callbacks: list[Callback] = [
            LogRollout(rollout, writers),
            NoteSuccess(rollout, run.path, task, touch, seed),
            ShowRollout(rollout, bar),
        ]
        if config.eval_every:
            callbacks.append(Trials(rollout, trainer, run, task, touch, config, seed))
        kept = None if config.eval_every else run.policy
        callbacks.append(SaveCheckpoints(trainer, mixer, run.checkpoints, CHECKPOINT_EVERY, kept))
        trainer.stage = "online"
        fit(trainer, mixer, callbacks, round(config.online_steps * config.updates_per_step), start)
    return rollout


def _bootstrap(trainer: ResidualTrainer, rollout: Rollout, config: ResidualConfig, seed: int, bar: Progress) -> None:
    """Stage 1: the base fills the buffer, then critic and touch encoder learn from it."""
    collecting = bar.add_task("the base on its own", total=config.bootstrap_steps)
    while rollout.steps < config.bootstrap_steps:
        rollout.decide(explore=False)
        bar.update(collecting, completed=rollout.steps)
    seen = rollout.online.rows()
    trainer.fit_scale(seen["proprio"], seen["touch"])
    sources = {"online": rollout.online, "successes": rollout.successes}
    show = ShowRollout(rollout, bar, "critic and touch encoder")
    fit(trainer, Mixer(sources, config.batch, seed=seed), [show], config.bootstrap_updates)
    rollout.recent.clear()


def _grow(policy: Any, rollout: Rollout, config: ResidualConfig) -> None:
    """Lets the correction come in with the online steps."""
    online = max(rollout.steps - config.bootstrap_steps, 0)
    grown = min(1.0, online / config.growth_steps) if config.growth_steps else 1.0
    policy.head.growth[("scale", "share").index(config.growth)] = grown


class LogRollout(LogMetrics):
    """Metrics of the learner together with those of the robot."""

    def __init__(self, rollout: Rollout, writers: Sequence[MetricsWriter]) -> None:
        super().__init__(writers, LOG_EVERY)
        self._rollout = rollout

    def on_step(self, step: int, metrics: Mapping[str, float]) -> None:
        """Adds success over the last episodes, robot time and the scale's growth."""
        rollout = self._rollout
        robot = {
            "success": rollout.success_rate(),
            "recent_episodes": float(len(rollout.recent)),
            "robot_minutes": rollout.steps * rollout.lanes.dt / 60,
            "growth": float(rollout.policy.head.growth.min()),
        }
        super().on_step(step, {**metrics, **robot})


class NoteSuccess:
    """Writes how many of every 50 episodes succeeded, exploration included, to the run's evaluations."""

    EVERY = 50

    def __init__(self, rollout: Rollout, run: Path, task: str, touch: str, seed: int) -> None:
        self._rollout, self._run = rollout, run
        self._about = {"task": task, "policy": str(run), "touch": touch, "seed": seed}
        self._noted = 0

    def on_start(self, start: int, steps: int) -> None:
        """Starts to count."""
        self._noted = self._rollout.episodes

    def on_step(self, step: int, metrics: Mapping[str, float]) -> None:
        """Writes a row when another 50 episodes are over."""
        rollout = self._rollout
        if rollout.episodes - self._noted < self.EVERY:
            return
        self._noted += self.EVERY
        recent = list(rollout.recent)[-self.EVERY :]
        wins, count = sum(ok for ok, _ in recent), len(recent)
        seconds = rollout.lanes.dt * sum(steps for _, steps in recent) / count
        row = {
            "episodes": count, "successes": wins, "success_rate": wins / count, "ci95": list(wilson(wins, count)),
            "mean_episode_s": seconds, **self._about,
        }
        append_row(self._run, LEARNING, rollout.steps * rollout.lanes.dt / 60, row)

    def on_end(self, step: int, error: BaseException | None) -> None:
        """Nothing to do."""


class ShowRollout:
    """A bar with the success of the last episodes."""

    def __init__(self, rollout: Rollout, bar: Progress, what: str = "correction by touch") -> None:
        self._rollout, self._bar, self._what = rollout, bar, what

    def on_start(self, start: int, steps: int) -> None:
        """Shows the bar."""
        self._task = self._bar.add_task(self._what, total=steps, completed=start)

    def on_step(self, step: int, metrics: Mapping[str, float]) -> None:
        """Moves it."""
        text = self._what
        if self._rollout.recent:
            text += f", {self._rollout.success_rate():.0%} of the last {len(self._rollout.recent)}"
        self._bar.update(self._task, completed=step, description=text)

    def on_end(self, step: int, error: BaseException | None) -> None:
        """Leaves it."""
