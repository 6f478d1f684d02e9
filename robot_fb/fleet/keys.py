"""Keys of a fleet: the hub and every member has a CURVE key pair of its own (RFC 7748, ZeroMQ's CurveZMQ).

    FOLDER/hub.key_secret       stays with the hub
    FOLDER/hub.key              every member needs it
    FOLDER/NAME.key_secret      goes to that member, and to nobody else
    FOLDER/members/NAME.key     who may join, and as whom: the hub looks here
"""

from __future__ import annotations

import re
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import zmq.auth

from robot_fb.errors import ConfigError

HUB = "hub"
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")


@dataclass(frozen=True)
class Pair:
    """A key pair in Z85, as ZeroMQ takes it."""

    public: bytes
    secret: bytes


def make_hub(folder: Path) -> None:
    """Makes the hub's pair, unless it is there."""
    if not (folder / f"{HUB}.key_secret").exists():
        _make(folder, HUB)


def enrol(folder: Path, name: str) -> None:
    """Makes a member's pair and lets it join; one that is there stays as it is.

    Raises:
        ConfigError: a name that is no name.
    """
    if not NAME.fullmatch(name) or name == HUB:
        raise ConfigError(
            "a robot needs a name of small letters, digits, - and _, and not that of the hub", found=name[:80]
        )
    if (folder / f"{name}.key_secret").exists() and (folder / "members" / f"{name}.key").exists():
        return
    _make(folder, name)
    (folder / "members").mkdir(exist_ok=True)
    shutil.copyfile(folder / f"{name}.key", folder / "members" / f"{name}.key")


def members(folder: Path) -> dict[bytes, str]:
    """Public key -> name, of everybody who may join; a file that holds no key lets nobody in."""
    found = {}
    for path in sorted((folder / "members").glob("*.key")):
        with suppress(OSError, ValueError):
            found[zmq.auth.load_certificate(path)[0]] = path.stem
    return found


def pair(folder: Path, name: str) -> Pair:
    """A key pair.

    Raises:
        ConfigError: it is not there, or others can read it.
    """
    path = folder / f"{name}.key_secret"
    if not path.exists():
        raise ConfigError(f"there is no key {path}", do="the hub's machine makes it: robot-fb fleet enrol NAME")
    if path.stat().st_mode & 0o077:
        raise ConfigError(f"others can read the secret key {path}", do=f"chmod 600 {path}")
    public, secret = _load(path)
    if secret is None:
        raise ConfigError(f"{path} holds no secret key")
    return Pair(public, secret)


def public(folder: Path, name: str = HUB) -> bytes:
    """A public key.

    Raises:
        ConfigError: it is not there.
    """
    path = folder / f"{name}.key"
    if not path.exists():
        raise ConfigError(f"there is no key {path}", do="copy it from the hub's machine")
    return _load(path)[0]


def _load(path: Path) -> tuple[bytes, bytes | None]:
    try:
        return zmq.auth.load_certificate(path)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} is no key") from error


def _make(folder: Path, name: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    zmq.auth.create_certificates(folder, name)
    (folder / f"{name}.key_secret").chmod(0o600)
