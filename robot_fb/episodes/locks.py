"""A file that is being recorded is locked; this asks for that lock."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from robot_fb.errors import EpisodeError, StoreBusyError


@contextmanager
def not_recording(path: Path) -> Iterator[None]:
    """Holds the file's lock.

    Raises:
        StoreBusyError: a process is recording it.
        EpisodeError: it cannot be opened.
    """
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
    except BlockingIOError as error:
        raise StoreBusyError(f"{path} is being recorded by another process", do="stop the recording first") from error
    except (FileNotFoundError, PermissionError) as error:
        raise EpisodeError(f"cannot open {path}", found=error.strerror) from error


def is_recording(path: Path) -> bool:
    """Whether a process has the file open for recording."""
    try:
        with not_recording(path):
            return False
    except StoreBusyError:
        return True
