"""The monitor: a policy, a failure detector that was fitted for it, and its alarm band, at work in the control loop."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from robot_fb import registry
from robot_fb.episodes.episode import Episode
from robot_fb.episodes.store import Store
from robot_fb.errors import CalibrationError, CheckpointError, RobotFbError
from robot_fb.failure.band import Band, needed
from robot_fb.failure.detector import Detector
from robot_fb.failure.metrics import Watched
from robot_fb.failure.trace import Glimpse, Trace, Watch, play_back
from robot_fb.interfaces import Policy
from robot_fb.runtime.alarm import ALARM
from robot_fb.training.checkpoint import policy_digest
from robot_fb.training.tensors import load_tensors, save_tensors
from robot_fb.types import SOURCES, ActionChunk, Obs, Step

KIND = "monitor"

PERSON = tuple(SOURCES.index(source) for source in ("human", "blend"))


class Monitor:
    """An `interfaces.FailureDetector`: its score is 1 on the edge of the alarm band, and more is an alarm.

    Args:
        policy: that is watched; only asked for its embedding and for other plans, never changed.
        detector: fitted, and calibrated unless `calibrate` is called.
    """

    def __init__(self, policy: Policy, detector: Detector) -> None:
        self.policy, self.detector = policy, detector
        self._watch = Watch(policy, detector.plans)

    def calibrate(self, successes: Iterable[Sequence[Step]], alpha: float) -> None:
        """Sets the alarm band from other successes than the detector was fitted to.

        Raises:
            CalibrationError: too few of them for `alpha`.
        """
        traces = []
        for i, steps in enumerate(successes):
            streams = {name: np.stack([step.obs[name] for step in steps]) for name in steps[0].obs}
            traces.append(Trace(play_back(self.policy, streams, self.detector.plans, i), True))
        self.detector.calibrate(traces, alpha)

    def reset(self) -> None:
        """Start of an episode."""
        self.start_watch()
        self.detector.reset()

    def start_watch(self) -> None:
        """Start of an episode for `look` alone."""
        self._watch.reset()

    def look(self, obs: Obs, chunk: ActionChunk) -> Glimpse:
        """What `judge` judges; quick, and belongs on the control thread."""
        return self._watch.look(obs, chunk)

    def judge(self, glimpse: Glimpse) -> float:
        """The score of a glimpse."""
        with _one_thread():
            return self.detector.excess(self.detector.look(glimpse))

    def score(self, obs: Obs, chunk: ActionChunk) -> float:
        """Both at once."""
        return self.judge(self.look(obs, chunk))


class Beside:
    """A monitor that judges on a thread of its own: the control loop never waits for it.

    A score that is not ready in time comes with a later decision; where several are, the highest counts. A context
    manager: leaving it ends the thread.

    Args:
        monitor: to run.
    """

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor
        self._glimpses: queue.SimpleQueue[tuple[int, Glimpse] | None] = queue.SimpleQueue()
        self._scores: queue.SimpleQueue[tuple[int, float]] = queue.SimpleQueue()
        self._episode, self._last = 0, 0.0
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._work, name="monitor", daemon=True)
        self._thread.start()

    def __enter__(self) -> Beside:
        return self

    def __exit__(self, *exc: object) -> None:
        self._glimpses.put(None)
        self._thread.join(timeout=5.0)

    def reset(self) -> None:
        """Start of an episode; scores of the last one that are still to come are passed over."""
        self._episode, self._last = self._episode + 1, 0.0
        self._monitor.start_watch()

    def calibrate(self, successes: Iterable[Sequence[Step]], alpha: float) -> None:
        """See `Monitor.calibrate`; not while an episode runs."""
        self._monitor.calibrate(successes, alpha)

    def score(self, obs: Obs, chunk: ActionChunk) -> float:
        """Hands the decision over; returns the newest score.

        Raises:
            RobotFbError: the detector failed on its thread.
        """
        if self._error is not None:
            raise RobotFbError("the monitor failed", found=repr(self._error)) from self._error
        self._glimpses.put((self._episode, self._monitor.look(obs, chunk)))
        ready = []
        while not self._scores.empty():
            episode, score = self._scores.get_nowait()
            if episode == self._episode:
                ready.append(score)
        self._last = max(ready, default=self._last)
        return self._last

    def _work(self) -> None:
        judged = -1
        while (handed := self._glimpses.get()) is not None:
            episode, glimpse = handed
            try:
                if episode != judged:
                    self._monitor.detector.reset()
                    judged = episode
                self._scores.put((episode, self._monitor.judge(glimpse)))
            except Exception as error:  # told to the control loop, which must not go on unwatched
                self._error = error
                return


def fit_monitor(policy: Policy, traces: Sequence[Trace], name: str, alpha: float, seed: int) -> tuple[Monitor, int]:
    """A detector fitted to what a policy did. Half of the successes, drawn by the seed, are kept back for the band.

    Args:
        policy: that is watched.
        traces: of its episodes, successes and failures.
        name: of the detector.
        alpha: share of successes that may alarm.
        seed: of the split and of what is learned.

    Returns:
        The monitor, and how many successes were kept back.

    Raises:
        CalibrationError: too few successes for alpha.
    """
    good = [trace for trace in traces if trace.success]
    least = 2 * needed(alpha)
    if len(good) < least:
        raise CalibrationError(
            f"too few successes for an alpha of {alpha:g}", expected=f"at least {least}", found=len(good),
            do="record more, or raise --alpha",
        )
    order = np.random.default_rng(seed).permutation(len(good))
    learned = [good[i] for i in order[len(good) // 2 :]] + [trace for trace in traces if not trace.success]
    detector: Detector = registry.load("detectors", name)()
    detector.fit(learned, seed)
    detector.calibrate([good[i] for i in order[: len(good) // 2]], alpha, seed)
    return Monitor(policy, detector), len(good) // 2


def save_monitor(folder: Path, monitor: Monitor, policy: Path, about: dict[str, Any]) -> None:
    """Writes a monitor so that `load_monitor` gives it back.

    Args:
        folder: made if missing.
        monitor: fitted and calibrated.
        policy: folder of the policy that it was fitted for.
        about: plain data to keep beside it.

    Raises:
        CalibrationError: it was not calibrated.
        CheckpointError: its detector's class is not registered.
    """
    detector = monitor.detector
    name, band = registry.name_of("detectors", type(detector)), detector.band
    if name is None:
        raise CheckpointError(f"detector class {type(detector).__qualname__} is not registered")
    if band is None:
        raise CalibrationError("this detector was not calibrated", do="robot-fb monitor fit")
    tensors = {f"detector.{key}": torch.from_numpy(np.array(value)) for key, value in detector.state().items()}
    tensors |= {"band.mean": torch.from_numpy(band.mean), "band.width": torch.from_numpy(band.width)}
    words = {
        "detector": name, "policy": policy_digest(policy),
        "band": {"height": band.height, "alpha": band.alpha, "successes": band.successes}, **about,
    }
    save_tensors(folder, tensors, words, KIND)


def load_monitor(folder: Path, policy: Any, path: Path) -> Monitor:
    """A monitor from its folder.

    Args:
        folder: that `save_monitor` wrote.
        policy: that it is to watch.
        path: the folder that the policy was loaded from.

    Raises:
        CheckpointError: it is damaged, or was fitted for another policy.
    """
    tensors, about = load_tensors(folder, KIND)
    if about.get("policy") != policy_digest(path):
        raise CheckpointError(
            f"{folder} was fitted for another policy than {path}", do=f"robot-fb monitor fit --policy {path} ..."
        )
    detector = registry.load("detectors", str(about.get("detector")))()
    state = {key.partition(".")[2]: value.numpy() for key, value in tensors.items() if key.startswith("detector.")}
    try:
        band = about["band"]
        detector.band = Band(
            tensors["band.mean"].numpy(), tensors["band.width"].numpy(), float(band["height"]), float(band["alpha"]),
            int(band["successes"]),
        )
        detector.restore(state)
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{folder} is not whole", found=repr(error), do="fit the monitor again") from error
    return Monitor(policy, detector)


def trace_of(policy: Policy, episode: Episode, plans: int, seed: int) -> Trace:
    """The trace of a recorded episode: the policy sees again what was seen then.

    Raises:
        CheckpointError: the episode lacks a stream that the policy reads.
    """
    missing = [name for name in policy.spec.obs if name not in episode.columns.streams]
    if missing:
        raise CheckpointError(f"episode {episode.id} lacks a stream that the policy reads", found=", ".join(missing))
    onset = episode.info.get("onset", "")
    return Trace(
        play_back(policy, episode.columns.streams, plans, seed), bool(episode.success),
        float(onset) if onset not in ("", "None") else None, episode.info.get("failure", ""), episode.id,
    )


def read_own(
    store: Store, policy: Any, ids: Sequence[str], plans: int, seed: int = 0,
    track: Callable[[Iterable[str]], Iterable[str]] = lambda ids: ids,
) -> list[Trace]:
    """The traces of episodes, but for those in which a person had a hand: they show nothing of how the policy ends.

    Args:
        store: of the episodes.
        policy: that was at work.
        ids: of the episodes.
        plans: that the detector looks at, see `failure.detector`.
        seed: of the plans.
        track: shows progress.
    """
    found = []
    for i, id in enumerate(track(ids)):
        episode = store.read(id)
        if not np.isin(episode.columns.sources, PERSON).any():
            found.append(trace_of(policy, episode, plans, seed + i))
    return found


def watched(detector: Detector, trace: Trace, dt: float) -> Watched:
    """What a calibrated detector makes of an episode with decisions of `dt` [s]."""
    with _one_thread():
        out = [detector.excess(reading) > ALARM for reading in detector.run(trace)]
    alarm = trace.glimpses[out.index(True)].t if True in out else None
    return Watched(trace.success, len(trace.glimpses) * dt, alarm, trace.onset)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Small nets are slower on more threads, and the other cores have their own work."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
