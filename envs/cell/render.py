"""Pictures without shadows or reflections: on a CPU the default shadow map costs far more than the picture itself."""

from __future__ import annotations

import os
import sys

import mujoco
import numpy as np

from robot_fb.errors import RobotFbError


class CellRenderer:
    """Draws named cameras into (size, size, 3) uint8 pictures."""

    def __init__(self, model: mujoco.MjModel, height: int, width: int) -> None:
        if mujoco.GLContext.__module__ == "mujoco.glfw" and sys.platform == "linux" and "DISPLAY" not in os.environ:
            raise RobotFbError(  # GLFW would end the whole process
                "mujoco was imported before envs and chose a rendering backend that needs a screen",
                do="import envs first, or set MUJOCO_GL=egl before Python starts",
            )
        try:
            self._renderer = mujoco.Renderer(model, height, width)
        except Exception as error:  # the GL backends raise whatever their loader raises
            raise RobotFbError(
                "no rendering backend for the cameras",
                found=f"MUJOCO_GL={os.environ.get('MUJOCO_GL', 'unset')}: {type(error).__name__}: {error}",
                do="install libegl1 and libgl1-mesa-dri (or libosmesa6 with MUJOCO_GL=osmesa); see robot-fb doctor",
            ) from error
        for flag in (mujoco.mjtRndFlag.mjRND_SHADOW, mujoco.mjtRndFlag.mjRND_REFLECTION):
            self._renderer.scene.flags[flag] = False

    def draw(self, data: mujoco.MjData, camera: str) -> np.ndarray:
        """(H, W, 3) uint8 of one camera."""
        self._renderer.update_scene(data, camera)
        return self._renderer.render()

    def close(self) -> None:
        """Frees the GL context."""
        self._renderer.close()
