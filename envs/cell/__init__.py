"""The shared cell: arm, gripper, sensors, cameras. A task adds its scene and its judgement."""
