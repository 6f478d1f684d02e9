"""A folder of tensors: safetensors for the numbers, YAML for the words. Nothing in it can run code.

    about.yaml                  format, version, kind, the name and SHA-256 of the weights, and what the owner adds
    weights-<12 hex>.safetensors

The weights are written under a new name first and `about.yaml` is renamed into place last, so that a crash at any
moment leaves either the old or the new checkpoint.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import yaml
from safetensors import SafetensorError
from safetensors.torch import load as load_bytes
from safetensors.torch import save as save_bytes

from robot_fb.errors import CheckpointError
from robot_fb.training.atomic import write_atomically

FORMAT, VERSION = "robot_fb tensors", 1
ABOUT = "about.yaml"
_WEIGHTS = re.compile(r"weights-[0-9a-f]{12}\.safetensors")
_PICKLES = (".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".bin", ".zip", ".joblib", ".npy")


def save_tensors(folder: Path, tensors: Mapping[str, torch.Tensor], about: Mapping[str, Any], kind: str) -> None:
    """Writes a checkpoint; replaces the one that stands there.

    Args:
        folder: made if missing.
        tensors: by name.
        about: plain data to keep beside them.
        kind: what the checkpoint is, e.g. "policy"; `load_tensors` asks for it.

    Raises:
        DiskFullError: the disk took no more; the old checkpoint is kept.
    """
    folder.mkdir(parents=True, exist_ok=True)
    data = save_bytes({name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()})
    digest = hashlib.sha256(data).hexdigest()
    weights = f"weights-{digest[:12]}.safetensors"
    head = {"format": FORMAT, "version": VERSION, "kind": kind, "weights": weights, "sha256": digest, **about}
    text = yaml.safe_dump(head, sort_keys=False, allow_unicode=True)
    write_atomically(folder / weights, lambda path: path.write_bytes(data))
    write_atomically(folder / ABOUT, lambda path: path.write_text(text, encoding="utf-8"))
    for old in folder.glob("weights-*.safetensors"):
        if old.name != weights:
            old.unlink()


def load_tensors(folder: Path, kind: str) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """Reads a checkpoint: its tensors, and what was kept beside them.

    Raises:
        CheckpointError: missing, foreign, damaged, of another kind, newer than this version, or a pickle.
    """
    about = read_about(folder, kind)
    name = about.get("weights")
    if not isinstance(name, str) or not _WEIGHTS.fullmatch(name):
        raise CheckpointError(f"{folder / ABOUT} names no weights file of ours", found=repr(name))
    path = folder / name
    if path.is_symlink() or not path.is_file():
        raise CheckpointError(f"weights are missing: {path}", do="copy the whole folder")
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != about.get("sha256"):
        raise CheckpointError(f"{path} is damaged", expected="the checksum in about.yaml", do="copy the folder again")
    try:
        return load_bytes(data), about
    except (SafetensorError, ValueError) as error:
        raise CheckpointError(f"{path} is not a safetensors file", found=str(error)) from error


def read_about(folder: Path, kind: str) -> dict[str, Any]:
    """The words of a checkpoint, checked; see `load_tensors`."""
    path = folder / ABOUT
    if not path.is_file():
        raise CheckpointError(f"no checkpoint at {folder}", **_instead(folder))
    try:
        about = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise CheckpointError(f"{path} is not readable YAML", found=str(error).splitlines()[0]) from error
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise CheckpointError(f"{path} is not a robot_fb checkpoint", expected=f"format: {FORMAT}")
    if not isinstance(about.get("version"), int) or about["version"] > VERSION:
        raise CheckpointError(
            f"{path} was written by a newer robot_fb", expected=f"version {VERSION}", found=about.get("version"),
            do="update robot_fb",
        )
    if about.get("kind") != kind:
        raise CheckpointError(f"{path} is of another kind", expected=kind, found=about.get("kind"))
    return about


def refuse_bad_numbers(tensors: Mapping[str, torch.Tensor], folder: Path) -> None:
    """Raises CheckpointError where a tensor holds a NaN or an infinity."""
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not torch.isfinite(tensor).all():
            raise CheckpointError(
                f"weights in {folder} hold a NaN or an infinity", found=name, do="use an earlier checkpoint"
            )


def _instead(folder: Path) -> dict[str, Any]:
    """What lies where a checkpoint was expected."""
    if folder.is_file():
        found = [folder]
    elif folder.is_dir():
        found = sorted(folder.iterdir())
    else:
        return {"do": "check the path"}
    pickles = [path.name for path in found if path.suffix.lower() in _PICKLES or _looks_pickled(path)]
    if pickles:
        return {
            "expected": f"a folder with {ABOUT} and safetensors", "found": f"{pickles[0]}, which may hold a pickle",
            "do": "pickled weights can run code and are never loaded; train again or convert them to safetensors",
        }
    names = ", ".join(path.name for path in found[:5]) or "an empty folder"
    return {"expected": f"a folder with {ABOUT}", "found": names}


def _looks_pickled(path: Path) -> bool:
    """Whether a file begins as a pickle or a zip archive (torch.save writes either)."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        start = file.read(4)
    return start[:1] == b"\x80" or start == b"PK\x03\x04"
