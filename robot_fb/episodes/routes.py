"""Which ROS 2 topic and message type a stream is logged under, and the way back.

A `Route` is written into its channel's metadata, so a reader needs neither the names below nor this version's rules:
files say themselves which streams, shapes and dtypes their topics hold.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from robot_fb.episodes.pictures import PictureFormat
from robot_fb.episodes.schema import DECISION_TOPIC, FEEDBACK_TOPIC
from robot_fb.errors import BrokenFileError

METADATA_KEY = "robot_fb"

MOST_NUMBERS = 1 << 28
"""In one value of a stream; a file that claims more is damaged."""

JOINTS = ("joint/position", "joint/velocity", "joint/effort")

ARRAYS = {  # numpy dtype -> std_msgs type that holds it exactly
    "float16": "Float32MultiArray", "float32": "Float32MultiArray", "float64": "Float64MultiArray",
    "int8": "Int8MultiArray", "int16": "Int16MultiArray", "int32": "Int32MultiArray", "int64": "Int64MultiArray",
    "uint8": "UInt8MultiArray", "uint16": "UInt16MultiArray", "uint32": "UInt32MultiArray",
    "uint64": "UInt64MultiArray", "bool": "UInt8MultiArray",
}

IMAGE_ENCODINGS = {("float32", 1): "32FC1", ("float32", 3): "32FC3", ("uint16", 1): "16UC1"}


@dataclass(frozen=True)
class Field:
    """One stream on a route.

    Attributes:
        name: of the stream.
        shape, dtype, unit: of one value.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    unit: str = ""


@dataclass(frozen=True)
class Route:
    """One topic.

    Attributes:
        topic: absolute ROS name.
        type: message type, e.g. "sensor_msgs/msg/Image".
        codec: which functions of `robot_fb.episodes.codecs` turn values into messages and back.
        fields: the streams; more than one only on joint_states.
        role: "step" where values belong to decision steps, "sample" where a source writes at its own rate.
        window: rows of a sliding window that is logged sample by sample, 0 where a message is a whole value.
    """

    topic: str
    type: str
    codec: str
    fields: tuple[Field, ...]
    role: str = "step"
    window: int = 0

    def to_json(self) -> str:
        """For the channel's metadata."""
        fields = json.loads(fields_to_json(self.fields))
        return json.dumps({"codec": self.codec, "fields": fields, "role": self.role, "window": self.window})

    @classmethod
    def from_json(cls, topic: str, kind: str, text: str) -> Route:
        """The route behind a channel's metadata.

        Raises:
            BrokenFileError: the text is damaged.
        """
        try:
            data = json.loads(text)
            fields = fields_from_json(json.dumps(data["fields"]))
            window = int(data["window"])
            if window and (len(fields) != 1 or fields[0].shape[:1] != (window,)):
                raise ValueError("a window of another length than its stream")
            return cls(topic, kind, str(data["codec"]), fields, str(data["role"]), window)
        except (ValueError, KeyError, TypeError) as error:
            raise BrokenFileError(f"channel {topic} describes its stream wrongly", found=str(error)) from error


def fields_to_json(fields: Sequence[Field]) -> str:
    """Plain text for a channel's metadata."""
    return json.dumps([[f.name, list(f.shape), f.dtype, f.unit] for f in fields])


def fields_from_json(text: str) -> tuple[Field, ...]:
    """The way back.

    Raises:
        BrokenFileError: the text is damaged or names an impossible shape or dtype.
    """
    try:
        fields = tuple(Field(str(n), tuple(map(int, s)), str(np.dtype(d)), str(u)) for n, s, d, u in json.loads(text))
        for f in fields:
            if f.dtype not in ARRAYS or np.prod(f.shape, dtype=float) > MOST_NUMBERS or min(f.shape, default=1) < 0:
                raise ValueError(f"an impossible shape or dtype of {f.name}")
    except (ValueError, TypeError) as error:
        raise BrokenFileError("a channel describes its streams wrongly", found=str(error)) from error
    return fields


def routes_for(
    fields: Sequence[Field], pictures: PictureFormat, taken: Mapping[str, object], role: str = "step"
) -> list[Route]:
    """One route a stream, joints together.

    Args:
        fields: the streams.
        pictures: how pictures are compressed.
        taken: topics in use, which are evaded: two channels of one name confuse bag tools.
        role: of all routes.
    """
    joints = tuple(f for name in JOINTS for f in fields if f.name == name and f.dtype in ("float32", "float64"))
    routes = [Route("/joint_states", "sensor_msgs/msg/JointState", "joints", joints)] if joints else []
    routes += [_route(f, pictures) for f in fields if f not in joints]
    return [replace(route, topic=_evade(route.topic, taken, role), role=role) for route in routes]


def _route(field: Field, pictures: PictureFormat) -> Route:
    name, shape, dtype = field.name, field.shape, field.dtype
    real, first = dtype in ("float32", "float64"), name.partition("/")[0]
    fields = (field,)
    if real and shape == (7,) and name.endswith("/pose"):
        return Route(f"/{name.replace('/', '_')}", "geometry_msgs/msg/PoseStamped", "pose", fields)
    if real and shape == (6,) and name.endswith(("/velocity", "/twist")):
        topic = name.rpartition("/")[0].replace("/", "_") + "_twist"
        return Route(f"/{topic}", "geometry_msgs/msg/TwistStamped", "twist", fields)
    if real and first == "wrench" and shape[-1:] == (6,) and len(shape) in (1, 2):
        topic = "/wrench" if name == "wrench/wrist" else f"/{name}"
        return Route(topic, "geometry_msgs/msg/WrenchStamped", "wrench", fields, window=shape[0] if shape[1:] else 0)
    if dtype == "uint8" and len(shape) == 3 and shape[2] in (1, 3, 4) and min(shape) > 0:
        topic = f"/{name}/image_raw/compressed" if first == "camera" else f"/{name}/compressed"
        return Route(topic, "sensor_msgs/msg/CompressedImage", pictures.name(shape), fields)
    if first == "tactile" and dtype == "float32" and len(shape) == 3 and shape[0] == 3:
        return Route(f"/{name}", "sensor_msgs/msg/Image", "taxels", fields)
    if first == "camera" and (dtype, *shape[2:]) in {("float32",), ("uint16",)} and len(shape) == 2:
        return Route(f"/{name}/image_raw", "sensor_msgs/msg/Image", "image", fields)
    return Route(f"/{name}", f"std_msgs/msg/{ARRAYS[dtype]}", "array", fields)


def _evade(topic: str, taken: Mapping[str, object], role: str) -> str:
    reserved = topic.startswith(("/monitor/", DECISION_TOPIC, FEEDBACK_TOPIC))
    if topic not in taken and not reserved:
        return topic
    topic = f"/observation{topic}" if role == "step" else f"/samples{topic}"
    while topic in taken:
        topic += "_"
    return topic
