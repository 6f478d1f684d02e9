"""The verbs of `robot-fb episodes` that check, mend and make files."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import tyro
from rich.console import Console
from rich.progress import Progress

from robot_fb.cli import common
from robot_fb.episodes.exchange.importing import import_recording
from robot_fb.episodes.exchange.mapping import read_mapping
from robot_fb.episodes.locks import is_recording
from robot_fb.episodes.repair import Repaired, repair
from robot_fb.episodes.store import Store
from robot_fb.episodes.verify import verify
from robot_fb.errors import BrokenFileError, EpisodeError

stdout = Console(markup=False, highlight=False)


def shown(bar: Progress, words: str) -> Callable[[int, int], None]:
    """Moves a bar of `common.progress`."""
    task = bar.add_task(words, total=None)
    return lambda done, total: bar.update(task, completed=done, total=total)


@dataclasses.dataclass(frozen=True, kw_only=True)
class PathArgs:
    """What to look at.

    Attributes:
        path: a store or an .mcap file.
        json: print one JSON document to stdout.
    """

    path: tyro.conf.Positional[Path]
    json: bool = False


class VerifyArgs(PathArgs):
    """Read every byte of a store or file and check every checksum and every step.

    Exit status 0 where all is well, 1 where something is wrong. Works on anybody's MCAP files.
    """


def verify_(argv: list[str]) -> int:
    """`robot-fb episodes verify`."""
    args = common.parse(VerifyArgs, argv, "robot-fb episodes verify")
    with common.progress() as bar:
        verdict = verify(args.path, shown(bar, "verify"))
    if args.json:
        common.emit(verdict)
    else:
        for problem in verdict.problems:
            stdout.print(f"{problem.file}: {problem.what}" + ("; can be repaired" if problem.repairable else ""),
                         soft_wrap=True)
        state = "all well" if verdict.ok else f"{len(verdict.problems)} problems"
        stdout.print(f"{verdict.files} files, {verdict.episodes} episodes, {verdict.steps} steps: {state}")
    return 0 if verdict.ok else 1


class RepairArgs(PathArgs):
    """Save what is intact in damaged files and in recordings that died.

    The damaged original stays beside the new file as .bak where parts of it could not be read. Files that are being
    recorded right now are left alone.
    """


def repair_(argv: list[str]) -> int:
    """`robot-fb episodes repair`."""
    args = common.parse(RepairArgs, argv, "robot-fb episodes repair")
    done: list[Repaired] = []
    hopeless: list[str] = []
    for path in _to_repair(args.path):
        try:
            done.append(repair(path))
        except BrokenFileError as error:
            hopeless.append(str(error))
    if args.path.is_dir():
        Store(args.path).entries()
    if args.json:
        common.emit({"repaired": done, "hopeless": hopeless})
    else:
        for result in done:
            kept = f"; the damaged original is {result.backup}" if result.backup else ""
            stdout.print(f"{result.file or 'removed'}: {result.steps} steps; {'; '.join(result.problems)}{kept}",
                         soft_wrap=True)
        for words in hopeless:
            stdout.print(words, soft_wrap=True)
        stdout.print(f"{len(done)} repaired, {len(hopeless)} beyond repair")
    return 1 if hopeless else 0


def _to_repair(path: Path) -> list[Path]:
    """Damaged files and dead recordings of a store; of a single file, itself if it needs it."""
    if not path.is_dir():
        if not path.exists():
            raise EpisodeError(f"there is no {path}", do="check the path")
        return [path] if path.name.endswith(".part") or not verify(path).ok else []
    store = Store(path)
    dead = [part for part in store.parts() if not is_recording(part)]
    damaged = [Path(problem.file) for problem in verify(path).problems if problem.file.endswith(".mcap")]
    return sorted({*dead, *damaged})


class ReindexArgs(PathArgs):
    """Forget a store's index and build it from the files alone."""


def reindex(argv: list[str]) -> int:
    """`robot-fb episodes reindex`."""
    args = common.parse(ReindexArgs, argv, "robot-fb episodes reindex")
    entries = Store(args.path).reindex()
    broken = [entry.broken for entry in entries if entry.broken]
    if args.json:
        common.emit({"episodes": len(entries) - len(broken), "damaged": broken})
    else:
        for words in broken:
            stdout.print(words, soft_wrap=True)
        stdout.print(f"{len(entries) - len(broken)} episodes indexed, {len(broken)} damaged")
    return 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class ImportArgs:
    """Bring a foreign recording into a store.

    A mapping file says which topic or array becomes which stream; data/mappings/ has one example of each kind. Bags
    are sampled to decision steps by the newest message; numpy rows are decision steps already.

    Attributes:
        recording: .mcap, .db3, .bag, .npz or .npy file, or a rosbag2 folder.
        mapping: YAML file: topic or array -> stream, the action, where episodes begin, the rate.
        out: the store; made where missing.
        json: print one JSON document to stdout.
    """

    recording: tyro.conf.Positional[Path]
    mapping: Path
    out: Path
    json: bool = False


def import_(argv: list[str]) -> int:
    """`robot-fb episodes import`."""
    args = common.parse(ImportArgs, argv, "robot-fb episodes import")
    with common.progress() as bar:
        task = bar.add_task("import", total=None)
        ids = import_recording(args.recording, read_mapping(args.mapping), args.out,
                               lambda done: bar.update(task, completed=done))
    steps = {entry.id: entry.steps for entry in Store(args.out).entries()}
    count = sum(steps[id] for id in ids)
    if args.json:
        common.emit({"store": args.out, "episodes": len(ids), "steps": count, "ids": ids})
    else:
        stdout.print(f"{len(ids)} episodes with {count} steps are in {args.out}")
    return 0
