"""What a hub and its members say to each other, as bytes.

A message is four bytes, `RFB` and the protocol's version, and then one msgpack map: `kind` names a class of this
module, the other keys are its fields. Whatever is not exactly that is refused before anything is done with it.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, get_type_hints

import msgpack

from robot_fb.errors import ProtocolError

MAGIC, VERSION = b"RFB", 1

MAX_BYTES = 1 << 20
"""Of a whole message; a socket that gets more closes the connection."""

MAX_TEXT, MAX_NUMBERS = 2000, 256


class Message:
    """Base of all messages; each is a frozen dataclass of text, numbers, truth values, bytes and tuples of numbers."""


@dataclass(frozen=True)
class Hello(Message):
    """Member: what it is; the first message of every connection, and the answer to `Who`. Its key says its name.

    Attributes:
        task: that it works on.
        dt: seconds between decisions.
        low: of its actions.
        high: of its actions.
        policy: digest of the policy that it runs.
        state: of `runtime.handshake.State`.
    """

    task: str
    dt: float
    low: tuple[float, ...]
    high: tuple[float, ...]
    policy: str
    state: str


@dataclass(frozen=True)
class Status(Message):
    """Member: how it is, at every decision.

    Attributes:
        stamp: of the decision, on the member's monotonic clock [s].
        state: of `runtime.handshake.State`.
        risk: the monitors' highest score; above 1 is an alarm.
        force: measured, on the tool [N].
        touch: sum over all tactile elements [N].
        episode: how many it has begun.
        success: whether the task is done.
        reason: why it last alarmed.
        refused: why the operator's last command was refused; empty where it was not.
        action: that the robot was sent; a hand that takes over begins with its grip.
    """

    stamp: float
    state: str
    risk: float
    force: float
    touch: float
    episode: int
    success: bool
    reason: str
    refused: str
    action: tuple[float, ...]


@dataclass(frozen=True)
class Request(Message):
    """Member: it needs an operator.

    Attributes:
        risk: at the alarm.
        reason: for the operator.
        irreversible: 0 to 1, how much would be lost by going on.
    """

    risk: float
    reason: str
    irreversible: float


@dataclass(frozen=True)
class Ping(Message):
    """Member: sent often while an operator has it; `Beat` answers."""

    sequence: int


@dataclass(frozen=True)
class Picture(Message):
    """Member: one camera picture, sent while somebody watches.

    Attributes:
        stream: its name.
        stamp: when it was taken, on the member's monotonic clock [s].
        jpeg: the picture.
    """

    stream: str
    stamp: float
    jpeg: bytes


@dataclass(frozen=True)
class Beat(Message):
    """Hub: it is there."""

    sequence: int


@dataclass(frozen=True)
class Who(Message):
    """Hub: it does not know this connection; the member says `Hello` again."""


@dataclass(frozen=True)
class Refused(Message):
    """Hub: it will not have this member, and why."""

    reason: str


@dataclass(frozen=True)
class Said(Message):
    """Hub: an event of `runtime.handshake.Event`."""

    event: str


@dataclass(frozen=True)
class Watch(Message):
    """Hub: whether somebody watches the pictures."""

    on: bool


@dataclass(frozen=True)
class Steer(Message):
    """Hub: an operator's command; see `runtime.teleop.Command`."""

    action: tuple[float, ...]
    held: bool
    sequence: int
    picture: float


@dataclass(frozen=True)
class Guide(Message):
    """Hub: the simulated operator has taken the robot; a simulated member moves with the hand that it keeps for this.

    Attributes:
        tired: 0 rested, 1 tired.
    """

    tired: float


@dataclass(frozen=True)
class Mark(Message):
    """Hub: what an operator says about the episode; it goes into the log.

    Attributes:
        what: "success", "failure", "good", "bad" or "note".
        text: of a note.
        author: the operator.
    """

    what: str
    text: str
    author: str


@dataclass(frozen=True)
class Work(Message):
    """Hub: the member begins no episode after this many; without a word it goes on."""

    until: int


@dataclass(frozen=True)
class Offer(Message):
    """Either: a file that it has and the other may lack, an episode of the member's or a release of the hub's.

    Attributes:
        name: of the file.
        size: of the file [bytes].
        sha256: of the file, in hexadecimal.
    """

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Want(Message):
    """Either: the next bytes of a file that was offered."""

    name: str
    start: int


@dataclass(frozen=True)
class Piece(Message):
    """Either: bytes of a file, the answer to `Want`."""

    name: str
    start: int
    data: bytes


@dataclass(frozen=True)
class Kept(Message):
    """Either: it has the whole file on its disk; an episode need not be kept by the member any more."""

    name: str


KINDS: dict[str, type[Message]] = {kind.__name__: kind for kind in Message.__subclasses__()}

_FIELDS = {
    kind: {field.name: get_type_hints(kind)[field.name] for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    for kind in KINDS.values()
}


def encode(message: Message) -> bytes:
    """The message as bytes.

    Raises:
        ProtocolError: a value that `decode` would refuse; nothing unreadable is ever sent.
    """
    kind = type(message)
    fields = {name: _check(kind, name, getattr(message, name)) for name in _FIELDS[kind]}
    data = MAGIC + bytes([VERSION]) + bytes(msgpack.packb({"kind": kind.__name__, **fields}))  # type: ignore[arg-type]
    if len(data) > MAX_BYTES:
        raise ProtocolError("the message is too long", expected=f"at most {MAX_BYTES} bytes", found=len(data))
    return data


def decode(data: bytes) -> Message:
    """The message that bytes stand for.

    Raises:
        ProtocolError: another protocol or version, an unknown kind, a wrong field, a NaN, something too long.
    """
    if len(data) > MAX_BYTES:
        raise ProtocolError("the message is too long", expected=f"at most {MAX_BYTES} bytes", found=len(data))
    if data[:3] != MAGIC or len(data) < 5:
        raise ProtocolError("this is no message of robot_fb", found=data[:16].hex())
    if data[3] != VERSION:
        raise ProtocolError(
            "the other side speaks another version of the protocol", expected=VERSION, found=data[3],
            do="install the same robot_fb on both sides",
        )
    try:
        fields: Any = msgpack.unpackb(
            data[4:], use_list=False, max_array_len=MAX_NUMBERS, max_map_len=32, max_ext_len=0
        )
    except (ValueError, msgpack.exceptions.UnpackException, RecursionError) as error:
        raise ProtocolError("a message cannot be read", found=type(error).__name__) from error
    kind = KINDS.get(fields.pop("kind", "")) if isinstance(fields, dict) else None
    if kind is None:
        raise ProtocolError("a message is of no known kind")
    if set(fields) != set(_FIELDS[kind]):
        raise ProtocolError(f"{kind.__name__} has other fields", expected=sorted(_FIELDS[kind]), found=list(fields))
    return kind(**{name: _check(kind, name, value) for name, value in fields.items()})


def _check(kind: type[Message], name: str, value: Any) -> Any:
    """The value, if it is of the field's type and within all limits."""
    wanted = _FIELDS[kind][name]
    if wanted is float:
        return _check_number(kind, name, value)
    if wanted is int and type(value) is int and -(1 << 62) < value < 1 << 62:
        return value
    if wanted is str and isinstance(value, str) and len(value) <= MAX_TEXT:
        return str(value)
    if wanted in (bool, bytes) and type(value) is wanted:
        return value
    if wanted == tuple[float, ...] and isinstance(value, tuple) and len(value) <= MAX_NUMBERS:
        return tuple(_check_number(kind, name, each) for each in value)
    raise _unusable(kind, name)


def _check_number(kind: type[Message], name: str, value: Any) -> float:
    if type(value) in (int, float) and math.isfinite(value):
        return float(value)
    raise _unusable(kind, name)


def _unusable(kind: type[Message], name: str) -> ProtocolError:
    wanted = _FIELDS[kind][name]
    return ProtocolError(f"{kind.__name__}.{name} is not usable", expected=getattr(wanted, "__name__", str(wanted)))
