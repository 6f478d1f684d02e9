"""`robot-fb doctor`: what works on this machine, in plain words."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable

from robot_fb.cli import common

DRAW = """
import os, sys, time
os.environ["MUJOCO_GL"] = sys.argv[1]
import mujoco
model = mujoco.MjModel.from_xml_string(
    "<mujoco><visual><quality shadowsize='0' offsamples='0'/></visual>"
    "<worldbody><light pos='0 0 2'/><geom type='box' size='.1 .1 .1'/></worldbody></mujoco>")
data = mujoco.MjData(model)
mujoco.mj_forward(model, data)
renderer = mujoco.Renderer(model, 64, 64)
renderer.update_scene(data)
assert renderer.render().any()
start = time.perf_counter()
for _ in range(200):
    renderer.update_scene(data)
    renderer.render()
print("frames/s", round(200 / (time.perf_counter() - start)))
"""

PORT = 8765
"""Where pages are served unless told otherwise."""


@dataclasses.dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        what: it is.
        ok: whether it works.
        words: how, or what to do.
        needed: whether any command but the special ones needs it.
    """

    what: str
    ok: bool
    words: str
    needed: bool = True


@dataclasses.dataclass(frozen=True, kw_only=True)
class DoctorArgs:
    """Say in plain words what works on this machine, and what to install for what does not.

    Attributes:
        json: print one JSON document to stdout.
    """

    json: bool = False


def main(argv: list[str]) -> int:
    """Looks at everything; exit status 1 if something is missing that is needed."""
    args = common.parse(DoctorArgs, argv, "robot-fb doctor")
    findings = [_careful(look) for look in (cameras, cores, memory, disk, torch_build, video, ros, browser, port)]
    if args.json:
        common.emit({f.what: {"ok": f.ok, "needed": f.needed, "words": f.words} for f in findings})
    else:
        for finding in findings:
            mark = "ok" if finding.ok else "PROBLEM" if finding.needed else "absent"
            print(f"{mark:<8}{finding.what}: {finding.words}")
    return 0 if all(finding.ok for finding in findings if finding.needed) else 1


def cameras() -> Finding:
    """Tries the backends that need no screen, each in a process of its own."""
    rates = {backend: _pictures_per_s(backend) for backend in ("egl", "osmesa")}
    works = [f"{backend} draws {rate} pictures of 64x64 a second" for backend, rate in rates.items() if rate]
    if not works:
        do = "sudo apt-get install libegl1 libgl1-mesa-dri (or libosmesa6, and set MUJOCO_GL=osmesa)"
        return Finding("cameras", False, f"nothing can draw them: {do}")
    chosen = os.environ.get("MUJOCO_GL") or "egl"
    if chosen in rates and not rates[chosen]:
        other = next(backend for backend, rate in rates.items() if rate)
        return Finding("cameras", False, f"{chosen} cannot draw them, but {'; '.join(works)}: set MUJOCO_GL={other}")
    return Finding("cameras", True, f"{'; '.join(works)}; {chosen} is used")


def _pictures_per_s(backend: str) -> int | None:
    """How fast a backend draws a small picture; None where it cannot."""
    try:
        done = subprocess.run([sys.executable, "-c", DRAW, backend], capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        return None
    found = re.search(r"^frames/s (\d+)$", done.stdout, re.MULTILINE)
    return int(found[1]) if done.returncode == 0 and found else None


def cores() -> Finding:
    """Cores that this process may use."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return Finding("cores", True, f"{count} to use" + ("" if count > 1 else "; learning wants two"))


def memory() -> Finding:
    """Free memory; 4 GiB are enough for everything here."""
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return Finding("memory", free > 2, f"{free:.1f} GiB free" + ("" if free > 2 else "; learning wants 2 GiB or more"))


def disk() -> Finding:
    """Room in the working directory."""
    free = shutil.disk_usage(".").free / 2**30
    words = f"{free:.0f} GiB free here" + ("" if free > 2 else "; a demo wants 2 GiB")
    return Finding("disk", free > 2, words)


def torch_build() -> Finding:
    """Which torch, and on how many threads."""
    import torch

    gpu = "with a GPU (not needed)" if torch.cuda.is_available() else "on the CPU"
    return Finding("torch", True, f"{torch.__version__} {gpu}, {torch.get_num_threads()} threads")


def video() -> Finding:
    """ffmpeg for `episodes video` comes with a package."""
    import imageio_ffmpeg

    return Finding("video", True, f"ffmpeg {imageio_ffmpeg.get_ffmpeg_version()}")


def ros() -> Finding:
    """Whether rclpy can be imported; no command here needs it."""
    if importlib.util.find_spec("rclpy") is None:
        words = "rclpy is not here; only ROS nodes need it: source a ROS 2 installation first"
        return Finding("ROS 2", False, words, needed=False)
    return Finding("ROS 2", True, "rclpy can be imported")


def browser() -> Finding:
    """A browser to look at reports."""
    for name in ("firefox", "google-chrome", "chromium", "chromium-browser"):
        if shutil.which(name):
            return Finding("browser", True, f"{name} opens reports")
    return Finding("browser", False, "none here; copy report.html to a machine that has one", needed=False)


def port() -> Finding:
    """Whether the pages' port is free on loopback."""
    with socket.socket() as probe:
        probe.settimeout(1)
        taken = probe.connect_ex(("127.0.0.1", PORT)) == 0
    words = f"{PORT} is {'taken; choose another with --port' if taken else 'free'}"
    return Finding("port", not taken, words, needed=False)


def _careful(look: Callable[[], Finding]) -> Finding:
    """A finding, also where looking itself fails."""
    try:
        return look()
    except Exception as error:
        return Finding(look.__name__.replace("_build", ""), False, f"cannot tell: {type(error).__name__}: {error}")
