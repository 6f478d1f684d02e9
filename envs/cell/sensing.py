"""What the cell feels: the wrist wrench about the tcp and the two taxel pads, with the noise of real sensors."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

TAXELS = 8
PAD_HALF = 0.011
"""Half the side of a pad [m]; taxels are 2.75 mm apart."""

WINDOW = 16
"""Wrench samples in one observation: 160 ms at 100 Hz."""


@dataclass(frozen=True)
class SensorNoise:
    """Standard deviations of white noise.

    The noise of pose and velocity is that of an arm's encoders and calibration; it also keeps a tilt of a few tenths of
    a milliradian under load, and the jolt when it comes, from standing in for the wrench.
    """

    force_n: float = 0.05
    torque_nm: float = 0.002
    taxel_n: float = 0.01
    position_m: float = 1e-4
    angle_rad: float = 2e-3
    speed_m_s: float = 4e-3
    turn_rad_s: float = 0.06
    width_m: float = 1e-4

    @staticmethod
    def none() -> SensorNoise:
        """Perfect sensors."""
        return SensorNoise(*[0.0] * 8)


class WrenchWindow:
    """The last 160 ms of the force and torque that the surroundings exert on the tool.

    Measured at the wrist, tared at the start of an episode, and moved to the tcp; axes of the tcp frame (z along the
    fingers). (16,6) float32 [N, N·m], oldest first.
    """

    def __init__(self, model: mujoco.MjModel) -> None:
        x, y, z = model.site("tcp").pos - model.site("wrist").pos
        self._lever = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])  # lever @ force is their cross product
        self._tare = np.zeros(6)
        self.samples = np.zeros((WINDOW, 6), np.float32)

    def tare(self, data: mujoco.MjData) -> None:
        """Takes the present load as zero and forgets the past."""
        self._tare = data.sensordata[:6].copy()
        self.samples[:] = 0.0

    def sample(self, data: mujoco.MjData, noise: np.ndarray) -> None:
        """Adds one sample; `noise` is (6,)."""
        wrist = self._tare - data.sensordata[:6]
        self.samples[:-1] = self.samples[1:]
        self.samples[-1, :3] = wrist[:3]
        self.samples[-1, 3:] = wrist[3:] - self._lever @ wrist[:3]
        self.samples[-1] += noise


def taxels(model: mujoco.MjModel, data: mujoco.MjData, pad: str) -> np.ndarray:
    """Contact forces on one finger pad, spread over its taxels.

    Args:
        model: the compiled cell.
        data: its state.
        pad: "left" or "right".

    Returns:
        (3,8,8) float32 [N]: normal (positive when pressed), shear along the pad's x, shear along its z (towards the
        fingertip). The 64 values of a channel sum to the pad's net force.
    """
    image = np.zeros((3, TAXELS, TAXELS), np.float32)
    geom = model.geom(f"{pad}_pad").id
    centre, axes = data.geom_xpos[geom], data.geom_xmat[geom].reshape(3, 3)
    wrench = np.zeros(6)
    inward = -1.0 if pad == "left" else 1.0
    for i in np.flatnonzero((data.contact.geom == geom).any(axis=1)):
        contact = data.contact[i]
        mujoco.mj_contactForce(model, data, i, wrench)
        world = contact.frame.reshape(3, 3).T @ wrench[:3]
        force = axes.T @ (world if contact.geom[1] == geom else -world)
        where = axes.T @ (contact.pos - centre)
        _splat(image, where[[0, 2]] / (2 * PAD_HALF) + 0.5, np.array([-inward * force[1], force[0], force[2]]))
    return image


def _splat(image: np.ndarray, at: np.ndarray, force: np.ndarray) -> None:
    """Adds `force` (3,) to the four taxels around `at` (two fractions of the pad), bilinearly."""
    row, column = np.clip(at * TAXELS - 0.5, 0, TAXELS - 1.001)
    r, c = int(row), int(column)
    fr, fc = row - r, column - c
    image[:, r, c] += force * (1 - fr) * (1 - fc)
    image[:, r + 1, c] += force * fr * (1 - fc)
    image[:, r, c + 1] += force * (1 - fr) * fc
    image[:, r + 1, c + 1] += force * fr * fc
