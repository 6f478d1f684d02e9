"""Pictures as they are logged: small ones without loss, large ones as JPEG."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import cv2
import numpy as np

from robot_fb.errors import BrokenFileError, ConfigError

LARGEST = 1 << 28
"""Pixels of the largest picture that is decoded."""


@dataclass(frozen=True)
class PictureFormat:
    """How pictures are compressed.

    Attributes:
        lossless_up_to: pictures whose longer side is at most this many pixels are kept bit for bit, as PNG.
        jpeg_quality: 1 to 100, for all larger ones.
    """

    lossless_up_to: int = 128
    jpeg_quality: int = 90

    def __post_init__(self) -> None:
        if not 1 <= self.jpeg_quality <= 100:
            raise ConfigError("jpeg_quality", expected="1 to 100", found=self.jpeg_quality)

    def name(self, shape: tuple[int, ...]) -> str:
        """ "png" or "jpeg" for a picture of this shape; OpenCV writes no JPEG with an alpha channel."""
        small = max(shape[:2]) <= self.lossless_up_to
        return "png" if small or shape[2:] == (4,) else "jpeg"


def encode(picture: np.ndarray, form: PictureFormat) -> tuple[str, bytes]:
    """(format name, file bytes) of (H, W[, 1|3|4]) uint8, RGB order."""
    name = form.name(picture.shape)
    # Level 1 costs a third of the default's time for a few per cent more bytes, and the writer must keep up.
    option = [cv2.IMWRITE_PNG_COMPRESSION, 1] if name == "png" else [cv2.IMWRITE_JPEG_QUALITY, form.jpeg_quality]
    done, data = cv2.imencode(f".{name}", _swap(picture), option)
    if not done:
        raise ConfigError(f"OpenCV cannot write a {name} of shape {picture.shape}")
    return name, data.tobytes()


def decode(data: np.ndarray, shape: tuple[int, ...] | None = None) -> np.ndarray:
    """The RGB or grey picture behind file bytes, in `shape` when given.

    Raises:
        BrokenFileError: no picture, or not of that shape.
    """
    size = _size(bytes(data[:65536]))
    if shape is not None and size is not None and size != shape[:2]:  # before it costs memory
        raise BrokenFileError("a picture has another size than its stream", expected=shape, found=size)
    if size is not None and size[0] * size[1] > LARGEST:
        raise BrokenFileError("a picture is too large", expected=f"at most {LARGEST} pixels", found=size)
    try:
        picture = cv2.imdecode(np.asarray(data, np.uint8), cv2.IMREAD_UNCHANGED) if len(data) else None
    except cv2.error as error:
        raise BrokenFileError("a picture cannot be decoded", found=str(error).splitlines()[0]) from error
    if picture is None:
        raise BrokenFileError("a picture cannot be decoded", found=f"{len(data)} bytes that are no PNG or JPEG")
    picture = _swap(picture)
    if shape is None:
        return picture
    if picture.size != np.prod(shape) or picture.dtype != np.uint8:
        raise BrokenFileError("a picture has another size than its stream", expected=shape, found=picture.shape)
    return picture.reshape(shape)


def _size(data: bytes) -> tuple[int, int] | None:
    """(height, width) as a PNG's or JPEG's header says; None where it is neither or says nothing."""
    if data.startswith(b"\x89PNG\r\n\x1a\n") and len(data) >= 24:
        width, height = struct.unpack_from(">II", data, 16)
        return height, width
    at = 2
    while data.startswith(b"\xff\xd8") and at + 9 <= len(data) and data[at] == 0xFF:
        if 0xC0 <= data[at + 1] <= 0xCF and data[at + 1] not in (0xC4, 0xC8, 0xCC):  # a start of frame
            height, width = struct.unpack_from(">HH", data, at + 5)
            return height, width
        at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return None


def _swap(picture: np.ndarray) -> np.ndarray:
    """RGB <-> BGR (and RGBA <-> BGRA)."""
    channels = picture.shape[2] if picture.ndim == 3 else 1
    if channels not in (3, 4):
        return picture
    return cv2.cvtColor(picture, cv2.COLOR_RGB2BGR if channels == 3 else cv2.COLOR_RGBA2BGRA)
