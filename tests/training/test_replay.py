"""The ring, its file, and n-step returns against sums by hand."""

from __future__ import annotations

import numpy as np
import pytest

from robot_fb.errors import CheckpointError
from robot_fb.training.replay import NStep, ReplayBuffer


def rows(first, count):
    values = np.arange(first, first + count)
    pictures = np.stack([np.full((2, 2), value, np.uint8) for value in values])
    return {"x": values.astype(np.float32)[:, None], "picture": pictures}


def test_keeps_the_newest_rows_in_order():
    buffer = ReplayBuffer(5)
    for first in (0, 3, 6):
        buffer.add_batch(rows(first, 3))

    assert len(buffer) == 5
    assert buffer.rows()["x"].ravel().tolist() == [4, 5, 6, 7, 8]
    assert buffer.fields["picture"].dtype == np.uint8


def test_more_rows_than_places_keep_the_newest():
    buffer = ReplayBuffer(4)
    buffer.add_batch(rows(0, 11))

    assert buffer.rows()["x"].ravel().tolist() == [7, 8, 9, 10]


def test_samples_whole_rows_evenly_and_reproducibly():
    buffer = ReplayBuffer(10)
    buffer.add_batch(rows(0, 10))

    drawn = buffer.sample(np.random.default_rng(0), 5000)

    np.testing.assert_array_equal(drawn["x"].ravel(), drawn["picture"][:, 0, 0])
    assert np.bincount(drawn["x"].ravel().astype(int)).min() > 400
    again = buffer.sample(np.random.default_rng(0), 5000)
    np.testing.assert_array_equal(drawn["x"], again["x"])


def test_comes_back_from_its_file_and_goes_on(tmp_path):
    buffer = ReplayBuffer(5)
    buffer.add_batch(rows(0, 7))
    buffer.save(tmp_path / "replay.npz")

    loaded = ReplayBuffer.load(tmp_path / "replay.npz")

    loaded.add_batch(rows(7, 1))
    assert loaded.rows()["x"].ravel().tolist() == [3, 4, 5, 6, 7]
    assert loaded.capacity == 5


def test_an_empty_buffer_comes_back_empty_and_cannot_be_sampled(tmp_path):
    ReplayBuffer(5).save(tmp_path / "replay.npz")
    loaded = ReplayBuffer.load(tmp_path / "replay.npz")

    assert len(loaded) == 0
    with pytest.raises(ValueError, match="empty"):
        loaded.sample(np.random.default_rng(0), 1)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no archive", b"\x80\x04pickle"])
def test_a_broken_file_is_refused(tmp_path, content):
    path = tmp_path / "replay.npz"
    path.write_bytes(content)

    with pytest.raises(CheckpointError, match="not a replay buffer"):
        ReplayBuffer.load(path)


def test_objects_in_a_file_are_refused(tmp_path):
    path = tmp_path / "replay.npz"
    np.savez(path, head=np.array([{"capacity": 5}], dtype=object))

    with pytest.raises(CheckpointError, match="not a replay buffer"):
        ReplayBuffer.load(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(CheckpointError, match="no replay buffer"):
        ReplayBuffer.load(tmp_path / "replay.npz")


def test_other_fields_or_shapes_are_refused():
    buffer = ReplayBuffer(5)
    buffer.add_batch(rows(0, 2))

    with pytest.raises(ValueError, match="fields"):
        buffer.add_batch({"x": np.zeros((1, 1), np.float32)})
    with pytest.raises(ValueError, match="'x'"):
        buffer.add_batch(rows(0, 2) | {"x": np.zeros((2, 3), np.float32)})


def step(t, reward, terminated=(False, False)):
    return {
        "x": np.array([t, 10 + t], np.float32), "reward": np.array(reward, np.float32),
        "terminated": np.array(terminated), "next_x": np.array([t + 1, 11 + t], np.float32),
    }


def test_n_step_sums_discounted_rewards():
    nstep = NStep(3, 0.5)
    alive = np.zeros(2, bool)

    assert nstep.push(step(0, [1, 0]), alive) == {}
    assert nstep.push(step(1, [2, 0]), alive) == {}
    out = nstep.push(step(2, [4, 8]), alive)

    assert out["x"].tolist() == [0, 10]
    assert out["reward"].tolist() == [1 + 0.5 * 2 + 0.25 * 4, 0.25 * 8]
    assert out["discount"].tolist() == [0.125, 0.125]
    assert out["next_x"].tolist() == [3, 13]
    assert "terminated" not in out


def test_n_step_flushes_at_an_end_and_bootstraps_only_where_cut_off():
    nstep = NStep(3, 0.5)
    nstep.push(step(0, [1, 1]), np.zeros(2, bool))
    out = nstep.push(step(1, [1, 1], (True, False)), np.array([True, True]))

    assert out["x"].tolist() == [0, 1, 10, 11]
    assert out["reward"].tolist() == [1.5, 1, 1.5, 1]
    assert out["discount"].tolist() == [0, 0, 0.25, 0.5]  # lane 0 terminated, lane 1 was cut off
    assert out["next_x"].tolist() == [2, 2, 12, 12]
    assert nstep.push(step(5, [0, 0]), np.zeros(2, bool)) == {}
