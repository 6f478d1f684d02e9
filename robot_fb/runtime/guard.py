"""What may not reach a policy or a robot: missing streams, other shapes, NaN, empty plans."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from robot_fb.errors import ActionError, ObservationError
from robot_fb.types import ActionChunk, Obs, StreamSpec

STOPPED = "the robot was stopped"


def check_observation(obs: Obs, streams: Mapping[str, StreamSpec]) -> None:
    """Holds an observation against what the robot says that it gives.

    Raises:
        ObservationError: names the stream that is missing, of another shape, or holds a NaN or an infinity.
    """
    for key, spec in streams.items():
        if key not in obs:
            raise ObservationError(f"stream {key!r} is missing", found=", ".join(obs) or "none", do=STOPPED)
        if np.shape(obs[key]) != tuple(spec.shape):
            raise ObservationError(
                f"stream {key!r} has another shape", expected=tuple(spec.shape), found=np.shape(obs[key]), do=STOPPED
            )
    for key, value in obs.items():
        if value.dtype.kind == "f" and not np.isfinite(value).all():
            raise ObservationError(f"stream {key!r} holds a NaN or an infinity", do=STOPPED)


def checked_action(action: np.ndarray, dim: int) -> np.ndarray:
    """The action, if it is `dim` finite numbers.

    Raises:
        ActionError: it is not.
    """
    if np.shape(action) != (dim,):
        raise ActionError("an action has a wrong shape", expected=(dim,), found=np.shape(action), do=STOPPED)
    if not np.isfinite(action).all():
        raise ActionError("an action holds a NaN or an infinity", found=action.tolist(), do=STOPPED)
    return action


def checked_chunk(chunk: ActionChunk) -> ActionChunk:
    """The plan, if it holds an action and its spacing is a time.

    Raises:
        ActionError: it does not.
    """
    if np.ndim(chunk.actions) != 2 or len(chunk.actions) == 0:
        found = np.shape(chunk.actions)
        raise ActionError("a policy planned no action", expected="(horizon, action_dim)", found=found, do=STOPPED)
    if not 0 < chunk.dt < np.inf:
        raise ActionError("a plan's dt is no time", expected="seconds above 0", found=chunk.dt, do=STOPPED)
    return chunk
