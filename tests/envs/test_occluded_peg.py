"""occluded_peg: its expert, its rules, and that its secret can be felt but not seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import mujoco
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from test_vision_probe import Looks, check, look

from envs import ENVIRONMENTS
from envs.occluded_peg import env as rules
from envs.occluded_peg import scene
from envs.occluded_peg.env import OccludedPegEnv
from envs.occluded_peg.expert import PRESS_STEPS, OccludedPegExpert, action
from envs.occluded_peg.search import SpiralSearch, Sweep, capture
from envs.occluded_peg.task import OccludedPegTask
from robot_fb.registry import load


@pytest.fixture(scope="module")
def env() -> Any:
    env = OccludedPegTask().make(cameras=False)
    yield env
    env.close()


def run(env: gym.Env, policy: OccludedPegExpert, seed: int) -> dict[str, Any]:
    """The last info of an episode."""
    env.reset(seed=seed)
    policy.reset()
    while True:
        _, _, terminated, truncated, info = env.step(policy.act())
        if terminated or truncated:
            return info


def success_rate(env: gym.Env, policy: OccludedPegExpert, episodes: int) -> float:
    return float(np.mean([run(env, policy, seed)["success"] for seed in range(episodes)]))


def test_the_expert_inserts_gently(env: gym.Env) -> None:
    infos = [run(env, OccludedPegExpert(env), seed) for seed in range(15)]
    assert all(info["success"] for info in infos)
    assert max(info["peak_force"] for info in infos) < 0.9 * OccludedPegEnv.force_cap_n
    assert np.median([info["peak_force"] for info in infos]) < 0.6 * OccludedPegEnv.force_cap_n


@pytest.mark.slow
def test_the_expert_succeeds_in_at_least_97_of_100(env: gym.Env) -> None:
    assert success_rate(env, OccludedPegExpert(env), 200) >= 0.97


def test_it_is_found_by_its_name_and_gymnasium_has_no_complaint(recwarn: pytest.WarningsRecorder) -> None:
    assert load("tasks", "occluded_peg") is OccludedPegTask
    assert ENVIRONMENTS[OccludedPegTask.env_id][1] == rules.TIME_LIMIT
    check_env(OccludedPegTask().make().unwrapped)
    assert [str(w.message) for w in recwarn] == []


def test_a_seed_gives_the_same_episode_bit_for_bit() -> None:
    def record() -> list[dict[str, np.ndarray]]:
        env = OccludedPegTask().make()
        expert = OccludedPegTask().expert(env)
        frames = [env.reset(seed=5)[0]]
        for _ in range(35):
            frames.append(env.step(expert.act())[0])
        env.close()
        return frames

    assert all(np.array_equal(a[key], b[key]) for a, b in zip(record(), record(), strict=True) for key in a)


def test_the_secret_is_in_info_and_in_no_observation(env: gym.Env) -> None:
    obs, info = env.reset(seed=0)
    assert set(info["hidden"]) == {"x", "y", "yaw"}
    assert set(obs) == set(env.unwrapped.stream_specs)  # type: ignore[attr-defined]
    assert not any("hidden" in key or "peg" in key for key in obs)


def test_the_expert_commands_what_a_correction_can_reach(env: gym.Env) -> None:
    env.reset(seed=2)
    expert, over = OccludedPegExpert(env), False
    while not over:
        command = expert.act()
        touched = env.unwrapped.touched  # type: ignore[attr-defined]
        assert np.abs(command[:2]).max() <= (0.003 if touched else 0.004) + 1e-6
        *_, over, _, _ = env.step(command)


# The rules


def touch_down(env: gym.Env, seed: int, hidden: tuple[float, float, float] = (0.003, 0.003, 0.0)) -> OccludedPegEnv:
    """Has the expert put a peg that sits at `hidden` on the post, and press for some decisions."""
    cell: OccludedPegEnv = env.unwrapped  # type: ignore[assignment]
    env.reset(seed=seed)
    seat(cell, hidden)
    expert = OccludedPegExpert(env)
    while expert._pressed < PRESS_STEPS:
        env.step(expert.act())
    return cell


def seat(cell: OccludedPegEnv, hidden: tuple[float, float, float]) -> None:
    """Moves the peg in its hood to x, y [m] and yaw [rad]."""
    cell.model.body("peg").pos[:2] = hidden[:2]
    cell.model.body("peg").quat = [np.cos(hidden[2] / 2), 0, 0, np.sin(hidden[2] / 2)]
    mujoco.mj_kinematics(cell.model, cell.data)


def ending(env: gym.Env, command: Callable[[], list[float]], decisions: int) -> dict[str, Any]:
    """The last info after up to so many decisions."""
    info: dict[str, Any] = {}
    for _ in range(decisions):
        _, _, over, _, info = env.step(np.array(command(), np.float32))
        if over:
            break
    return info


def test_a_tip_that_wanders_over_the_post_is_dragged(env: gym.Env) -> None:
    touch_down(env, 0)
    info = ending(env, lambda: [-0.004, 0, -0.001, 0, 1], 20)
    assert info["failure"] == "dragged" and info["drag"] > rules.MAX_DRAG


def test_hopping_counts_as_drag_too(env: gym.Env) -> None:
    cell = touch_down(env, 0)
    lift = iter([0.0015, -0.0015] * 20)
    info = ending(env, lambda: [-0.003, 0, next(lift), 0, 1], 40)
    assert info["failure"] in ("dragged", "lifted")
    assert cell.tip()[0] > 0.003 - 0.0085


def test_there_is_one_attempt(env: gym.Env) -> None:
    touch_down(env, 0)
    assert ending(env, lambda: [0, 0, 0.004, 0, 1], 10)["failure"] == "lifted"


def test_a_press_too_hard_breaks_the_force_cap(env: gym.Env) -> None:
    touch_down(env, 0)
    info = ending(env, lambda: [0, 0, -0.01, 0, 1], 10)
    assert info["failure"] == "force cap" and info["peak_force"] > 12.0


def test_an_open_gripper_drops_the_holder(env: gym.Env) -> None:
    env.reset(seed=0)
    assert ending(env, lambda: [0, 0, 0.005, 0, -1], 30)["failure"] == "dropped"


def test_a_hood_that_comes_down_on_the_post_has_missed(env: gym.Env) -> None:
    cell: OccludedPegEnv = env.unwrapped  # type: ignore[assignment]
    env.reset(seed=0)

    def aside() -> list[float]:
        x, y = np.clip([0.02, 0.0] - cell.aim()[:2], -0.005, 0.005)
        return [x, y, -0.003 if abs(cell.aim()[0] - 0.02) < 0.003 else 0.0, 0, 1]

    assert ending(env, aside, 60)["failure"] == "missed"


def test_time_is_up_with_the_tip_on_the_post_or_in_the_hole(env: gym.Env) -> None:
    touch_down(env, 0)
    assert ending(env, lambda: [0, 0, -0.001, 0, 1], rules.TIME_LIMIT)["failure"] == "not inserted"
    cell: OccludedPegEnv = env.unwrapped  # type: ignore[assignment]
    env.reset(seed=0)
    expert = OccludedPegExpert(env)
    while cell.tip()[2] > -0.004:
        env.step(expert.act())
    assert ending(env, lambda: [0, 0, 0, 0, 1], rules.TIME_LIMIT)["failure"] == "jammed"


# What cannot be seen

SEATS = ((0.003, 0.003, 0.13), (-0.003, 0.003, -0.13), (0.003, -0.003, 0.13), (-0.003, -0.003, 0.0))


def pictures(cell: OccludedPegEnv) -> list[np.ndarray]:
    """The present scene drawn with the peg in each of `SEATS`: 4 times (2,64,64,3)."""
    truth, drawn = tuple(cell.hidden), []
    assert cell._renderer is not None
    for hidden in SEATS:
        seat(cell, hidden)
        drawn.append(np.stack([cell._renderer.draw(cell.data, name) for name in ("scene", "wrist")]))
    seat(cell, truth)
    return drawn


def test_no_pixel_shows_how_the_peg_sits() -> None:
    env = OccludedPegTask().make()
    cell: OccludedPegEnv = env.unwrapped  # type: ignore[assignment]
    frames = 0
    for seed in range(4):
        env.reset(seed=seed)
        expert = OccludedPegExpert(env)
        while not cell.touched:
            drawn = pictures(cell)
            assert all(np.array_equal(drawn[0], picture) for picture in drawn[1:])
            frames += 1
            env.step(expert.act())
    assert frames > 80
    # and the comparison does see the peg once the hood is taken off
    for geom in range(cell.model.ngeom):
        if cell.model.geom(geom).bodyid[0] == cell.model.body("holder").id:
            cell.model.geom_rgba[geom, 3] = 0.0
        elif cell.model.geom(geom).bodyid[0] == cell.model.body("peg").id:
            cell.model.geom_rgba[geom] = [1.0, 1.0, 1.0, 1.0]
    drawn = pictures(cell)
    assert all(not np.array_equal(drawn[0], picture) for picture in drawn[1:])
    env.close()


def look_at_some(episodes: int, moments: int, first_seed: int) -> Looks:
    """What is hidden is the quarter of all offsets, by the signs of x and y, that the peg's is in."""
    return look(
        OccludedPegTask(), range(first_seed, first_seed + episodes), moments,
        near=lambda cell, action: cell.tip()[2] < 0.003,
        secret=lambda cell, info: 2 * int(cell.hidden[0] > 0) + int(cell.hidden[1] > 0),
        far=lambda cell: cell.model.body("post").pos[0] > 0.5,
    )


def test_sight_guesses_the_offset_at_chance() -> None:
    check(look_at_some(240, 20, first_seed=0), look_at_some(120, 20, first_seed=10_000), steps=150, visible=0.85)


@pytest.mark.slow
def test_sight_guesses_the_offset_at_chance_with_many_pictures() -> None:
    check(look_at_some(1000, 25, first_seed=0), look_at_some(500, 25, first_seed=10_000), steps=600, visible=0.9)


# What a search without touch can find, and what touch tells


def test_a_turned_peg_is_caught_less_far_aside() -> None:
    near, turned = capture(np.array([0.0, rules.TURN]))
    assert near == pytest.approx(0.001) and 0.0 < turned < 0.5 * near


def test_the_ceiling_is_the_best_path() -> None:
    """The share that a straight diagonal path sweeps, counted on a grid of offsets and yaws."""
    side = (np.arange(60) + 0.5) / 60
    grid = rules.OFFSET * (2 * side - 1)
    x, y, yaw = np.meshgrid(grid, grid, rules.TURN * (2 * side - 1), indexing="ij")
    found, reach = np.zeros(x.shape, bool), capture(yaw)
    for step in np.linspace(-0.5, 0.5, 201) * rules.MAX_DRAG / np.sqrt(2):
        found |= (np.abs(x + step) < reach) & (np.abs(y + step) < reach)
    ceiling = OccludedPegTask().ceiling()
    assert found.mean() == pytest.approx(ceiling.success_rate, abs=0.01)
    assert 0.05 < ceiling.success_rate < 0.4


@pytest.mark.slow
@pytest.mark.parametrize("search", [Sweep, SpiralSearch])
def test_blind_searches_stay_below_the_ceiling(env: gym.Env, search: type[Sweep]) -> None:
    rate = success_rate(env, search(env), 200)
    assert 0.05 < rate < OccludedPegTask().ceiling().success_rate + 0.03


def test_the_torque_of_the_first_press_points_to_where_the_peg_sits(env: gym.Env) -> None:
    """The rim carries the peg on the side where it sits too far out.

    A support force F at p (base frame) has the torque (p_y F, -p_x F); the tcp's y and z are opposite to the base's,
    so the sensor reads (p_y F, p_x F).
    """
    right = 0
    for seed, (x, y) in enumerate([(2, 2), (2, -2), (-2, 2), (-2, -2)] * 3):
        touch_down(env, seed, (1e-3 * x, 1e-3 * y, 0.1 * (-1) ** seed))
        obs, *_ = env.step(np.array([0, 0, -0.002, 0, 1], np.float32))
        torque = obs["wrench/wrist"][-10:, 3:5].mean(axis=0)
        right += bool((np.sign(torque[::-1]) == np.sign([x, y])).all())
    assert right == 12


class FeelingPolicy(OccludedPegExpert):
    """Corrects by at most 3 mm a decision against where the wrench says that the rim carries the peg."""

    def reset(self) -> None:
        super().reset()
        self.carried = np.zeros(2)

    def feel(self, obs: dict[str, np.ndarray]) -> None:
        """Keeps the point of support (2,) [m] from the tcp, moved from the tcp down to the tip, smoothed."""
        force, torque = np.split(obs["wrench/wrist"][-5:].mean(axis=0), 2)
        lever = scene.GRASP * 1e-3
        at = np.array([torque[1] - lever * force[0], torque[0] + lever * force[1]]) / max(-force[2], 1.0)
        self.carried += 0.5 * (at - self.carried)

    def _correct(self) -> np.ndarray:
        if self._env.aim()[2] < -rules.ENTERED:  # the arm's own height
            return action(np.zeros(2), 5.0, 0.0)
        return action(-0.003 * np.tanh(self.carried / 0.0012), 4.0, 0.0)


def test_a_rule_that_only_feels_finds_the_hole(env: gym.Env) -> None:
    policy, wins = FeelingPolicy(env), 0
    for seed in range(12):
        obs, _ = env.reset(seed=seed)
        policy.reset()
        over = False
        while not over:
            policy.feel(obs)
            obs, _, terminated, truncated, info = env.step(policy.act())
            over = terminated or truncated
        wins += info["success"]
    assert wins >= 11


@pytest.mark.slow
def test_a_few_decisions_of_touch_tell_the_offset_and_pose_does_not() -> None:
    """Linear regression from the first eight decisions of the press to the offset."""
    from sklearn.linear_model import Ridge
    from sklearn.model_selection import cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    env = OccludedPegTask().make(cameras=False)
    expert, felt, told, offsets = OccludedPegExpert(env), [], [], []
    for seed in range(300):
        env.reset(seed=seed)
        expert.reset()
        pressed: list[dict[str, np.ndarray]] = []
        while len(pressed) < 8:
            obs, *_ = env.step(expert.act())
            if expert._pressed:
                pressed.append(obs)
        felt.append(np.concatenate([o["wrench/wrist"][-5:].mean(axis=0) for o in pressed]))
        told.append(np.concatenate([np.r_[o["tcp/pose"], o["tcp/velocity"]] for o in pressed]))
        offsets.append(env.unwrapped.hidden[:2])  # type: ignore[attr-defined]
    truth = np.array(offsets)
    clear = np.abs(truth) > 5e-4

    def right_signs(inputs: list[np.ndarray]) -> float:
        guess = cross_val_predict(make_pipeline(StandardScaler(), Ridge(10.0)), np.array(inputs), truth, cv=5)
        return float((np.sign(guess) == np.sign(truth))[clear].mean())

    assert right_signs(felt) > 0.9
    assert right_signs(told) < 0.65
