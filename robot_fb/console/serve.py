"""Runs the page's server on a thread beside the fleet."""

from __future__ import annotations

import socket
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from robot_fb.console.access import OPERATOR, VIEWER, Access, Place
from robot_fb.console.app import Fleet, make_app
from robot_fb.console.talk import MAX_BYTES
from robot_fb.errors import ConfigError

PORT = 8765

START_S = 10.0
"""The server is up within that time, or it is not coming [s]."""


@dataclass(frozen=True, kw_only=True)
class ConsoleConfig:
    """Where the page is served.

    Attributes:
        host: address or name that browsers use; other machines reach only one that is served over TLS.
        port: to listen at.
        tls_cert, tls_key: files of a certificate and its key (PEM).
    """

    host: str = "127.0.0.1"
    port: int = PORT
    tls_cert: Path | None = None
    tls_key: Path | None = None

    def __post_init__(self) -> None:
        """Refuses what cannot work."""
        if not 1 <= self.port <= 65535:
            raise ConfigError("--port", expected="1 to 65535", found=self.port)
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ConfigError("--tls-cert and --tls-key belong together")
        for path in (self.tls_cert, self.tls_key):
            if path is not None and not path.is_file():
                raise ConfigError(f"there is no file {path}")


class Console:
    """A context manager: the page is there while it is open.

    Args:
        fleet: that the page shows.
        config: where.

    Attributes:
        address: of the page, with the operator's token; the fragment after # never leaves the browser.
        viewers_address: the same with the token of those who look on.

    Raises:
        ConfigError: the port is taken, or the certificate cannot be used.
    """

    def __init__(self, fleet: Fleet, config: ConsoleConfig) -> None:
        place = Place(config.host, config.port, config.tls_cert is not None)
        access = Access()
        self.address = f"{place.address}/#token={access.tokens[OPERATOR]}"
        self.viewers_address = f"{place.address}/#token={access.tokens[VIEWER]}"
        self._socket = _listen(config)
        try:
            self._server = uvicorn.Server(uvicorn.Config(
                make_app(fleet, access, place), log_level="warning", access_log=False, ws_max_size=MAX_BYTES,
                ws_max_queue=64, timeout_graceful_shutdown=1, server_header=False, lifespan="off",
                ssl_certfile=str(config.tls_cert) if config.tls_cert else None,
                ssl_keyfile=str(config.tls_key) if config.tls_key else None,
            ))
            self._server.config.load()
        except OSError as error:  # ssl.SSLError is one
            self._socket.close()
            raise ConfigError("the certificate cannot be used", found=str(error)) from error
        self._thread = threading.Thread(target=self._run, name="console", daemon=True)

    def __enter__(self) -> Console:
        self._thread.start()
        end = time.monotonic() + START_S
        while not self._server.started and self._thread.is_alive() and time.monotonic() < end:
            time.sleep(0.01)
        if not self._server.started:
            raise ConfigError("the console did not start")
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.should_exit = True
        self._thread.join(5.0)

    def _run(self) -> None:
        self._server.run(sockets=[self._socket])


def _listen(config: ConsoleConfig) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(config.host, config.port, type=socket.SOCK_STREAM)[0]
        found = socket.socket(family, kind, protocol)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        found.listen(64)
    except OSError as error:
        raise ConfigError(
            f"the console cannot listen at {config.host}:{config.port}", found=error.strerror or str(error),
            do="choose another --port",
        ) from error
    return found
