"""Messages survive the way as bytes; everything else is refused, and nothing but a ProtocolError comes of it."""

from __future__ import annotations

import dataclasses
from typing import get_type_hints

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robot_fb.errors import ProtocolError
from robot_fb.fleet import protocol

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
OF = {
    float: NUMBERS, int: st.integers(-(2**61), 2**61), str: st.text(max_size=50), bool: st.booleans(),
    bytes: st.binary(max_size=200), tuple[float, ...]: st.lists(NUMBERS, max_size=20).map(tuple),
}


def messages():
    def made(kind):
        hints = get_type_hints(kind)
        return st.builds(kind, **{field.name: OF[hints[field.name]] for field in dataclasses.fields(kind)})

    return st.one_of([made(kind) for kind in protocol.KINDS.values()])


@given(messages())
def test_every_message_comes_back(message):
    assert protocol.decode(protocol.encode(message)) == message


@given(st.one_of(st.binary(max_size=300), st.binary(max_size=300).map(lambda data: b"RFB\x01" + data)))
def test_noise_is_refused(data):
    with pytest.raises(ProtocolError):
        protocol.decode(data)


@given(messages(), st.data())
def test_one_changed_byte_is_refused_or_still_a_message(message, data):
    whole = bytearray(protocol.encode(message))
    whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    try:
        assert isinstance(protocol.decode(bytes(whole)), protocol.Message)
    except ProtocolError:
        pass


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"kind": "Ping", "sequence": "1"}, "Ping.sequence"),
        ({"kind": "Ping", "sequence": True}, "Ping.sequence"),
        ({"kind": "Ping"}, "other fields"),
        ({"kind": "Ping", "sequence": 1, "more": 2}, "other fields"),
        ({"kind": "Said", "event": "x" * 3000}, "Said.event"),
        ({"kind": "Steer", "action": [float("nan")], "held": True, "sequence": 1, "picture": 0.0}, "Steer.action"),
        ({"kind": "Steer", "action": [0.0] * 300, "held": True, "sequence": 1, "picture": 0.0}, "cannot be read"),
        ({"kind": "Message"}, "no known kind"),
        ({"kind": ["Ping"]}, "no known kind"),
        ([1, 2], "no known kind"),
    ],
)
def test_what_is_wrong_is_named(fields, words):
    with pytest.raises(ProtocolError, match=words):
        protocol.decode(b"RFB\x01" + msgpack.packb(fields))


def test_another_version_says_so():
    data = bytearray(protocol.encode(protocol.Who()))
    data[3] = 2
    with pytest.raises(ProtocolError, match=r"another version.*expected 1.*found 2"):
        protocol.decode(bytes(data))


def test_nothing_unreadable_is_sent():
    with pytest.raises(ProtocolError, match=r"Status\.risk"):
        protocol.encode(protocol.Status(0.0, "human", float("inf"), 0.0, 0.0, 1, False, "", "", ()))
    with pytest.raises(ProtocolError, match="too long"):
        protocol.encode(protocol.Picture("camera/wrist", 0.0, b"x" * protocol.MAX_BYTES))
