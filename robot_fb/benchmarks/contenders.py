"""One simulator in a process of its own, stepped on demand: `python -P contenders.py NAME`.

Reads a number of seconds from each line of standard input, steps for that long, and answers with steps a second. It
runs in a peer's environment, too, so nothing of robot_fb is imported before it is needed.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

SIZE = 64
LANES = 2


def main(name: str) -> None:
    """Answers until standard input ends."""
    os.environ.setdefault("MUJOCO_GL", "egl")
    out, sys.stdout = sys.stdout, sys.stderr  # peers print; only the answers are for the caller
    step, each = CONTENDERS[name]()
    _measure(step, 1.0)
    print("ready", file=out, flush=True)
    for line in sys.stdin:
        print(each * _measure(step, float(line)), file=out, flush=True)


def _measure(step: Callable[[], object], seconds: float) -> float:
    start, count = time.perf_counter(), 0
    while (taken := time.perf_counter() - start) < seconds:
        step()
        count += 1
    return count / taken


def cell() -> tuple[Callable[[], object], int]:
    """keyed_socket with its two 64x64 cameras, force and touch, in one process."""
    import torch  # noqa: F401  (as in every command of ours: its thread pool must not look free)

    from robot_fb.runtime.tasks import find_task

    return _stepper(find_task("keyed_socket").make()), 1


def lanes() -> tuple[Callable[[], object], int]:
    """The same, two simulations side by side, as learning uses it."""
    import numpy as np

    from robot_fb.runtime.lanes import Lanes

    made = Lanes("keyed_socket", LANES, 0)
    made.reset()
    actions = np.zeros((LANES, 5), np.float32)

    def step() -> None:
        made.send(actions)
        made.receive()

    return step, LANES


def gymnasium_pusher() -> tuple[Callable[[], object], int]:
    """Gymnasium's own 7-joint arm: a step and two 64x64 pictures from gymnasium's own renderer as it comes."""
    import gymnasium

    env = gymnasium.make("Pusher-v5", render_mode="rgb_array", width=SIZE, height=SIZE)
    step = _stepper(env)
    return lambda: (step(), env.render(), env.render()), 1


def robosuite_defaults() -> tuple[Callable[[], object], int]:
    """robosuite's Lift with two cameras, everything else as it comes: 256x256 pictures."""
    return _robosuite(), 1


def robosuite_small() -> tuple[Callable[[], object], int]:
    """robosuite's Lift with two cameras of 64x64."""
    return _robosuite(camera_heights=SIZE, camera_widths=SIZE), 1


def _robosuite(**options: Any) -> Callable[[], object]:
    import numpy as np
    import robosuite  # type: ignore[import-not-found]

    env = robosuite.make(
        "Lift", robots="Panda", has_renderer=False, has_offscreen_renderer=True, use_camera_obs=True,
        camera_names=["agentview", "robot0_eye_in_hand"], **options,
    )
    env.reset()
    action = np.zeros(env.action_dim)

    def step() -> None:
        if env.step(action)[2]:
            env.reset()

    return step


def _stepper(env: Any) -> Callable[[], object]:
    import numpy as np

    env.reset(seed=0)
    action = np.zeros(env.action_space.shape, np.float32)

    def step() -> None:
        *_, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            env.reset()

    return step


CONTENDERS: dict[str, Callable[[], tuple[Callable[[], object], int]]] = {
    "cell": cell,
    "lanes": lanes,
    "gymnasium": gymnasium_pusher,
    "robosuite": robosuite_defaults,
    "robosuite-64": robosuite_small,
}

if __name__ == "__main__":
    main(sys.argv[1])
