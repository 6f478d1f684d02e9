"""Behaviour cloning: windows, streams, resume to the same curve, seeds, bad data."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from robot_fb import registry
from robot_fb.algorithms import bc
from robot_fb.errors import CheckpointError, ConfigError, EpisodeError, RobotFbError, UnknownNameError
from robot_fb.training import chunks
from robot_fb.training.callbacks import LogMetrics, SaveCheckpoints, load_checkpoint
from robot_fb.training.fit import fit
from robot_fb.training.mixer import Mixer
from robot_fb.types import SOURCES, EpisodeMeta, StreamSpec

QUICK = {"steps": 12, "batch": 8, "horizon": 4, "execute": 2, "warmup": 3, "lr": 3e-3}
SMALL = {
    "diffusion": {"channels": (8, 8)},
    "flow": {"channels": (8, 8)},
    "chunk_mlp": {"width": 16, "dropout": 0.2},
}


@pytest.fixture(params=list(SMALL))
def name(request):
    torch.set_num_threads(1)
    return request.param


def model(name, **more):
    return registry.load("policies", name).config_class(**SMALL.get(name, {}), **more)


def ready(arrays, name, **more):
    config = bc.BcConfig(policy=name, **(QUICK | more))
    trainer, source = bc.prepare(arrays, config, model(name))
    return trainer, Mixer({"episodes": source}, config.batch, seed=config.seed)


def test_windows_repeat_the_first_observation_and_the_last_action(toy_arrays):
    arrays = toy_arrays((3, 4))
    spec = chunks.make_spec(arrays, ("state",), horizon=3, execute=1, obs_horizon=2)
    windows = chunks.ChunkSource(arrays, spec).windows(np.array([0, 2, 3, 5]))

    state, action = arrays.streams["state"], arrays.actions
    np.testing.assert_array_equal(windows["obs"]["state"], state[[[0, 0], [1, 2], [3, 3], [4, 5]]])
    np.testing.assert_array_equal(windows["actions"], action[[[0, 1, 2], [2, 2, 2], [3, 4, 5], [5, 6, 6]]])


def test_only_chosen_episodes_are_drawn(toy_arrays):
    arrays = toy_arrays((3, 4, 5))
    spec = chunks.make_spec(arrays, horizon=2, execute=1)

    assert chunks.ChunkSource(arrays, spec, [0, 2]).rows.tolist() == [0, 1, 2, 7, 8, 9, 10, 11]


def test_decisions_in_which_the_robot_was_held_are_not_learned_from(toy_arrays):
    arrays = toy_arrays((3, 4))
    arrays.sources[[1, 5]] = SOURCES.index("hold")
    spec = chunks.make_spec(arrays, horizon=2, execute=1, obs_horizon=1)
    assert chunks.ChunkSource(arrays, spec).rows.tolist() == [0, 2, 3, 4, 6]


def test_no_window_reaches_across_a_gap(toy_arrays):
    arrays = toy_arrays((8,))
    arrays.sources[[2, 3]] = [SOURCES.index("hold"), SOURCES.index("rewind")]
    spec = chunks.make_spec(arrays, ("state",), horizon=3, execute=1, obs_horizon=2)
    source = chunks.ChunkSource(arrays, spec)
    windows = source.windows(np.array([1, 4]))

    assert source.rows.tolist() == [0, 1, 4, 5, 6, 7]
    np.testing.assert_array_equal(windows["obs"]["state"], arrays.streams["state"][[[0, 1], [4, 4]]])
    np.testing.assert_array_equal(windows["actions"], arrays.actions[[[1, 1, 1], [4, 5, 6]]])


def test_touch_is_never_read_unless_asked_for(toy_arrays):
    arrays = toy_arrays()

    assert set(chunks.make_spec(arrays).obs) == {"camera/scene", "state"}
    assert set(chunks.make_spec(arrays, ("wrench/wrist",)).obs) == {"wrench/wrist"}


def test_the_cells_base_reads_cameras_pose_velocity_and_width(toy_arrays):
    one = StreamSpec((1,))
    keys = ("camera/a", *chunks.CELL_STREAMS, "command/last", "tactile/left", "joint/position")
    meta = dataclasses.replace(toy_arrays().metas[0], streams=dict.fromkeys(keys, one))

    assert chunks.choose_streams(meta) == ("camera/a", *chunks.CELL_STREAMS)


def test_learns(toy_arrays):
    torch.set_num_threads(1)
    trainer, mixer = ready(toy_arrays((40, 40)), "chunk_mlp", steps=400, batch=32, streams=("state",))
    fit(trainer, mixer, [], 400)

    policy = trainer.policy()
    policy.reset(0)
    said = policy.act({"state": np.array([0.8, 0.0], np.float32)}).actions[0]

    assert said == pytest.approx([0.4], abs=0.1)


def curve(trainer, mixer, steps, start=0, folder=None):
    rows = []

    class Writer:
        def write(self, step, values):
            rows.append((step, values["loss"], values["lr"]))

        def close(self):
            pass

    saving = [] if folder is None else [SaveCheckpoints(trainer, mixer, folder, 100)]
    fit(trainer, mixer, [LogMetrics([Writer()], 1), *saving], steps, start)
    return rows


def test_straight_and_resumed_are_the_same_curve(toy_arrays, tmp_path, name):
    arrays = toy_arrays()
    straight, mixer = ready(arrays, name)
    expected = curve(straight, mixer, 12)

    first, mixer = ready(arrays, name)
    half = curve(first, mixer, 6, folder=tmp_path)
    torch.manual_seed(999)  # another process stands elsewhere in torch's own random numbers
    second, mixer = ready(arrays, name)
    start = load_checkpoint(second, mixer, tmp_path)
    rest = curve(second, mixer, 12, start)

    assert half + rest == expected
    for key, value in straight.policy().state_dict().items():
        assert torch.equal(value, second.policy().state_dict()[key]), key


def test_a_seed_trains_the_same_policy_and_another_seed_another(toy_arrays, name):
    def train(seed):
        trainer, mixer = ready(toy_arrays(), name, seed=seed)
        return curve(trainer, mixer, 5)

    assert train(1) == train(1)
    assert train(1) != train(2)


def test_the_acting_weights_are_the_averaged_ones(toy_arrays):
    trainer, mixer = ready(toy_arrays(), "chunk_mlp", ema_decay=0.9)
    seen = [trainer.model.net[0].weight.detach().clone()]
    for step in range(3):
        trainer.step(mixer.next())
        keep = min(0.9, (1 + step) / (10 + step))
        seen.append(keep * seen[-1] + (1 - keep) * trainer.model.net[0].weight.detach())

    torch.testing.assert_close(trainer.policy().net[0].weight, seen[-1])


def test_a_checkpoint_of_another_policy_is_refused(toy_arrays, tmp_path):
    first, _ = ready(toy_arrays(), "flow")
    first.save(tmp_path)
    second, _ = ready(toy_arrays(), "chunk_mlp")

    with pytest.raises(CheckpointError, match="other shapes"):
        second.load(tmp_path)


def spoil(arrays, what, row):
    streams = {key: value.copy() for key, value in arrays.streams.items()}
    actions = arrays.actions.copy()
    (actions if what == "action" else streams[what])[row, 0] = np.nan
    return dataclasses.replace(arrays, streams=streams, actions=actions)


@pytest.mark.parametrize("what", ["state", "action"])
def test_a_nan_in_the_data_is_named(toy_arrays, what):
    with pytest.raises(EpisodeError, match=f"'{what}' holds a NaN.*episode 1, step 2"):
        ready(spoil(toy_arrays((9, 5, 12)), what, 11), "chunk_mlp")


def test_a_nan_in_a_stream_that_is_not_read_does_not_matter(toy_arrays):
    ready(spoil(toy_arrays(), "wrench/wrist", 3), "chunk_mlp")


def test_a_store_without_episodes_is_refused(toy_arrays):
    with pytest.raises(EpisodeError, match=r"no episodes.*robot-fb record"):
        ready(toy_arrays(()), "chunk_mlp")


def test_only_successes_can_be_used(toy_arrays):
    arrays = toy_arrays((3, 4), success=[False, True])
    _, source = bc.prepare(arrays, bc.BcConfig(policy="chunk_mlp", use="success", **QUICK))
    assert source.rows.tolist() == [3, 4, 5, 6]

    with pytest.raises(EpisodeError, match=r"succeeded.*--use all"):
        ready(toy_arrays((3, 4), success=[False, False]), "chunk_mlp", use="success")


def test_a_missing_stream_is_named(toy_arrays):
    with pytest.raises(EpisodeError, match=r"'camera/scne'.*did you mean 'camera/scene'"):
        ready(toy_arrays(), "chunk_mlp", streams=("camera/scne",))


def test_several_tasks_or_shapes_do_not_mix(toy_arrays):
    arrays = toy_arrays((3, 4))
    other: EpisodeMeta = dataclasses.replace(arrays.metas[0], task="door")
    with pytest.raises(EpisodeError, match="several tasks"):
        ready(dataclasses.replace(arrays, metas=(arrays.metas[0], other)), "chunk_mlp")
    wider = dataclasses.replace(arrays.metas[0], streams={**arrays.metas[0].streams, "state": StreamSpec((3,))})
    with pytest.raises(EpisodeError, match="'state' differs between episodes"):
        ready(dataclasses.replace(arrays, metas=(arrays.metas[0], wider)), "chunk_mlp")


def test_unknown_and_unfit_policies_are_refused(toy_arrays):
    with pytest.raises(UnknownNameError, match="did you mean 'diffusion'"):
        bc.prepare(toy_arrays(), bc.BcConfig(policy="difusion"))
    with pytest.raises(ConfigError, match="does not learn from episodes"):
        bc.prepare(toy_arrays(), bc.BcConfig(policy="residual"))


def test_a_loss_that_is_not_a_number_stops_training(toy_arrays):
    trainer, mixer = ready(toy_arrays(), "chunk_mlp")
    before = trainer.policy().net[0].weight.clone()
    with torch.no_grad():
        trainer.model.net[0].weight.fill_(float("nan"))

    with pytest.raises(RobotFbError, match="the loss became nan at step 1"):
        trainer.step(mixer.next())
    assert torch.equal(trainer.policy().net[0].weight, before)


@pytest.mark.parametrize("bad", [{"steps": 0}, {"batch": -1}, {"lr": 0.0}, {"ema_decay": 1.0}])
def test_settings_that_make_no_sense_are_refused(bad):
    with pytest.raises(ConfigError):
        bc.BcConfig(**bad)
