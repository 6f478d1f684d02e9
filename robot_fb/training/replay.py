"""A ring of transitions in preallocated arrays, and n-step returns on the way in."""

from __future__ import annotations

import json
import zipfile
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from robot_fb.errors import CheckpointError
from robot_fb.training.atomic import write_atomically

Rows = Mapping[str, np.ndarray]


class ReplayBuffer:
    """Keeps the newest `capacity` rows. The fields and their shapes are those of the first batch.

    Args:
        capacity: rows kept.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.fields: dict[str, np.ndarray] = {}
        self._size = self._next = 0

    def __len__(self) -> int:
        return self._size

    def add_batch(self, rows: Rows) -> None:
        """Adds rows, each field (B, ...); the oldest make room.

        Raises:
            ValueError: fields or shapes other than in the first batch.
        """
        count = len(next(iter(rows.values())))
        if not self.fields:
            self.fields = {k: np.zeros((self.capacity, *v.shape[1:]), v.dtype) for k, v in rows.items()}
        if rows.keys() != self.fields.keys():
            raise ValueError(f"replay fields: expected {sorted(self.fields)}, found {sorted(rows)}")
        where = (self._next + np.arange(count)) % self.capacity
        for key, field in self.fields.items():
            if rows[key].shape != (count, *field.shape[1:]):
                raise ValueError(f"replay field {key!r}: expected (*, {field.shape[1:]}), found {rows[key].shape}")
            # With more rows than places only the newest stay.
            field[where[-self.capacity :]] = rows[key][-self.capacity :]
        self._next = int((self._next + count) % self.capacity)
        self._size = min(self._size + count, self.capacity)

    def sample(self, rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
        """`n` rows, drawn evenly with replacement: each field (n, ...).

        Raises:
            ValueError: the buffer is empty.
        """
        if not self._size:
            raise ValueError("the replay buffer is empty")
        index = rng.integers(self._size, size=n)
        return {key: field[index] for key, field in self.fields.items()}

    def rows(self) -> dict[str, np.ndarray]:
        """All rows from oldest to newest (copies)."""
        order = (self._next - self._size + np.arange(self._size)) % self.capacity
        return {key: field[order] for key, field in self.fields.items()}

    def save(self, path: Path) -> None:
        """Writes all rows to one .npz, whole or not at all."""
        head = np.frombuffer(json.dumps({"capacity": self.capacity}).encode(), np.uint8)

        def write(temporary: Path) -> None:
            with temporary.open("wb") as file:
                np.savez(file, **{"head": head, **{f"field/{k}": v for k, v in self.rows().items()}})  # type: ignore[arg-type]

        write_atomically(path, write)

    @classmethod
    def load(cls, path: Path) -> ReplayBuffer:
        """Reads what `save` wrote.

        Raises:
            CheckpointError: missing, damaged, or not a replay file.
        """
        try:
            with np.load(path, allow_pickle=False) as file:
                data = {key: file[key] for key in file.files}
            head = json.loads(bytes(data.pop("head")))
            buffer = cls(int(head["capacity"]))
        except FileNotFoundError as error:
            raise CheckpointError(f"no replay buffer at {path}", do="resume needs the whole run folder") from error
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise CheckpointError(f"{path} is not a replay buffer", found=str(error)) from error
        rows = {key.removeprefix("field/"): value for key, value in data.items()}
        if rows:
            buffer.add_batch(rows)
        return buffer


class NStep:
    """Turns single steps of several lanes into n-step transitions.

    A row that goes in at time t comes out with `reward` = sum of gamma^k r_{t+k}, `discount` = gamma^m, or 0 where the
    episode terminated, and the `next_*` fields of step t+m-1, m being n or fewer at an episode's end.

    Args:
        n: steps.
        gamma: discount of one step.
    """

    def __init__(self, n: int, gamma: float) -> None:
        self.n, self.gamma = n, gamma
        self._open: list[deque[dict[str, Any]]] = []

    def push(self, rows: Rows, ended: np.ndarray) -> dict[str, np.ndarray]:
        """Takes one step of every lane, gives what is complete.

        Args:
            rows: fields (lanes, ...), with "reward" and "terminated", and what came after under "next_...".
            ended: (lanes,) bool, whether the episode ended with this step, terminated or cut off.

        Returns:
            Rows without "terminated" and with "discount"; empty where nothing is complete.
        """
        lanes = len(ended)
        if not self._open:
            self._open = [deque() for _ in range(lanes)]
        done: list[dict[str, Any]] = []
        for lane in range(lanes):
            waiting = self._open[lane]
            waiting.append({key: value[lane] for key, value in rows.items()})
            if len(waiting) == self.n:
                done.append(self._close(list(waiting)))
                waiting.popleft()
            if ended[lane]:
                while waiting:
                    done.append(self._close(list(waiting)))
                    waiting.popleft()
        return {key: np.stack([row[key] for row in done]) for key in done[0]} if done else {}

    def reset(self) -> None:
        """Forgets steps that are not complete."""
        self._open = []

    def _close(self, steps: Sequence[dict[str, Any]]) -> dict[str, Any]:
        reward = sum(self.gamma**k * float(step["reward"]) for k, step in enumerate(steps))
        last = steps[-1]
        discount = 0.0 if last["terminated"] else self.gamma ** len(steps)
        first = {key: value for key, value in steps[0].items() if key != "terminated" and not key.startswith("next_")}
        after = {key: value for key, value in last.items() if key.startswith("next_")}
        return {**first, **after, "reward": np.float32(reward), "discount": np.float32(discount)}
