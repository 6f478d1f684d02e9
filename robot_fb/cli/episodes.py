"""`robot-fb episodes`: look into, check, mend, import and play recorded episodes."""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
import tyro
from rich.table import Column, Table

from robot_fb.cli import common
from robot_fb.cli import episodes_files as files
from robot_fb.cli.episodes_files import shown, stdout
from robot_fb.episodes.episode import Episode
from robot_fb.episodes.film import write_film
from robot_fb.episodes.locks import is_recording
from robot_fb.episodes.reading import read_episode
from robot_fb.episodes.store import Store
from robot_fb.errors import ConfigError, EpisodeError
from robot_fb.registry import closest

USAGE = """usage: robot-fb episodes VERB STORE|FILE ... [--help]

  ls       the episodes of a store, one a line
  info     what a store or one episode holds: streams, steps, feedback
  verify   read everything and check every checksum
  repair   save what is intact in damaged or unfinished files
  reindex  build the index anew from the files
  import   bring a recording in: rosbag2 (.mcap, .db3), ROS 1 (.bag), numpy (.npz, .npy)
  video    an episode's cameras and contact force as an mp4
  play     an episode step by step in the terminal, in real time

A store is a folder made by `robot-fb record`; its episodes are MCAP files that Foxglove and rosbag2 open."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class LsArgs:
    """List the episodes of a store, oldest first.

    Attributes:
        store: the store.
        task: only of this task.
        by: only by this policy or person.
        outcome: only successes, or only failures.
        json: print one JSON document to stdout.
    """

    store: tyro.conf.Positional[Path]
    task: str | None = None
    by: str | None = None
    outcome: Literal["any", "success", "failure"] = "any"
    json: bool = False


def ls(argv: list[str]) -> int:
    """`robot-fb episodes ls`."""
    args = common.parse(LsArgs, argv, "robot-fb episodes ls")
    store = Store(args.store)
    where: dict[str, object] = {"task": args.task, "by": args.by}
    where["success"] = {"any": None, "success": True, "failure": False}[args.outcome]
    where = {key: value for key, value in where.items() if value is not None}
    chosen = set(store.query(**where))
    entries = [entry for entry in store.entries() if entry.id in chosen]
    if args.json:
        common.emit([{**dataclasses.asdict(entry), "feedback": len(entry.feedback)} for entry in entries])
        return 0
    name = Column("episode", no_wrap=True, min_width=27)
    table = Table(name, "task", "by", "steps", "time [s]", "success", "note", box=None)
    for entry in entries:
        dropped = sum(entry.dropped.values())
        note = "; ".join(filter(None, [entry.unfinished, f"{dropped} pictures or samples dropped" if dropped else ""]))
        table.add_row(entry.id, entry.task, entry.by, str(entry.steps), f"{entry.duration_s:.1f}",
                      "yes" if entry.success else "no", note)
    stdout.print(table)
    return 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class InfoArgs:
    """Say what a store, or one episode of it, holds.

    Attributes:
        path: a store or an .mcap file.
        id: an episode of the store; `last` for the newest.
        json: print one JSON document to stdout.
    """

    path: tyro.conf.Positional[Path]
    id: str | None = None
    json: bool = False


def info(argv: list[str]) -> int:
    """`robot-fb episodes info`."""
    args = common.parse(InfoArgs, argv, "robot-fb episodes info")
    if args.path.is_dir() and args.id is None:
        return _store_info(Store(args.path), args.json)
    episode = _episode(args.path, args.id)
    document = {
        "id": episode.id, "meta": episode.meta, "steps": len(episode), "seconds": len(episode) * episode.meta.dt,
        "success": episode.success, "outcome": episode.outcome, "feedback": episode.feedback,
        "return": float(episode.columns.rewards.sum()),
    }
    if args.json:
        common.emit(document)
        return 0
    stdout.print(f"episode {episode.id}: {episode.meta.task} by {episode.meta.by}, {len(episode)} steps, "
                 f"{document['seconds']:.1f} s, {'success' if episode.success else 'no success'}")
    table = Table("stream", "shape", "dtype", "unit", "lowest", "highest", box=None)
    for name, values in episode.columns.streams.items():
        spec = episode.meta.streams.get(name)
        low, high = (values.min(), values.max()) if values.size else (0, 0)
        table.add_row(name, str(values.shape[1:]), str(values.dtype), spec.unit if spec else "", f"{low:.4g}",
                      f"{high:.4g}")
    stdout.print(table)
    for key, value in episode.info.items():
        stdout.print(f"{key}: {value}")
    return 0


def _store_info(store: Store, json: bool) -> int:
    entries = store.entries(broken=True)
    good = [entry for entry in entries if not entry.broken]
    document = {
        "store": store.path, "episodes": len(good), "successes": sum(e.success for e in good),
        "steps": sum(e.steps for e in good), "hours": sum(e.duration_s for e in good) / 3600,
        "bytes": sum(e.size for e in entries), "tasks": sorted({e.task for e in good}),
        "by": sorted({e.by for e in good}), "feedback": len(store.feedback()),
        "damaged": len(entries) - len(good), "recording": sum(is_recording(part) for part in store.parts()),
        "dead": sum(not is_recording(part) for part in store.parts()),
    }
    if json:
        common.emit(document)
        return 0
    for key, value in document.items():
        stdout.print(f"{key}: {', '.join(value) if isinstance(value, list) else value}")
    return 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class VideoArgs:
    """Write an episode's cameras, who acted and the contact force as an mp4.

    Attributes:
        path: a store or an .mcap file.
        id: an episode of the store; the newest when left out.
        out: the film; ID.mp4 here when left out.
        speed: 2 plays twice as fast.
        json: print one JSON document to stdout.
    """

    path: tyro.conf.Positional[Path]
    id: str | None = None
    out: Path | None = None
    speed: float = 1.0
    json: bool = False


def video(argv: list[str]) -> int:
    """`robot-fb episodes video`."""
    args = common.parse(VideoArgs, argv, "robot-fb episodes video")
    _positive(args.speed)
    episode = _episode(args.path, args.id)
    out = args.out or Path(f"{episode.id}.mp4")
    with common.progress() as bar:
        frames = write_film(episode, out, args.speed, shown(bar, "video"))
    if args.json:
        common.emit({"video": out, "episode": episode.id, "frames": frames})
    else:
        stdout.print(f"{out}: {frames} frames of episode {episode.id}")
    return 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class PlayArgs:
    """Print an episode step by step in real time: who acted, what was sent, reward, contact force, monitors.

    Attributes:
        path: a store or an .mcap file.
        id: an episode of the store; the newest when left out.
        speed: 2 plays twice as fast.
        json: print one JSON document to stdout, at once.
    """

    path: tyro.conf.Positional[Path]
    id: str | None = None
    speed: float = 1.0
    json: bool = False


def play(argv: list[str]) -> int:
    """`robot-fb episodes play`."""
    args = common.parse(PlayArgs, argv, "robot-fb episodes play")
    _positive(args.speed)
    episode = _episode(args.path, args.id)
    steps = episode.steps
    if args.json:
        common.emit([{"t": s.t, "source": s.source, "proposed": s.proposed, "executed": s.executed, "reward": s.reward,
                      "success": s.success, "scores": s.scores} for s in steps])
        return 0
    began = time.monotonic()
    for step in steps:
        time.sleep(max(0.0, began + step.t / args.speed - time.monotonic()))
        sent = " ".join(f"{value:+.3f}" for value in step.executed)
        force = next((float(np.linalg.norm(v.reshape(-1, 6)[-1, :3])) for n, v in step.obs.items()
                      if n.startswith("wrench/")), None)
        felt = "" if force is None else f"  {force:5.1f} N"
        scores = "".join(f"  {name} {value:.3g}" for name, value in step.scores.items())
        print(f"{step.t:7.2f} s  {step.source:<8} {sent}  r {step.reward:+.3f}{felt}{scores}", flush=True)
    print(f"{'success' if episode.success else 'no success'}: {episode.id}")
    return 0


VERBS: dict[str, Callable[[list[str]], int]] = {
    "ls": ls, "info": info, "verify": files.verify_, "repair": files.repair_, "reindex": files.reindex,
    "import": files.import_, "video": video, "play": play,
}


def main(argv: list[str]) -> int:
    """Dispatches on the second verb."""
    if not argv or argv[0] in ("-h", "--help"):
        print(USAGE)
        return 0
    if argv[0] not in VERBS:
        raise ConfigError(f"unknown verb {argv[0]!r} of robot-fb episodes", do=closest(argv[0], list(VERBS)))
    return VERBS[argv[0]](argv[1:])


def _episode(path: Path, id: str | None) -> Episode:
    if not path.is_dir():
        return read_episode(path)
    store = Store(path)
    if id in (None, "last"):
        ids = store.query()
        if not ids:
            raise EpisodeError(f"{path} holds no episode", do="record one: robot-fb record --out STORE")
        id = ids[-1]
    return store.read(str(id))


def _positive(speed: float) -> None:
    if not speed > 0:
        raise ConfigError("--speed", expected="above 0", found=speed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
