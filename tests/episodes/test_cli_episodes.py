"""`robot-fb episodes`, as a person types it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from episode_samples import META, make_steps

from robot_fb.cli.main import main
from robot_fb.episodes.store import Store

MAPPINGS = Path(__file__).parents[2] / "data" / "mappings"


@pytest.fixture
def run(capsys):
    """(exit status, stdout, stderr) of one command."""

    def _run(*words):
        status = main(["episodes", *map(str, words)])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return _run


def damaged(store, id):
    file = store.file(id)
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


def test_ls_and_info(store, record, run):
    good, bad = record(success=True), record(success=False)

    assert good in run("ls", store.path)[1]
    assert [e["id"] for e in json.loads(run("ls", store.path, "--outcome", "failure", "--json")[1])] == [bad]
    assert json.loads(run("info", store.path, "--json")[1])["successes"] == 1
    assert json.loads(run("info", store.path, "--id", good, "--json")[1])["steps"] == 6
    assert "tcp/pose" in run("info", store.file(bad))[1]


def test_verify_prints_the_agreed_document(store, record, run):
    record()
    assert json.loads(run("verify", store.path, "--json")[1]) == {
        "files": 1, "episodes": 1, "steps": 6, "ok": True, "problems": [],
    }
    bad = record()
    damaged(store, bad)

    status, out, _ = run("verify", store.path, "--json")

    document = json.loads(out)
    assert status == 1
    assert {**document, "problems": None} == {"files": 2, "episodes": 1, "steps": 6, "ok": False, "problems": None}
    (problem,) = document["problems"]
    assert set(problem) == {"file", "what", "repairable"}
    assert problem["file"] == str(store.file(bad)) and problem["repairable"] is True


def test_repair_mends_what_verify_found(store, record, run):
    good, bad = record(), record(make_steps(40))
    damaged(store, bad)
    died = store.episodes / "20260101T000000_000000_aaaa.mcap.part"
    died.write_bytes(store.file(good).read_bytes()[:-200])
    (store.episodes / "20260101T000000_000001_aaaa.mcap.part").touch()

    status, out, _ = run("repair", store.path, "--json")

    assert status == 0
    assert len(json.loads(out)["repaired"]) == 3
    assert json.loads(run("verify", store.path, "--json")[1])["ok"]
    assert 0 < len(store.read(bad)) < 40
    assert len(store.read("20260101T000000_000000_aaaa")) == 6
    assert store.file(bad).with_suffix(".mcap.bak").exists()
    assert json.loads(run("repair", store.path, "--json")[1])["repaired"] == []


def test_repair_says_what_is_hopeless(tmp_path, run):
    (tmp_path / "photo.mcap").write_bytes(b"\xff\xd8 not an episode at all")

    status, out, _ = run("repair", tmp_path / "photo.mcap")

    assert status == 1
    assert "nothing that can be saved" in out
    assert (tmp_path / "photo.mcap").read_bytes().startswith(b"\xff\xd8")


def test_reindex(store, record, run):
    record()
    (store.path / "index.jsonl").write_text("rubbish")

    assert json.loads(run("reindex", store.path, "--json")[1]) == {"episodes": 1, "damaged": []}


def test_import(tmp_path, run):
    np.savez(tmp_path / "a.npz", img=np.zeros((4, 8, 8, 3)), state=np.zeros((4, 7)), action=np.zeros((4, 2)),
             episode_ends=np.array([2, 4]))

    status, out, _ = run("import", tmp_path / "a.npz", "--mapping", MAPPINGS / "numpy_episode_ends.yaml", "--out",
                         tmp_path / "store", "--json")

    assert status == 0
    document = json.loads(out)
    assert (document["episodes"], document["steps"]) == (2, 4)
    assert Store(tmp_path / "store").query() == document["ids"]


def test_video_and_play(store, record, run, tmp_path):
    record(make_steps(8))

    status, out, _ = run("video", store.path, "--out", tmp_path / "a.mp4", "--json")
    assert status == 0 and json.loads(out)["frames"] == 8
    assert b"ftyp" in (tmp_path / "a.mp4").read_bytes()[:16]

    lines = run("play", store.path, "--speed", "100")[1].splitlines()
    assert len(lines) == 9 and lines[-1].startswith("success")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["verfy", "x"], "did you mean 'verify'"),
        (["ls", "nowhere"], "no episode store at nowhere"),
        (["verify", "nowhere"], "there is no nowhere"),
        (["info", "nowhere.mcap"], "cannot open nowhere.mcap"),
        (["repair", "nowhere.mcap"], "there is no nowhere.mcap"),
        (["import", "a.npz", "--mapping", "none.yaml", "--out", "s"], "no config file at none.yaml"),
        (["play", "nowhere", "--speed", "0"], "--speed; expected above 0"),
    ],
)
def test_mistakes_end_in_one_line_and_status_2(run, tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)

    status, out, err = run(*words)

    assert status == 2
    assert out == ""
    lines = [line for line in err.splitlines() if line.startswith("robot-fb episodes: ")]
    assert len(lines) == 1 and said in lines[0]
    assert "Traceback" not in err


def test_every_verb_has_help():
    for verb in ("ls", "info", "verify", "repair", "reindex", "import", "video", "play"):
        with pytest.raises(SystemExit) as caught:
            main(["episodes", verb, "--help"])
        assert caught.value.code == 0


RECORD = """
import sys, time
sys.path.insert(0, sys.argv[2])
from episode_samples import META, make_steps
from robot_fb.episodes.store import Store
store = Store(sys.argv[1], create=True)
writer = store.open(META)
for step in make_steps(10):
    writer.add_step(step)
print("ready", flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_program_keeps_its_open_episode(tmp_path, number):
    """Given a program that is stopped while it records, Ctrl-C leaves a whole episode and SIGTERM one to be mended."""
    command = [sys.executable, "-c", RECORD, str(tmp_path / "store"), str(Path(__file__).parent)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        if number == signal.SIGTERM:
            wait_for_bytes(tmp_path)
        process.send_signal(number)
        process.wait(timeout=30)

    if number == signal.SIGTERM:
        assert main(["episodes", "repair", str(tmp_path / "store")]) == 0
    store = Store(tmp_path / "store")
    (id,) = store.query(unfinished=True)
    assert len(store.read(id)) == 10 or (number == signal.SIGTERM and len(store.read(id)) > 0)
    assert store.parts() == []
    assert store.read(id).meta == META


def wait_for_bytes(tmp_path):
    """Waits until the first steps are on the disk."""
    while sum(part.stat().st_size for part in tmp_path.glob("store/episodes/*.part")) < 20_000:
        time.sleep(0.05)
