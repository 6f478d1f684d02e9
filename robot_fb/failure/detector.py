"""What all failure detectors have in common; each is a plugin of `robot_fb.detectors`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from robot_fb.errors import CalibrationError
from robot_fb.failure.band import Band, fit_band, fit_threshold
from robot_fb.failure.trace import Glimpse, Trace


@dataclass(frozen=True)
class Reading:
    """A score, and the moment of the alarm band that it is held against."""

    score: float
    moment: int


class Detector(ABC):
    """Scores how unlike a success an episode is.

    A detector learns from episodes (`fit`), then other successes set its alarm band (`calibrate`). What it has learned
    is plain arrays, so that it can be saved without running code.

    Attributes:
        plans: how many other plans a glimpse has to hold.
        constant: one threshold for the whole episode instead of a band over its moments.
        band: set by `calibrate`.
    """

    plans: ClassVar[int] = 0
    constant: ClassVar[bool] = False
    band: Band | None = None

    @abstractmethod
    def fit(self, traces: Sequence[Trace], seed: int) -> None:
        """Learns from episodes, successes and failures; most detectors look at the successes alone."""

    @abstractmethod
    def reset(self) -> None:
        """Start of an episode."""

    @abstractmethod
    def look(self, glimpse: Glimpse) -> Reading:
        """The score of a decision; higher is riskier."""

    @abstractmethod
    def state(self) -> dict[str, np.ndarray]:
        """What was learned, as arrays by name."""

    @abstractmethod
    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Goes back to a `state`."""

    def calibrate(self, successes: Sequence[Trace], alpha: float, seed: int = 0) -> None:
        """Sets the band that at most a share `alpha` of successes passes.

        Raises:
            CalibrationError: too few successes, or a failure among them.
        """
        failed = [trace.id for trace in successes if not trace.success]
        if failed:
            raise CalibrationError("calibration data holds failures", found=", ".join(failed[:5]))
        fit = fit_threshold if self.constant else fit_band
        self.band = fit([_curve(self.run(trace)) for trace in successes], alpha, seed)

    def run(self, trace: Trace) -> list[Reading]:
        """The readings of a whole episode."""
        self.reset()
        return [self.look(glimpse) for glimpse in trace.glimpses]

    def excess(self, reading: Reading) -> float:
        """How far a reading is out: more than 1 is an alarm.

        Raises:
            CalibrationError: `calibrate` has not been called.
        """
        if self.band is None:
            raise CalibrationError("this detector was not calibrated", do="robot-fb monitor fit")
        return self.band.excess(reading.score, reading.moment)


def successes(traces: Sequence[Trace]) -> list[Trace]:
    """Those that ended in success.

    Raises:
        CalibrationError: there are none.
    """
    found = [trace for trace in traces if trace.success]
    if not found:
        raise CalibrationError("no successful episode to learn from", do="record some, or choose another store")
    return found


def _curve(readings: Sequence[Reading]) -> np.ndarray:
    """(moments,) the highest score at each moment; a moment that was skipped keeps the score before it."""
    curve = np.full(max(reading.moment for reading in readings) + 1, -np.inf)
    for reading in readings:
        curve[reading.moment] = max(curve[reading.moment], reading.score)
    known = np.maximum.accumulate(np.where(np.isfinite(curve), np.arange(len(curve)), 0))
    curve = curve[known]
    curve[~np.isfinite(curve)] = readings[0].score
    return curve

