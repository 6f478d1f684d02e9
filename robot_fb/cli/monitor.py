"""`robot-fb monitor fit`: a failure detector for a policy."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import tyro

from robot_fb import registry
from robot_fb.cli import common
from robot_fb.episodes.store import Store
from robot_fb.errors import ConfigError
from robot_fb.failure.band import needed
from robot_fb.failure.metrics import judge
from robot_fb.failure.trace import Trace
from robot_fb.registry import closest
from robot_fb.runtime.monitor import fit_monitor, read_own, save_monitor, watched
from robot_fb.training.checkpoint import load_policy, policy_folder

ACTIONS = ("fit",)


@dataclasses.dataclass(frozen=True, kw_only=True)
class FitArgs:
    """Fit a failure detector to what a policy did, and set its alarm band.

    The store holds episodes of the policy itself, successes and failures. Half of the successes, drawn by the seed, are
    kept back for the alarm band, so that at most a share alpha of new successes alarms. Fit again after every training.

    Example: robot-fb monitor fit --policy runs/base --data tries --alpha 0.05 --out runs/monitor

    Attributes:
        policy: run folder of the policy that is to be watched.
        data: store of its episodes: robot-fb eval --policy RUN --log STORE makes one.
        detector: fused, float_ot, logpzo, rnd, rnd_oe, pca_kmeans, stac, ace, acc or fiper.
        alpha: share of successes that may alarm.
        out: folder of the monitor; robot-fb eval --monitor takes it.
        seed: of the split and of what is learned.
        json: print one JSON document to stdout.
    """

    policy: Path = tyro.MISSING
    data: Path = tyro.MISSING
    detector: str = "fused"
    alpha: float = 0.05
    out: Path = tyro.MISSING
    seed: int = 0
    json: bool = False


def main(argv: list[str]) -> int:
    """Runs one action."""
    if not argv or argv[0] in ("-h", "--help"):
        print("usage: robot-fb monitor fit [--help]")
        return 0
    if argv[0] not in ACTIONS:
        raise ConfigError(f"unknown action {argv[0]!r}", do=closest(argv[0], ACTIONS))
    return fit(common.parse(FitArgs, argv[1:], "robot-fb monitor fit"))


def fit(args: FitArgs) -> int:
    """Fits, calibrates, saves, and says what the detector makes of the failures that it learned from."""
    plans = registry.load("detectors", args.detector)().plans
    policy = load_policy(args.policy)
    traces = read_traces(args, policy, plans)
    with common.stderr.status(f"fit {args.detector}"):
        monitor, kept_back = fit_monitor(policy, traces, args.detector, args.alpha, args.seed)
    about = {"alpha": args.alpha, "seed": args.seed, "data": str(args.data)}
    save_monitor(args.out, monitor, policy_folder(args.policy), about)
    seen = [watched(monitor.detector, trace, policy.spec.dt) for trace in traces]
    found = {
        "monitor": str(args.out), "detector": args.detector, "alpha": args.alpha,
        "fitted_on": len(traces) - kept_back, "calibrated_on": kept_back, **judge(seen),
    }
    if args.json:
        common.emit(found)
    else:
        caught = f"{found['tpr']:.0%} of {found['failures']} failures" if found["failures"] else "no failure to look at"
        print(
            f"{args.detector}, alpha {args.alpha:g}, band from {kept_back} successes; on the episodes that it was "
            f"fitted to it catches {caught}: {args.out}"
        )
    return 0


def read_traces(args: FitArgs, policy: object, plans: int) -> list[Trace]:
    """The traces of a store's episodes of the policy's task.

    Raises:
        ConfigError: there are none, or too few successes for alpha.
    """
    store = Store(args.data)
    task = policy.spec.task  # type: ignore[attr-defined]
    ids = store.query(task=task)
    if not ids:
        raise ConfigError(f"{args.data} holds no episode of {task!r}", do="choose a store of the policy's own episodes")
    count = len(store.query(task=task, success=True))
    least = 2 * needed(args.alpha)
    if count < least:
        raise ConfigError(
            f"too few successes for an alpha of {args.alpha:g}", expected=f"at least {least} in the store", found=count,
            do="record more, or raise --alpha",
        )
    with common.progress() as bar:
        return read_own(store, policy, ids, plans, args.seed, lambda ids: bar.track(ids, description="read"))
