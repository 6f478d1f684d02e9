"""The lock file pins everything that pyproject asks for, and everything that those packages ask for."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def locked() -> dict[str, str]:
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    pins = [re.fullmatch(r"([A-Za-z0-9._-]+)==([0-9][A-Za-z0-9.]*)", line) for line in lines]
    assert all(pins), "only exact versions without local tags belong into the lock file"
    return {canonicalize_name(pin[1]): pin[2] for pin in pins if pin}


def test_whatever_pyproject_asks_for_is_locked_at_a_version_that_fits(locked):
    for text in [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["dev"]]:
        wanted = Requirement(text)
        version = locked[canonicalize_name(wanted.name)]
        assert wanted.specifier.contains(version), f"{text} is locked at {version}"


def test_whatever_locked_packages_ask_for_is_locked(locked):
    missing = []
    for name in locked:
        try:
            texts = requires(name) or []
        except PackageNotFoundError:
            pytest.fail(f"{name} is locked but not installed: make install")
        for wanted in map(Requirement, texts):
            applies = wanted.marker is None or wanted.marker.evaluate({"extra": ""})
            if applies and canonicalize_name(wanted.name) not in locked and name != "torch":
                missing.append(f"{name} asks for {wanted}")
    assert missing == []  # torch: a CUDA build pins its own libraries


def test_modules_that_entry_points_name_exist():
    for group, entries in PROJECT["entry-points"].items():
        for name, value in entries.items():
            module = ROOT / (value.split(":")[0].replace(".", "/"))
            assert module.with_suffix(".py").exists() or (module / "__init__.py").exists(), f"{group} {name}"
