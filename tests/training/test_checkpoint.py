"""Policies on disk: they come back the same, and nothing unsafe, foreign or broken is let in."""

from __future__ import annotations

import dataclasses
import errno
import pickle
import zipfile

import numpy as np
import pytest
import torch

from robot_fb import registry
from robot_fb.config import read_yaml, write_yaml
from robot_fb.errors import CheckpointError, DiskFullError, RobotFbError
from robot_fb.training import tensors as tensors_module
from robot_fb.training.checkpoint import check_fits, load_policy, read_spec, save_policy
from robot_fb.training.tensors import load_tensors, save_tensors
from robot_fb.types import ActionSpec, PolicySpec, StreamSpec

SPEC = PolicySpec("toy", {"state": StreamSpec((2,), unit="m")}, ActionSpec((-1.0,), (1.0,)), 0.05, 4, 2)


@pytest.fixture
def policy():
    torch.manual_seed(0)
    kind = registry.load("policies", "chunk_mlp")
    policy = kind(SPEC, dataclasses.replace(kind.config_class(), width=16))
    policy.fit_scale({"state": np.array([[0, 1], [2, 3]], np.float32)}, np.array([[-0.5], [0.25]], np.float32))
    return policy.eval()


@pytest.fixture
def saved(policy, tmp_path):
    save_policy(tmp_path / "policy", policy)
    return tmp_path / "policy"


def edit(folder, **changes):
    write_yaml(folder / "about.yaml", read_yaml(folder / "about.yaml") | changes)


def test_a_policy_comes_back_the_same(policy, saved):
    loaded = load_policy(saved, task="toy")

    obs = {"state": np.array([0.3, 0.4], np.float32)}
    np.testing.assert_array_equal(policy.act(obs).actions, loaded.act(obs).actions)
    assert loaded.spec == policy.spec and loaded.config == policy.config and not loaded.training
    assert read_spec(saved) == policy.spec


def test_a_run_folder_will_do(saved):
    assert load_policy(saved.parent).spec.task == "toy"


def test_a_policy_on_top_of_another_brings_its_base(policy, tmp_path):
    kind = registry.load("policies", "residual")
    spec = dataclasses.replace(SPEC, obs={**SPEC.obs, "wrench/wrist": StreamSpec((4, 6), unit="N, N·m")})
    residual = kind(policy, spec)
    with torch.no_grad():
        residual.head.actor[-1].bias.fill_(0.5)
    save_policy(tmp_path / "both", residual)

    loaded = load_policy(tmp_path / "both")

    obs = {"state": np.array([[0.3, 0.4]], np.float32), "wrench/wrist": np.full((1, 4, 6), 9, np.float32)}
    for each in (residual, loaded):
        each.reset_lanes(1, 0)
    expected = residual.act_lanes(obs, np.ones(1, bool))
    np.testing.assert_array_equal(loaded.act_lanes(obs, np.ones(1, bool)), expected)
    assert type(loaded.base) is type(policy)


def test_saving_again_replaces_and_leaves_no_litter(policy, saved):
    with torch.no_grad():
        policy.net[-1].bias.fill_(0.1)
    save_policy(saved, policy)

    assert len(list(saved.iterdir())) == 2
    assert load_policy(saved).net[-1].bias.unique().item() == pytest.approx(0.1)


def test_a_full_disk_keeps_the_old_policy(policy, saved, monkeypatch):
    def full(path, write):
        raise DiskFullError("no room")

    before = load_policy(saved).net[-1].bias
    with torch.no_grad():
        policy.net[-1].bias.fill_(0.1)
    monkeypatch.setattr(tensors_module, "write_atomically", full)
    with pytest.raises(DiskFullError):
        save_policy(saved, policy)

    assert torch.equal(load_policy(saved).net[-1].bias, before)


def test_no_room_is_a_clear_error_and_leaves_no_litter(tmp_path):
    from robot_fb.training.atomic import write_atomically

    def fail(path):
        path.write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "file").write_text("old")
    with pytest.raises(DiskFullError, match="no room"):
        write_atomically(tmp_path / "file", fail)
    assert (tmp_path / "file").read_text() == "old" and len(list(tmp_path.iterdir())) == 1


def test_another_task_is_refused(saved):
    with pytest.raises(CheckpointError, match="another task; expected door; found toy"):
        load_policy(saved, task="door")


def test_missing_empty_and_foreign_folders_are_named(tmp_path):
    with pytest.raises(CheckpointError, match="check the path"):
        load_policy(tmp_path / "nowhere")
    with pytest.raises(CheckpointError, match="an empty folder"):
        load_policy(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r"found config\.json"):
        load_policy(tmp_path)
    (tmp_path / "about.yaml").write_text("format: something else\n")
    with pytest.raises(CheckpointError, match="not a robot_fb checkpoint"):
        load_policy(tmp_path)
    (tmp_path / "about.yaml").write_text("a: [\n")
    with pytest.raises(CheckpointError, match="not readable YAML"):
        load_policy(tmp_path)


class Bomb:
    """Writes a file if it is ever unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


@pytest.mark.parametrize("name", ["policy.pt", "model.pkl", "weights.zip", "weights", "pytorch_model.bin"])
def test_pickles_are_refused_and_never_run(tmp_path, name):
    folder, mark = tmp_path / "bomb", tmp_path / "exploded"
    folder.mkdir()
    if name == "policy.pt":
        torch.save({"w": Bomb(mark)}, folder / name)
    elif name == "weights.zip":
        with zipfile.ZipFile(folder / name, "w") as archive:
            archive.writestr("data.pkl", pickle.dumps(Bomb(mark)))
    else:
        (folder / name).write_bytes(pickle.dumps(Bomb(mark)))

    for path in (folder, folder / name):
        with pytest.raises(CheckpointError, match="pickle"):
            load_policy(path)
    assert not mark.exists()


def test_a_pickle_in_place_of_the_weights_is_refused(saved, tmp_path):
    weights = next(saved.glob("weights-*"))
    weights.write_bytes(pickle.dumps(Bomb(tmp_path / "exploded")))

    with pytest.raises(CheckpointError, match="damaged"):
        load_policy(saved)
    import hashlib

    edit(saved, sha256=hashlib.sha256(weights.read_bytes()).hexdigest())
    with pytest.raises(CheckpointError, match="not a safetensors file"):
        load_policy(saved)
    assert not (tmp_path / "exploded").exists()


def test_python_objects_in_the_yaml_are_refused(saved, tmp_path):
    text = (saved / "about.yaml").read_text()
    (saved / "about.yaml").write_text(text + f"extra: !!python/object/apply:open ['{tmp_path / 'exploded'}', 'w']\n")

    with pytest.raises(CheckpointError, match="not readable YAML"):
        load_policy(saved)
    assert not (tmp_path / "exploded").exists()


@pytest.mark.parametrize("name", ["../weights-0123456789ab.safetensors", "/etc/passwd", "weights.pt", 7, None])
def test_weights_outside_the_folder_are_refused(saved, name):
    edit(saved, weights=name)

    with pytest.raises(CheckpointError, match="no weights file of ours"):
        load_policy(saved)


def test_a_link_in_place_of_the_weights_is_refused(saved, tmp_path):
    weights = next(saved.glob("weights-*"))
    weights.rename(tmp_path / "elsewhere")
    weights.symlink_to(tmp_path / "elsewhere")

    with pytest.raises(CheckpointError, match="missing"):
        load_policy(saved)


@pytest.mark.parametrize("name", ["os.system", "policies.chunk_mlp:ChunkMlpPolicy", "chunk_mpl", None])
def test_only_registered_names_are_built(saved, name):
    edit(saved, policy=name)

    with pytest.raises(RobotFbError, match="unknown policy"):
        load_policy(saved)


def test_a_flipped_bit_is_noticed(saved):
    weights = next(saved.glob("weights-*"))
    data = bytearray(weights.read_bytes())
    data[-5] ^= 1
    weights.write_bytes(data)

    with pytest.raises(CheckpointError, match="damaged"):
        load_policy(saved)


def test_weights_that_are_missing_are_named(saved):
    next(saved.glob("weights-*")).unlink()

    with pytest.raises(CheckpointError, match="weights are missing"):
        load_policy(saved)


def test_other_shapes_are_named(saved):
    edit(saved, config=read_yaml(saved / "about.yaml")["config"] | {"width": 17})

    with pytest.raises(CheckpointError, match=r"other shapes: net\.0\.bias; expected \(17,\); found \(16,\)"):
        load_policy(saved)


@pytest.mark.parametrize(
    "changes", [{"spec": {"task": "toy"}}, {"spec": 3}, {"config": {"widht": 16}}, {"config": {"width": "wide"}}]
)
def test_an_unusable_spec_or_config_is_refused(saved, changes):
    edit(saved, **changes)

    with pytest.raises(CheckpointError, match="unusable"):
        load_policy(saved)


def test_a_config_that_cannot_work_is_refused(saved):
    edit(saved, config=read_yaml(saved / "about.yaml")["config"] | {"width": -3})

    with pytest.raises(CheckpointError, match="width"):
        load_policy(saved)


def test_nan_weights_are_refused(policy, tmp_path):
    with torch.no_grad():
        policy.net[0].weight[0, 0] = float("nan")
    save_policy(tmp_path / "nan", policy)

    with pytest.raises(CheckpointError, match=r"NaN.*net\.0\.weight"):
        load_policy(tmp_path / "nan")


def test_a_newer_checkpoint_is_refused(saved):
    edit(saved, version=99)

    with pytest.raises(CheckpointError, match="newer"):
        load_policy(saved)


def test_a_trainer_checkpoint_is_not_a_policy(tmp_path):
    save_tensors(tmp_path, {"x": torch.ones(2)}, {"steps": 3}, "bc trainer")

    with pytest.raises(CheckpointError, match="another kind; expected policy; found bc trainer"):
        load_policy(tmp_path)
    loaded, about = load_tensors(tmp_path, "bc trainer")
    assert loaded["x"].tolist() == [1, 1] and about["steps"] == 3


def test_a_class_that_is_not_registered_cannot_be_saved(tmp_path):
    with pytest.raises(CheckpointError, match="not registered"):
        save_policy(tmp_path, torch.nn.Linear(1, 1))


def test_fits_says_what_does_not():
    other = ActionSpec((-1.0,) * 2, (1.0,) * 2)
    check_fits(SPEC, {"state": StreamSpec((2,)), "more": StreamSpec((1,))}, SPEC.action)
    with pytest.raises(CheckpointError, match="'state', which is not there"):
        check_fits(SPEC, {"camera/scene": StreamSpec((2,))}, SPEC.action)
    with pytest.raises(CheckpointError, match="another shape"):
        check_fits(SPEC, {"state": StreamSpec((3,))}, SPEC.action)
    with pytest.raises(CheckpointError, match="another action"):
        check_fits(SPEC, {"state": StreamSpec((2,))}, other)
