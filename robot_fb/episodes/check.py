"""Refuses values that would poison a log, and copies those it lets through."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from robot_fb.episodes.routes import ARRAYS
from robot_fb.errors import ActionError, ObservationError
from robot_fb.types import SOURCES, EpisodeMeta, Step, StreamSpec


class StreamChecker:
    """Holds every value against what the episode declared, or against the first value of its stream.

    Args:
        meta: what was declared.
    """

    def __init__(self, meta: EpisodeMeta) -> None:
        self._specs: Mapping[str, StreamSpec] = meta.streams
        self._names: frozenset[str] | None = None
        self._steps: dict[str, tuple[tuple[int, ...], np.dtype]] = {
            name: (tuple(spec.shape), np.dtype(spec.dtype)) for name, spec in meta.streams.items()
        }
        self._samples: dict[str, tuple[tuple[int, ...], np.dtype]] = {}
        self._action_dim = meta.action.dim

    def step(self, step: Step) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
        """(obs, proposed, executed): copies, of the declared dtypes.

        Raises:
            ObservationError, ActionError: says which value is wrong and how.
        """
        names = frozenset(step.obs)
        if self._names is not None and names != self._names:
            raise ObservationError(
                f"the observation at t = {step.t:.3f} s has other streams than the first one",
                expected=", ".join(sorted(self._names)), found=", ".join(sorted(names)),
            )
        obs = {name: self._value(name, value, self._steps) for name, value in step.obs.items()}
        proposed, executed = self._action("proposed", step.proposed), self._action("executed", step.executed)
        if step.source not in SOURCES:
            raise ActionError(f"unknown source {step.source!r}", expected=f"one of {', '.join(SOURCES)}")
        self._names = names
        return obs, proposed, executed

    def sample(self, stream: str, value: np.ndarray) -> np.ndarray:
        """A copy of one own-rate sample; a window's samples are its rows."""
        value = np.asarray(value)
        if stream in self._specs and stream not in self._samples:
            shape, dtype = tuple(self._specs[stream].shape), np.dtype(self._specs[stream].dtype)
            self._samples[stream] = (shape[1:] if value.shape == shape[1:] else shape, dtype)
        return self._value(stream, value, self._samples)

    def _value(
        self, name: str, value: np.ndarray, known: dict[str, tuple[tuple[int, ...], np.dtype]]
    ) -> np.ndarray:
        value = np.asarray(value)
        shape, dtype = known.get(name, (value.shape, value.dtype))
        if value.shape == shape and value.dtype is dtype and name in known:  # nearly always; the loop must not wait
            copy = value.copy()
            if dtype.kind != "f" or not _has_nan(copy):
                return copy
        if str(dtype) not in ARRAYS:
            raise ObservationError(f"stream {name} cannot be logged", expected="numbers", found=f"dtype {dtype}")
        if value.shape != shape:
            raise ObservationError(f"stream {name} has another shape", expected=shape, found=value.shape)
        if value.dtype != dtype and not np.can_cast(value.dtype, dtype, "same_kind"):
            raise ObservationError(f"stream {name} has another dtype", expected=dtype, found=value.dtype)
        if value.dtype.kind == "f" and _has_nan(value):
            raise ObservationError(f"stream {name} holds a NaN", do="look at its sensor; earlier steps are kept")
        known[name] = (shape, dtype)
        return np.array(value, dtype=dtype, order="C")

    def _action(self, what: str, action: np.ndarray) -> np.ndarray:
        try:
            value = np.array(action, dtype=np.float32)
        except (ValueError, TypeError) as error:
            raise ActionError(f"the {what} action is no array of numbers", found=repr(action)[:40]) from error
        if value.shape != (self._action_dim,):
            raise ActionError(f"the {what} action has another shape", expected=(self._action_dim,), found=value.shape)
        if not np.isfinite(value).all():
            raise ActionError(f"the {what} action holds a NaN or an infinity", found=value.tolist())
        return value


def _has_nan(value: np.ndarray) -> bool:
    """Whether a float array holds a NaN: the maximum is one exactly then, and costs a third of `isnan().any()`."""
    top = value.max(initial=-np.inf)
    return bool(top != top)
