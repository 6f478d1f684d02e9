"""The fast way of encoding gives the very bytes of the plain one."""

from __future__ import annotations

import numpy as np
import pytest
from episode_samples import STREAMS, value

from robot_fb.episodes.codecs import Encoder, decode, encode
from robot_fb.episodes.pictures import PictureFormat
from robot_fb.episodes.routes import Field, routes_for
from robot_fb.types import StreamSpec

MORE = {"camera/big": StreamSpec((200, 210, 3), "uint8"), "camera/alpha": StreamSpec((200, 10, 4), "uint8")}


@pytest.mark.parametrize("name", [*STREAMS, *MORE])
def test_fast_and_plain_encoding_agree(name):
    spec = {**STREAMS, **MORE}[name]
    (route,) = routes_for([Field(name, spec.shape, spec.dtype)], PictureFormat(), {})
    encoder, rng = Encoder(route, PictureFormat()), np.random.default_rng(0)

    for stamp in (0, 1_790_000_000_123_456_789, 5):
        sample = value(rng, spec)
        sample = sample[-1] if route.window else sample
        message = encoder([sample], stamp)
        assert message == encode(route, [sample], stamp, PictureFormat())
        if name != "camera/big":
            assert decode(route, message)[0].tobytes() == sample.tobytes()
