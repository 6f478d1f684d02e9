"""Who may open the page: two tokens, sessions, and what a browser must not be talked into."""

from __future__ import annotations

import secrets
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256

from robot_fb.errors import ConfigError

OPERATOR, VIEWER = "operator", "viewer"

GUESSES, WINDOW_S = 5, 60.0
"""Wrong tokens from all sides together in that time [s] after which none is looked at."""

SESSION_S = 12 * 3600.0
"""A session that was not used for that long is over [s]."""

NAME_LENGTH = 40

LOOPBACK = ("127.0.0.1", "localhost", "::1")


class TooMany(Exception):
    """Too many wrong tokens: wait."""


@dataclass
class Session:
    """Somebody who has shown a token.

    Attributes:
        name: that they gave, made different from all others.
        role: "operator" or "viewer"; a viewer reads.
        used: when the session was last used [s].
    """

    name: str
    role: str
    used: float


class Access:
    """Tokens and sessions. A token is shown once, in a request's body; then a random session id stands for it.

    Args:
        clock: monotonic time [s].

    Attributes:
        tokens: role -> its token.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.tokens = {role: secrets.token_urlsafe(24) for role in (OPERATOR, VIEWER)}
        self._clock = clock
        self._sessions: dict[str, Session] = {}
        self._wrong: deque[float] = deque(maxlen=GUESSES)

    def login(self, token: str, name: str = "") -> str | None:
        """Begins a session.

        Returns:
            Its id; None for a wrong token.

        Raises:
            TooMany: wrong tokens came in too fast; even the right one is not looked at for a while.
        """
        now = self._clock()
        if len(self._wrong) == GUESSES and now - self._wrong[0] < WINDOW_S:
            raise TooMany
        shown = _digest(token)
        roles = [role for role, known in self.tokens.items() if secrets.compare_digest(shown, _digest(known))]
        role = roles[0] if roles else None
        if role is None:
            self._wrong.append(now)
            return None
        id = secrets.token_urlsafe(24)
        self._sessions[_digest(id).hex()] = Session(self._free_name(name, role), role, now)
        return id

    def session(self, id: str) -> Session | None:
        """The session of an id, None where it is unknown, over or logged out."""
        key, now = _digest(id).hex(), self._clock()
        found = self._sessions.get(key)
        if found is None or now - found.used > SESSION_S:
            self._sessions.pop(key, None)
            return None
        found.used = now
        return found

    def logout(self, id: str) -> None:
        """Ends a session: its id is worth nothing from now on."""
        self._sessions.pop(_digest(id).hex(), None)

    def _free_name(self, name: str, role: str) -> str:
        name = "".join(c for c in name if c.isprintable()).strip()[:NAME_LENGTH] or role
        taken = {session.name for session in self._sessions.values()}
        number, free = 1, name
        while free in taken:
            number += 1
            free = f"{name} {number}"
        return free


class Place:
    """Where the page is served: what a request must say to be from that page and to this server.

    Args:
        host: name or address that browsers use.
        port: to listen at.
        tls: whether it is served over TLS.

    Raises:
        ConfigError: a host that is no loopback without TLS, or one that names every address.
    """

    def __init__(self, host: str, port: int, tls: bool) -> None:
        if host in ("0.0.0.0", "::", ""):
            raise ConfigError("--host", expected="the address or name that browsers will use", found=host)
        if host not in LOOPBACK and not tls:
            raise ConfigError(
                f"{host} can be reached from other machines, and nothing would be encrypted",
                do="add --tls-cert and --tls-key, or use an SSH tunnel to 127.0.0.1",
            )
        names = LOOPBACK if host in LOOPBACK else (host,)
        self.scheme = "https" if tls else "http"
        self._hosts = {f"[{name}]:{port}" if ":" in name else f"{name}:{port}" for name in names}
        self.address = f"{self.scheme}://{f'[{host}]' if ':' in host else host}:{port}"

    def knows_host(self, headers: Mapping[str, str]) -> bool:
        """Whether a request names this server: one by another name comes through somebody else's DNS."""
        return headers.get("host", "") in self._hosts

    def knows_origin(self, headers: Mapping[str, str]) -> bool:
        """Whether a request comes from this server's own page."""
        return headers.get("origin", "") in {f"{self.scheme}://{host}" for host in self._hosts}


def _digest(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogatepass")).digest()
