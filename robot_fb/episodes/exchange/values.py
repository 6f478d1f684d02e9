"""Numbers out of common ROS messages, of ROS 1 and 2 alike."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np

from robot_fb.episodes import pictures
from robot_fb.errors import BrokenFileError, ConfigError

_RAW = {"rgb8": 3, "bgr8": 3, "rgba8": 4, "bgra8": 4, "mono8": 1}
_DEFAULT_FIELDS = {
    "JointState": ("position",), "WrenchStamped": ("wrench",), "PoseStamped": ("pose",), "TwistStamped": ("twist",),
    "TransformStamped": ("transform",), "JointTrajectoryPoint": ("positions",), "LaserScan": ("ranges",),
    "Imu": ("angular_velocity", "linear_acceleration"), "PointStamped": ("point",), "Range": ("range",),
    "AccelStamped": ("accel",), "Vector3Stamped": ("vector",), "Joy": ("axes",), "FluidPressure": ("fluid_pressure",),
}


def extract(message: Any, type_name: str, field: str, size: tuple[int, ...] = ()) -> np.ndarray:
    """The array that a message is about.

    Args:
        message: as `rosbags` decodes it.
        type_name: e.g. "sensor_msgs/msg/JointState".
        field: dotted path inside it; chosen by type when empty.
        size: (height, width) for pictures.

    Raises:
        ConfigError: the path leads to no numbers.
        BrokenFileError: a picture that cannot be decoded.
    """
    short = type_name.rpartition("/")[2]
    if not field and short in ("CompressedImage", "Image"):
        picture = _compressed(message) if short == "CompressedImage" else _image(message)
        if size and picture.shape[:2] != tuple(size):
            # Area averaging is the one that does not alias when pictures shrink.
            picture = cv2.resize(picture, (size[1], size[0]), interpolation=cv2.INTER_AREA)
            picture = picture if picture.ndim == 3 else picture[:, :, None]
        return picture
    paths = (field,) if field else _DEFAULT_FIELDS.get(short, ("",))
    parts = [_numbers(_walk(message, path, type_name), type_name) for path in paths]
    return np.concatenate([np.atleast_1d(p) for p in parts]) if len(parts) > 1 else np.asarray(parts[0])


def _walk(message: Any, path: str, type_name: str) -> Any:
    for name in filter(None, path.split(".")):
        if not hasattr(message, name):
            raise ConfigError(f"{type_name} has no field {path!r}", do=f"known here: {', '.join(vars(message))}")
        message = getattr(message, name)
    return message


def _numbers(value: Any, type_name: str) -> np.ndarray:
    """A number, an array, or a message of numbers in the order of its fields; stamps and layouts are no numbers."""
    if isinstance(value, np.ndarray | int | float | bool | np.generic):
        return np.asarray(value)
    if hasattr(value, "__msgtype__"):
        inner = [v for name, v in vars(value).items() if name not in ("header", "layout", "covariance", "__msgtype__")]
        parts = [np.atleast_1d(_numbers(v, type_name)).ravel() for v in inner]
        if parts:
            return parts[0] if len(parts) == 1 else np.concatenate(parts)
    raise ConfigError(
        f"no numbers in {type_name}", found=type(value).__name__, do="name the wanted part with field: a.b.c"
    )


def _compressed(message: Any) -> np.ndarray:
    picture = pictures.decode(message.data)
    return picture if picture.ndim == 3 else picture[:, :, None]


def _image(message: Any) -> np.ndarray:
    encoding, data = message.encoding, np.asarray(message.data, np.uint8)
    if encoding.startswith(("32FC", "16UC", "8UC")) or encoding in ("mono16", *_RAW):
        kind, channels = _form(encoding)
    else:
        raise ConfigError(f"pictures of encoding {encoding!r} cannot be imported", expected=", ".join(_RAW))
    width = message.width * channels * kind.itemsize
    if message.step < width or data.size < message.step * message.height:
        raise BrokenFileError("a picture has fewer bytes than it says", expected=message.step * message.height,
                              found=data.size)
    rows = data[: message.step * message.height].reshape(message.height, message.step)[:, :width]
    picture = np.ascontiguousarray(rows).view(kind).reshape(message.height, message.width, channels)
    if encoding.startswith("bgr"):
        picture = picture[:, :, [2, 1, 0, 3][:channels]]
    return picture.astype(kind.newbyteorder("="))


def _form(encoding: str) -> tuple[np.dtype, int]:
    if encoding in _RAW:
        return np.dtype(np.uint8), _RAW[encoding]
    if encoding == "mono16":
        return np.dtype("<u2"), 1
    kind, _, channels = encoding.partition("C")
    return np.dtype({"32F": "<f4", "16U": "<u2", "8U": "u1"}[kind]), int(channels or 1)
