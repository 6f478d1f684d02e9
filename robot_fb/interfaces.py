"""Every Protocol of robot_fb, and nothing else. `tests/contracts` runs each registered plugin through its Protocol."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import gymnasium as gym
import numpy as np

from robot_fb.types import (
    ActionChunk,
    ActionSpec,
    Ceiling,
    Decision,
    EpisodeMeta,
    Feedback,
    Obs,
    PolicySpec,
    Step,
    StepOutcome,
    StreamSpec,
)


@runtime_checkable
class Policy(Protocol):
    """Acts. `act` is called at every decision tick: a policy that plans in chunks keeps its own history and plan, and
    returns the plan that is in force, `t0` being the time of this call."""

    spec: PolicySpec

    def reset(self, seed: int | None = None) -> None:
        """Forget the past; the next `act` starts an episode."""
        ...

    def act(self, obs: Obs) -> ActionChunk:
        """The plan from now on; `actions[0]` is for this tick."""
        ...

    def embed(self, obs: Obs) -> np.ndarray:
        """(embed_dim,) float32: what the policy sees in `obs`, for critics and monitors."""
        ...


@runtime_checkable
class LanePolicy(Policy, Protocol):
    """A policy that drives many robots (lanes) with one network call."""

    def reset_lanes(self, lanes: int, seed: int | None = None) -> None:
        """Forget the past of all lanes."""
        ...

    def act_lanes(self, obs: Obs, fresh: np.ndarray) -> np.ndarray:
        """Plans for all lanes.

        Args:
            obs: streams with a leading lane axis.
            fresh: (lanes,) bool, true where a lane just began an episode.

        Returns:
            (lanes, horizon, action_dim) float32; `[:, 0]` is for this tick.
        """
        ...

    def embed_lanes(self, obs: Obs) -> np.ndarray:
        """(lanes, embed_dim) float32."""
        ...


@runtime_checkable
class Robot(Protocol):
    """Something that senses and moves: real, or a simulation behind an adapter. A context manager."""

    streams: Mapping[str, StreamSpec]
    action: ActionSpec
    dt: float

    def __enter__(self) -> Robot: ...
    def __exit__(self, *exc: object) -> None: ...

    def reset(self, seed: int | None = None) -> Obs:
        """Bring the robot to the start of an episode and look."""
        ...

    def read(self) -> Obs:
        """The newest observation."""
        ...

    def write(self, action: np.ndarray) -> np.ndarray:
        """Carry out one action for `dt`; returns what was really sent, after every limit."""
        ...

    def outcome(self) -> StepOutcome:
        """What the last `write` led to."""
        ...

    def still(self) -> np.ndarray:
        """(action_dim,) the action that asks for no motion and keeps the grip."""
        ...

    def stop(self) -> None:
        """Hold still. Safe to call at any time, any number of times."""
        ...


@runtime_checkable
class Sensor(Protocol):
    """One stream. A context manager."""

    name: str
    spec: StreamSpec

    def __enter__(self) -> Sensor: ...
    def __exit__(self, *exc: object) -> None: ...

    def read(self) -> tuple[float, np.ndarray]:
        """(stamp [s], sample of `spec.shape`)."""
        ...


@runtime_checkable
class Arbiter(Protocol):
    """Decides at every tick who commands the robot."""

    def decide(self, proposal: np.ndarray, human: np.ndarray | None, risk: float) -> Decision:
        """Weigh the policy's proposal against a person's command (None when nobody commands)."""
        ...


@runtime_checkable
class Desk(Protocol):
    """Where a robot asks for an operator, and hears what operators say."""

    def ask(self, risk: float, reason: str) -> None:
        """Puts the robot into the queue; asking again changes its risk and not its place. Never blocks."""
        ...

    def poll(self) -> Sequence[str]:
        """Events of `runtime.handshake.Event` since the last poll; never blocks."""
        ...


@runtime_checkable
class FailureDetector(Protocol):
    """Scores how unlike a success the present is."""

    def calibrate(self, successes: Iterable[Sequence[Step]], alpha: float) -> None:
        """Set the alarm band so that at most a share `alpha` of successes alarms."""
        ...

    def reset(self) -> None:
        """Start of an episode."""
        ...

    def score(self, obs: Obs, chunk: ActionChunk) -> float:
        """Higher is riskier."""
        ...


@runtime_checkable
class FeedbackSource(Protocol):
    """Where people's feedback comes in: a keyboard, a page, a topic, a simulated teacher."""

    def poll(self, now: float) -> Sequence[Feedback]:
        """Events since the last poll; never blocks."""
        ...


@runtime_checkable
class Subscriber(Protocol):
    """Watches the control loop: the recorder, a progress bar, a monitor page."""

    def on_start(self, meta: EpisodeMeta) -> None: ...
    def on_step(self, step: Step) -> None: ...
    def on_end(self, success: bool, info: Mapping[str, Any]) -> None: ...


@runtime_checkable
class EpisodeWriter(Protocol):
    """One open episode. Never blocks the caller."""

    id: str

    def add_step(self, step: Step) -> None:
        """Queue one decision step together with its observation streams."""
        ...

    def add_sample(self, stream: str, stamp: float, sample: np.ndarray) -> None:
        """Queue one sample of a stream at its own rate; `stamp` [s] since the episode began."""
        ...

    def add_feedback(self, event: Feedback) -> None:
        """Queue an event that came while the episode was running."""
        ...

    def close(self, success: bool, info: Mapping[str, str] | None = None) -> None:
        """Finish the episode and make it part of the store."""
        ...

    def discard(self) -> None:
        """Give the episode up; nothing stays in the store."""
        ...


@runtime_checkable
class EpisodeStore(Protocol):
    """A folder of episodes."""

    def open(self, meta: EpisodeMeta) -> EpisodeWriter: ...
    def query(self, **where: object) -> Sequence[str]: ...
    def read(self, id: str) -> Any: ...


@runtime_checkable
class Trainer(Protocol):
    """One algorithm. `training.fit` owns the loop."""

    def step(self, batch: Mapping[str, Any]) -> Mapping[str, float]:
        """One gradient step; returns scalars to log."""
        ...

    def policy(self) -> Policy:
        """The policy as it stands."""
        ...

    def save(self, path: Path) -> None: ...
    def load(self, path: Path) -> None: ...


@runtime_checkable
class Task(Protocol):
    """What a task plugin gives. Instances hold no simulation."""

    name: str
    env_id: str

    def make(self, **options: Any) -> gym.Env:
        """A gymnasium environment with `Dict` observations named as in `types.Obs`."""
        ...

    def expert(self, env: gym.Env) -> Expert | None:
        """A scripted expert that may look at hidden state, or None."""
        ...

    def ceiling(self) -> Ceiling | None:
        """The best success without touch, or None where nothing is hidden."""
        ...


@runtime_checkable
class Expert(Protocol):
    """Acts with privileged state."""

    def reset(self) -> None: ...
    def act(self) -> np.ndarray:
        """(action_dim,) for this tick."""
        ...

