"""What goes into an episode comes out of it, and any ROS 2 tool can read it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from episode_samples import META, STREAMS, assert_same_step, make_steps
from mcap.reader import make_reader
from rosbags.highlevel import AnyReader

from robot_fb.episodes.sink import new_rows
from robot_fb.errors import EpisodeError
from robot_fb.types import Evaluation, StreamSpec


def test_steps_come_back_bit_for_bit(store, record):
    steps = make_steps(20)

    episode = store.read(record(steps, info={"peak_force": 3.5}))

    assert episode.meta == META
    assert episode.success and episode.info == {"peak_force": "3.5"}
    for found, added in zip(episode.steps, steps, strict=True):
        assert_same_step(found, added)


def test_special_floats_come_back_bit_for_bit(store):
    odd = np.array([-0.0, np.inf, -np.inf, 1e-42, np.finfo(np.float32).max, 1 / 3, 7.0], np.float32)
    meta = dataclasses.replace(META, streams={"tcp/pose": StreamSpec((7,))})
    (step,) = make_steps(1, streams=dict(meta.streams))
    step = dataclasses.replace(step, obs={"tcp/pose": odd}, t=1 / 3)
    with store.open(meta) as writer:
        writer.add_step(step)
        writer.close(False)

    (found,) = store.read(writer.id).steps

    assert_same_step(found, step)


def test_an_undeclared_stream_is_logged_too(store, record):
    meta = dataclasses.replace(META, streams={})
    new = {"lidar/scan": StreamSpec((11, 2), "uint16"), "camera/far": StreamSpec((9, 9, 1), "uint8")}
    steps = make_steps(3, streams=new)

    episode = store.read(record(steps, meta=meta))

    for found, added in zip(episode.steps, steps, strict=True):
        assert_same_step(found, added)


def test_a_reused_buffer_does_not_change_the_log(store):
    steps = make_steps(2)
    kept = {name: array.copy() for name, array in steps[0].obs.items()}
    writer = store.open(META)
    writer.add_step(steps[0])
    for array in steps[0].obs.values():
        array[...] = 0
    writer.close(True)

    found = store.read(writer.id).steps[0].obs

    assert all(found[name].tobytes() == kept[name].tobytes() for name in kept)


def test_a_sliding_window_is_logged_sample_by_sample(store, record):
    id = record(make_steps(10))

    samples = store.samples(id, "wrench/wrist")

    assert len(samples.t) == 16 + 9 * 5
    np.testing.assert_allclose(samples.t, np.arange(len(samples.t)) * 0.01 - 0.15, atol=1e-6)


@pytest.mark.parametrize("slide", [0, 1, 3, 16, 40])
def test_any_slide_of_a_window_comes_back(store, slide):
    meta = dataclasses.replace(META, streams={"wrench/wrist": STREAMS["wrench/wrist"]})
    forces = np.random.default_rng(0).normal(size=(16 + 5 * slide, 6)).astype(np.float32)
    steps = [
        dataclasses.replace(step, obs={"wrench/wrist": forces[i * slide : i * slide + 16]})
        for i, step in enumerate(make_steps(5))
    ]
    with store.open(meta) as writer:
        for step in steps:
            writer.add_step(step)
        writer.close(True)

    for found, added in zip(store.read(writer.id).steps, steps, strict=True):
        assert_same_step(found, added)


def test_a_still_window_counts_as_sliding_at_its_usual_rate():
    still = np.zeros((16, 6), np.float32)

    assert new_rows(still, still, usual=5) == 5
    assert new_rows(None, still, usual=5) == 16


def test_own_rate_samples_are_kept_apart_from_what_steps_saw(store):
    """Given a 1 kHz wrench and a camera that also appear in the steps, both come back as they were."""
    rng = np.random.default_rng(0)
    streams = {"wrench/wrist": STREAMS["wrench/wrist"], "camera/scene": STREAMS["camera/scene"]}
    steps, forces, frames = make_steps(6, streams=streams), rng.normal(size=(300, 6)).astype(np.float32), []
    writer = store.open(dataclasses.replace(META, streams=streams))
    for i, step in enumerate(steps):
        for k in range(50):
            writer.add_sample("wrench/wrist", i * 0.05 + k * 0.001, forces[50 * i + k])
        frame = rng.integers(0, 255, (64, 64, 3)).astype(np.uint8)
        frames.append(frame)
        writer.add_sample("camera/scene", i * 0.05, frame)
        if i % 2:  # the loop saw the newest frame, or one that came between
            steps[i] = dataclasses.replace(step, obs={**step.obs, "camera/scene": frame})
        writer.add_step(steps[i])
    writer.close(True)

    wrench, camera = store.samples(writer.id, "wrench/wrist"), store.samples(writer.id, "camera/scene")

    assert wrench.values.tobytes() == forces.tobytes()
    np.testing.assert_allclose(wrench.t, np.arange(300) * 0.001, atol=1e-6)
    assert camera.values.tobytes() == np.stack(frames).tobytes()
    for found, added in zip(store.read(writer.id).steps, steps, strict=True):
        assert_same_step(found, added)


def test_joints_sampled_at_their_own_rate_do_not_hide_the_others(store):
    """Given positions that come at their own rate, velocities of the same message are logged at every step."""
    streams = {name: STREAMS[name] for name in ("joint/position", "joint/velocity")}
    steps = make_steps(3, streams=streams)
    writer = store.open(dataclasses.replace(META, streams=streams))
    for step in steps:
        writer.add_sample("joint/position", step.t, step.obs["joint/position"])
        writer.add_step(step)
    writer.close(True)

    for found, added in zip(store.read(writer.id).steps, steps, strict=True):
        assert_same_step(found, added)
    assert len(store.samples(writer.id, "joint/position").t) == 3


def test_large_pictures_are_jpeg_and_near(store):
    meta = dataclasses.replace(META, streams={"camera/scene": StreamSpec((240, 320, 3), "uint8")})
    ramp = np.broadcast_to(np.linspace(0, 255, 320)[None, :, None], (240, 320, 3)).astype(np.uint8)
    (step,) = make_steps(1, streams={})
    with store.open(meta) as writer:
        writer.add_step(dataclasses.replace(step, obs={"camera/scene": ramp}))
        writer.close(True)

    (found,) = store.read(writer.id).steps

    assert np.abs(found.obs["camera/scene"].astype(int) - ramp).max() <= 6


def test_feedback_during_the_episode_is_in_its_file(store):
    writer = store.open(META)
    writer.add_step(make_steps(1)[0])
    press = Evaluation(writer.id, 0.02, -1.0, "ann")
    writer.add_feedback(press)
    writer.close(True)

    assert store.read(writer.id).feedback == (press,)
    assert store.feedback(writer.id) == [press]


def test_rosbag_tools_read_every_message(store, record):
    """Given our file, when `rosbags` reads it with the message definitions in it, then stamps and values are right."""
    steps = make_steps(4)
    id = record(steps)

    with AnyReader([store.file(id)]) as bag:
        by_topic = {c.topic: c.msgtype for c in bag.connections}
        decoded = [(c.topic, t, bag.deserialize(data, c.msgtype)) for c, t, data in bag.messages()]

    assert by_topic["/joint_states"] == "sensor_msgs/msg/JointState"
    assert by_topic["/tcp_pose"] == "geometry_msgs/msg/PoseStamped"
    assert by_topic["/tcp_twist"] == "geometry_msgs/msg/TwistStamped"
    assert by_topic["/wrench"] == "geometry_msgs/msg/WrenchStamped"
    assert by_topic["/tactile/left"] == "sensor_msgs/msg/Image"
    assert by_topic["/camera/scene/image_raw/compressed"] == "sensor_msgs/msg/CompressedImage"
    assert by_topic["/odd/matrix"] == "std_msgs/msg/Float64MultiArray"
    taxels = [m for topic, _, m in decoded if topic == "/tactile/left"]
    assert (taxels[0].height, taxels[0].width, taxels[0].encoding) == (8, 6, "32FC3")
    normal = taxels[0].data.view(np.float32).reshape(8, 6, 3)[..., 0]
    assert np.array_equal(normal, steps[0].obs["tactile/left"][0])
    for topic, stamp, message in decoded:
        if hasattr(message, "header"):
            assert message.header.stamp.sec * 10**9 + message.header.stamp.nanosec == stamp, topic


def test_the_indexed_reader_of_mcap_finds_every_message(store, record):
    id = record(make_steps(30))

    with store.file(id).open("rb") as file:
        reader = make_reader(file, validate_crcs=True)
        summary = reader.get_summary()
        count = sum(1 for _ in reader.iter_messages())
        metadata = [record.name for record in reader.iter_metadata()]

    assert summary is not None and summary.statistics is not None
    assert count == summary.statistics.message_count > 30 * len(STREAMS)
    assert all(index.uncompressed_size <= 256 * 1024 for index in summary.chunk_indexes)
    assert metadata == ["robot_fb.episode", "robot_fb.episode", "robot_fb.outcome"]


def test_an_unknown_stream_or_episode_is_a_clear_error(store, record):
    id = record()

    with pytest.raises(EpisodeError, match="no stream 'tactile/tail'"):
        store.samples(id, "tactile/tail")
