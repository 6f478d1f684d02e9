"""Policies on disk: which registered class, its spec and config, and its weights.

The class comes from the registry only; a checkpoint cannot name code that was not installed as a plugin. A policy
that corrects another one keeps it as `.base`, saved in a folder of its own inside.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from robot_fb import registry
from robot_fb.config import from_mapping, to_mapping
from robot_fb.errors import CheckpointError, RobotFbError
from robot_fb.training.tensors import load_tensors, read_about, refuse_bad_numbers, save_tensors
from robot_fb.types import ActionSpec, PolicySpec, StreamSpec

KIND = "policy"
BASE = "base"


def save_policy(folder: Path, policy: Any) -> None:
    """Writes a policy so that `load_policy` gives it back.

    Args:
        folder: made if missing; an older policy in it is replaced.
        policy: of a registered class, with `spec`, `config`, weights as a torch module (itself or its `head`), and
            possibly a `base` policy under it.

    Raises:
        CheckpointError: its class is not registered.
    """
    kind = type(policy)
    name = registry.name_of("policies", kind)
    if name is None:
        raise CheckpointError(
            f"policy class {kind.__qualname__} is not registered", expected="an entry point of robot_fb.policies",
            do="add it to your package's entry points and reinstall",
        )
    base = getattr(policy, BASE, None)
    if base is not None:
        save_policy(folder / BASE, base)
    about = {
        "policy": name, "spec": to_mapping(policy.spec), "config": to_mapping(policy.config), BASE: base is not None
    }
    save_tensors(folder, _module(policy).state_dict(), about, KIND)


def load_policy(path: Path | str, task: str | None = None) -> Any:
    """A policy from its folder, or from the run folder that holds it in `policy/`.

    Args:
        path: either folder.
        task: the task it is meant for, if that is to be checked.

    Returns:
        An `interfaces.LanePolicy`, ready to act.

    Raises:
        CheckpointError: see `training.tensors`; also another task, other shapes, or NaN weights.
        UnknownNameError: its class is not installed here.
    """
    folder = policy_folder(Path(path))
    tensors, about = load_tensors(folder, KIND)
    spec = _read(PolicySpec, about, "spec", folder)
    if task is not None and spec.task != task:
        raise CheckpointError(
            f"{folder} was trained for another task", expected=task, found=spec.task, do="choose a policy of that task"
        )
    kind = registry.load("policies", str(about.get("policy")))
    config = _read(kind.config_class, about, "config", folder)
    refuse_bad_numbers(tensors, folder)
    parts = (load_policy(folder / BASE),) if about.get(BASE) is True else ()
    try:
        policy = kind(*parts, spec, config)
    except RobotFbError:
        raise
    except Exception as error:
        raise CheckpointError(f"{folder} describes a policy that cannot be built", found=str(error)) from error
    load_weights(_module(policy), tensors, folder)
    policy.reset()
    return policy


def policy_folder(path: Path) -> Path:
    """Where the policy of a run lies."""
    inside = path / "policy"
    return inside if inside.is_dir() else path


def policy_digest(path: Path | str) -> str:
    """What tells a saved policy, with all that it builds on, from every other."""
    folder = policy_folder(Path(path))
    about = read_about(folder, KIND)
    own = str(about.get("sha256"))
    return f"{own}+{policy_digest(folder / BASE)}" if about.get(BASE) is True else own


def read_spec(path: Path | str) -> PolicySpec:
    """What a saved policy needs and gives, without loading it."""
    folder = policy_folder(Path(path))
    return _read(PolicySpec, read_about(folder, KIND), "spec", folder)


def load_weights(module: nn.Module, tensors: Mapping[str, torch.Tensor], folder: Path) -> None:
    """Fills a module; every name and shape must match.

    Raises:
        CheckpointError: names the first tensor that does not fit.
    """
    own = module.state_dict()
    for name in sorted(own.keys() | tensors.keys()):
        expected = tuple(own[name].shape) if name in own else "nothing"
        found = tuple(tensors[name].shape) if name in tensors else "nothing"
        if expected != found:
            raise CheckpointError(
                f"weights in {folder} have other shapes: {name}", expected=expected, found=found,
                do="the config beside them was changed; restore it",
            )
    module.load_state_dict(dict(tensors))
    module.eval()


def check_fits(spec: PolicySpec, streams: Mapping[str, StreamSpec], action: ActionSpec, where: str = "policy") -> None:
    """Whether a policy can act here.

    Raises:
        CheckpointError: a stream that it reads is missing or has another shape, or the action has.
    """
    for key, need in spec.obs.items():
        if key not in streams:
            raise CheckpointError(f"{where} reads {key!r}, which is not there", found=", ".join(streams))
        if tuple(streams[key].shape) != tuple(need.shape):
            found = tuple(streams[key].shape)
            raise CheckpointError(f"{where} reads {key!r} of another shape", expected=tuple(need.shape), found=found)
    if spec.action.dim != action.dim:
        raise CheckpointError(f"{where} gives another action", expected=f"{action.dim} numbers", found=spec.action.dim)


def _module(policy: Any) -> nn.Module:
    return policy if isinstance(policy, nn.Module) else policy.head


def _read(kind: type, about: Mapping[str, Any], key: str, folder: Path) -> Any:
    try:
        return from_mapping(kind, about.get(key, {}), where=key)
    except RobotFbError as error:
        raise CheckpointError(f"{folder} has an unusable {key}", found=str(error)) from error
