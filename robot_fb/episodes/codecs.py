"""Values of streams to CDR messages and back, bit for bit except for JPEG."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from robot_fb.episodes import messages, pictures
from robot_fb.episodes.messages import NS, deserialize, header, kind, serialize, vector3
from robot_fb.episodes.pictures import PictureFormat
from robot_fb.episodes.routes import ARRAYS, IMAGE_ENCODINGS, Field, Route
from robot_fb.errors import BrokenFileError


class Encoder:
    """Turns the values of one route into messages, fast.

    All messages of a route agree in everything but the stamp and the numbers at their end. So the first one is made by
    `rosbags`, and later ones reuse its beginning: a tenth of the time, which the control loop would otherwise feel.

    Args:
        route: the topic.
        form: how pictures are compressed.
    """

    def __init__(self, route: Route, form: PictureFormat) -> None:
        self._route, self._form = route, form
        self._payload = _PAYLOADS.get(route.codec)
        self._stamped = not route.type.startswith("std_msgs/")
        self._before = self._after = b""

    def __call__(self, values: Sequence[np.ndarray], stamp_ns: int) -> bytes:
        """One CDR message.

        Args:
            values: one array a field; on a windowed route one row of the window.
            stamp_ns: since the Unix epoch.
        """
        if self._payload is None:
            return encode(self._route, values, stamp_ns, self._form)
        payload = self._payload(self._route, values[0], self._form)
        if not self._before:
            message = encode(self._route, values, stamp_ns, self._form)
            if not message.endswith(payload):
                self._payload = None
                return message
            beginning = message[: len(message) - len(payload)]
            self._before, self._after = (beginning[:4], beginning[12:]) if self._stamped else (beginning, b"")
        stamp = _STAMP.pack(*divmod(stamp_ns, NS)) if self._stamped else b""
        return b"".join((self._before, stamp, self._after, payload))


_STAMP = struct.Struct("<iI")


def _doubles(route: Route, value: np.ndarray, form: PictureFormat) -> bytes:
    return value.astype("<f8").tobytes()


def _picture(route: Route, value: np.ndarray, form: PictureFormat) -> bytes:
    data = pictures.encode(value, form)[1]
    return len(data).to_bytes(4, "little") + data


def _pixels(route: Route, value: np.ndarray, form: PictureFormat) -> bytes:
    return (value.transpose(1, 2, 0) if route.codec == "taxels" else value).tobytes()


def _elements(route: Route, value: np.ndarray, form: PictureFormat) -> bytes:
    return value.astype(_array_dtype(ARRAYS[route.fields[0].dtype]), copy=False).tobytes()


_PAYLOADS: dict[str, Callable[[Route, np.ndarray, PictureFormat], bytes]] = {
    "pose": _doubles, "twist": _doubles, "wrench": _doubles, "png": _picture, "jpeg": _picture, "taxels": _pixels,
    "image": _pixels, "array": _elements,
}
"""What stands at the end of each message; joints have several arrays and are left to `rosbags`."""


def encode(route: Route, values: Sequence[np.ndarray], stamp_ns: int, form: PictureFormat) -> bytes:
    """One CDR message holding the values of the route's fields.

    Args:
        route: the topic.
        values: one array a field; on a windowed route one row (6,) of the window.
        stamp_ns: since the Unix epoch.
        form: how pictures are compressed.
    """
    return _ENCODERS[route.codec](route, values, stamp_ns, form)


def decode(route: Route, data: bytes | memoryview) -> list[np.ndarray]:
    """The values of the route's fields, of the dtypes and shapes that the route says.

    Raises:
        BrokenFileError: the message does not hold what its route says.
    """
    if route.codec not in _DECODERS:
        raise BrokenFileError(
            f"channel {route.topic} has codec {route.codec!r}", expected=f"one of {', '.join(_DECODERS)}",
            do="a newer robot_fb may read this file",
        )
    values = _DECODERS[route.codec](route, deserialize(data, route.type))
    return [_shaped(value, f, route) for value, f in zip(values, route.fields, strict=True)]


def _shaped(value: np.ndarray, field: Field, route: Route) -> np.ndarray:
    shape = field.shape[1:] if route.window else field.shape
    if value.size != np.prod(shape):
        raise BrokenFileError(f"stream {field.name} has another size", expected=shape, found=value.shape)
    return value.astype(field.dtype, copy=False).reshape(shape)


def _encode_joints(route: Route, values: Sequence[np.ndarray], stamp_ns: int, form: PictureFormat) -> bytes:
    by_name = {f.name: value for f, value in zip(route.fields, values, strict=True)}
    columns = [
        np.asarray(by_name.get(f"joint/{what}", ()), np.float64).ravel() for what in ("position", "velocity", "effort")
    ]
    names = [f"joint{i + 1}" for i in range(max(map(len, columns)))]
    return serialize(kind("sensor_msgs/msg/JointState")(header(stamp_ns), names, *columns))


def _decode_joints(route: Route, message: Any) -> list[np.ndarray]:
    return [np.asarray(getattr(message, f.name.removeprefix("joint/"), ())) for f in route.fields]


def _encode_pose(route: Route, values: Sequence[np.ndarray], stamp_ns: int, form: PictureFormat) -> bytes:
    v = values[0]
    point = kind("geometry_msgs/msg/Point")(float(v[0]), float(v[1]), float(v[2]))
    turn = kind("geometry_msgs/msg/Quaternion")(float(v[3]), float(v[4]), float(v[5]), float(v[6]))
    pose = kind("geometry_msgs/msg/Pose")(point, turn)
    return serialize(kind("geometry_msgs/msg/PoseStamped")(header(stamp_ns, "base"), pose))


def _decode_pose(route: Route, message: Any) -> list[np.ndarray]:
    p, q = message.pose.position, message.pose.orientation
    return [np.array([p.x, p.y, p.z, q.x, q.y, q.z, q.w])]


def _encode_twist(route: Route, values: Sequence[np.ndarray], stamp_ns: int, form: PictureFormat) -> bytes:
    twist = kind("geometry_msgs/msg/Twist")(vector3(values[0][:3]), vector3(values[0][3:]))
    return serialize(kind("geometry_msgs/msg/TwistStamped")(header(stamp_ns, "base"), twist))


def _decode_twist(route: Route, message: Any) -> list[np.ndarray]:
    return [_two_vectors(message.twist.linear, message.twist.angular)]


def _encode_wrench(route: Route, values: Sequence[np.ndarray], stamp_ns: int, form: PictureFormat) -> bytes:
    wrench = kind("geometry_msgs/msg/Wrench")(vector3(values[0][:3]), vector3(values[0][3:]))
    frame = route.fields[0].name.rpartition("/")[2]
    return serialize(kind("geometry_msgs/msg/WrenchStamped")(header(stamp_ns, frame), wrench))


def _decode_wrench(route: Route, message: Any) -> list[np.ndarray]:
    return [_two_vectors(message.wrench.force, message.wrench.torque)]


def _two_vectors(a: Any, b: Any) -> np.ndarray:
    return np.array([a.x, a.y, a.z, b.x, b.y, b.z])


def _encode_picture(route: Route, values: Sequence[np.ndarray], stamp_ns: int, form: PictureFormat) -> bytes:
    name, data = pictures.encode(values[0], form)
    frame = route.fields[0].name.rpartition("/")[2]
    message = kind("sensor_msgs/msg/CompressedImage")(header(stamp_ns, frame), name, np.frombuffer(data, np.uint8))
    return serialize(message)


def _decode_picture(route: Route, message: Any) -> list[np.ndarray]:
    return [pictures.decode(message.data, route.fields[0].shape)]


def _encode_image(route: Route, values: Sequence[np.ndarray], stamp_ns: int, form: PictureFormat) -> bytes:
    """sensor_msgs/Image; taxels (3, R, C) become R rows x C columns x 3 channels: normal, shear x, shear y."""
    value = values[0].transpose(1, 2, 0) if route.codec == "taxels" else values[0]
    height, width, *channels = value.shape
    encoding = IMAGE_ENCODINGS[str(value.dtype), channels[0] if channels else 1]
    data = np.ascontiguousarray(value).view(np.uint8).ravel()
    step = width * value.itemsize * (channels[0] if channels else 1)
    frame = route.fields[0].name.rpartition("/")[2]
    return serialize(kind("sensor_msgs/msg/Image")(header(stamp_ns, frame), height, width, encoding, 0, step, data))


def _decode_image(route: Route, message: Any) -> list[np.ndarray]:
    shape, dtype = route.fields[0].shape, np.dtype(route.fields[0].dtype)
    data = np.asarray(message.data, np.uint8)
    if data.size != np.prod(shape) * dtype.itemsize:
        raise BrokenFileError(f"stream {route.fields[0].name} has another size", expected=shape, found=data.size)
    if route.codec == "taxels":
        return [data.view(dtype).reshape(*shape[1:], shape[0]).transpose(2, 0, 1)]
    return [data.view(dtype)]


def _encode_array(route: Route, values: Sequence[np.ndarray], stamp_ns: int, form: PictureFormat) -> bytes:
    """std_msgs/...MultiArray: no header, so the stamp is the message's log time alone."""
    field = route.fields[0]
    name = ARRAYS[field.dtype]
    data = np.ascontiguousarray(values[0]).ravel().astype(_array_dtype(name), copy=False)
    labels = [(f"{field.name}[{axis}]", size) for axis, size in enumerate(values[0].shape)]
    return serialize(kind(f"std_msgs/msg/{name}")(messages.layout(labels), data))


def _decode_array(route: Route, message: Any) -> list[np.ndarray]:
    return [np.asarray(message.data)]


def _array_dtype(name: str) -> str:
    return name.removesuffix("MultiArray").lower()


_ENCODERS: dict[str, Callable[..., bytes]] = {
    "joints": _encode_joints, "pose": _encode_pose, "twist": _encode_twist, "wrench": _encode_wrench,
    "png": _encode_picture, "jpeg": _encode_picture, "taxels": _encode_image, "image": _encode_image,
    "array": _encode_array,
}
_DECODERS: dict[str, Callable[..., list[np.ndarray]]] = {
    "joints": _decode_joints, "pose": _decode_pose, "twist": _decode_twist, "wrench": _decode_wrench,
    "png": _decode_picture, "jpeg": _decode_picture, "taxels": _decode_image, "image": _decode_image,
    "array": _decode_array,
}
