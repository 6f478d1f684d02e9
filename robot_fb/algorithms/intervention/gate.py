"""The gate before a learned policy reaches a robot: it has to be better on the same episodes than the one before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from robot_fb.runtime.episodes import EpisodeResult, Job
from robot_fb.runtime.evaluate import EvalResult, evaluate
from robot_fb.runtime.seeds import TRIAL


@dataclass(frozen=True)
class Gate:
    """Episodes on which policies are tried; no evaluation uses their seeds.

    Attributes:
        task: of the episodes.
        episodes: how many.
        seed: the user's.
        workers: processes.
    """

    task: str
    episodes: int
    seed: int = 0
    workers: int = 2

    def try_out(
        self, policy: Path, log: Path | None = None, done: Callable[[EpisodeResult], None] = lambda result: None
    ) -> EvalResult:
        """The policy alone on the gate's episodes.

        Args:
            policy: run folder or policy folder.
            log: store that the episodes go to, or None.
            done: called after each episode.
        """
        return evaluate(Job(self.task, str(policy), log=log), self.episodes, self.seed, self.workers, done, TRIAL)


def better(found: EvalResult, before: EvalResult) -> bool:
    """Whether a policy may take the other one's place: it succeeded more often."""
    return sum(e.success for e in found.episodes) > sum(e.success for e in before.episodes)
