"""`kill -9` at any moment: finished episodes stay whole, the open one loses at most half a second."""

from __future__ import annotations

import numpy as np
import pytest

from robot_fb.benchmarks.crash import kill_one
from robot_fb.episodes.verify import verify


def check(kills, tmp_path):
    moments = np.random.default_rng(0).uniform(0.05, 2.0, kills)
    for i, moment in enumerate(moments):
        found = kill_one(tmp_path / str(i), after_s=float(moment))
        assert found.finished_intact
        assert found.repaired
        assert found.lost_s <= 0.5, f"after {moment:.3f} s"
        assert verify(tmp_path / str(i)).ok


def test_a_killed_recording_loses_at_most_half_a_second(tmp_path):
    check(5, tmp_path)


@pytest.mark.slow
def test_two_hundred_killed_recordings(tmp_path):
    check(200, tmp_path)
