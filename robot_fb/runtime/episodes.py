"""Many episodes of one task in a few processes: recording and evaluation."""

from __future__ import annotations

import logging
import multiprocessing
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robot_fb.errors import ConfigError, RobotFbError
from robot_fb.interfaces import FailureDetector, Policy, Task
from robot_fb.runtime.alarm import FirstAlarm
from robot_fb.runtime.arbiter import PassThrough
from robot_fb.runtime.expert import ExpertPolicy
from robot_fb.runtime.gym_robot import GymRobot
from robot_fb.runtime.loop import run
from robot_fb.runtime.recorder import Recorder
from robot_fb.runtime.tasks import find_task
from robot_fb.types import EpisodeMeta, PolicySpec, Source

logger = logging.getLogger(__name__)

EXPERT, BLIND = "expert", "blind"
SCRIPTED = (EXPERT, BLIND)
"""Who may act in a policy's place: the task's expert, and its scripted search that feels and knows nothing."""

FEW = 4
"""Episodes that are over before a process of their own has started."""

DEATHS = 2
"""Workers that may die, for want of memory say, before an evaluation is given up."""


@dataclass(frozen=True)
class Job:
    """What is run, the same for every episode.

    Attributes:
        task: task name.
        by: "expert", "blind" (the task's scripted blind search), or the run folder of a policy.
        touch: "live", "none", "delayed" or "shuffled"; or any ablation of `envs.ablate`.
        log: store that the episodes go to, or None.
        keep_failures: whether failed episodes stay in the store.
        monitor: folder of a monitor that watches the policy, or None.
    """

    task: str
    by: str = EXPERT
    touch: str = "live"
    log: Path | None = None
    keep_failures: bool = True
    monitor: Path | None = None

    @property
    def ablate(self) -> str:
        """As the task's `make` takes it."""
        if self.touch == "live":
            return ""
        return self.touch if "=" in self.touch else f"touch={self.touch}"


@dataclass(frozen=True)
class EpisodeResult:
    """One episode.

    Attributes:
        seed: of the reset.
        success: whether it ended in success.
        steps: decisions.
        seconds: robot time [s].
        ret: sum of rewards.
        peak_force: largest contact force [N]; NaN where the task does not say.
        failure: the task's word for what went wrong.
        hidden: the task's hidden variable.
        id: of the logged episode, or empty.
        onset: when the failure began [s], None where nothing failed or the task does not say.
        alarm: when the monitor first alarmed [s], or None.
    """

    seed: int
    success: bool
    steps: int
    seconds: float
    ret: float
    peak_force: float
    failure: str = ""
    hidden: str = ""
    id: str = ""
    onset: float | None = None
    alarm: float | None = None


def run_episodes(
    job: Job, seeds: list[int], workers: int = 2, done: Callable[[EpisodeResult], None] = lambda result: None
) -> list[EpisodeResult]:
    """Runs one episode for each seed; the results, in the order of the seeds, do not depend on `workers`.

    Args:
        job: what to run.
        seeds: of the episodes.
        workers: processes; 0 runs in this one, and so do a few episodes. A worker that dies is replaced, its episodes
            are run again.
        done: called after each episode, in any order.

    Raises:
        RobotFbError: a mistake in the job, or more workers died than can be put down to chance.
    """
    if workers < 0:
        raise ConfigError("--workers cannot be negative", found=workers, do="0 runs in this process")
    check(job)
    if workers == 0 or len(seeds) <= FEW:
        with _one_thread(job), _Runner(job) as runner:
            return [_tell(runner.run(seed), done) for seed in seeds]
    found: dict[int, EpisodeResult] = {}
    for deaths_left in reversed(range(DEATHS + 1)):
        missing = [seed for seed in seeds if seed not in found]
        try:
            for result in _in_processes(job, missing, workers):
                found[result.seed] = _tell(result, done)
            break
        except BrokenProcessPool as error:
            what = f"a worker process died after {len(found)} of {len(seeds)} episodes"
            if not deaths_left:
                do = "finished episodes are kept; is memory short? try --workers 1"
                raise RobotFbError(what, do=do) from error
            logger.warning("%s; going on with another", what)
    return [found[seed] for seed in seeds]


def _in_processes(job: Job, seeds: list[int], workers: int) -> Iterator[EpisodeResult]:
    """Results as they come."""
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(min(workers, len(seeds)), context, _start_worker, (job,))
    try:
        with _deaf_to_ctrl_c():  # a new process inherits this: Ctrl-C is for the parent to decide on
            futures = [pool.submit(_run_in_worker, seed) for seed in seeds]
        for future in as_completed(futures):
            yield future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _one_thread(job: Job) -> Iterator[None]:
    """Torch on one thread: sums come out the same to the last bit, in whichever process."""
    if job.by in SCRIPTED:  # importing torch takes seconds, and an expert needs none
        yield
        return
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def _deaf_to_ctrl_c() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def check(job: Job) -> None:
    """Finds mistakes in a job before any process is started.

    Raises:
        RobotFbError: unknown task, unusable policy, ablation or store.
    """
    with _Runner(job):
        pass


def _tell(result: EpisodeResult, done: Callable[[EpisodeResult], None]) -> EpisodeResult:
    done(result)
    return result


class _Runner:
    """Runs episodes of a job one after another in one process."""

    def __init__(self, job: Job) -> None:
        self._job = job
        task = find_task(job.task)
        loaded = None if job.by in SCRIPTED else _load(job)
        env = task.make(**({"ablate": job.ablate} if job.ablate else {}))
        self._robot = robot = GymRobot(env)
        try:
            if loaded is None:
                self._policy = _scripted(job, task, env, PolicySpec(job.task, robot.streams, robot.action, robot.dt))
            else:
                self._policy = _fitting(loaded, robot, job)
            self._recorder = _recorder(job)
            self._monitors = _monitors(job, self._policy)
        except RobotFbError:
            env.close()
            raise

    def __enter__(self) -> _Runner:
        return self

    def __exit__(self, *exc: object) -> None:
        self._robot.__exit__(*exc)

    def run(self, seed: int) -> EpisodeResult:
        """One episode."""
        robot, job = self._robot, self._job
        meta = EpisodeMeta(
            job.task, job.by, robot.streams, robot.action, robot.dt, seed,
            extra={"touch": job.touch},
        )
        source: Source = "expert" if job.by in SCRIPTED else "policy"
        first = FirstAlarm()
        subscribers = [first, *([] if self._recorder is None else [self._recorder])]
        result = run(robot, self._policy, PassThrough(source), self._monitors, subscribers, meta)
        info = result.info
        return EpisodeResult(
            seed, result.success, result.steps, result.steps * robot.dt, result.ret,
            float(info.get("peak_force", float("nan"))), str(info.get("failure", "")), str(info.get("hidden", "")),
            (self._recorder.last or "") if self._recorder else "", info.get("onset"), first.at,
        )


def _load(job: Job) -> Policy:
    """The job's policy, checked against the task's name."""
    from robot_fb.training.checkpoint import load_policy  # brings torch: seconds that an expert can do without

    return load_policy(Path(job.by), job.task)


def _fitting(policy: Policy, robot: GymRobot, job: Job) -> Policy:
    """The policy, if it can act on this robot: a task may have changed since."""
    from robot_fb.training.checkpoint import check_fits

    check_fits(policy.spec, robot.streams, robot.action, f"the policy in {job.by}")
    return policy


def _scripted(job: Job, task: Task, env: Any, spec: PolicySpec) -> Policy:
    if job.by == BLIND:
        actor = task.blind(env) if hasattr(task, BLIND) else None  # type: ignore[attr-defined]
        if actor is None:
            raise ConfigError(f"task {task.name!r} has no scripted blind search", do="use expert or a trained policy")
        return ExpertPolicy(actor, spec)
    expert = task.expert(env)
    if expert is None:
        raise ConfigError(f"task {task.name!r} has no expert", do="record with --by RUN, a trained policy")
    return ExpertPolicy(expert, spec)


def _monitors(job: Job, policy: Policy) -> dict[str, FailureDetector]:
    """The job's monitor by the name that its scores are logged under."""
    if job.monitor is None:
        return {}
    if job.by in SCRIPTED:
        raise ConfigError("a monitor watches a policy", found=job.by, do="give the run folder that it was fitted for")
    from robot_fb.runtime.monitor import load_monitor

    return {"monitor": load_monitor(job.monitor, policy, Path(job.by))}


def _recorder(job: Job) -> Recorder | None:
    if job.log is None:
        return None
    from robot_fb.episodes.store import Store
    from robot_fb.episodes.writer import WriterConfig

    # A simulation can outrun the disk, and may wait for it: no picture is ever dropped.
    return Recorder(Store(job.log, create=True, writer=WriterConfig(wait=True)), job.keep_failures)


_runner: _Runner | None = None


def _start_worker(job: Job) -> None:
    global _runner
    if job.by not in SCRIPTED:
        import torch  # takes seconds, and an expert needs none

        torch.set_num_threads(1)
    _runner = _Runner(job)


def _run_in_worker(seed: int) -> EpisodeResult:
    assert _runner is not None
    return _runner.run(seed)
