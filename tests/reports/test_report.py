"""The HTML report: one file that needs nothing else, and says what was measured."""

from __future__ import annotations

import base64
import html.parser
import json
import re
import struct

import numpy as np
import pytest

from robot_fb.cli import report as verb
from robot_fb.episodes.store import Store
from robot_fb.errors import ConfigError, EpisodeError
from robot_fb.reports import figures, write_report
from robot_fb.runtime.episodes import EpisodeResult, Job
from robot_fb.runtime.evaluate import EvalResult, append_eval, append_row, wilson
from robot_fb.training.run_folder import RunFolder
from robot_fb.types import ActionSpec, EpisodeMeta, Step, StreamSpec

STREAMS = {
    "camera/wrist": StreamSpec((16, 16, 3), "uint8"),
    "wrench/wrist": StreamSpec((16, 6), unit="N, N·m", rate_hz=100.0),
}


class Page(html.parser.HTMLParser):
    """Text, pictures and addresses of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.images, self.addresses, self.words = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        for key, value in attrs:
            if key in ("src", "href"):
                (self.images if tag == "img" else self.addresses).append(value)

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.words))


def evaluation(touch: str, wins: int, count: int = 20) -> EvalResult:
    rng = np.random.default_rng(wins)
    return EvalResult(Job("keyed_socket", "run", touch), 7, tuple(
        EpisodeResult(k, k < wins, 40, 2.0, 1.0, float(rng.gamma(6, 2)), "" if k < wins else "third commitment", "+x")
        for k in range(count)
    ))


@pytest.fixture
def run(tmp_path):
    config = {"seed": 3, "note": "<b>not bold</b>"}
    folder = RunFolder.create(tmp_path / "touch<run>", config, "robot-fb train residual")
    for k in range(3):
        row = {"task": "keyed_socket", "policy": "run", "episodes": 50, "successes": 20 + k, "touch": "live", "seed": 0,
               "success_rate": (20 + k) / 50, "ci95": list(wilson(20 + k, 50)), "mean_episode_s": 2.0}
        append_row(folder.path, "while learning", 2.0 + k, row)
    append_eval(folder.path, "base, by sight", evaluation("live", 6), 0.0)
    append_eval(folder.path, "base + touch", evaluation("live", 18), 5.0)
    append_eval(folder.path, "touch 300 ms late", evaluation("delayed", 7), 5.0)
    return folder.path


@pytest.fixture
def episodes(tmp_path):
    store = Store(tmp_path / "tries", create=True)
    for success in (True, False):
        meta = EpisodeMeta("keyed_socket", "run", STREAMS, ActionSpec((-1.0,), (1.0,)), 0.05, 1)
        writer = store.open(meta)
        for i in range(12):
            obs = {"camera/wrist": np.full((16, 16, 3), 10 * i, np.uint8), "wrench/wrist": np.ones((16, 6), np.float32)}
            action = np.zeros(1, np.float32)
            writer.add_step(Step(i * 0.05, obs, action, action))
        writer.close(success, {"hidden": "-y", "peak_force": "7.5", "failure": "" if success else "force cap"})
    return store.path


def test_the_page_holds_everything_and_fetches_nothing(run, episodes, tmp_path):
    out = write_report([run], tmp_path / "deep" / "report.html", episodes)
    page = Page(out.read_text(encoding="utf-8"))
    assert page.addresses == [] and len(page.images) == 5
    for image in page.images:
        png = base64.b64decode(image.removeprefix("data:image/png;base64,"))
        width, height = struct.unpack(">II", png[16:24])
        assert png.startswith(b"\x89PNG") and width > 300 and height > 100
    assert not re.search(r"https?://|<script|@import", out.read_text())


def test_the_page_says_what_was_measured(run, episodes, tmp_path):
    text = Page(write_report([run], tmp_path / "r.html", episodes).read_text(encoding="utf-8")).text
    assert "18 of 20" in text and "7 of 20" in text and "touch 300 ms late" in text
    assert "70% to 97%" in text  # Wilson's interval of 18 of 20
    assert "2 guesses among 4" in text and "50%" in text
    assert "13 × third commitment" in text
    assert "Failure: force cap" in text and "-y" in text and "7.5 N" in text
    assert "robot-fb train residual" in text and "mujoco" in text and "seed: 3" in text
    assert "while learning" not in text  # rows of learning itself are no evaluation


def test_nothing_from_a_run_is_taken_for_markup(run, tmp_path):
    raw = write_report([run], tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<b>not bold</b>" not in raw and "&lt;b&gt;not bold" in raw and "touch<run>" not in raw


def test_a_run_without_evaluations_has_a_page_all_the_same(tmp_path):
    run = RunFolder.create(tmp_path / "bare", {"seed": 1}, "robot-fb train bc").path
    page = Page(write_report([run], tmp_path / "r.html").read_text(encoding="utf-8"))
    assert page.images == [] and "Nothing was evaluated yet" in page.text


def test_what_is_no_run_or_no_store_is_refused(tmp_path, run):
    with pytest.raises(ConfigError, match="is not a run"):
        write_report([tmp_path], tmp_path / "r.html")
    with pytest.raises(EpisodeError, match="no episode store"):
        write_report([run], tmp_path / "r.html", tmp_path / "nowhere")
    assert not (tmp_path / "r.html").exists()


def test_the_verb_prints_where_the_page_is(run, capsys):
    assert verb.main([str(run), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["report"] == str(run / "report.html") and (run / "report.html").exists()


def test_the_force_trace_shows_every_sample_once():
    wrench = np.zeros((4, 16, 6), np.float32)
    samples = np.arange(16 + 15, dtype=np.float32)  # 100 Hz; a window moves on by 5 samples a decision
    for i in range(4):
        wrench[i, :, 0] = samples[5 * i : 5 * i + 16]
    seen = {}

    class Axes:
        def plot(self, times, force, **style):
            seen.update(times=times, force=force)

    figures._trace_force(Axes(), wrench, STREAMS["wrench/wrist"], 0.05, "wrench/wrist")  # type: ignore[arg-type]
    assert seen["force"].tolist() == samples[11:].tolist()
    assert np.allclose(np.diff(seen["times"]), 0.01) and seen["times"][-1] == pytest.approx(0.15)
