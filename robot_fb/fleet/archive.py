"""The hub's files: episodes that come in from members, releases that go out to them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from robot_fb.episodes.store import Store
from robot_fb.fleet.protocol import Kept, Message, Offer, Want
from robot_fb.fleet.transfer import Incoming, answer, offer


class Archive:
    """Answers every message about a file; the `post` of `fleet.hub.Hub`.

    Args:
        store: where episodes belong.
        folder: for what is not whole yet.
        arrived: called with (member, episode) once an episode is in the store.

    Attributes:
        release: that is rolled out, None before the first.
        has: member -> the name of the newest release that it has whole.
    """

    def __init__(
        self, store: Store, folder: Path, arrived: Callable[[str, str], None] = lambda name, episode: None
    ) -> None:
        self.release: Offer | None = None
        self.has: dict[str, str] = {}
        self._store, self._folder, self._arrived = store, folder, arrived
        self._incoming: dict[str, Incoming] = {}
        self._releases: dict[str, Path] = {}

    def publish(self, path: Path) -> Offer:
        """Makes a release the one that is rolled out."""
        self.release = offer(path.name, path)
        self._releases[path.name] = path
        return self.release

    def __call__(self, name: str, message: Message) -> list[Message]:
        """The answers to a member's message.

        Raises:
            ProtocolError: a file that cannot be taken.
        """
        if isinstance(message, Want):
            path = self._releases.get(message.name)
            return [] if path is None else [answer(message, path)]
        if isinstance(message, Kept):
            self.has[name] = message.name
            return []
        if name not in self._incoming:
            self._incoming[name] = Incoming(
                self._folder / name, self._store.file, lambda episode: self._arrived(name, episode)
            )
        return self._incoming[name].receive(message)
