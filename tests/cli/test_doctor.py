"""The doctor says what works and what to do, and never fails itself."""

from __future__ import annotations

import json
import socket

import pytest

from robot_fb.cli import doctor
from robot_fb.cli import report as report_verb
from robot_fb.errors import ConfigError


@pytest.fixture
def backends(monkeypatch):
    """Decides which rendering backends work; MUJOCO_GL is unset."""
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    rates: dict[str, int | None] = {"egl": 3000, "osmesa": None}
    monkeypatch.setattr(doctor, "_pictures_per_s", rates.get)
    return rates


def test_says_how_fast_cameras_are_drawn(backends):
    found = doctor.cameras()
    assert found.ok and "egl draws 3000 pictures" in found.words


def test_without_any_backend_says_what_to_install(backends, capsys):
    backends["egl"] = None
    found = doctor.cameras()
    assert not found.ok and "apt-get install libegl1" in found.words
    assert doctor.main([]) == 1 and "PROBLEM cameras" in capsys.readouterr().out


def test_a_backend_that_was_chosen_but_fails_is_named_with_one_that_works(backends, monkeypatch):
    backends.update(egl=None, osmesa=800)
    assert "set MUJOCO_GL=osmesa" in doctor.cameras().words
    monkeypatch.setenv("MUJOCO_GL", "osmesa")
    assert doctor.cameras().ok


def test_what_is_absent_but_not_needed_is_no_problem(backends, monkeypatch, capsys):
    monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(doctor.shutil, "which", lambda name: None)
    assert doctor.main(["--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["ROS 2"]["ok"] is document["browser"]["ok"] is False
    assert document["torch"]["ok"] and document["cores"]["ok"]


def test_a_look_that_fails_is_a_finding_and_no_traceback(backends, monkeypatch, capsys):
    def broken(path):
        raise PermissionError("no")

    monkeypatch.setattr(doctor.shutil, "disk_usage", broken)
    assert doctor.main([]) == 1
    assert "disk: cannot tell: PermissionError" in capsys.readouterr().out


def test_a_port_that_is_taken_is_seen(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setattr(doctor, "PORT", server.getsockname()[1])
        assert not doctor.port().ok
    assert doctor.port().ok


def test_a_report_on_nothing_is_a_mistake():
    with pytest.raises(ConfigError, match="no run to report on"):
        report_verb.main([])
