"""Run folders: what is written down, and what is refused."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from robot_fb.config import read_yaml
from robot_fb.errors import ConfigError
from robot_fb.training.run_folder import RunFolder


@dataclass(frozen=True)
class Inner:
    width: int = 3


@dataclass(frozen=True)
class Config:
    steps: int = 10
    lr: float = 0.1
    streams: tuple[str, ...] = ("a",)
    model: Inner = Inner()


def test_writes_config_command_and_versions(tmp_path):
    run = RunFolder.create(tmp_path / "run", Config(), "robot-fb train ...")

    assert read_yaml(run.config) == {"steps": 10, "lr": 0.1, "streams": ["a"], "model": {"width": 3}}
    about = read_yaml(run.about)
    assert about["started"][0]["command"] == "robot-fb train ..."
    assert {"python", "torch", "numpy"} <= about["versions"].keys()


def test_an_empty_folder_may_be_used_and_a_run_is_never_overwritten(tmp_path):
    RunFolder.create(tmp_path, Config())

    with pytest.raises(ConfigError, match="--resume"):
        RunFolder.create(tmp_path, Config())


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_other_things_are_never_overwritten(tmp_path, kind):
    path = tmp_path / "out"
    if kind == "file":
        path.write_text("mine")
    else:
        path.mkdir()
        (path / "thesis.tex").write_text("mine")

    with pytest.raises(ConfigError, match="not empty"):
        RunFolder.create(path, Config())


def test_resume_notes_the_second_command(tmp_path):
    RunFolder.create(tmp_path, Config(), "first")
    run = RunFolder.resume(tmp_path, Config(), command="second")

    assert [start["command"] for start in read_yaml(run.about)["started"]] == ["first", "second"]


def test_resume_names_the_option_that_differs(tmp_path):
    RunFolder.create(tmp_path, Config())

    with pytest.raises(ConfigError, match=r"model\.width; expected 3; found 4"):
        RunFolder.resume(tmp_path, Config(model=Inner(4)))
    RunFolder.resume(tmp_path, Config(steps=20), free=("steps",))
    assert read_yaml(tmp_path / "config.yaml")["steps"] == 20


def test_nothing_to_resume(tmp_path):
    with pytest.raises(ConfigError, match="no run"):
        RunFolder.resume(tmp_path / "nowhere", Config())
