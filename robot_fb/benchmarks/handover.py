"""`robot-fb bench handover`: takeovers and hand-backs at random moments, by a simulated person over a slow link.

Beside ours, in the same situations, a naive one: the robot goes where the leader's hand is, and when the hand lets go
the policy goes on with the plan that it had.
"""

from __future__ import annotations

import dataclasses
import heapq
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import tyro
from rich.console import Console
from rich.progress import track

from robot_fb.benchmarks import cuts
from robot_fb.benchmarks.common import FOLDER, write_result
from robot_fb.episodes.store import Store
from robot_fb.episodes.writer import WriterConfig
from robot_fb.interfaces import Robot
from robot_fb.runtime.arbiter import Takeover
from robot_fb.runtime.desk import LocalDesk
from robot_fb.runtime.gym_robot import GymRobot
from robot_fb.runtime.handshake import Event
from robot_fb.runtime.loop import run as run_episode
from robot_fb.runtime.poses import Pose, change, pose_of
from robot_fb.runtime.recorder import Recorder
from robot_fb.runtime.shared_control import SharedControl
from robot_fb.runtime.tasks import find_task
from robot_fb.runtime.teleop import Command, Deadman, Leader
from robot_fb.types import ActionChunk, EpisodeMeta, Obs, PolicySpec, Step

TASK = "pick_place"
HORIZON = 16
WAYS = ("ours", "naive")

SENDS_S = 1 / 60
"""A browser sends with every picture that it draws [s]."""

NEAR_M, NEAR_DEG = 0.001, 0.5
"""A first command further than this from the measured pose is a jump; a first action of the policy further than this
from what it would plan now is a snap-back."""

ROOM = np.array([[0.42, -0.12, 0.12], [0.58, 0.12, 0.25]])
"""Corners of the free air above the table [m]."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class HandoverArgs:
    """Take a robot over and hand it back, many times; look at what it was sent and at what was logged. Then cut every
    link in turn while a hand moves the robot.

    Attributes:
        count: takeovers; 0 keeps the figures that are there.
        cuts: of each link; 0 keeps the figures that are there.
        seed: of all draws.
        out: folder of the result.
    """

    count: int = 1000
    cuts: int = 20
    seed: int = 0
    out: Path = FOLDER


def run(argv: list[str]) -> dict[str, Any]:
    """Fills data/benchmarks/handover.json; returns the document."""
    args = tyro.cli(HandoverArgs, args=argv, prog="robot-fb bench handover")
    known = args.out / "handover.json"
    before = json.loads(known.read_text(encoding="utf-8"))["rows"] if known.exists() else []
    rows = _takeovers(args) if args.count else [row for row in before if "way" in row]
    rows += cuts.measure(args.cuts) if args.cuts else [row for row in before if "cut" in row]
    words = f"robot-fb bench handover --count {args.count} --cuts {args.cuts} --seed {args.seed}"
    return write_result("handover", words, rows, args.out)


def _takeovers(args: HandoverArgs) -> list[dict[str, Any]]:
    rows = []
    for way in WAYS:
        with GymRobot(find_task(TASK).make(cameras=False)) as robot, tempfile.TemporaryDirectory() as folder:
            store = Store(Path(folder), create=True, writer=WriterConfig(wait=True))
            seeds = track(range(args.seed, args.seed + args.count), way, console=Console(stderr=True))
            rows.append({"way": way, **_summary([one(way, robot, store, seed) for seed in seeds])})
    return rows


@dataclasses.dataclass(frozen=True)
class Case:
    """What chance decides about one takeover.

    Attributes:
        alarm: decision of the alarm.
        grasp_s: when the person takes hold [s].
        held_s: for how long [s].
        delay_s: of everything that the person sends [s].
        jitter_s: at most that much more [s].
        leader: (4,) where the leader's hand is, in its own coordinates [m, rad].
        drift: (4,) where the hand goes [m/s, rad/s].
        goal: where the policy wants the tool to be.
    """

    alarm: int
    grasp_s: float
    held_s: float
    delay_s: float
    jitter_s: float
    leader: np.ndarray
    drift: np.ndarray
    goal: Pose

    @classmethod
    def draw(cls, rng: np.random.Generator) -> Case:
        """One case."""
        alarm = int(rng.integers(3, 25))
        return cls(
            alarm, 0.05 * alarm + rng.uniform(0.4, 1.0), float(rng.choice([0.3, 1.0, 2.0])),
            rng.uniform(0.005, 0.08), rng.uniform(0.0, 0.03), np.append(rng.uniform(-1, 1, 3), rng.uniform(-3, 3)),
            rng.normal(size=4) * [0.05, 0.05, 0.05, 0.3], Pose(rng.uniform(*ROOM), rng.uniform(-0.6, 0.6)),
        )


class Planner:
    """A policy that plans a straight way to a goal and carries out all of it before it looks again, as slow ones do."""

    def __init__(self, robot: Robot, goal: Pose) -> None:
        self.spec = PolicySpec(TASK, robot.streams, robot.action, robot.dt, horizon=HORIZON)
        self._goal, self._left = goal, np.zeros((0, robot.action.dim), np.float32)

    def reset(self, seed: int | None = None) -> None:
        """Forgets its plan."""
        self._left = self._left[:0]

    def act(self, obs: Obs) -> ActionChunk:
        """The plan in force."""
        self._left = self._left[1:] if len(self._left) > 1 else self.fresh(obs)
        return ActionChunk(self._left, self.spec.dt)

    def fresh(self, obs: Obs) -> np.ndarray:
        """(HORIZON, action_dim) what it would plan now."""
        away, high = change(pose_of(obs), self._goal), np.array(self.spec.action.high[:4]) / 2
        left = np.sign(away) * np.maximum(np.abs(away) - np.arange(HORIZON)[:, None] * high, 0.0)
        return np.pad(np.clip(left, -high, high), ((0, 0), (0, 1))).astype(np.float32)

    def embed(self, obs: Obs) -> np.ndarray:
        """Nothing."""
        return np.zeros(0, np.float32)


class Person:
    """The simulated person, the link, and the robot's end of it; robot time is the only clock."""

    def __init__(self, case: Case, robot: Robot, desk: LocalDesk, way: str, rng: np.random.Generator) -> None:
        self._case, self._desk, self._robot, self._rng = case, desk, robot, rng
        self._now, self._next, self._sequence = -robot.dt, case.grasp_s, 0
        self._mail: list[tuple[float, int, Command | Event]] = []
        self._deadman = Deadman(clock=lambda: self._now)
        self._command = Leader(robot, self._deadman) if way == "ours" else self._go_there
        self._post(case.grasp_s - 0.2, Event.GRANTED)

    def __call__(self) -> np.ndarray | None:
        """The command at the next decision."""
        case = self._case
        self._now += self._robot.dt
        while self._next <= min(self._now, case.grasp_s + case.held_s):
            hand = case.leader + (self._next - case.grasp_s) * case.drift
            self._send(np.append(hand, 0.0), True)
            if self._next + SENDS_S > case.grasp_s + case.held_s:
                self._next = case.grasp_s + case.held_s
                self._send(np.append(hand, 0.0), False)
                self._post(self._next, Event.HANDED_BACK)
            self._next += SENDS_S
        while self._mail and self._mail[0][0] <= self._now:
            letter = heapq.heappop(self._mail)[2]
            if isinstance(letter, Command):
                self._deadman.give(letter)
            else:
                self._desk.say(letter)
        return self._command()

    def _go_there(self) -> np.ndarray | None:
        """The naive way: the leader's pose is where the tool shall be."""
        hand = self._deadman.command()
        if hand is None:
            return None
        away = change(pose_of(self._robot.read()), Pose(hand[:3], float(hand[3])))
        return np.append(away, hand[4:]).astype(np.float32)

    def _send(self, action: np.ndarray, held: bool) -> None:
        self._post(self._next, Command(action, held, self._sequence, self._next))

    def _post(self, sent: float, letter: Command | Event) -> None:
        """In order and complete, but late: as a stream over TCP."""
        arrives = max(sent + self._case.delay_s + self._rng.uniform(0, self._case.jitter_s), self._last_arrival())
        heapq.heappush(self._mail, (arrives, self._sequence, letter))
        self._sequence += 1

    def _last_arrival(self) -> float:
        return max((arrives for arrives, *_ in self._mail), default=-np.inf)


class _Log:
    def __init__(self) -> None:
        self.steps: list[Step] = []

    def on_start(self, meta: EpisodeMeta) -> None:
        self.steps.clear()

    def on_step(self, step: Step) -> None:
        self.steps.append(step)

    def on_end(self, success: bool, info: object) -> None:
        pass


def one(way: str, robot: GymRobot, store: Store, seed: int) -> dict[str, float]:
    """One episode with one takeover, in numbers.

    Args:
        way: of `WAYS`.
        robot: steerable.
        store: that the episode goes to.
        seed: of everything.
    """
    rng = np.random.default_rng(seed)
    case, desk = Case.draw(rng), LocalDesk()
    planner, log, recorder = Planner(robot, case.goal), _Log(), Recorder(store)
    control = SharedControl(robot, desk)
    arbiter, listeners = (control, [control, log, recorder]) if way == "ours" else (Takeover(), [log, recorder])
    result = run_episode(
        robot, planner, arbiter, {"scripted": _Risk(case.alarm)}, listeners,
        EpisodeMeta(TASK, "planner", robot.streams, robot.action, robot.dt, seed),
        human=Person(case, robot, desk, way, rng), max_steps=int((case.grasp_s + case.held_s) / robot.dt) + 20,
    )
    human = [i for i, step in enumerate(log.steps) if step.source == "human"]
    first = log.steps[human[0]]
    back = next(step for step in log.steps[human[-1]:] if step.source == "policy")
    snap = back.proposed - planner.fresh(back.obs)[0]
    kept = store.read(recorder.last or "").columns
    return {
        "jump_m": float(np.linalg.norm(first.executed[:3])), "jump_deg": float(np.degrees(abs(first.executed[3]))),
        "snap_m": float(np.linalg.norm(snap[:3])), "snap_deg": float(np.degrees(abs(snap[3]))),
        "lost": result.steps - len(kept.sources), "held_s": case.held_s, "human_s": len(human) * robot.dt,
        "frozen_s": (human[-1] - human[0] + 1 - len(human)) * robot.dt,
    }


class _Risk:
    """A monitor that alarms at one decision, and does not calm down."""

    def __init__(self, alarm: int) -> None:
        self._alarm, self._asked = alarm, 0

    def calibrate(self, successes: object, alpha: float) -> None:
        pass

    def reset(self) -> None:
        self._asked = 0

    def score(self, obs: Obs, chunk: ActionChunk) -> float:
        self._asked += 1
        return 2.0 if self._asked > self._alarm else 0.0


def _summary(cases: list[dict[str, float]]) -> dict[str, Any]:
    column = {key: np.array([case[key] for case in cases]) for key in cases[0]}
    second = column["held_s"] == 1.0
    return {
        "takeovers": len(cases),
        "jumps": int(((column["jump_m"] > NEAR_M) | (column["jump_deg"] > NEAR_DEG)).sum()),
        "largest_jump_mm": float(1000 * column["jump_m"].max()), "largest_jump_deg": float(column["jump_deg"].max()),
        "snap_backs": int(((column["snap_m"] > NEAR_M) | (column["snap_deg"] > NEAR_DEG)).sum()),
        "largest_snap_back_mm": float(1000 * column["snap_m"].max()),
        "lost_steps": int(column["lost"].sum()),
        "one_second_corrections": int(second.sum()),
        "human_s_of_those": [float(edge(column["human_s"][second], initial=1.0)) for edge in (np.min, np.max)],
        "frozen_by_the_link_s": float(column["frozen_s"].sum()),
    }
