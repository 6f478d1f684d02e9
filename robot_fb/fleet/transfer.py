"""Files on their way from one side to the other: in pieces, resumed where they broke off, whole or not there at all."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable
from pathlib import Path

from robot_fb.errors import ProtocolError
from robot_fb.fleet.protocol import Kept, Message, Offer, Piece, Want

PIECE_BYTES = 1 << 18
"""Asked for at once: small beside what a link carries between two decisions."""

MAX_FILE = 1 << 34

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,199}")


def offer(name: str, path: Path) -> Offer:
    """The file at `path`, as an offer."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return Offer(name, path.stat().st_size, digest.hexdigest())


def answer(want: Want, path: Path) -> Piece:
    """The piece that is wanted of the file at `path`."""
    with path.open("rb") as file:
        file.seek(max(0, want.start))
        return Piece(want.name, want.start, file.read(PIECE_BYTES))


class Incoming:
    """Takes offered files in, one at a time.

    What has come of a file lies in `folder` until it is whole; a connection or a process that breaks off loses none
    of it. A file that does not match its digest is thrown away and begun again.

    Args:
        folder: for files that are not whole yet.
        place: where a whole file of that name belongs.
        kept: called once a file is in its place, also where it was there before.
    """

    def __init__(self, folder: Path, place: Callable[[str], Path], kept: Callable[[str], None] = lambda name: None):
        self._folder, self._place, self._kept = folder, place, kept
        self._offer: Offer | None = None
        folder.mkdir(parents=True, exist_ok=True)

    def receive(self, message: Message) -> list[Message]:
        """Takes an `Offer` or a `Piece`; returns what to answer.

        Raises:
                ProtocolError: a name or a size that nobody would honestly send, a name that is taken, or a piece of
                something else.
        """
        if isinstance(message, Offer):
            return self._begin(message)
        if isinstance(message, Piece):
            return self._add(message)
        return []

    def _begin(self, found: Offer) -> list[Message]:
        sound = NAME.fullmatch(found.name) and re.fullmatch("[0-9a-f]{64}", found.sha256)
        if not sound or not 0 <= found.size <= MAX_FILE:
            raise ProtocolError("an unusable offer of a file", found=found.name[:80])
        place = self._place(found.name)
        if place.exists():
            if offer(found.name, place) != found:
                raise ProtocolError("another file of that name is there already", found=found.name)
            self._kept(found.name)
            return [Kept(found.name)]
        self._offer = found
        return self._next()

    def _add(self, piece: Piece) -> list[Message]:
        if self._offer is None or piece.name != self._offer.name:
            return []  # of an offer that another one has replaced
        part = self._part()
        have = part.stat().st_size if part.exists() else 0
        if piece.start != have:
            return []  # it comes a second time
        if have + len(piece.data) > self._offer.size or not piece.data:
            raise ProtocolError("a piece that is not of the file that was offered", found=piece.name)
        with part.open("ab") as file:
            file.write(piece.data)
        return self._next()

    def _next(self) -> list[Message]:
        """Asks for more, or puts the file in its place."""
        assert self._offer is not None
        part, name = self._part(), self._offer.name
        have = part.stat().st_size if part.exists() else 0
        if have < self._offer.size:
            return [Want(name, have)]
        part.touch()
        if offer(name, part) != self._offer:
            part.unlink()
            return [Want(name, 0)]
        place = self._place(name)
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        part.replace(place)
        _sync(place.parent)
        self._offer = None
        self._kept(name)
        return [Kept(name)]

    def _part(self) -> Path:
        assert self._offer is not None
        return self._folder / f"{self._offer.name}.{self._offer.sha256[:16]}.part"


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
