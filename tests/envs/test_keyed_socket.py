"""keyed_socket: its expert, its rules, and that its secret can be felt but not seen."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import mujoco
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from envs.cell import control
from envs.keyed_socket.env import COMMITMENTS, DIRECTIONS, SIDES, KeyedSocketEnv
from envs.keyed_socket.expert import PRESS_STEPS, BlindSearch, KeyedSocketExpert
from envs.keyed_socket.task import KeyedSocketTask
from robot_fb.registry import load


@pytest.fixture(scope="module")
def env() -> Any:
    env = KeyedSocketTask().make(cameras=False)
    yield env
    env.close()


def run_expert(env: gym.Env, seed: int) -> dict[str, Any]:
    """The last info of an episode by the expert."""
    expert = KeyedSocketTask().expert(env)
    env.reset(seed=seed)
    expert.reset()
    while True:
        _, _, terminated, truncated, info = env.step(expert.act())
        if terminated or truncated:
            return info


def test_the_expert_seats_the_plug_gently_at_the_first_try(env: gym.Env) -> None:
    infos = [run_expert(env, seed) for seed in range(20)]
    assert all(info["success"] for info in infos)
    assert {info["commitments"] for info in infos} == {1}
    assert max(info["peak_force"] for info in infos) < KeyedSocketEnv.force_cap_n
    assert {info["hidden"] for info in infos} == set(SIDES)


@pytest.mark.slow
def test_the_expert_succeeds_in_at_least_97_of_100(env: gym.Env) -> None:
    assert np.mean([run_expert(env, seed)["success"] for seed in range(200)]) >= 0.97


def test_it_is_found_by_its_name_and_gymnasium_has_no_complaint(recwarn: pytest.WarningsRecorder) -> None:
    assert load("tasks", "keyed_socket") is KeyedSocketTask
    check_env(KeyedSocketTask().make().unwrapped)
    assert [str(w.message) for w in recwarn] == []


def test_a_seed_gives_the_same_episode_bit_for_bit() -> None:
    def record() -> list[dict[str, np.ndarray]]:
        env = KeyedSocketTask().make()
        expert = KeyedSocketTask().expert(env)
        frames = [env.reset(seed=5)[0]]
        for _ in range(40):
            frames.append(env.step(expert.act())[0])
        env.close()
        return frames

    assert all(np.array_equal(a[key], b[key]) for a, b in zip(record(), record(), strict=True) for key in a)


def down_to_the_floor(env: gym.Env, seed: int) -> KeyedSocketEnv:
    """Has the expert lower the plug until it rests on the socket's floor."""
    env.reset(seed=seed)
    cell: KeyedSocketEnv = env.unwrapped  # type: ignore[assignment]
    expert = KeyedSocketExpert(env)
    while cell.contact_force() < 1.0:
        env.step(expert.act())
    return cell


def slide(env: gym.Env, goal: np.ndarray, decisions: int) -> dict[str, Any]:
    """Pushes the plug to `goal` (2,) [m] from the socket's centre, pressing lightly, until the episode ends."""
    info: dict[str, Any] = {}
    for _ in range(decisions):
        offset = env.unwrapped.displacement()  # type: ignore[attr-defined]
        aside = np.clip(goal - offset[:2], -0.005, 0.005)
        _, _, terminated, _, info = env.step(np.array([*aside, -0.002, 0.0, 1.0], np.float32))
        if terminated:
            break
    return info


def test_every_push_to_a_side_counts_and_the_third_fails(env: gym.Env) -> None:
    # given a plug on the floor, and the three sides that are closed
    cell = down_to_the_floor(env, seed=0)
    closed = [direction for i, direction in enumerate(DIRECTIONS) if i != cell._side]
    counts = []
    for direction in closed:
        # when it is pushed to one after the other, by way of the centre
        info = slide(env, 0.012 * direction, 10)
        counts.append(info["commitments"])
        if info["failure"]:
            break
        assert not info["success"]
        slide(env, np.zeros(2), 12)
    # then each push counts once, and the third ends the episode
    assert counts == [1, 2, COMMITMENTS + 1]
    assert info["failure"] == "third commitment" and not info["success"]


def test_the_open_side_still_counts_as_success_at_the_second_try(env: gym.Env) -> None:
    cell = down_to_the_floor(env, seed=1)
    slide(env, -0.012 * DIRECTIONS[cell._side], 10)
    slide(env, np.zeros(2), 12)
    info = slide(env, 0.02 * DIRECTIONS[cell._side], 40)
    assert info["success"] and info["commitments"] == 2


def test_staying_at_a_side_is_one_commitment(env: gym.Env) -> None:
    cell = down_to_the_floor(env, seed=2)
    closed = DIRECTIONS[(cell._side + 1) % 4]
    for reach in (0.012, 0.006, 0.012):  # never back within 4.5 mm
        info = slide(env, reach * closed, 8)
    assert info["commitments"] == 1


def test_pressing_too_hard_breaks_the_force_cap(env: gym.Env) -> None:
    down_to_the_floor(env, seed=0)
    for _ in range(10):
        _, _, terminated, _, info = env.step(np.array([0, 0, -0.02, 0, 1], np.float32))
        if terminated:
            break
    assert terminated and info["failure"] == "force cap" and info["peak_force"] > 15.0


def pictures_of_all_sides(cell: KeyedSocketEnv) -> list[np.ndarray]:
    """The present scene drawn with each of the four sides open: 4 times (2,64,64,3)."""
    truth, pictures = cell.model.body("key").quat.copy(), []
    for side in range(4):
        cell.model.body("key").quat = [np.cos(side * np.pi / 4), 0, 0, np.sin(side * np.pi / 4)]
        mujoco.mj_kinematics(cell.model, cell.data)
        assert cell._renderer is not None
        pictures.append(np.stack([cell._renderer.draw(cell.data, name) for name in ("scene", "wrist")]))
    cell.model.body("key").quat = truth
    mujoco.mj_kinematics(cell.model, cell.data)
    return pictures


def test_no_pixel_shows_the_open_side_before_contact() -> None:
    env = KeyedSocketTask().make()
    cell: KeyedSocketEnv = env.unwrapped  # type: ignore[assignment]
    frames = 0
    for seed in range(5):
        env.reset(seed=seed)
        expert = KeyedSocketExpert(env)
        while cell.contact_force() == 0.0:
            pictures = pictures_of_all_sides(cell)
            assert all(np.array_equal(pictures[0], picture) for picture in pictures[1:])
            frames += 1
            env.step(expert.act())
    assert frames > 30
    # and the comparison does see the open side once the lip is taken off
    for geom in range(cell.model.ngeom):
        owner = cell.model.geom(geom).bodyid[0]
        if owner == cell.model.body("socket").id:
            cell.model.geom_rgba[geom, 3] = 0.0
        elif owner == cell.model.body("key").id:
            cell.model.geom_rgba[geom] = [1.0, 1.0, 1.0, 1.0]
    pictures = pictures_of_all_sides(cell)
    assert all(not np.array_equal(pictures[0], picture) for picture in pictures[1:])
    env.close()


def test_the_secret_is_in_info_and_in_no_observation(env: gym.Env) -> None:
    obs, info = env.reset(seed=0)
    assert info["hidden"] in SIDES
    assert set(obs) == set(env.unwrapped.stream_specs)  # type: ignore[attr-defined]
    assert not any("hidden" in key or "side" in key for key in obs)


def test_the_ceiling_without_touch_is_one_half() -> None:
    assert KeyedSocketTask().ceiling().success_rate == 0.5


def test_the_torque_of_a_pressed_plug_points_to_the_open_side(env: gym.Env) -> None:
    """Carried on the closed side alone, the plug tips to the open one.

    A support force F at -c d (d: the open direction, base frame) has the torque (-c d_y F, c d_x F); the tcp's y and z
    are opposite to the base's, so the sensor reads (-c d_y F, -c d_x F).
    """
    right = 0
    for seed in range(24):
        cell = down_to_the_floor(env, seed)
        expert = KeyedSocketExpert(env)
        for _ in range(PRESS_STEPS - 1):
            obs, *_ = env.step(expert.act())
        torque = obs["wrench/wrist"][-8:, 3:5].mean(axis=0)
        right += int(np.argmax(DIRECTIONS @ -torque[::-1])) == cell._side
    assert right >= 23


def test_the_press_stays_where_its_torque_can_be_read(env: gym.Env) -> None:
    cell = down_to_the_floor(env, seed=3)
    expert = KeyedSocketExpert(env)
    for _ in range(PRESS_STEPS - 1):
        env.step(expert.act())
    assert np.abs(cell.displacement()[:2]).max() < 0.005
    assert 3.0 < cell.contact_force() < 0.02 * control.STIFFNESS


def test_a_corner_is_two_sides_tried(env: gym.Env) -> None:
    # given the two closed sides that meet in a corner
    cell = down_to_the_floor(env, seed=3)
    closed = [direction for i, direction in enumerate(DIRECTIONS) if i != cell._side]
    one, other = next((a, b) for a in closed for b in closed if not a @ b)
    # when the plug is pushed along one wall and then the other, never back to the centre
    slide(env, 0.012 * one, 10)
    info = slide(env, 0.012 * one + 0.012 * other, 25)
    # then a sweep around the walls is no free search
    assert info["commitments"] == 2


def blind_rate(env: gym.Env, episodes: int) -> float:
    search = BlindSearch(env)
    wins = 0
    for seed in range(episodes):
        env.reset(seed=seed)
        search.reset()
        over = False
        while not over:
            _, _, terminated, truncated, info = env.step(search.act())
            over = terminated or truncated
        wins += info["success"]
    return wins / episodes


@pytest.mark.slow
def test_the_blind_search_reaches_the_ceiling_and_no_more(env: gym.Env) -> None:
    ceiling = KeyedSocketTask().ceiling().success_rate
    assert blind_rate(env, 400) == pytest.approx(ceiling, abs=0.075)  # three standard deviations


@pytest.mark.slow
def test_pose_and_velocity_of_a_pressing_arm_do_not_tell_the_side() -> None:
    """What the ceiling rests on: only force and touch say which side is open."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    # given how the expert presses, five decisions long, in many episodes
    env = KeyedSocketTask().make(cameras=False)
    expert, told, felt, sides = KeyedSocketExpert(env), [], [], []
    for seed in range(400):
        env.reset(seed=seed)
        expert.reset()
        pressed: list[dict[str, np.ndarray]] = []
        while len(pressed) < 5:
            obs, *_, info = env.step(expert.act())
            if expert._pressed:
                pressed.append(obs)
        told.append(np.concatenate([np.r_[o["tcp/pose"], o["tcp/velocity"]] for o in pressed]))
        felt.append(np.mean([o["wrench/wrist"][-1] for o in pressed[2:]], axis=0))
        sides.append(info["hidden"])

    def accuracy(inputs: list[np.ndarray]) -> float:
        model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=2000))
        return cross_val_score(model, np.array(inputs), sides, cv=5).mean()

    # then the wrench tells it always, and the arm's own measurements hardly better than chance
    assert accuracy(felt) > 0.99
    assert accuracy(told) < 0.36
