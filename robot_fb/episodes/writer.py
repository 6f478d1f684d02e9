"""Writes one open episode from a thread of its own, so that the control loop never waits for a disk."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from robot_fb.episodes import events, schema
from robot_fb.episodes.check import StreamChecker
from robot_fb.episodes.pictures import PictureFormat
from robot_fb.episodes.sink import EpisodeSink, Output
from robot_fb.errors import DiskFullError, EpisodeError, RobotFbError
from robot_fb.types import EpisodeMeta, Feedback, Step

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class WriterConfig:
    """How an episode is written.

    Attributes:
        flush_s: a killed process loses at most about this much, plus what is being encoded.
        poll_s: how often the thread looks for samples; a step wakes it at once. So log a step at the end of its tick,
            as `runtime.loop` does: the thread then works while the loop waits for the next.
        picture_bytes: pictures waiting for the disk beyond this are dropped first.
        sample_bytes: own-rate samples waiting beyond this are dropped next; steps' numbers never are.
        pending_steps: more steps than this waiting is an error: the disk is as good as gone.
        wait: make the caller wait instead of dropping; for imports, never for a robot.
        pictures: how pictures are compressed.
    """

    flush_s: float = 0.12
    poll_s: float = 0.04
    picture_bytes: int = 128 << 20
    sample_bytes: int = 64 << 20
    pending_steps: int = 20_000
    wait: bool = False
    pictures: PictureFormat = field(default_factory=PictureFormat)


class EpisodeWriter:
    """One open episode; see `interfaces.EpisodeWriter`. A context manager: leaving it without `close` keeps the episode
    as unfinished. Methods may be called from several threads.

    Args:
        path: final place of the file; it is written as `path.part` first.
        id: of the episode.
        meta: what is known before the first step.
        config: how to write.
        done: called with outcome, step streams and feedback once the file is in place.
    """

    def __init__(
        self, path: Path, id: str, meta: EpisodeMeta, config: WriterConfig | None = None,
        done: Callable[[schema.Outcome, tuple[str, ...], list[Feedback]], None] | None = None,
    ) -> None:
        self.id, self.meta, self.path = id, meta, path
        self.part = path.with_name(path.name + ".part")
        self.dropped: Counter[str] = Counter()
        self.config, self._done = config or WriterConfig(), done
        self._check = StreamChecker(meta)
        self._queue: deque[Callable[[], None]] = deque()
        self._lock = threading.Lock()
        self._pending = {"picture": 0, "sample": 0, "step": 0}
        self._events: list[Feedback] = []
        self._error: RobotFbError | None = None
        self._outcome: schema.Outcome | None = None
        self._discarded = self._over = False
        self._first = True
        self._wake, self._stopping = threading.Event(), False
        self._start_ns = time.time_ns()
        self._handle = _create(self.part)
        try:
            self._sink = EpisodeSink(Output(self._handle), id, meta, self._start_ns, self.config.pictures)
        except OSError as error:
            os.close(self._handle)
            self.part.unlink(missing_ok=True)
            raise disk_error(self.part, error) from error
        self._thread = threading.Thread(target=self._run, name=f"episode {id}", daemon=True)
        self._thread.start()

    def __enter__(self) -> EpisodeWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self.abandon("" if kind is None else kind.__name__)

    def add_step(self, step: Step) -> None:
        """Queues one decision step; copies what it needs.

        Raises:
            ObservationError, ActionError: a NaN, a wrong shape, a missing stream; earlier steps are kept.
            DiskFullError: the disk took no more.
        """
        self._require_open()
        obs, proposed, executed = self._check.step(step)
        pictures = {name: value.nbytes for name, value in obs.items() if value.dtype == np.uint8}
        # The first step shows which streams there are, so all of it is kept.
        room = self._first or self._room("picture", sum(pictures.values()))
        self._first = False
        if not room:
            obs = {name: value for name, value in obs.items() if name not in pictures}
            self._drop(list(pictures))
            pictures = {}
        kept = replace(step, obs=obs, proposed=proposed, executed=executed, scores=dict(step.scores))
        self._check_pending()
        self._put({"picture": sum(pictures.values()), "step": 1}, lambda: self._sink.step(kept, missing=not room))
        self._wake.set()

    def add_sample(self, stream: str, stamp: float, sample: np.ndarray) -> None:
        """Queues one sample of a stream at its own rate; `stamp` [s] since the episode began.

        Raises:
            ObservationError: a NaN or a changed shape.
            DiskFullError: the disk took no more.
        """
        self._require_open()
        value = self._check.sample(stream, sample)
        budget = "picture" if value.dtype == np.uint8 else "sample"
        if not self._room(budget, value.nbytes):
            self._drop([stream])
            return
        self._put({budget: value.nbytes}, lambda: self._sink.sample(stream, float(stamp), value))

    def add_feedback(self, event: Feedback) -> None:
        """Queues a feedback event that came while the episode was running."""
        self._require_open()
        text, t = events.to_json(event), events.time_of(event)
        self._events.append(event)
        self._put({}, lambda: self._sink.feedback(t, text))

    def close(self, success: bool, info: Mapping[str, Any] | None = None) -> None:
        """Finishes the episode and makes it part of the store; returns once it is safely on the disk.

        Raises:
            DiskFullError: the disk took no more; the part that was written can be repaired.
        """
        facts = {str(key): str(value) for key, value in (info or {}).items()}
        self._finish(schema.Outcome(bool(success), facts))

    def discard(self) -> None:
        """Gives the episode up; nothing stays in the store."""
        if self._over:
            return
        self._discarded = True
        self._shut()
        self.part.unlink(missing_ok=True)

    def abandon(self, why: str = "") -> None:
        """Finishes an episode that nobody closed, as unfinished; nothing to do after `close` or `discard`."""
        if not self._over:
            self._finish(schema.Outcome(unfinished=why or "not closed"))

    def _finish(self, outcome: schema.Outcome) -> None:
        if self._over:
            raise EpisodeError(f"episode {self.id} is closed already") if self._error is None else self._error
        self._outcome = outcome
        self._shut()
        if self._error is not None:
            raise self._error
        if self._done is not None:
            final = replace(outcome, steps=self._sink.steps, dropped=dict(self.dropped))
            self._done(final, self._sink.streams, self._events)

    def _shut(self) -> None:
        """Ends the thread. A Ctrl-C meanwhile is raised only once everything is on the disk."""
        self._over = True
        self._stopping = True
        self._wake.set()
        interrupt: KeyboardInterrupt | None = None
        while self._thread.is_alive():
            try:
                self._thread.join()
            except KeyboardInterrupt as error:
                interrupt = error
        os.close(self._handle)
        if interrupt is not None:
            raise interrupt

    def _require_open(self) -> None:
        if self._error is not None:
            raise self._error
        if self._over:
            raise EpisodeError(f"episode {self.id} is closed", do="open another")

    def _check_pending(self) -> None:
        if self._pending["step"] >= self.config.pending_steps and not self.config.wait:
            raise EpisodeError(
                "the disk has stopped taking the episode", found=f"{self._pending['step']} steps waiting",
                do="look at the disk; what was written so far is kept",
            )

    def _drop(self, streams: list[str]) -> None:
        with self._lock:
            first = not self.dropped
            self.dropped.update(streams)
        if first:
            logger.warning("the disk does not keep up with episode %s: %s and more may be missing; numbers of steps "
                           "are kept", self.id, ", ".join(streams))

    def _room(self, budget: str, size: int) -> bool:
        limit = self.config.picture_bytes if budget == "picture" else self.config.sample_bytes
        while self.config.wait and self._pending[budget] > limit and self._error is None:
            time.sleep(self.config.poll_s)
        return size == 0 or self.config.wait or self._pending[budget] + size <= limit

    def _put(self, sizes: Mapping[str, int], job: Callable[[], None]) -> None:
        def run() -> None:
            job()
            with self._lock:
                for budget, size in sizes.items():
                    self._pending[budget] -= size

        with self._lock:
            for budget, size in sizes.items():
                self._pending[budget] += size
            self._queue.append(run)

    def _run(self) -> None:
        try:
            flushed = time.monotonic()
            while not self._stopping:
                self._wake.wait(self.config.poll_s)
                self._wake.clear()
                self._drain(flushed + self.config.flush_s)
                if time.monotonic() - flushed >= self.config.flush_s:
                    self._sink.flush()
                    flushed = time.monotonic()
            if not self._discarded:
                self._drain()
                self._close_file()
        except OSError as error:
            self._error = disk_error(self.part, error)
        except RobotFbError as error:
            self._error = error
        except Exception as error:  # whatever it is, the control loop must hear of it
            self._error = EpisodeError(f"episode {self.id} can no longer be written", found=repr(error))
            self._error.__cause__ = error

    def _drain(self, until: float = float("inf")) -> None:
        """Encodes what waits, but never so long that the next flush is late."""
        while self._queue and time.monotonic() < until:
            self._queue.popleft()()

    def _close_file(self) -> None:
        outcome = self._outcome or schema.Outcome(unfinished="not closed")
        self._sink.finish(replace(outcome, steps=self._sink.steps, dropped=dict(self.dropped)))
        os.fsync(self._handle)
        self.part.replace(self.path)
        sync_folder(self.path.parent)


def disk_error(path: Path, error: OSError) -> EpisodeError:
    """What an operating system error while writing means."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return DiskFullError(
            f"no room to write {path}", found=os.strerror(error.errno),
            do="free some space, then: robot-fb episodes repair STORE",
        )
    return EpisodeError(f"cannot write {path}", found=error.strerror or str(error))


def sync_folder(folder: Path) -> None:
    """Brings a rename to the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _create(path: Path) -> int:
    """A new file, locked for as long as it is open: others see that it is being recorded."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise disk_error(path, error) from error
    return handle
