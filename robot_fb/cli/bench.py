"""`robot-fb bench`: measures what the README claims."""

from __future__ import annotations

import importlib

from robot_fb.cli import common
from robot_fb.errors import UnknownNameError
from robot_fb.registry import closest

BENCHES = {
    "speed": ("robot_fb.benchmarks.speed", "steps/s of the cell with cameras against its peers, and time per plan"),
    "log": ("robot_fb.benchmarks.log", "cost of logging, 1 kHz touch with three cameras, reading batches, kill -9"),
    "human": ("robot_fb.benchmarks.human_demos", "cloning people's demonstrations against ridge regression"),
    "demo": ("robot_fb.benchmarks.demo_seeds", "the demo in three seeds: success by sight, by touch, by false touch"),
    "residual": ("robot_fb.benchmarks.residual", "the correction by touch: its ablations, false touch, faults, peers"),
    "failure": ("robot_fb.benchmarks.failure", "failure detectors on the same rollouts: accuracy, earliness, delay"),
    "handover": ("robot_fb.benchmarks.handover", "takeovers and hand-backs over a slow link: jumps, snap-backs"),
    "fleet": ("robot_fb.benchmarks.fleet", "one operator and robots that ask, against one who watches a robot"),
    "pick_place": ("robot_fb.benchmarks.bases", "a diffusion policy from 200 and from 20 demonstrations"),
}

USAGE = "usage: robot-fb bench NAME [--help] [--json]\n\n" + "\n".join(
    f"  {name:<10} {what}" for name, (_, what) in BENCHES.items()
)


def main(argv: list[str]) -> int:
    """Runs one benchmark; its rows go to data/benchmarks/NAME.json."""
    if not argv or argv[0] in ("-h", "--help"):
        print(USAGE)
        return 0
    name, rest = argv[0], argv[1:]
    if name not in BENCHES:
        raise UnknownNameError(f"unknown benchmark {name!r}", do=closest(name, list(BENCHES)))
    as_json = "--json" in rest
    bench = importlib.import_module(BENCHES[name][0])
    document = bench.run([word for word in rest if word != "--json"])
    if as_json:
        common.emit(document)
        return 0
    if hasattr(bench, "show"):
        print(bench.show(document))
    else:
        for row in document["rows"]:
            print("  ".join(f"{key}: {_short(value)}" for key, value in row.items()))
    if "--out" not in rest:
        print(f"written to data/benchmarks/{name}.json")
    return 0


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
