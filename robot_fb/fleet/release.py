"""What a hub rolls out: a policy, and the monitor that was fitted for it, as one file."""

from __future__ import annotations

import hashlib
import re
import shutil
from pathlib import Path

import msgpack

from robot_fb.errors import CheckpointError
from robot_fb.training.checkpoint import policy_folder

POLICY, MONITOR = "policy", "monitor"

_NAME = re.compile(r"(policy|monitor)(/base)*/[A-Za-z0-9][A-Za-z0-9_.-]*")


def pack(policy: Path, monitor: Path | None, folder: Path) -> Path:
    """Writes the release into `folder`, named after its content.

    Args:
        policy: run folder or policy folder.
        monitor: fitted for it, or None.
        folder: of releases.
    """
    sides = {POLICY: policy_folder(policy), **({} if monitor is None else {MONITOR: monitor})}
    files = {
        f"{side}/{path.relative_to(root).as_posix()}": path.read_bytes()
        for side, root in sides.items() for path in sorted(root.rglob("*"))
        if path.is_file() and not path.name.startswith(".")
    }
    for name in files:
        if not _NAME.fullmatch(name):
            raise CheckpointError("a release holds policies and monitors alone", found=name)
    data: bytes = msgpack.packb(files)  # type: ignore[assignment]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"release-{hashlib.sha256(data).hexdigest()[:16]}"
    path.write_bytes(data)
    return path


def unpack(release: Path) -> tuple[Path, Path | None]:
    """Unpacks beside the file; nothing in it can reach outside of that folder.

    Returns:
        The folders of the policy and of the monitor, None where there is none.

    Raises:
        CheckpointError: it is damaged or holds anything else.
    """
    try:
        files = msgpack.unpackb(release.read_bytes(), max_bin_len=1 << 31)
    except (ValueError, msgpack.exceptions.UnpackException) as error:
        raise CheckpointError(f"{release} is no release of robot_fb") from error
    sound = isinstance(files, dict) and all(
        isinstance(name, str) and _NAME.fullmatch(name) and isinstance(data, bytes) for name, data in files.items()
    )
    if not sound or not any(name.startswith(POLICY) for name in files):
        raise CheckpointError(f"{release} is no release of robot_fb")
    folder = release.with_name(f"{release.name}.d")
    shutil.rmtree(folder, ignore_errors=True)
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder / POLICY, folder / MONITOR if (folder / MONITOR).is_dir() else None
