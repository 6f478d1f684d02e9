"""Foreign recordings become episodes."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
from rosbags.rosbag1 import Writer as Writer1
from rosbags.rosbag2 import StoragePlugin
from rosbags.rosbag2 import Writer as Writer2
from rosbags.typesys import Stores, get_typestore

from robot_fb.config import from_mapping
from robot_fb.episodes.cache import load_arrays
from robot_fb.episodes.exchange.importing import import_recording
from robot_fb.episodes.exchange.mapping import ImportMapping, read_mapping
from robot_fb.episodes.store import Store
from robot_fb.errors import BrokenFileError, ConfigError, EpisodeError, UnknownNameError

MAPPINGS = Path(__file__).parents[2] / "data" / "mappings"
ARM = from_mapping(ImportMapping, {
    "task": "push", "rate_hz": 10,
    "streams": {
        "joint/position": {"topic": "/joint_states", "unit": "rad"},
        "joint/effort": {"topic": "/joint_states", "field": "effort"},
        "camera/scene": {"topic": "/camera", "size": [24, 32]},
        "wrench/wrist": {"topic": "/wrench", "window": 4},
    },
    "action": {"topic": "/command", "field": "twist.linear"},
    "episodes": {"gap_s": 1.0},
})


def arm_messages(store, header):
    """(topic, message, stamp_ns) of two stretches of 1 s with a pause of 3 s between: joints at 100 Hz holding the
    time, a picture at 5 Hz whose level is its number, a wrench at 50 Hz, commands at 10 Hz just after the joints."""
    t = store.types
    vector, twist = t["geometry_msgs/msg/Vector3"], t["geometry_msgs/msg/Twist"]
    for start in (10.0, 14.0):
        for ms in range(0, 1000, 10):
            stamp = round((start + ms / 1000) * 1e9)
            now = np.array([start + ms / 1000, 1.0])
            joints = t["sensor_msgs/msg/JointState"](header(stamp), ["a", "b"], now, now * 2, now * 3)
            yield "/joint_states", joints, stamp
            if ms % 20 == 0:
                force = t["geometry_msgs/msg/Wrench"](vector(ms, 0.0, 0.0), vector(0.0, 0.0, start))
                yield "/wrench", t["geometry_msgs/msg/WrenchStamped"](header(stamp), force), stamp
            if ms % 200 == 0:
                picture = np.full((48, 64, 3), ms // 200 * 10, np.uint8)
                data = picture.reshape(-1)
                yield "/camera", t["sensor_msgs/msg/Image"](header(stamp), 48, 64, "bgr8", 0, 64 * 3, data), stamp
            if ms % 100 == 0:
                command = twist(vector(start, ms / 100, 0.5), vector(0.0, 0.0, 0.0))
                message = t["geometry_msgs/msg/TwistStamped"](header(stamp), command)
                yield "/command", message, stamp + 1_000_000


def write_bag2(path, plugin):
    store = get_typestore(Stores.ROS2_HUMBLE)
    time, head = store.types["builtin_interfaces/msg/Time"], store.types["std_msgs/msg/Header"]
    with Writer2(path, version=9, storage_plugin=plugin) as bag:
        topics = {}
        for topic, message, stamp in arm_messages(store, lambda ns: head(time(ns // 10**9, ns % 10**9), "")):
            if topic not in topics:
                topics[topic] = bag.add_connection(topic, message.__msgtype__, typestore=store)
            bag.write(topics[topic], stamp, store.serialize_cdr(message, message.__msgtype__))


def write_bag1(path):
    store = get_typestore(Stores.ROS1_NOETIC)
    time, head = store.types["builtin_interfaces/msg/Time"], store.types["std_msgs/msg/Header"]
    with Writer1(path) as bag:
        topics = {}
        for topic, message, stamp in arm_messages(store, lambda ns: head(0, time(ns // 10**9, ns % 10**9), "")):
            if topic not in topics:
                topics[topic] = bag.add_connection(topic, message.__msgtype__, typestore=store)
            bag.write(topics[topic], stamp, store.serialize_ros1(message, message.__msgtype__))


def make_bag(folder, kind):
    if kind == "bag":
        write_bag1(folder / "a.bag")
        return folder / "a.bag"
    plugin = StoragePlugin.MCAP if kind == "mcap" else StoragePlugin.SQLITE3
    write_bag2(folder / "rec", plugin)
    return next((folder / "rec").glob(f"*.{kind}")) if kind == "mcap" else folder / "rec"


@pytest.mark.parametrize("kind", ["mcap", "db3", "bag"])
def test_bags_are_sampled_to_decision_steps(tmp_path, kind):
    """Given joints at 100 Hz, pictures at 5 Hz and commands at 10 Hz, steps at 10 Hz hold the newest of each."""
    ids = import_recording(make_bag(tmp_path, kind), ARM, tmp_path / "store")

    assert len(ids) == 2
    arrays = load_arrays(tmp_path / "store")
    assert arrays.metas[0].action.low == (10.0, 0.0, 0.5) and arrays.metas[0].action.high == (14.0, 9.0, 0.5)
    for episode, start in enumerate((10.0, 14.0)):
        first, last = (0, *arrays.episode_ends)[episode : episode + 2]
        assert last - first == 10
        joints = arrays.streams["joint/position"][first:last]
        np.testing.assert_allclose(joints[:, 0], start + np.arange(10) / 10, atol=1e-5)
        np.testing.assert_allclose(arrays.streams["joint/effort"][first:last], 3 * joints, rtol=1e-6)
        levels = arrays.streams["camera/scene"][first:last]
        assert levels.shape[1:] == (24, 32, 3)
        assert levels[:, 0, 0, 0].tolist() == [0, 0, 10, 10, 20, 20, 30, 30, 40, 40]
        wrench = arrays.streams["wrench/wrist"][first:last]
        assert wrench.shape[1:] == (4, 6)
        assert wrench[5, :, 0].tolist() == [440, 460, 480, 500]
        assert arrays.actions[first:last, 1].tolist() == list(range(10))
    assert arrays.success.all()


def test_our_own_files_can_be_imported_as_bags(store, record, tmp_path):
    mapping = from_mapping(ImportMapping, {
        "task": "again", "rate_hz": 20, "streams": {"tcp/pose": {"topic": "/tcp_pose"}},
        "action": {"topic": "/decision", "columns": [9, 14]},
    })
    id = record()
    import_recording(store.file(id), mapping, tmp_path / "other")

    found, original = load_arrays(tmp_path / "other"), load_arrays(store)

    assert np.array_equal(found.streams["tcp/pose"], original.streams["tcp/pose"])
    assert np.array_equal(found.actions, original.actions)


def test_a_numpy_archive_becomes_episodes(tmp_path):
    rng = np.random.default_rng(0)
    data = {"img": rng.integers(0, 9, (10, 8, 8, 3)).astype(np.float64), "state": rng.normal(size=(10, 9)),
            "action": rng.normal(size=(10, 2)).astype(np.float32), "episode_ends": np.array([4, 10])}
    np.savez(tmp_path / "a.npz", **data)

    import_recording(tmp_path / "a.npz", read_mapping(MAPPINGS / "numpy_episode_ends.yaml"), tmp_path / "store")

    arrays = load_arrays(tmp_path / "store")
    assert arrays.episode_ends.tolist() == [4, 10]
    assert np.array_equal(arrays.streams["camera/scene"], data["img"])
    assert np.array_equal(arrays.streams["tcp/pose"], data["state"][:, :7].astype(np.float32))
    assert np.array_equal(arrays.actions, data["action"])


def test_peoples_door_demonstrations_come_in_bit_for_bit(third_party_data, tmp_path):
    file = third_party_data / "door_human_prefs" / "door_human_prefs.npz"

    ids = import_recording(file, read_mapping(MAPPINGS / "door_human_prefs.yaml"), tmp_path / "store")

    arrays, data = load_arrays(tmp_path / "store"), np.load(file, allow_pickle=False)
    assert len(ids) == 25
    assert arrays.episode_ends.tolist() == [*(np.flatnonzero(np.diff(data["demo"])) + 1).tolist(), 6704]
    assert arrays.streams["state"].tobytes() == data["obs"].tobytes()
    assert arrays.actions.tobytes() == data["actions"].tobytes()
    assert np.array_equal(arrays.rewards, data["rewards"])


def test_example_mappings_are_valid():
    for path in MAPPINGS.glob("*.yaml"):
        assert read_mapping(path).streams


ROWS = {"x": np.zeros((4, 2)), "a": np.zeros((4, 1))}


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"streams": {"x": {"array": "y"}}}, UnknownNameError, "no array 'y'"),
        ({"streams": {"x": {"topic": "/y"}}}, ConfigError, "x has no array"),
        ({"streams": {}}, ConfigError, "at least one stream"),
        ({"rate_hz": 0}, ConfigError, "above 0"),
        ({"strems": {}}, ConfigError, "did you mean 'streams'"),
        ({"episodes": {"ends": "e"}}, ConfigError, "must rise"),
        ({"streams": {"x": {"array": "short"}}}, ConfigError, "another length.*expected 4; found 3"),
        ({"streams": {"x": {"array": "x", "columns": [1]}}}, ConfigError, "columns"),
    ],
)
def test_a_mapping_that_does_not_fit_is_a_clear_error(tmp_path, change, error, words):
    np.savez(tmp_path / "a.npz", **ROWS, e=np.array([3, 2]), short=np.zeros((3, 2)))
    fitting = {"task": "t", "rate_hz": 10, "streams": {"x": {"array": "x"}}, "action": {"array": "a"}}

    with pytest.raises(error, match=words):
        mapping = from_mapping(ImportMapping, {**fitting, **change})
        import_recording(tmp_path / "a.npz", mapping, tmp_path / "store")


def test_pickles_foreign_and_missing_files_are_refused(tmp_path):
    mapping = from_mapping(ImportMapping, {
        "task": "t", "rate_hz": 10, "streams": {"x": {"array": "x"}}, "action": {"array": "a"},
    })
    np.savez(tmp_path / "pickle.npz", x=np.array([{}], dtype=object), a=np.zeros((1, 1)))
    (tmp_path / "cut.npz").write_bytes((tmp_path / "pickle.npz").read_bytes()[:50])
    (tmp_path / "a.txt").touch()

    for name, error in [("pickle.npz", BrokenFileError), ("cut.npz", BrokenFileError), ("a.txt", EpisodeError),
                        ("missing.npz", EpisodeError)]:
        with pytest.raises(error):
            import_recording(tmp_path / name, mapping, tmp_path / "store")
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("name", ["a.mcap", "a.db3", "a.bag"])
@pytest.mark.parametrize("content", [b"", b"hello" * 100])
def test_foreign_bags_are_refused(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)

    with pytest.raises(EpisodeError, match=name):
        import_recording(tmp_path / name, ARM, tmp_path / "store")


def test_a_topic_that_is_not_there_names_the_nearest(tmp_path):
    bag = make_bag(tmp_path, "mcap")
    mapping = from_mapping(ImportMapping, {"action": {"topic": "/comand"}}, ARM)

    with pytest.raises(UnknownNameError, match="did you mean '/command'"):
        import_recording(bag, mapping, tmp_path / "store")


def test_compressed_pictures_are_decoded_in_rgb(tmp_path):
    store = Store(tmp_path / "a", create=True)
    red = np.zeros((2, 2, 3), np.uint8)
    red[..., 0] = 200
    done, data = cv2.imencode(".png", red[..., ::-1])
    assert done

    from robot_fb.episodes.exchange.values import extract
    from robot_fb.episodes.messages import header, kind

    message = kind("sensor_msgs/msg/CompressedImage")(header(0), "png", data.ravel())
    assert np.array_equal(extract(message, "sensor_msgs/msg/CompressedImage", ""), red)
    assert store.query() == []
