"""fragile_lift's secret: touch alone is enough to grip by, and sight does not tell how hard."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from test_vision_probe import Looks, check, look

from envs.fragile_lift import blind, scene
from envs.fragile_lift.expert import LIGHT_N, FragileLiftExpert
from envs.fragile_lift.task import FragileLiftTask

OPEN = -1.0


class Feel:
    """Grips by touch alone: lifts slowly and tightens until the load no longer grows with the grip."""

    def __init__(self, env: gym.Env) -> None:
        self._approach = FragileLiftExpert(env)
        self.force, self.goal, self.best, self.touched, self.held = LIGHT_N, 0.0, 0.0, 0, False
        self.ratios: list[float] = []

    def act(self, obs: dict[str, np.ndarray]) -> np.ndarray:
        pressed = min(obs["tactile/left"][0].sum(), obs["tactile/right"][0].sum()) > 0.5 * LIGHT_N
        if not pressed and not self.goal:
            return self._approach._reach()
        self.touched += 1
        height = float(obs["tcp/pose"][2])
        if self.touched < 3:
            return np.array([0, 0, 0, 0, scene.grip_command(LIGHT_N)], np.float32)
        if self.touched == 3:
            self.goal = self.start = height
        if not self.held:
            self._tighten(float(obs["wrench/wrist"][-5:, 2].mean()), height)
        speed = min(0.05, 0.01 + 4 * (height - self.start)) if self.held else 0.005
        self.goal += 0.05 * speed
        rise = np.clip(self.goal - height, -0.01, 0.012)
        return np.array([0, 0, rise, 0, scene.grip_command(self.force)], np.float32)

    def _tighten(self, load: float, height: float) -> None:
        self.ratios.append(load / self.force)
        ratio = float(np.mean(self.ratios[-2:]))
        self.best = max(self.best, ratio)
        self.held = height - self.start > 0.0004 and load > 0.3 and ratio < 0.85 * self.best
        if not self.held:
            self.force *= 1.12


def feel_wins(ablate: str, episodes: int) -> int:
    env = FragileLiftTask().make(ablate=ablate, cameras=False)
    wins = 0
    for seed in range(episodes):
        obs, _ = env.reset(seed=seed)
        policy, over = Feel(env), False
        while not over:
            obs, _, terminated, truncated, info = env.step(policy.act(obs))
            over = terminated or truncated
        wins += info["success"]
    env.close()
    return wins


def test_touch_alone_is_enough_and_touch_of_another_object_is_not() -> None:
    assert feel_wins("", 20) >= 18
    assert feel_wins("touch=shuffled", 20) <= 14


def look_at_some(episodes: int, moments: int, first_seed: int) -> Looks:
    """What is hidden is the quarter of all slip forces to which the object's belongs."""
    quarters = np.quantile(blind.slip_forces(), [0.25, 0.5, 0.75])
    return look(
        FragileLiftTask(), range(first_seed, first_seed + episodes), moments,
        near=lambda cell, action: action[4] > OPEN,
        secret=lambda cell, info: int(np.searchsorted(quarters, info["slip_force"])),
        far=lambda cell: cell.data.body("object").xpos[0] > 0.5,
    )


def test_sight_guesses_the_slip_force_at_chance() -> None:
    check(look_at_some(240, 20, first_seed=0), look_at_some(120, 20, first_seed=10_000), steps=150, visible=0.85)


@pytest.mark.slow
def test_sight_guesses_the_slip_force_at_chance_with_many_pictures() -> None:
    check(look_at_some(1000, 25, first_seed=0), look_at_some(500, 25, first_seed=10_000), steps=600, visible=0.9)


def test_all_objects_look_alike_until_they_are_lifted(monkeypatch: pytest.MonkeyPatch) -> None:
    env = FragileLiftTask().make()
    draw = scene.draw_hidden
    films = []
    for secret in ((0.05, 0.3), (0.4, 0.9)):
        monkeypatch.setattr(scene, "draw_hidden", lambda rng, secret=secret: (draw(rng), secret)[1])
        obs, _ = env.reset(seed=4)
        expert, film = FragileLiftExpert(env), []
        while env.unwrapped.peak_force == 0.0:  # type: ignore[attr-defined]
            film.append(np.stack([obs["camera/scene"], obs["camera/wrist"]]))
            obs, *_ = env.step(expert.act())
        films.append(film)
    assert len(films[0]) == len(films[1]) > 15
    assert all(np.array_equal(a, b) for a, b in zip(*films, strict=True))
    env.close()
