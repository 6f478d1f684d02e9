"""What all tests share."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs start deaf to Ctrl-C


@pytest.fixture(scope="session")
def third_party_data() -> Path:
    """Folder of recordings that nobody in this project made; they are no part of the repository."""
    folder = Path(os.environ.get("ROBOT_FB_DATA", REPOSITORY.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no third-party data at {folder}; set ROBOT_FB_DATA to the folder that holds it")
    return folder
