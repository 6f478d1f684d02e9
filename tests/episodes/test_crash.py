"""`kill -9` at any moment: finished episodes stay whole, the open one loses no more than its last moment."""

from __future__ import annotations

import numpy as np
import pytest

from robot_fb.benchmarks.crash import kill_one
from robot_fb.episodes.verify import verify


def kill(kills, tmp_path):
    for i, moment in enumerate(np.random.default_rng(0).uniform(0.05, 2.0, kills)):
        found = kill_one(tmp_path / str(i), after_s=float(moment))
        assert found.finished_intact
        assert found.repaired
        assert verify(tmp_path / str(i)).ok
        yield found


def test_a_killed_recording_is_repaired_and_what_was_finished_is_whole(tmp_path):
    found = list(kill(5, tmp_path))

    assert sum(result.finished for result in found) > 0


@pytest.mark.slow
def test_two_hundred_killed_recordings(tmp_path):
    """How much is lost depends on how busy the machine is, so it is judged only here."""
    assert max(result.lost_s for result in kill(200, tmp_path)) <= 0.5
