"""One simulator in a process of its own, stepped on demand: `python -P contenders.py NAME`.

Reads a number of seconds from each line of standard input, steps for that long, and answers with steps a second. It
runs in a peer's environment, too, so nothing of robot_fb is imported before it is needed.
"""

from __future__ import annotations

import itertools
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

SIZE = 64
LANES = 2

Step = Callable[[], Sequence[np.ndarray]]
"""One decision; the pictures that it saw."""


def main(name: str) -> None:
    """Answers until standard input ends."""
    os.environ.setdefault("MUJOCO_GL", "egl")
    out, sys.stdout = sys.stdout, sys.stderr  # peers print; only the answers are for the caller
    step, each = CONTENDERS[name]()
    _measure(step, 1.0)
    print("ready", file=out, flush=True)
    for line in sys.stdin:
        print(each * _measure(step, float(line)), file=out, flush=True)


def _measure(step: Step, seconds: float) -> float:
    """Steps a second, if the pictures are real ones."""
    start, count, seen = time.perf_counter(), 0, []
    while (taken := time.perf_counter() - start) < seconds:
        seen = step()
        count += 1
    if not drawn(seen):
        raise SystemExit("its pictures are empty or broken")
    return count / taken


def drawn(pictures: Sequence[np.ndarray]) -> bool:
    """Whether every picture shows something, and every camera something else.

    A scene that is not drawn costs nothing: robosuite's first process, in which numba compiles, shows the same grey
    bands in every camera at ten times the speed of a real picture.
    """
    shows = all(len(np.unique(picture.reshape(-1, 3), axis=0)) > 8 for picture in pictures)
    pairs = itertools.combinations([picture.astype(float) for picture in pictures], 2)
    return shows and all(np.abs(first - second).mean() > 4 for first, second in pairs)


def cell() -> tuple[Step, int]:
    """keyed_socket with its two 64x64 cameras, force and touch, in one process."""
    import torch  # noqa: F401  (as in every command of ours: its thread pool must not look free)

    from robot_fb.runtime.tasks import find_task

    advance = _stepper(find_task("keyed_socket").make())
    return lambda: _cameras(advance()), 1


def lanes() -> tuple[Step, int]:
    """The same, two simulations side by side, as learning uses it."""
    from robot_fb.runtime.lanes import Lanes

    made = Lanes("keyed_socket", LANES, 0)
    made.reset()
    actions = np.zeros((LANES, 5), np.float32)

    def step() -> Sequence[np.ndarray]:
        made.send(actions)
        return _cameras(made.receive().obs)

    return step, LANES


def gymnasium_pusher() -> tuple[Step, int]:
    """Gymnasium's own 7-joint arm: a step and two 64x64 pictures from gymnasium's own renderer as it comes."""
    import gymnasium

    env: Any = gymnasium.make("Pusher-v5", render_mode="rgb_array", width=SIZE, height=SIZE)
    advance = _stepper(env)

    def step() -> Sequence[np.ndarray]:
        advance()
        env.render()
        return [env.render()]

    return step, 1


def robosuite_defaults() -> tuple[Step, int]:
    """robosuite's Lift with two cameras, everything else as it comes: 256x256 pictures."""
    return _robosuite(), 1


def robosuite_small() -> tuple[Step, int]:
    """robosuite's Lift with two cameras of 64x64."""
    return _robosuite(camera_heights=SIZE, camera_widths=SIZE), 1


def _robosuite(**options: Any) -> Step:
    import robosuite  # type: ignore[import-not-found]

    cameras = ("agentview", "robot0_eye_in_hand")
    env = robosuite.make(
        "Lift", robots="Panda", has_renderer=False, has_offscreen_renderer=True, use_camera_obs=True,
        camera_names=list(cameras), **options,
    )
    env.reset()
    action = np.zeros(env.action_dim)

    def step() -> Sequence[np.ndarray]:
        obs, _, done, _ = env.step(action)
        if done:
            env.reset()
        return [obs[f"{camera}_image"] for camera in cameras]

    return step


def _stepper(env: Any) -> Callable[[], Any]:
    """Steps with a zero action, and starts again where an episode ends; gives the observation."""
    env.reset(seed=0)
    action = np.zeros(env.action_space.shape, np.float32)

    def advance() -> Any:
        obs, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            env.reset()
        return obs

    return advance


def _cameras(obs: Any) -> list[np.ndarray]:
    return [value for key, value in obs.items() if key.startswith("camera/")]


CONTENDERS: dict[str, Callable[[], tuple[Step, int]]] = {
    "cell": cell,
    "lanes": lanes,
    "gymnasium": gymnasium_pusher,
    "robosuite": robosuite_defaults,
    "robosuite-64": robosuite_small,
}

if __name__ == "__main__":
    main(sys.argv[1])
