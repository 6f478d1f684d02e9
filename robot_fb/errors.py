"""One tree of errors. Everything a user can cause is a `RobotFbError`; the command line turns it into one line."""

from __future__ import annotations


class RobotFbError(Exception):
    """A mistake a person can mend: says what was expected, what was found and what to do.

    Args:
        what: one short clause naming the trouble.
        expected: what would have been right, if it can be named.
        found: what was there instead.
        do: the next step for the reader.
    """

    def __init__(self, what: str, *, expected: object = None, found: object = None, do: str = "") -> None:
        self.what, self.expected, self.found, self.do = what, expected, found, do
        parts = [what]
        if expected is not None:
            parts.append(f"expected {expected}")
        if found is not None:
            parts.append(f"found {found}")
        if do:
            parts.append(do)
        super().__init__("; ".join(parts))


class UnknownNameError(RobotFbError):
    """A task, policy, key, robot, sensor or detector that nobody registered."""


class ConfigError(RobotFbError):
    """A configuration value or key that cannot be used."""


class EpisodeError(RobotFbError):
    """Anything about the episode log."""


class BrokenFileError(EpisodeError):
    """A file that is truncated, damaged, empty or not an episode at all.

    Args:
        what, expected, found, do: as in `RobotFbError`.
        repairable: whether `robot-fb episodes repair` can save something from it.
    """

    def __init__(
        self, what: str, *, expected: object = None, found: object = None, do: str = "", repairable: bool = False
    ) -> None:
        super().__init__(what, expected=expected, found=found, do=do)
        self.repairable = repairable


class NewerFormatError(EpisodeError):
    """A store or file written by a newer version of robot_fb."""


class StoreBusyError(EpisodeError):
    """Another process holds the store for writing."""


class DiskFullError(EpisodeError):
    """The disk took no more bytes; what was written before is kept."""


class CheckpointError(RobotFbError):
    """A checkpoint that is missing, foreign, unsafe, for another task or of other shapes."""


class CalibrationError(RobotFbError):
    """Calibration data from which no alarm threshold can be had: too few successes, or none that can be used."""


class ObservationError(RobotFbError):
    """An observation with a missing key, a wrong shape or a NaN."""


class ActionError(RobotFbError):
    """An action with a wrong shape or a NaN; the robot is stopped."""


class RobotError(RobotFbError):
    """A robot or sensor that cannot be reached, or that refuses."""


class ProtocolError(RobotFbError):
    """A message between the parts of a fleet that is broken, foreign, or of another version."""
