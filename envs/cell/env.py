"""The cell as a gymnasium environment. A task subclasses `CellEnv` with three methods: build, place, judge."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gymnasium as gym
import mujoco
import numpy as np
from gymnasium import spaces

from envs.cell import control, sensing
from envs.cell.render import CellRenderer
from robot_fb.errors import ActionError
from robot_fb.types import StreamSpec

CELL_XML = Path(__file__).with_name("cell.xml")

PHYSICS_PER_SAMPLE = 5
SAMPLES_PER_DECISION = 5
DT = 0.05
"""Decision period [s]: 25 physics steps of 2 ms, force sampled after every fifth."""

PROGRESS = 0.01
"""A new best of the potential by less than this is no progress."""

LIMITS: dict[str, Any] = {
    "tcp/pose": 2.0,
    "tcp/velocity": 20.0,
    "gripper/width": 0.1,
    "command/last": 1.0,
    "wrench/wrist": np.repeat([500.0, 50.0], 3),
    "tactile/left": 100.0,
    "tactile/right": 100.0,
}
"""Range of each stream's sensor, symmetric about zero, in the stream's unit; readings saturate there."""


@dataclass(frozen=True)
class Judgement:
    """What a task says after a decision.

    Attributes:
        potential: progress so far, 0 to 1; the reward is its growth, plus 1 on success.
        success: done.
        failure: why it can no longer succeed; empty while it can.
        info: facts for the log, never for a policy.
    """

    potential: float
    success: bool = False
    failure: str = ""
    info: dict[str, Any] = field(default_factory=dict)


class CellEnv(gym.Env[dict[str, np.ndarray], np.ndarray], ABC):
    """Arm, gripper, sensors and cameras; 20 Hz decisions.

    Args:
        cameras: render `camera/scene` and `camera/wrist`.
        image_size: side of the pictures [pixels].
        noise: sensor noise; `SensorNoise.none()` for perfect sensors.
        render_mode: "rgb_array" for `render()`, a 480x480 picture of the scene.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 20}  # noqa: RUF012 (gymnasium's own convention)
    dt = DT
    action_names = control.ACTION.names
    force_cap_n = np.inf
    """An episode whose peak contact force passes this fails [N]."""
    careful_n = np.inf
    """A careful motion stays below this contact force [N]; learners may charge for more."""
    time_limit = 10**9
    """Decisions in an episode; the task's, as it is registered."""

    def __init__(
        self,
        cameras: bool = True,
        image_size: int = 64,
        noise: sensing.SensorNoise | None = None,
        render_mode: str | None = None,
    ) -> None:
        self.render_mode = render_mode
        self.noise = noise or sensing.SensorNoise()
        spec = mujoco.MjSpec.from_file(str(CELL_XML))
        self.build(spec)
        self.model = spec.compile()
        self.data = mujoco.MjData(self.model)
        self._wrench = sensing.WrenchWindow(self.model)
        self._cameras = ("scene", "wrist") if cameras else ()
        self._image_size = image_size
        self._renderer: CellRenderer | None = None
        self._big_renderer: CellRenderer | None = None
        self.stream_specs = _stream_specs(self._cameras, image_size)
        self.observation_space = spaces.Dict({k: _space(k, s) for k, s in self.stream_specs.items()})
        self.action_space = spaces.Box(*np.array([control.ACTION.low, control.ACTION.high], np.float32))
        self._last = np.zeros(control.ACTION.dim, np.float32)
        self._potential = 0.0
        self.force = self.peak_force = 0.0
        self.decisions = 0
        self._best, self._best_at = -np.inf, 0

    @abstractmethod
    def build(self, spec: mujoco.MjSpec) -> None:
        """Adds the task's bodies, and a sensor `contact_force` whose norm is the force on the fixture [N]."""

    @abstractmethod
    def place(self) -> None:
        """Puts arm and objects at the start of an episode, drawing from `self.np_random`."""

    @abstractmethod
    def judge(self) -> Judgement:
        """Looks at the state after a decision; `self.decisions` counts them."""

    def out_of_time(self) -> str:
        """What went wrong in an episode whose time is up."""
        return "time"

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Starts an episode; the same seed gives the same episode bit for bit."""
        super().reset(seed=seed)
        mujoco.mj_resetData(self.model, self.data)
        self.place()
        self._last = np.zeros(control.ACTION.dim, np.float32)
        self._last[4] = 1.0 - self.data.ctrl[6] / (0.25 * control.MAX_WIDTH)
        self._wrench.tare(self.data)
        self._sample_wrench()
        self.force = self.peak_force = 0.0
        self.decisions = 0
        self._best, self._best_at = -np.inf, 0
        verdict = self.judge()
        self._potential = verdict.potential
        return self._observe(), self._info(verdict)

    def step(self, action: np.ndarray) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One decision of 50 ms. The action is clipped to its bounds.

        Raises:
            ActionError: the action has another shape, or holds a NaN.
        """
        if np.shape(action) != self.action_space.shape or not np.isfinite(action).all():
            raise ActionError("unusable action", expected=f"{control.ACTION.dim} finite numbers", found=action)
        action = np.clip(np.asarray(action, np.float32), self.action_space.low, self.action_space.high)
        control.command(self.model, self.data, action)
        self.force = 0.0
        for _ in range(SAMPLES_PER_DECISION):
            mujoco.mj_step(self.model, self.data, nstep=PHYSICS_PER_SAMPLE)
            self._sample_wrench()
            self.force = max(self.force, self.contact_force())
        self.peak_force = max(self.peak_force, self.force)
        self._last = action
        self.decisions += 1
        verdict = self.judge()
        if not verdict.failure and self.peak_force > self.force_cap_n:
            verdict = Judgement(verdict.potential, False, "force cap", verdict.info)
        reward = verdict.potential - self._potential + float(verdict.success)
        self._potential = verdict.potential
        done = verdict.success or bool(verdict.failure)
        return self._observe(), reward, done, False, self._info(verdict)

    def still(self) -> np.ndarray:
        """(5,) the action that asks for no motion and keeps the grip."""
        return np.append(np.zeros(4, np.float32), self._last[4])

    def contact_force(self) -> float:
        """Net force between tool and fixture right now [N]."""
        return float(np.linalg.norm(self.data.sensor("contact_force").data))

    def render(self) -> np.ndarray | None:  # type: ignore[override]
        """A 480x480 picture of the scene camera."""
        if self.render_mode is None:
            return None
        if self._big_renderer is None:
            self._big_renderer = CellRenderer(self.model, 480, 480)
        return self._big_renderer.draw(self.data, "scene")

    def close(self) -> None:
        """Frees the rendering contexts."""
        for renderer in (self._renderer, self._big_renderer):
            if renderer is not None:
                renderer.close()
        self._renderer = self._big_renderer = None

    def settle(self, decisions: int) -> None:
        """Lets the springs and the grasp come to rest at the present pose."""
        hold = self.data.site("tcp").xpos.copy()
        self.data.ctrl[0:3], self.data.ctrl[3:5] = hold, 0.0
        self.data.ctrl[5] = self.data.actuator_length[5]
        mujoco.mj_step(self.model, self.data, nstep=decisions * PHYSICS_PER_SAMPLE * SAMPLES_PER_DECISION)

    def _sample_wrench(self) -> None:
        sigma = np.repeat([self.noise.force_n, self.noise.torque_nm], 3)
        self._wrench.sample(self.data, self.np_random.normal(size=6) * sigma)

    def _observe(self) -> dict[str, np.ndarray]:
        draw, noise = self.np_random.normal, self.noise
        quat = np.zeros(4)
        mujoco.mju_mat2Quat(quat, self.data.site("tcp").xmat)
        tilt = np.zeros(4)
        mujoco.mju_euler2Quat(tilt, draw(size=3) * noise.angle_rad, "xyz")
        mujoco.mju_mulQuat(quat, tilt, quat.copy())
        quat = np.roll(quat, -1) * np.sign(quat[1] or 1.0)  # xyzw, x kept positive: the tool points down
        velocity = self.data.actuator_velocity[:6] * [1, 1, 1, 1, -1, -1]
        velocity += draw(size=6) * np.repeat([noise.speed_m_s, noise.turn_rad_s], 3)
        width = self.data.qpos[7] + self.data.qpos[8] + draw() * noise.width_m
        obs = {
            "tcp/pose": np.concatenate([self.data.site("tcp").xpos + draw(size=3) * noise.position_m, quat]),
            "tcp/velocity": velocity,
            "gripper/width": np.array([width]),
            "command/last": self._last.copy(),
            "wrench/wrist": self._wrench.samples.copy(),
        }
        for pad in ("left", "right"):
            image = sensing.taxels(self.model, self.data, pad)
            obs[f"tactile/{pad}"] = image + draw(size=image.shape) * noise.taxel_n
        obs = {key: np.clip(value, -LIMITS[key], LIMITS[key]).astype(np.float32) for key, value in obs.items()}
        if self._cameras:
            if self._renderer is None:
                self._renderer = CellRenderer(self.model, self._image_size, self._image_size)
            obs |= {f"camera/{name}": self._renderer.draw(self.data, name) for name in self._cameras}
        return {key: obs[key] for key in self.stream_specs}

    def _info(self, verdict: Judgement) -> dict[str, Any]:
        """What the log is told. "onset" [s] is when a failure began: the moment that decided it or, where time ran
        out, the last progress."""
        if verdict.potential > self._best + PROGRESS:
            self._best, self._best_at = verdict.potential, self.decisions
        failure, began = verdict.failure, self.decisions
        if not failure and not verdict.success and self.decisions >= self.time_limit:
            failure, began = self.out_of_time(), self._best_at
        return {
            "success": verdict.success,
            "failure": failure,
            "onset": began * self.dt if failure else None,
            "force": self.force,
            "peak_force": self.peak_force,
            **verdict.info,
        }


def _stream_specs(cameras: tuple[str, ...], size: int) -> dict[str, StreamSpec]:
    taxel = StreamSpec((3, sensing.TAXELS, sensing.TAXELS), unit="N")
    return {f"camera/{name}": StreamSpec((size, size, 3), "uint8") for name in cameras} | {
        "tcp/pose": StreamSpec((7,), unit="m, quaternion xyzw"),
        "tcp/velocity": StreamSpec((6,), unit="m/s, rad/s"),
        "gripper/width": StreamSpec((1,), unit="m"),
        "command/last": StreamSpec((control.ACTION.dim,), unit="as the action"),
        "wrench/wrist": StreamSpec((sensing.WINDOW, 6), unit="N, N·m", rate_hz=100.0),
        "tactile/left": taxel,
        "tactile/right": taxel,
    }


def _space(key: str, spec: StreamSpec) -> spaces.Box:
    if spec.dtype == "uint8":
        return spaces.Box(0, 255, spec.shape, np.uint8)
    limit = np.broadcast_to(np.float32(LIMITS[key]), spec.shape)
    return spaces.Box(-limit, limit, dtype=np.float32)
