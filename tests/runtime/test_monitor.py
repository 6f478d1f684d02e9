"""The monitor at work: what it scores, how it is kept, and what it refuses."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from policies.chunk_mlp import ChunkMlpPolicy
from robot_fb.errors import CalibrationError, CheckpointError, RobotFbError
from robot_fb.failure.consistency import Acc
from robot_fb.failure.detector import Detector, Reading
from robot_fb.failure.trace import Trace, play_back, touch_summary
from robot_fb.runtime.alarm import FirstAlarm
from robot_fb.runtime.monitor import Beside, Monitor, load_monitor, save_monitor, watched
from robot_fb.training.checkpoint import save_policy
from robot_fb.types import ActionSpec, EpisodeMeta, PolicySpec, Step, StreamSpec

SPEC = PolicySpec("toy", {"tcp/pose": StreamSpec((7,))}, ActionSpec((-1.0,) * 2, (1.0,) * 2), 0.05, 8, 4)


def streams(seed: int, steps: int = 24) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {
        "tcp/pose": rng.normal(size=(steps, 7)).astype(np.float32).cumsum(axis=0) * 0.1,
        "wrench/wrist": rng.normal(size=(steps, 16, 6)).astype(np.float32),
    }


@pytest.fixture()
def policy() -> ChunkMlpPolicy:
    import torch

    torch.manual_seed(0)
    return ChunkMlpPolicy(SPEC)


@pytest.fixture()
def monitor(policy) -> Monitor:
    detector = Acc()
    traces = [Trace(play_back(policy, streams(seed), 0, seed), True) for seed in range(30)]
    detector.fit(traces[:10], 0)
    detector.calibrate(traces[10:], alpha=0.2)
    return Monitor(policy, detector)


def scores(monitor, policy, seed: int = 50) -> list[float]:
    recorded = streams(seed)
    policy.reset(0)
    monitor.reset()
    found = []
    for i in range(len(recorded["tcp/pose"])):
        obs = {name: values[i] for name, values in recorded.items()}
        found.append(monitor.score(obs, policy.act(obs)))
    return found


def test_it_scores_a_live_episode_as_it_scores_the_recording(monitor, policy):
    live = scores(monitor, policy)
    trace = Trace(play_back(policy, streams(50), 0, 0), True)
    assert live == pytest.approx([monitor.detector.excess(reading) for reading in monitor.detector.run(trace)])
    assert watched(monitor.detector, trace, 0.05).alarm == next((0.05 * i for i, s in enumerate(live) if s > 1), None)


def test_watching_does_not_change_what_the_policy_does(policy):
    from policies.diffusion import DiffusionPolicy

    diffusion = DiffusionPolicy(SPEC)
    recorded = streams(3)
    plans = []
    for count in (0, 4):
        diffusion.reset(7)
        glimpses = []
        for i in range(24):
            obs = {name: values[i] for name, values in recorded.items()}
            glimpses.append(diffusion.act(obs).actions)
            if count:
                assert diffusion.draw_plans(count).shape == (count, 8, 2)
        plans.append(glimpses)
    assert np.array_equal(plans[0], plans[1])


def test_it_is_the_same_after_it_was_saved(monitor, policy, tmp_path):
    save_policy(tmp_path / "policy", policy)
    save_monitor(tmp_path / "monitor", monitor, tmp_path / "policy", {})
    again = load_monitor(tmp_path / "monitor", policy, tmp_path / "policy")
    assert scores(again, policy) == pytest.approx(scores(monitor, policy))
    assert again.detector.band.alpha == 0.2


def test_it_does_not_watch_another_policy(monitor, policy, tmp_path):
    save_policy(tmp_path / "policy", policy)
    save_monitor(tmp_path / "monitor", monitor, tmp_path / "policy", {})
    save_policy(tmp_path / "other", ChunkMlpPolicy(SPEC))
    with pytest.raises(CheckpointError, match="another policy"):
        load_monitor(tmp_path / "monitor", policy, tmp_path / "other")


def test_one_that_was_not_calibrated_is_not_kept(policy, tmp_path):
    save_policy(tmp_path / "policy", policy)
    with pytest.raises(CalibrationError, match="not calibrated"):
        save_monitor(tmp_path / "monitor", Monitor(policy, Acc()), tmp_path / "policy", {})


def test_a_damaged_one_is_told(monitor, policy, tmp_path):
    save_policy(tmp_path / "policy", policy)
    save_monitor(tmp_path / "monitor", monitor, tmp_path / "policy", {})
    about = tmp_path / "monitor" / "about.yaml"
    about.write_text(about.read_text().replace("height:", "hight:"))
    with pytest.raises(CheckpointError):
        load_monitor(tmp_path / "monitor", policy, tmp_path / "policy")


class Gated(Detector):
    """Judges nothing before its gate is opened; scores how many decisions it has seen."""

    def __init__(self, fail_at: int = 10**9) -> None:
        self.fail_at, self.gate = fail_at, threading.Event()

    def fit(self, traces, seed: int) -> None: ...
    def state(self) -> dict:
        return {}

    def restore(self, state) -> None: ...
    def reset(self) -> None:
        self.seen = 0

    def look(self, glimpse) -> Reading:
        assert self.gate.wait(timeout=30)
        self.seen += 1
        if self.seen == self.fail_at:
            raise ValueError("broken")
        return Reading(float(self.seen), 0)

    def excess(self, reading: Reading) -> float:
        return reading.score


def test_beside_the_loop_it_keeps_nobody_waiting_and_loses_nothing(policy):
    obs = {name: values[0] for name, values in streams(0).items()}
    detector = Gated()
    with Beside(Monitor(policy, detector)) as beside:
        beside.reset()
        chunk = policy.act(obs)
        assert [beside.score(obs, chunk) for _ in range(10)] == [0.0] * 10  # the gate is closed: nothing is ready
        detector.gate.set()
        while beside.score(obs, chunk) < 10:
            time.sleep(0.01)
        beside.reset()
        assert beside.score(obs, chunk) <= 1.0  # what is still to come of the last episode does not count


def test_a_detector_that_breaks_on_its_thread_stops_the_loop(policy):
    obs = {name: values[0] for name, values in streams(0).items()}
    detector = Gated(fail_at=2)
    detector.gate.set()
    with Beside(Monitor(policy, detector)) as beside:
        beside.reset()
        chunk = policy.act(obs)
        with pytest.raises(RobotFbError, match=r"monitor failed.*broken"):
            for _ in range(1000):
                beside.score(obs, chunk)
                time.sleep(0.01)


def test_touch_is_summed_up_by_its_shape():
    obs = {
        "wrench/wrist": np.tile(np.arange(16.0)[:, None], (1, 6)),
        "tactile/left": np.ones((3, 2, 2)),
        "tcp/pose": np.ones(7),
    }
    found = touch_summary(obs)
    assert found == pytest.approx([4, 4, 4, 1, *[13.0] * 6, *[15.0] * 6])
    assert touch_summary({"tcp/pose": np.ones(7)}).shape == (0,)


def test_the_first_alarm_counts():
    first = FirstAlarm()
    action = np.zeros(2, np.float32)
    for t, score in ((0.0, 0.5), (0.05, 1.2), (0.1, 3.0)):
        first.on_step(Step(t, {}, action, action, scores={"monitor": score}))
    assert first.at == 0.05
    first.on_start(EpisodeMeta("toy", "x", {}, SPEC.action, 0.05))
    assert first.at is None
