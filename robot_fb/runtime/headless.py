"""Drawing without a screen."""

from __future__ import annotations

import os
import sys


def choose_backend() -> None:
    """Lets MuJoCo draw through EGL where there is no screen and nobody chose; it looks once, when it is imported."""
    if sys.platform.startswith("linux") and "DISPLAY" not in os.environ:
        os.environ.setdefault("MUJOCO_GL", "egl")
