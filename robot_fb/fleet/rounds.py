"""Rounds of a simulated fleet: robots work and are helped, the policy learns from it, and if it became better, it and a
monitor that was fitted anew are what the next round runs.

    OUT/round-1/episodes   what the robots did        OUT/round-1/policy   what was learned from it
    OUT/round-1/gate       trials of that policy      OUT/round-1/monitor  fitted to those
    OUT/rounds.jsonl       a line for each round; what is there is not run again
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from robot_fb import registry
from robot_fb.algorithms.intervention.gate import Gate
from robot_fb.algorithms.intervention.learn import InterventionConfig, prepare
from robot_fb.config import check_range
from robot_fb.episodes.cache import load_arrays
from robot_fb.episodes.store import Store
from robot_fb.fleet.collect import Desk, Lasted, Watch, collect, fitted
from robot_fb.runtime.monitor import fit_monitor, read_own, save_monitor
from robot_fb.runtime.seeds import TRAINING
from robot_fb.teachers.operator import Skill
from robot_fb.training.checkpoint import load_policy, policy_folder, save_policy
from robot_fb.training.fit import fit

ROUNDS = "rounds.jsonl"

FEWEST = 4
"""Successes without which no monitor is fitted."""


@dataclass(frozen=True, kw_only=True)
class RoundsConfig:
    """How a fleet gets better.

    Attributes:
        robots: at work at once.
        rounds: of work and learning.
        episodes: of all robots together, in one round.
        order: of the operator's queue: priority, by risk, irreversibility and waiting time; or fifo.
        detector: that is fitted anew to every policy that is deployed.
        alpha: share of successes that may alarm; more where a policy succeeds too seldom for that.
        gate_episodes: on which a new policy has to be better than the old one; its monitor is fitted to them as well.
        learn: how the policy learns from corrections.
        skill: of the simulated operator.
        workers: processes of the trials.
        seed: of episodes and operator.
    """

    robots: int = 4
    rounds: int = 3
    episodes: int = 60
    order: Literal["priority", "fifo"] = "priority"
    detector: str = "fused"
    alpha: float = 0.1
    gate_episodes: int = 100
    learn: InterventionConfig = field(default_factory=InterventionConfig)
    skill: Skill = field(default_factory=Skill)
    workers: int = 2
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuses values that cannot work."""
        check_range(self, ("robots", "rounds", "episodes", "gate_episodes"), 1)
        check_range(self, ("workers", "seed"))
        check_range(self, ("alpha",), high=1, open_low=True)
        registry.load("detectors", self.detector)


class Rounds:
    """The rounds in one folder.

    Args:
        config: settings.
        out: the folder; what is there already is gone on with.
        policy: run folder to begin with.
        monitor: fitted for that policy; None: one is fitted to its trials.
        data: stores that the policy has learned from before.
        tell: called with what is being done, and how many of how many are done.
        watch: makes the monitors of all rounds, in place of those that are fitted.
        desk: where a person may work.
    """

    def __init__(
        self, config: RoundsConfig, out: Path, policy: Path, monitor: Path | None, data: tuple[Path, ...],
        tell: Callable[[str, int, int], None] = lambda what, done, total: None, watch: Watch | None = None,
        desk: Desk | None = None,
    ) -> None:
        self._config, self._out, self._data, self._tell = config, out, data, tell
        self._policy, self._monitor, self._given, self._desk = policy, monitor, watch, desk
        self.task: str = load_policy(policy).spec.task
        self._gate = Gate(self.task, config.gate_episodes, config.seed, config.workers)

    def run(self) -> list[dict[str, Any]]:
        """Runs what is missing; returns a row for each round, the first for the policy as it came.

        Raises:
            RobotFbError: a mistake in the settings, the data or the policy.
        """
        file = self._out / ROUNDS
        rows = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        self._out.mkdir(parents=True, exist_ok=True)
        for number in range(len(rows), self._config.rounds + 1):
            rows.append(self._round(number, rows))
            with file.open("a") as lines:
                lines.write(json.dumps(rows[-1]) + "\n")
        return rows

    def _round(self, number: int, rows: list[dict[str, Any]]) -> dict[str, Any]:
        folder = self._folder(number)
        shutil.rmtree(folder, ignore_errors=True)  # a round that was not finished is begun again
        if number == 0:
            tried = self._try(self._policy, folder / "gate", 0)
            fits = self._monitor is None
            alpha = self._fit(folder, self._policy, tried["gate"]["successes"]) if fits else None
            return {"round": 0, "deployed": True, **tried, "alpha": alpha}
        before = next(row for row in reversed(rows) if row["deployed"])
        now = self._folder(before["round"])
        policy = now / "policy" if before["round"] else self._policy
        monitor = now / "monitor" if before["alpha"] is not None else None
        if not before["round"] and self._monitor is not None:
            monitor = self._monitor
        work = self._work(number, policy, monitor, folder / "episodes")
        decisions = self._learn(number, policy, folder)
        tried = self._try(folder / "policy", folder / "gate", number)
        better = tried["gate"]["successes"] > before["gate"]["successes"]
        alpha = self._fit(folder, folder / "policy", tried["gate"]["successes"]) if better else None
        return {"round": number, "deployed": better, **tried, "alpha": alpha, "work": work, "decisions": decisions}

    def _work(self, number: int, policy: Path, monitor: Path | None, store: Path) -> dict[str, Any]:
        config, ended = self._config, 0
        first = (number - 1) * config.episodes
        seeds = [TRAINING.seed(config.seed, first + i) for i in range(config.episodes)]
        watch = self._given or (None if monitor is None else fitted(monitor, policy))

        def done(episode: Lasted) -> None:
            nonlocal ended
            ended += 1
            self._tell(f"round {number}: work", ended, config.episodes)

        return collect(
            policy, store, seeds, robots=config.robots, watch=watch, skill=config.skill, order=config.order,
            seed=config.seed + number, done=done, desk=self._desk,
        ).to_json()

    def _learn(self, number: int, policy: Path, folder: Path) -> dict[str, int]:
        rounds = [self._folder(i) / "episodes" for i in range(1, number + 1)]
        learner = load_policy(policy)
        steps = self._config.learn.steps
        trainer, mixer, counts = prepare(learner, [load_arrays(path) for path in (*self._data, *rounds)],
                                         self._config.learn)
        fit(trainer, mixer, [_Steps(lambda done: self._tell(f"round {number}: learn", done, steps))], steps)
        save_policy(folder / "policy", trainer.policy())
        return counts

    def _try(self, policy: Path, log: Path, number: int) -> dict[str, Any]:
        """The gate's episodes; they are logged, for the monitor."""
        ended = 0

        def done(_: object) -> None:
            nonlocal ended
            ended += 1
            self._tell(f"round {number}: try", ended, self._config.gate_episodes)

        found = self._gate.try_out(policy, log, done).to_json()
        return {"gate": {key: found[key] for key in ("episodes", "successes", "success_rate", "ci95")}}

    def _fit(self, folder: Path, path: Path, successes: int) -> float | None:
        """A monitor for the policy at `path`, from the gate's episodes.

        Returns:
            Its alpha: the declared one, or where there are too few successes for that, the least that they allow; None
            where there are too few for any, and then the robots ask nobody.
        """
        if self._given is not None or successes < FEWEST:
            return None
        config, policy, store = self._config, load_policy(path), Store(folder / "gate")
        alpha = max(config.alpha, 1 / (successes // 4 + 1))  # what `failure.band.needed` asks for
        plans = registry.load("detectors", config.detector)().plans
        traces = read_own(store, policy, store.query(), plans)
        monitor, _ = fit_monitor(policy, traces, config.detector, alpha, config.seed)
        save_monitor(folder / "monitor", monitor, policy_folder(path), {"alpha": alpha})
        return alpha

    def _folder(self, number: int) -> Path:
        return self._out / f"round-{number}"


class _Steps:
    """A callback of `fit` that tells how far it is."""

    def __init__(self, tell: Callable[[int], None]) -> None:
        self._tell_done = tell

    def on_start(self, start: int, steps: int) -> None:
        pass

    def on_step(self, step: int, metrics: object) -> None:
        self._tell_done(step)

    def on_end(self, step: int, error: BaseException | None) -> None:
        pass
