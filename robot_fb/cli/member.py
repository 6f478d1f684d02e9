"""`robot-fb member`: a simulated robot that joins a hub."""

from __future__ import annotations

import dataclasses
import itertools
import sys
from pathlib import Path

import torch
import tyro

from robot_fb.cli import common
from robot_fb.episodes.store import Store
from robot_fb.errors import ConfigError, RobotFbError
from robot_fb.fleet.collect import PATIENCE
from robot_fb.fleet.link import Link
from robot_fb.fleet.member import Crew, Member, hello
from robot_fb.fleet.release import unpack
from robot_fb.interfaces import Robot
from robot_fb.runtime.gym_robot import GymRobot
from robot_fb.runtime.handshake import State
from robot_fb.runtime.monitor import load_monitor
from robot_fb.runtime.seeds import TRAINING
from robot_fb.runtime.tasks import find_task
from robot_fb.training.checkpoint import check_fits, load_policy, policy_digest


@dataclasses.dataclass(frozen=True, kw_only=True)
class MemberArgs:
    """Run a policy on its task, log every episode, and ask a hub for help when the monitor alarms.

    Without the hub the robot goes on, and holds still where it would ask; nothing that was logged is lost: episodes
    stay in STORE until the hub has them whole. A policy that the hub rolls out is used from the next episode on.

    Example: robot-fb member --name bench-2 --policy runs/base --monitor runs/monitor --store bench-2

    Attributes:
        name: that it was enrolled under.
        policy: run folder.
        monitor: fitted for that policy; without one it asks nobody, and can still be taken over.
        store: of its own log.
        hub: where the hub listens.
        keys: folder of its own key and of the hub's public one.
        episodes: to run; 0 for no end.
        seed: of the episodes.
        json: print one JSON document to stdout.
    """

    name: str = tyro.MISSING
    policy: Path = tyro.MISSING
    monitor: Path | None = None
    store: Path = tyro.MISSING
    hub: str = "tcp://127.0.0.1:8766"
    keys: Path = Path("keys")
    episodes: int = 0
    seed: int = 0
    json: bool = False


def main(argv: list[str]) -> int:
    """Runs episodes until there are enough, or Ctrl-C."""
    args = common.parse(MemberArgs, argv, "robot-fb member")
    if args.episodes < 0:
        raise ConfigError("--episodes", expected="at least 0", found=args.episodes)
    torch.set_num_threads(1)
    crew = _crew(args.policy, args.monitor)
    task = find_task(crew.policy.spec.task)
    limit = getattr(task.make(cameras=False).spec, "max_episode_steps", None)
    store = Store(args.store, create=True)
    wins = done = 0
    with GymRobot(task.make(max_episode_steps=limit and PATIENCE * limit)) as robot:
        check_fits(crew.policy.spec, robot.streams, robot.action, f"the policy in {args.policy}")
        said = hello(robot, task.name, crew.digest, State.AUTONOMOUS)
        with Link(said, args.keys, args.name, args.hub, store, args.store / "releases") as link:
            member = Member(args.name, robot, crew, task.name, str(args.policy), link, store)
            release = None
            for number in itertools.count() if args.episodes == 0 else range(args.episodes):
                if link.release is not None and link.release != release:
                    release = link.release
                    member.crew = _released(release, robot, member.crew)
                found = member.episode(TRAINING.seed(args.seed, number))
                wins, done = wins + found.success, done + 1
                print(f"episode {done}: {'success' if found.success else 'failure'}", file=sys.stderr)
                if link.problem:
                    print(f"robot-fb member: the hub refuses: {link.problem}", file=sys.stderr)
    if args.json:
        common.emit({"name": args.name, "episodes": done, "successes": wins})
    else:
        print(f"{wins} of {done} episodes succeeded")
    return 0


def _crew(policy: Path, monitor: Path | None) -> Crew:
    loaded = load_policy(policy)
    monitors = {} if monitor is None else {"monitor": load_monitor(monitor, loaded, policy)}
    return Crew(loaded, policy_digest(policy), monitors)


def _released(release: Path, robot: Robot, before: Crew) -> Crew:
    """What the hub has rolled out; where this robot cannot use it, it keeps what it had."""
    try:
        policy, monitor = unpack(release)
        crew = _crew(policy, monitor)
        check_fits(crew.policy.spec, robot.streams, robot.action, "the hub's policy")
        return crew
    except RobotFbError as error:
        print(f"robot-fb member: the release cannot be used: {error}", file=sys.stderr)
        return before
