"""`robot-fb bench log`: what logging costs, what it keeps up with, how fast training reads it, what a crash takes."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from robot_fb.benchmarks import crash, log_batches
from robot_fb.benchmarks.cell_episode import DT, META, STREAMS, CellEpisode, picture
from robot_fb.benchmarks.common import write_result
from robot_fb.config import from_mapping
from robot_fb.episodes.store import Store
from robot_fb.episodes.writer import EpisodeWriter
from robot_fb.errors import ConfigError
from robot_fb.types import Step, StreamSpec

WORK_S = 0.01
STRETCH = 20


@dataclasses.dataclass(frozen=True)
class Sizes:
    """How much is measured.

    Attributes:
        ticks: of the control loop.
        rate_s: length of the recording at full rate [s].
        episodes: in the store that training reads.
        reader_s: how long each reader runs [s].
        kills: recordings killed.
    """

    ticks: int = 1200
    rate_s: float = 60.0
    episodes: int = 100
    reader_s: float = 10.0
    kills: int = 200


HELP = """usage: robot-fb bench log [--quick] [--json] [--KEY VALUE ...]

What logging costs a 20 Hz loop, whether it keeps up with 1 kHz touch and three cameras, how fast training reads
batches from it, and what `kill -9` takes. Writes data/benchmarks/log.json; about eight minutes, --quick about one.

  --ticks 1200    of the control loop, with and without logging
  --rate-s 60     length of the recording at full rate [s]
  --episodes 100  that training reads
  --reader-s 10   how long each reader runs [s]
  --kills 200     recordings killed"""

QUICK = Sizes(ticks=60, rate_s=5.0, episodes=8, reader_s=1.0, kills=4)


def run(argv: list[str]) -> dict[str, Any]:
    """Measures and writes data/benchmarks/log.json.

    Args:
        argv: `--quick` measures less; `--KEY VALUE` changes one of `Sizes`.

    Returns:
        The document, as written.
    """
    if "--help" in argv or "-h" in argv:
        print(HELP)
        raise SystemExit(0)
    quick = "--quick" in argv
    sizes = _sizes([word for word in argv if word not in ("--quick", "--json")], QUICK if quick else Sizes())
    with TemporaryDirectory() as folder:
        rows = [
            overhead(Path(folder) / "overhead", sizes.ticks), full_rate(Path(folder) / "rate", sizes.rate_s),
            *log_batches.rows(Path(folder), sizes.episodes, sizes.reader_s), crash.row(sizes.kills),
        ]
    command = " ".join(["robot-fb bench log", *argv])
    return write_result("log", command, rows)


def _sizes(words: list[str], base: Sizes) -> Sizes:
    if len(words) % 2:
        raise ConfigError("robot-fb bench log takes --quick and pairs of --KEY VALUE", found=" ".join(words))
    kinds = {field.name: type(getattr(base, field.name)) for field in dataclasses.fields(Sizes)}
    given: dict[str, Any] = {}
    for key, word in zip(words[::2], words[1::2], strict=True):
        name = key.removeprefix("--").replace("-", "_")
        try:
            given[name] = kinds.get(name, str)(word)
        except ValueError as error:
            raise ConfigError(f"{key} of robot-fb bench log", expected="a number", found=word) from error
    return from_mapping(Sizes, given, base)


def overhead(path: Path, ticks: int) -> dict[str, Any]:
    """How much longer a tick of a 20 Hz loop takes when it is logged.

    Each tick computes for 10 ms in Python, logs, and waits for the next, as `runtime.loop` does, so that time which the
    writer's thread takes away from the loop counts as well as the time in `add_step`. Stretches of a second with and
    without logging take turns; the figure is the median over pairs of them, so that what else the machine does hardly
    matters.
    """
    turns, source = _calibrate(), CellEpisode(0)
    writer = Store(path, create=True).open(META)
    plain, logged = [], []
    for _ in range(-(-ticks // STRETCH)):
        steps = [source.step() for _ in range(STRETCH)]
        plain.append(_loop(steps, turns, lambda step: None))
        logged.append(_loop(steps, turns, writer.add_step))
        time.sleep(3 * writer.config.flush_s)  # what is still being written must not count as "without"
    writer.close(True)
    added = np.concatenate(logged)[:, 1]
    without, with_ = (np.array([stretch.sum(axis=1).mean() for stretch in loop]) for loop in (plain, logged))
    low, middle, high = np.percentile((with_ - without) / DT * 100, [25, 50, 75])
    return {
        "what": "logging in a 20 Hz tick", "ticks": len(added), "streams": len(STREAMS), "cameras": "2 x 64x64",
        "add_step_ms_p50": float(np.median(added) * 1e3), "add_step_ms_p99": float(np.percentile(added, 99) * 1e3),
        "add_step_percent_of_tick": float(added.mean()) / DT * 100,
        "tick_ms_without": float(np.median(without) * 1e3), "tick_ms_with": float(np.median(with_) * 1e3),
        "overhead_percent_of_tick": float(middle), "overhead_quartiles_percent": [float(low), float(high)],
        "target": "at most 2",
    }


def _calibrate() -> int:
    """Turns of `_work` that take about 10 ms."""
    begun = time.perf_counter()
    _work(100_000)
    return round(100_000 * WORK_S / (time.perf_counter() - begun))


def _work(turns: int) -> int:
    total = 0
    for i in range(turns):
        total += i & 3
    return total


def _loop(steps: list[Step], turns: int, log: Callable[[Step], object]) -> np.ndarray:
    """(ticks, 2) seconds of computing and of logging in each tick."""
    took = np.zeros((len(steps), 2))
    begun = time.perf_counter()
    for i, step in enumerate(steps):
        time.sleep(max(0.0, begun + i * DT - time.perf_counter()))
        start = time.perf_counter()
        _work(turns)
        computed = time.perf_counter()
        log(step)
        took[i] = computed - start, time.perf_counter() - computed
    return took


def full_rate(path: Path, seconds: float) -> dict[str, Any]:
    """1 kHz touch and three 640x480 cameras at 30 Hz, each from a thread of its own, while steps come at 20 Hz."""
    cameras = [f"camera/{name}" for name in ("front", "side", "top")]
    streams = {**STREAMS, "tactile/finger": StreamSpec((3, 8, 8), unit="N", rate_hz=1000.0)}
    streams |= {name: StreamSpec((480, 640, 3), "uint8", rate_hz=30.0) for name in cameras}
    rng = np.random.default_rng(0)
    touch = rng.normal(size=(64, 3, 8, 8)).astype(np.float32)
    frames = [picture(rng, 480, 640) for _ in range(8)]
    source = CellEpisode(0)
    writer = Store(path, create=True).open(dataclasses.replace(META, streams=streams))
    begun = time.perf_counter()
    jobs = [
        threading.Thread(target=_feed, args=(writer, "tactile/finger", list(touch), 1000.0, begun, seconds)),
        *(threading.Thread(target=_feed, args=(writer, name, frames, 30.0, begun, seconds)) for name in cameras),
    ]
    for job in jobs:
        job.start()
    for i in range(round(seconds / DT)):
        time.sleep(max(0.0, begun + i * DT - time.perf_counter()))
        writer.add_step(source.step())
    for job in jobs:
        job.join()
    took = time.perf_counter() - begun
    writer.close(True)
    store = Store(path)
    found = {name: len(store.samples(writer.id, name).t) for name in ("tactile/finger", *cameras)}
    return {
        "what": "1 kHz touch, three 640x480 cameras at 30 Hz, 20 Hz steps", "seconds": took,
        "touch_samples": found["tactile/finger"], "frames": sum(found[name] for name in cameras),
        "dropped": sum(writer.dropped.values()), "megabytes": store.file(writer.id).stat().st_size / 1e6,
        "target": "0 dropped",
    }


def _feed(
    writer: EpisodeWriter, stream: str, values: list[np.ndarray], rate_hz: float, begun: float, seconds: float
) -> None:
    """A sensor: a sample at each of its times, catching up where the system was late."""
    for i in range(round(seconds * rate_hz)):
        time.sleep(max(0.0, begun + i / rate_hz - time.perf_counter()))
        writer.add_sample(stream, i / rate_hz, values[i % len(values)])
