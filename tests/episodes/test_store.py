"""The folder of episodes: its index, its side log, several processes, other people's mistakes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from episode_samples import META, make_steps

from robot_fb.config import write_yaml
from robot_fb.episodes.repair import repair
from robot_fb.episodes.store import Store
from robot_fb.errors import EpisodeError, NewerFormatError, StoreBusyError, UnknownNameError
from robot_fb.interfaces import EpisodeStore, EpisodeWriter
from robot_fb.types import Evaluation, Intervention, Language, Outcome, Preference, Ranking, Segment

HERE = Path(__file__).parent


def test_store_and_writer_keep_their_protocols(store):
    with store.open(META) as writer:
        assert isinstance(store, EpisodeStore)
        assert isinstance(writer, EpisodeWriter)
        writer.discard()


def test_query_finds_by_what_is_known(store, record):
    good, bad = record(success=True), record(success=False)

    assert store.query() == [good, bad]
    assert store.query(success=True, task="keyed_socket") == [good]
    assert store.query(by="expert", success=False) == [bad]
    assert store.query(task="pick_place") == []
    with pytest.raises(UnknownNameError, match="did you mean 'success'"):
        store.query(sucess=True)


def test_the_index_can_be_lost(store, record):
    ids = [record(), record()]
    before = store.entries()
    (store.path / "index.jsonl").unlink()

    assert store.query() == ids
    assert store.reindex() == before == Store(store.path).entries()


def test_a_stale_torn_or_foreign_index_is_mended(store, record):
    ids = [record(), record()]
    index = store.path / "index.jsonl"
    index.write_text('not json\n{"id": 3}\n' + index.read_text()[:-40])
    store.file(ids[0]).unlink()

    assert store.query() == ids[1:]


def test_a_copied_episode_is_found(store, record, tmp_path):
    id = record()
    other = Store(tmp_path / "other", create=True)
    other.file(id).write_bytes(store.file(id).read_bytes())

    assert other.query() == [id]


def test_discarded_episodes_leave_nothing(store):
    writer = store.open(META)
    writer.add_step(make_steps(1)[0])
    writer.discard()

    assert list(store.episodes.iterdir()) == []
    assert store.query() == []


def test_late_feedback_of_every_kind_comes_back(store, record):
    a, b = record(), record()
    segments = (Segment(a, 0.0, 0.1), Segment(b, 0.1, 0.2))
    given = [
        Intervention(a, 0.0, 0.2, "ann", "slipped"), Evaluation(a, 0.1, 1.0, "ann"),
        Preference(*segments, choice=0.5, author="bob"), Preference(*segments, choice=None, author="bob"),
        Ranking(segments, "bob"), Language(b, 0.0, 0.2, "press softer — µ", "ann"), Outcome(b, False, "bob", "crushed"),
    ]
    for event in given:
        store.append_feedback(event)

    assert store.feedback() == given
    assert store.feedback(a) == given[:5]


def test_a_torn_line_of_feedback_costs_only_itself(store, record):
    event = Evaluation(record(), 0.1, 1.0, "ann")
    store.append_feedback(event)
    log = store.path / "feedback.jsonl"
    log.write_bytes(log.read_bytes() + log.read_bytes()[:20])
    store.append_feedback(event)

    assert store.feedback() == [event, event]


def test_no_store_and_other_folders_are_clear_errors(tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.jpg").touch()

    with pytest.raises(EpisodeError, match="no episode store"):
        Store(tmp_path / "nowhere")
    with pytest.raises(EpisodeError, match="another folder"):
        Store(tmp_path / "photos")
    with pytest.raises(EpisodeError, match="holds other files"):
        Store(tmp_path / "photos", create=True)


def test_a_newer_store_is_refused(store):
    write_yaml(store.path / "store.yaml", {"format": 99})

    with pytest.raises(NewerFormatError, match="expected format 1 or older; found format 99; upgrade"):
        Store(store.path)


def test_a_damaged_store_file_is_a_clear_error(store):
    (store.path / "store.yaml").write_text("format: [")

    with pytest.raises(EpisodeError, match=r"store\.yaml is damaged"):
        Store(store.path)


def test_an_unknown_episode_is_a_clear_error(store, record):
    record()

    for id in ("nothing", "../store"):
        with pytest.raises(UnknownNameError, match="there is no episode"):
            store.read(id)


WRITE_MANY = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from episode_samples import META, make_steps
from robot_fb.episodes.store import Store
from robot_fb.interfaces import EpisodeStore, EpisodeWriter
from robot_fb.types import Evaluation
store = Store(Path(sys.argv[1]), create=True)
print("ready", flush=True)
sys.stdin.readline()
for i in range(8):
    writer = store.open(META)
    for step in make_steps(3, seed=i):
        writer.add_step(step)
    writer.close(True)
    store.append_feedback(Evaluation(writer.id, 0.0, float(i), sys.argv[3]))
"""


def test_two_processes_fill_one_store_and_nothing_is_lost(tmp_path):
    """Given two processes that create and fill one store at the same time, all that both wrote is there."""
    path = tmp_path / "store"
    command = [sys.executable, "-c", WRITE_MANY, str(path), str(HERE)]
    both = [
        subprocess.Popen([*command, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for name in "ab"
    ]
    for process in both:
        assert process.stdout.readline() == "ready\n"
    for process in both:
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in both:
        assert process.wait(timeout=60) == 0
        process.stdout.close()
        process.stdin.close()

    store = Store(path)

    assert len(store.query(success=True)) == 16
    assert len((path / "index.jsonl").read_text().splitlines()) == 16
    assert len(set(store.query())) == len(list(store.episodes.iterdir())) == 16
    assert sorted((e.author, e.value) for e in store.feedback()) == [(n, float(i)) for n in "ab" for i in range(8)]


def test_what_is_being_recorded_is_left_alone(store):
    writer = store.open(META)

    with pytest.raises(StoreBusyError, match="being recorded"):
        repair(writer.part)

    writer.add_step(make_steps(1)[0])
    writer.close(True)
    assert len(store.read(writer.id)) == 1
