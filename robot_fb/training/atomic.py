"""Files that are either whole or not there."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

from robot_fb.errors import DiskFullError


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Calls `write(temporary)`, brings the bytes to the disk, then renames over `path`.

    Raises:
        DiskFullError: the disk took no more; what stood at `path` stays.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        write(temporary)
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFullError(f"no room to write {path}", do="free some space; the old file is kept") from error
        raise
    finally:
        temporary.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
