"""The one training loop. Algorithms are `interfaces.Trainer`s; what happens around a step is a callback."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol

from robot_fb.interfaces import Trainer
from robot_fb.training.mixer import Mixer


class Callback(Protocol):
    """Watches `fit`."""

    def on_start(self, start: int, steps: int) -> None:
        """Before the first step; `start` steps were done in an earlier run."""
        ...

    def on_step(self, step: int, metrics: Mapping[str, float]) -> None:
        """After a step; `step` counts from 1."""
        ...

    def on_end(self, step: int, error: BaseException | None) -> None:
        """After the last step, or when `error` (a KeyboardInterrupt, for one) ends training early."""
        ...


def fit(trainer: Trainer, mixer: Mixer, callbacks: Sequence[Callback], steps: int, start: int = 0) -> int:
    """Trains until `steps` steps are done.

    Ctrl-C takes effect between two steps, so that callbacks always see a whole state.

    Args:
        trainer: learns from one batch at a time.
        mixer: gives the batches.
        callbacks: called in order.
        steps: total steps, those of an earlier run included.
        start: steps already done.

    Returns:
        Steps done.

    Raises:
        KeyboardInterrupt: after the callbacks had their `on_end`.
    """
    done, error = start, None
    try:
        for callback in callbacks:
            callback.on_start(start, steps)
        with interrupts_wait() as raise_if_asked:
            while done < steps:
                metrics = trainer.step(mixer.next())
                done += 1
                for callback in callbacks:
                    callback.on_step(done, metrics)
                raise_if_asked()
    except BaseException as caught:
        error = caught
        raise
    finally:
        for callback in callbacks:
            callback.on_end(done, error)
    return done


@contextmanager
def interrupts_wait() -> Iterator:
    """Holds Ctrl-C back until the yielded function is called; a second Ctrl-C takes effect at once."""
    asked = False

    def ask(*_: object) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True

    def raise_if_asked() -> None:
        if asked:
            raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield raise_if_asked
        return
    before = signal.signal(signal.SIGINT, ask)
    try:
        yield raise_if_asked
    finally:
        signal.signal(signal.SIGINT, before)
