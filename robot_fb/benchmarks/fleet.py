"""`robot-fb bench fleet`: one simulated operator and a fleet that asks, against an operator who watches one robot.

Every way begins with the same policy and demonstrations, has the same episodes, operator and gradient steps, and is
judged at the end on episodes that neither its learning nor its gate has seen.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import tyro
from rich.console import Console
from rich.progress import Progress

from robot_fb.algorithms.intervention.learn import InterventionConfig
from robot_fb.benchmarks.common import FOLDER, verb, write_result
from robot_fb.fleet.collect import Watch
from robot_fb.fleet.rounds import Rounds, RoundsConfig
from robot_fb.interfaces import Policy, Robot
from robot_fb.runtime.episodes import Job
from robot_fb.runtime.evaluate import evaluate

TASKS: dict[str, tuple[int, int, tuple[str, ...]]] = {
    "pick_place": (40, 3000, ()),
    "keyed_socket": (2, 800, (
        "camera/scene", "camera/wrist", "tcp/pose", "tcp/velocity", "gripper/width", "command/last", "wrench/wrist",
    )),
}
"""Task -> demonstrations, gradient steps and streams of the policy that a fleet begins with. A contact task's policy
reads force as well: no correction teaches a policy what it cannot see."""

WAYS = ("ours", "fifo", "random", "hg_dagger")

PATIENCE_S = 2.0
"""Who watches takes over when nothing has got better for that long [s]."""

RANDOM_S = 6.0
"""Between two moments at which a robot asks at random, in the mean [s]."""

Row = dict[str, Any]


@dataclasses.dataclass(frozen=True, kw_only=True)
class FleetArgs:
    """Let fleets learn from a simulated operator, in several ways.

    ours: robots ask by their monitors, the most urgent one is helped first, Sirius weights. fifo: the same, first come
    first served. random: the same, but robots ask at random moments. hg_dagger: one robot,
    whose operator watches all the time and takes over when nothing gets better; HG-DAgger weights.

    Attributes:
        task: only this one of pick_place and keyed_socket.
        way: only this one of ours, fifo, random and hg_dagger.
        seed: only this one of 0, 1 and 2.
        robots: to one operator, where robots ask.
        rounds: of work and learning.
        episodes: in a round.
        gate_episodes: on which a policy has to be better to be deployed.
        test_episodes: for the policies of the first and the last round.
        steps: gradient steps of a round.
        collect: run nothing; write and print what is there.
        runs: folder of all runs; what is there is used.
        out: folder of the result.
    """

    task: Literal["", "pick_place", "keyed_socket"] = ""
    way: Literal["", "ours", "fifo", "random", "hg_dagger"] = ""
    seed: int = -1
    robots: int = 8
    rounds: int = 3
    episodes: int = 60
    gate_episodes: int = 100
    test_episodes: int = 200
    steps: int = 1500
    collect: bool = False
    runs: Path = Path("runs/bench/fleet")
    out: Path = FOLDER


def run(argv: list[str]) -> dict[str, Any]:
    """Fills data/benchmarks/fleet.json; returns the document."""
    args = tyro.cli(FleetArgs, args=argv, prog="robot-fb bench fleet")
    seeds = range(3) if args.seed < 0 else [args.seed]
    for task in [args.task] if args.task else TASKS:
        for seed in seeds if not args.collect else []:
            for way in [args.way] if args.way else WAYS:
                _Arm(task, way, seed, args).fill()
    known = args.out / "fleet.json"
    rows = json.loads(known.read_text(encoding="utf-8"))["rows"] if known.exists() else []
    found = {_key(row): row for row in rows}
    for path in sorted(args.runs.glob("*/*/*/row.json")):
        row = json.loads(path.read_text(encoding="utf-8"))
        found[_key(row)] = row
    words = f"robot-fb bench fleet --robots {args.robots} --rounds {args.rounds} --episodes {args.episodes}"
    return write_result("fleet", words, [found[key] for key in sorted(found)], args.out)


def show(document: dict[str, Any]) -> str:
    """A line for each task and way, means over seeds; the operator is simulated."""
    words = ("seeds", "before", "after", "times", "hand s/win", "all s/win", "wait [s]")
    lines = ["a simulated operator; success on episodes that no learning saw"]
    lines.append(f"{'task':<13} {'way':<10} " + " ".join(f"{word:>10}" for word in words))
    rows = document["rows"]
    for task, way in sorted({(row["task"], row["way"]) for row in rows}, key=lambda pair: (pair[0], _rank(pair[1]))):
        some = [row for row in rows if (row["task"], row["way"]) == (task, way)]
        before, after = _mean(some, "before"), _mean(some, "after")
        figures = (
            f"{len(some)}", f"{before:.1%}", f"{after:.1%}", f"{after / max(before, 1e-9):.1f}",
            f"{_mean(some, 'hand_s_per_success'):.1f}", f"{_mean(some, 'attention_s_per_success'):.1f}",
            f"{_mean(some, 'median_wait_s'):.1f}",
        )
        lines.append(f"{task:<13} {way:<10} " + " ".join(f"{figure:>10}" for figure in figures))
    return "\n".join(lines)


class _Arm:
    """One way on one task with one seed."""

    def __init__(self, task: str, way: str, seed: int, args: FleetArgs) -> None:
        self._task, self._way, self._seed, self._args = task, way, seed, args
        self._shared = args.runs / task / f"base-{seed}"
        self._folder = args.runs / task / way / str(seed)

    def fill(self) -> None:
        """Runs what is missing; its figures lie in row.json."""
        file = self._folder / "row.json"
        if file.exists():
            return
        base, demos = self._base()
        with Progress(console=Console(stderr=True)) as bar:
            shown: dict[str, Any] = {}

            def tell(what: str, done: int, total: int) -> None:
                if what not in shown:
                    shown[what] = bar.add_task(f"{self._task} {self._way} {self._seed}, {what}", total=total)
                bar.update(shown[what], completed=done)

            rounds = Rounds(self._config(), self._folder, base, None, (demos,), tell, self._watch())
            rows = rounds.run()
        last = next(row["round"] for row in reversed(rows) if row["deployed"])
        after = self._test(base if not last else self._folder / f"round-{last}" / "policy")
        file.write_text(json.dumps(self._row(rows, self._test(base), after)), encoding="utf-8")

    def _base(self) -> tuple[Path, Path]:
        """The policy to begin with and its demonstrations, the same for all ways."""
        count, steps, streams = TASKS[self._task]
        demos, base, seeded = self._shared / "demonstrations", self._shared / "policy", ["--seed", str(self._seed)]
        if not demos.exists():
            words = ["record", "--task", self._task, "--by", "expert", "--episodes", str(count)]
            verb([*words, "--out", str(demos), *seeded])
        if not (base / "policy").exists():
            words = ["train", "bc", "--data", str(demos), "--preset", "demo", "--steps", str(steps), "--threads", "1"]
            words += ["--streams", *streams] if streams else []
            verb([*words, "--out", str(base), *seeded, *["--resume"] * (base / "run.yaml").exists()])
        return base, demos

    def _config(self) -> RoundsConfig:
        args, alone = self._args, self._way == "hg_dagger"
        return RoundsConfig(
            robots=1 if alone else args.robots, rounds=args.rounds, episodes=args.episodes,
            order="fifo" if self._way == "fifo" else "priority", gate_episodes=args.gate_episodes, workers=1,
            learn=InterventionConfig(weights="hg_dagger" if alone else "sirius", steps=args.steps), seed=self._seed,
        )

    def _watch(self) -> Watch | None:
        if self._way == "hg_dagger":
            return Watching
        if self._way == "random":
            return lambda policy, robot: AtRandom(policy, robot, self._seed)
        return None

    def _test(self, policy: Path) -> float:
        """Share of successes on episodes that no gate has seen."""
        known = self._folder / "tests.json"
        tests = json.loads(known.read_text(encoding="utf-8")) if known.exists() else {}
        if str(policy) not in tests:
            found = evaluate(Job(self._task, str(policy)), self._args.test_episodes, 100 + self._seed, 1)
            tests[str(policy)] = found.to_json()["success_rate"]
            known.write_text(json.dumps(tests), encoding="utf-8")
        return tests[str(policy)]

    def _row(self, rows: Sequence[Row], before: float, after: float) -> Row:
        work = [row["work"] for row in rows if "work" in row]
        wins = sum(each["successes"] for each in work)
        alone = self._way == "hg_dagger"  # somebody watches every second of it
        hand = sum(each["human_s"] for each in work)
        attention = sum(60 * each["robot_minutes"] if alone else each["attention_s"] for each in work)
        waits = [each["median_wait_s"] for each in work if each["median_wait_s"] is not None]
        return {
            "task": self._task, "way": self._way, "seed": self._seed, "operator": "simulated", "before": before,
            "after": after, "gate": [row["gate"]["success_rate"] for row in rows],
            "deployed": [row["deployed"] for row in rows], "asked": [each["asked"] for each in work],
            "with_help": [each["successes"] for each in work], "episodes": self._args.episodes,
            "hand_s": hand, "attention_s": attention, "hand_s_per_success": hand / wins if wins else None,
            "attention_s_per_success": attention / wins if wins else None,
            "median_wait_s": float(np.median(waits)) if waits else None,
            "test_episodes": self._args.test_episodes,
        }


class Watching:
    """An operator who looks at the robot all the time and takes over when nothing has got better for a while.

    A `interfaces.FailureDetector` with the simulation's own sense of progress, which stands for a person's eye.

    Args:
        policy: not looked at.
        robot: that is watched.
    """

    def __init__(self, policy: Policy, robot: Robot) -> None:
        self._robot = robot
        self.reset()

    def calibrate(self, successes: object, alpha: float) -> None:
        """Nothing to do."""

    def reset(self) -> None:
        """Start of an episode."""
        self._best, self._since = -np.inf, 0

    def score(self, obs: object, chunk: object) -> float:
        """Above 1 where a person would reach for the robot."""
        reward = self._robot.outcome().reward
        self._since = 0 if reward > self._best + 0.01 else self._since + 1
        self._best = max(self._best, reward)
        if self._since * self._robot.dt < PATIENCE_S:
            return 0.0
        self._since = 0
        return 2.0


class AtRandom:
    """A monitor that knows nothing, and asks every `RANDOM_S` in the mean.

    Args:
        policy: not looked at.
        robot: that asks.
        seed: of the draws.
    """

    def __init__(self, policy: Policy, robot: Robot, seed: int) -> None:
        self._rng = np.random.default_rng([seed, 79])
        self._chance = robot.dt / RANDOM_S

    def calibrate(self, successes: object, alpha: float) -> None:
        """Nothing to do."""

    def reset(self) -> None:
        """Start of an episode."""

    def score(self, obs: object, chunk: object) -> float:
        """Above 1 now and then."""
        return 2.0 if self._rng.random() < self._chance else 0.0


def _key(row: Row) -> tuple[str, int, int]:
    return row["task"], row["seed"], _rank(row["way"])


def _rank(way: str) -> int:
    return WAYS.index(way)


def _mean(rows: Sequence[Row], name: str) -> float:
    values = [row[name] for row in rows if row[name] is not None]
    return float(np.mean(values)) if values else float("nan")
