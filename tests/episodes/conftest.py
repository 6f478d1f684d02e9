"""A store and a way to fill it."""

from __future__ import annotations

import pytest
from episode_samples import META, make_steps

from robot_fb.episodes.store import Store


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(tmp_path / "store", create=True)


@pytest.fixture
def record(store):
    """Records an episode and returns its id."""

    def _record(steps=None, success=True, meta=META, info=None):
        writer = store.open(meta)
        for step in make_steps(6) if steps is None else steps:
            writer.add_step(step)
        writer.close(success, info)
        return writer.id

    return _record
