"""Sets the rendering backend before any test imports mujoco, which chooses it once."""

import envs  # noqa: F401
