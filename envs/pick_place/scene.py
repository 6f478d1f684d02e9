"""Two coloured blocks and a coloured plate. Lengths in metres."""

from __future__ import annotations

import mujoco

COLOURS = {"red": (0.85, 0.10, 0.10, 1.0), "green": (0.10, 0.65, 0.15, 1.0), "blue": (0.12, 0.25, 0.90, 1.0)}

BLOCK = 0.038
"""Edge of a block [m]; the gripper opens twice as far."""

BLOCK_MASS = 0.05
"""Of a block [kg]: hard wood."""

PLATE_RADIUS, PLATE_HEIGHT = 0.05, 0.004
"""Of the plate [m]."""

BLOCKS = ("target", "distractor")
"""Names of the block bodies, their free joints and their geoms."""


def add_objects(spec: mujoco.MjSpec) -> None:
    """Adds the plate (body and geom `plate`, origin on the table) and the free blocks of `BLOCKS` (origin: centre)."""
    plate = spec.worldbody.add_body(name="plate", pos=[0.5, -0.1, 0])
    plate.add_geom(
        name="plate",
        type=mujoco.mjtGeom.mjGEOM_CYLINDER,
        size=[PLATE_RADIUS, PLATE_HEIGHT / 2, 0],
        pos=[0, 0, PLATE_HEIGHT / 2],
        friction=[0.6, 0.005, 0.0001],
    )
    for i, name in enumerate(BLOCKS):
        body = spec.worldbody.add_body(name=name, pos=[0.5, 0.1 * i, BLOCK / 2])
        body.add_freejoint(name=name)
        body.add_geom(
            name=name,
            type=mujoco.mjtGeom.mjGEOM_BOX,
            size=[BLOCK / 2] * 3,
            mass=BLOCK_MASS,
            friction=[0.6, 0.005, 0.0001],
            solref=[0.01, 1.0],
        )


def paint(model: mujoco.MjModel, target: str, distractor: str) -> None:
    """Colours the blocks, and the plate like the target."""
    model.geom("target").rgba = model.geom("plate").rgba = COLOURS[target]
    model.geom("distractor").rgba = COLOURS[distractor]
