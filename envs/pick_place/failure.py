"""The four ways in which pick_place goes wrong, named as they happen: the ground truth for monitors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

Kind = Literal["missed grasp", "wrong block", "dropped block", "stuck"]

KINDS: tuple[Kind, ...] = ("missed grasp", "wrong block", "dropped block", "stuck")

CLOSED, REOPENED = 0.030, 0.050
"""Gripper width [m] below which it holds no block, and beyond which it may miss again."""

CARRIED = 0.015
"""A gripped block this far above the table is carried [m]."""

SET_DOWN = 0.010
"""A block let go at most this far above the plate was set down, not dropped [m]."""

STUCK_S, PROGRESS = 2.5, 0.01
"""Stuck: no new best of the potential by `PROGRESS` for `STUCK_S` seconds."""


@dataclass(frozen=True)
class Glimpse:
    """What the watch looks at after every decision.

    Attributes:
        t: time since the episode began [s].
        width: gripper opening [m].
        grips_target, grips_distractor: both pads press on that block.
        height: of the target's underside above the table [m].
        above_plate: of the target's underside above the plate, infinite where the plate is not beneath it [m].
        potential: progress, 0 to 1.
        out_of_reach: the arm does not get the target back.
        last: the episode ends here without success.
    """

    t: float
    width: float
    grips_target: bool = False
    grips_distractor: bool = False
    height: float = 0.0
    above_plate: float = np.inf
    potential: float = 0.0
    out_of_reach: bool = False
    last: bool = False


class FailureWatch:
    """Turns glimpses into failure events; a policy may recover from each.

    - missed grasp: the gripper closes (below `CLOSED`) and holds no block. It counts once until the gripper is opened
      again (beyond `REOPENED`); closing after a block was lost from the grip is not a second failure. Also: the target
      is pushed out of reach.
    - wrong block: both pads press on the distractor.
    - dropped block: the target was carried (gripped, `CARRIED` above the table) and leaves the grip anywhere but on
      the plate (at most `SET_DOWN` above it).
    - stuck: `STUCK_S` without progress, counted anew from every event; or the episode ends with no other failure in
      force.

    A failure is in force until the target is gripped anew; being stuck also ends with progress.

    Attributes:
        events: every event so far, as (time [s], kind).
        kind: the earliest failure that is still in force, the one that what follows came from; empty if none is.
        since: when that failure happened [s].
    """

    def __init__(self) -> None:
        self.events: list[tuple[float, Kind]] = []
        self.kind: Kind | Literal[""] = ""
        self.since = 0.0
        self._may_miss = True
        self._gripped_target = self._gripped_wrong = self._carried = False
        self._best, self._best_t = -np.inf, 0.0

    def look(self, now: Glimpse) -> Kind | Literal[""]:
        """The event of this decision, or nothing."""
        progress = now.potential > self._best + PROGRESS
        if (now.grips_target and not self._gripped_target) or (progress and self.kind == "stuck"):
            self.kind = ""
        kind = self._event(now, progress)
        if progress or kind:
            self._best, self._best_t = now.potential, now.t
        if kind:
            self.events.append((now.t, kind))
            if not self.kind:
                self.kind, self.since = kind, now.t
        return kind

    def _event(self, now: Glimpse, progress: bool) -> Kind | Literal[""]:
        """Brings every memory up to date, then names the gravest thing that just happened."""
        wrong = now.grips_distractor and not self._gripped_wrong
        self._gripped_target, self._gripped_wrong = now.grips_target, now.grips_distractor
        dropped, missed = self._dropped(now), self._missed(now)
        if dropped:
            return "dropped block"
        if wrong:
            return "wrong block"
        if missed or (now.out_of_reach and not self.kind):
            return "missed grasp"
        late = now.t - self._best_t > STUCK_S - 1e-9 and not progress
        return "stuck" if late or (now.last and not self.kind) else ""

    def _dropped(self, now: Glimpse) -> bool:
        lost = self._carried and not now.grips_target
        self._carried = now.grips_target and (self._carried or now.height > CARRIED)
        return lost and now.above_plate > SET_DOWN

    def _missed(self, now: Glimpse) -> bool:
        if now.width > REOPENED:
            self._may_miss = True
        elif now.grips_target or now.grips_distractor:
            self._may_miss = False
        missed = self._may_miss and now.width < CLOSED
        self._may_miss = self._may_miss and not missed
        return missed
