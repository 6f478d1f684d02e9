"""The words everything is said in: frozen dataclasses and nothing else.

Units: metres, radians, newtons, newton-metres, seconds. Quaternions are xyzw. Times are seconds since the episode
began unless a name says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

Obs = Mapping[str, np.ndarray]
"""Named, unit-carrying streams: `camera/wrist` (H,W,3) uint8; `wrench/wrist` (T,6) [N, N·m]; `tactile/left` (3,R,C)
[N]; `tcp/pose` (7,) [m, quaternion xyzw]; `tcp/velocity` (6,) [m/s, rad/s]; `gripper/width` (1,) [m];
`joint/position` (n,) [rad]; `command/last` (action_dim,) as the action."""

Source = Literal["policy", "residual", "human", "blend", "expert", "hold", "rewind"]
"""Who decided what was sent to the robot."""

SOURCES: tuple[Source, ...] = ("policy", "residual", "human", "blend", "expert", "hold", "rewind")

TOUCH_PREFIXES = ("wrench/", "tactile/")
"""Streams that only contact can change; placebo ablations act on these."""


def is_touch(key: str) -> bool:
    """Whether an observation key belongs to force or touch."""
    return key.startswith(TOUCH_PREFIXES)


@dataclass(frozen=True)
class StreamSpec:
    """Shape and meaning of one observation stream.

    Attributes:
        shape: without batch or time axes.
        dtype: numpy dtype name.
        unit: e.g. "N, N·m"; empty for pictures.
        rate_hz: how often the source produces a new sample.
    """

    shape: tuple[int, ...]
    dtype: str = "float32"
    unit: str = ""
    rate_hz: float = 20.0


@dataclass(frozen=True)
class ActionSpec:
    """Bounds of an action, per dimension.

    Attributes:
        low, high: (action_dim,) bounds, in the units of `names`.
        names: e.g. ("dx [m]", "dy [m]", "dz [m]", "dyaw [rad]", "grip").
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    names: tuple[str, ...] = ()

    @property
    def dim(self) -> int:
        """Number of action dimensions."""
        return len(self.low)


@dataclass(frozen=True)
class ActionChunk:
    """A plan: `actions[i]` is meant for time `t0 + i * dt`.

    Attributes:
        actions: (horizon, action_dim) float32.
        dt: spacing [s].
        t0: time of the first action [s].
    """

    actions: np.ndarray
    dt: float
    t0: float = 0.0

    def at(self, t: float) -> np.ndarray:
        """The action meant for time `t` [s]; the last one once the plan has run out."""
        index = round((t - self.t0) / self.dt)
        return self.actions[min(max(index, 0), len(self.actions) - 1)]


@dataclass(frozen=True)
class Step:
    """One decision: what was seen, what was asked for, what was really sent, and what came of it.

    Attributes:
        t: decision time since the episode began [s].
        obs: what the decision was made from.
        proposed: (action_dim,) what the policy asked for.
        executed: (action_dim,) what the robot was really sent.
        source: who decided.
        reward: for `executed`.
        terminated, truncated: as in gymnasium.
        success: whether the task is done after this step.
        scores: what every monitor said at this step.
    """

    t: float
    obs: Obs
    proposed: np.ndarray
    executed: np.ndarray
    source: Source = "policy"
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False
    success: bool = False
    scores: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Decision:
    """What an arbiter lets through.

    Attributes:
        action: (action_dim,) to be sent.
        source: who decided.
        human_weight: 0 (policy alone) to 1 (human alone).
        reason: a few words for the log and the operator.
        replan: after this decision the policy forgets the past, and plans from the observation that comes next.
    """

    action: np.ndarray
    source: Source
    human_weight: float = 0.0
    reason: str = ""
    replan: bool = False


@dataclass(frozen=True)
class StepOutcome:
    """What the last written action led to.

    Attributes:
        reward, terminated, truncated: as in gymnasium.
        success: whether the task is done.
        info: task facts for the log, never for a policy: peak force, hidden variable, failure label.
    """

    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False
    success: bool = False
    info: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Ceiling:
    """The best success rate that a policy without touch can reach on a task, and why."""

    success_rate: float
    reason: str


@dataclass(frozen=True)
class Intervention:
    """A person held the robot from `start` to `end` [s] of an episode."""

    episode: str
    start: float
    end: float
    author: str
    reason: str = ""
    kind: Literal["intervention"] = "intervention"


@dataclass(frozen=True)
class Evaluation:
    """A good (+) or bad (-) press at time `t` [s] of an episode."""

    episode: str
    t: float
    value: float
    author: str
    kind: Literal["evaluation"] = "evaluation"


@dataclass(frozen=True)
class Segment:
    """A stretch of an episode, `start` to `end` [s]."""

    episode: str
    start: float
    end: float


@dataclass(frozen=True)
class Preference:
    """Which of two segments a person likes better: 0 the first, 1 the second, 0.5 no difference, None cannot tell."""

    first: Segment
    second: Segment
    choice: float | None
    author: str
    kind: Literal["preference"] = "preference"


@dataclass(frozen=True)
class Ranking:
    """Segments from best to worst."""

    order: tuple[Segment, ...]
    author: str
    kind: Literal["ranking"] = "ranking"


@dataclass(frozen=True)
class Language:
    """A sentence about a stretch of an episode."""

    episode: str
    start: float
    end: float
    text: str
    author: str
    kind: Literal["language"] = "language"


@dataclass(frozen=True)
class Outcome:
    """A later verdict on a whole episode."""

    episode: str
    success: bool
    author: str
    label: str = ""
    kind: Literal["outcome"] = "outcome"


Feedback = Intervention | Evaluation | Preference | Ranking | Language | Outcome
"""Every kind of feedback. Events are appended to a side log, never edited."""


@dataclass(frozen=True)
class EpisodeMeta:
    """What is known before the first step.

    Attributes:
        task: registered task name or gymnasium id.
        by: who acts: "expert", "human", or a policy's run name.
        streams: every observation stream that is logged.
        action: bounds of the action.
        dt: decision period [s].
        seed: seed of the reset, None on a real robot.
        robot: which robot.
        extra: anything else worth keeping, strings only.
    """

    task: str
    by: str
    streams: Mapping[str, StreamSpec]
    action: ActionSpec
    dt: float
    seed: int | None = None
    robot: str = "sim"
    extra: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class PolicySpec:
    """What a policy needs and gives: stored with its weights and checked against the task it meets.

    Attributes:
        task: the task it was trained for.
        obs: streams it reads.
        action: the action it gives.
        dt: decision period [s].
        horizon: actions in one chunk.
        execute: actions carried out before it plans again.
        obs_horizon: observations it looks back on.
        embed_dim: length of `embed(obs)`.
    """

    task: str
    obs: Mapping[str, StreamSpec]
    action: ActionSpec
    dt: float
    horizon: int = 16
    execute: int = 8
    obs_horizon: int = 2
    embed_dim: int = 0
