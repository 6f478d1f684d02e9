"""How good alarms are: what was caught, how early, and how often success was disturbed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Watched:
    """One episode that a monitor watched.

    Attributes:
        success: how it ended.
        seconds: how long it was [s].
        alarm: time of the first alarm [s], None without one.
        onset: when the failure began [s]; None where nothing failed or it is not known.
    """

    success: bool
    seconds: float
    alarm: float | None
    onset: float | None = None


def judge(episodes: Sequence[Watched]) -> dict[str, Any]:
    """Figures over many episodes; None where there is nothing to count.

    Returns:
        "tpr", "tnr": share of failures that alarmed, and of successes that did not. "balanced_accuracy": their mean.
        "twa": timestep-wise accuracy, ((sum over caught failures of 1 - DT) / failures + tnr) / 2 with DT the time of
        the alarm as a share of the episode. "median_delay_s": from the onset of the failure to the alarm, below 0 where
        the alarm came first. "false_alarms", "successes", "failures": counts.
    """
    good = [episode for episode in episodes if episode.success]
    bad = [episode for episode in episodes if not episode.success]
    false_alarms = sum(episode.alarm is not None for episode in good)
    caught = [(episode, episode.alarm) for episode in bad if episode.alarm is not None]
    tnr = 1 - false_alarms / len(good) if good else None
    tpr = len(caught) / len(bad) if bad else None
    early = sum(1 - alarm / max(episode.seconds, alarm, 1e-9) for episode, alarm in caught) / len(bad) if bad else None
    delays = [alarm - episode.onset for episode, alarm in caught if episode.onset is not None]
    return {
        "tpr": tpr,
        "tnr": tnr,
        "balanced_accuracy": None if tpr is None or tnr is None else (tpr + tnr) / 2,
        "twa": None if early is None or tnr is None else (early + tnr) / 2,
        "median_delay_s": float(np.median(delays)) if delays else None,
        "false_alarms": false_alarms,
        "successes": len(good),
        "failures": len(bad),
    }
