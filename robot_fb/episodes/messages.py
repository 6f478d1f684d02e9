"""Standard ROS 2 messages as CDR bytes, through `rosbags`: no ROS installation is needed to write or read them."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from rosbags.serde import SerdeError
from rosbags.typesys import Stores, get_typestore

from robot_fb.errors import BrokenFileError

NS = 1_000_000_000

store = get_typestore(Stores.ROS2_JAZZY)


def kind(name: str) -> Any:
    """The message class of e.g. "sensor_msgs/msg/Image"."""
    return store.types[name]


@cache
def definition(name: str) -> bytes:
    """The text that goes with a schema of encoding "ros2msg"."""
    return store.generate_msgdef(name, ros_version=2)[0].encode()


def serialize(message: Any) -> bytes:
    """CDR, little endian, with its 4-byte encapsulation header."""
    return bytes(store.serialize_cdr(message, message.__msgtype__, little_endian=True))


def deserialize(data: bytes | memoryview, name: str) -> Any:
    """The message behind CDR bytes.

    Raises:
        BrokenFileError: the bytes are no such message.
    """
    try:
        return store.deserialize_cdr(data, name)
    except (SerdeError, ValueError, IndexError, KeyError, MemoryError, OverflowError) as error:
        raise BrokenFileError(f"a {name} message cannot be decoded", found=str(error)) from error


def header(stamp_ns: int, frame: str = "") -> Any:
    """std_msgs/Header; `stamp_ns` since the Unix epoch."""
    seconds, rest = divmod(stamp_ns, NS)
    return kind("std_msgs/msg/Header")(kind("builtin_interfaces/msg/Time")(seconds, rest), frame)


def vector3(values: np.ndarray) -> Any:
    """geometry_msgs/Vector3 of (3,)."""
    return kind("geometry_msgs/msg/Vector3")(float(values[0]), float(values[1]), float(values[2]))


def layout(labels: list[tuple[str, int]]) -> Any:
    """A row-major std_msgs/MultiArrayLayout of labelled dimensions."""
    dimension = kind("std_msgs/msg/MultiArrayDimension")
    dims, stride = [], 1
    for label, size in reversed(labels):
        stride *= size
        dims.append(dimension(label, size, stride))
    return kind("std_msgs/msg/MultiArrayLayout")(dims[::-1], 0)


def text(words: str) -> bytes:
    """std_msgs/String."""
    return serialize(kind("std_msgs/msg/String")(words))
