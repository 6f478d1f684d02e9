"""pick_place: its expert, its randomisation, and the four failures that it names."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from envs import ENVIRONMENTS
from envs.pick_place import scene
from envs.pick_place.env import APART, TIME_LIMIT, PickPlaceEnv
from envs.pick_place.expert import PickPlaceExpert
from envs.pick_place.failure import STUCK_S, FailureWatch, Glimpse
from envs.pick_place.task import PickPlaceTask
from robot_fb.registry import load

HOLD_OPEN = np.array([0, 0, 0, 0, -1], np.float32)
HOLD_CLOSED = np.array([0, 0, 0, 0, 1], np.float32)


@pytest.fixture(scope="module")
def env() -> Any:
    env = PickPlaceTask().make(cameras=False)
    yield env
    env.close()


def finish(env: gym.Env, policy: Any) -> tuple[dict[str, Any], list[str]]:
    """Runs to the end of the episode; the last info and the events on the way."""
    events = []
    while True:
        _, _, terminated, truncated, info = env.step(policy())
        events += [info["event"]] if info["event"] else []
        if terminated or truncated:
            return info, events


def success_rate(env: gym.Env, episodes: int) -> float:
    expert = PickPlaceTask().expert(env)
    wins = 0
    for seed in range(episodes):
        env.reset(seed=seed)
        expert.reset()
        wins += finish(env, expert.act)[0]["success"]
    return wins / episodes


def test_the_expert_places_the_block(env: gym.Env) -> None:
    assert success_rate(env, 20) == 1.0


@pytest.mark.slow
def test_the_expert_succeeds_in_at_least_97_of_100(env: gym.Env) -> None:
    assert success_rate(env, 200) >= 0.97


def test_it_is_found_by_its_names() -> None:
    assert load("tasks", "pick_place") is PickPlaceTask
    assert ENVIRONMENTS[PickPlaceTask.env_id][1] == TIME_LIMIT
    assert PickPlaceTask().ceiling() is None


def test_gymnasium_finds_nothing_to_complain_about(recwarn: pytest.WarningsRecorder) -> None:
    check_env(PickPlaceTask().make().unwrapped)
    assert [str(w.message) for w in recwarn] == []


def test_a_seed_gives_the_same_episode_bit_for_bit() -> None:
    def record() -> list[dict[str, np.ndarray]]:
        env = PickPlaceTask().make()
        expert = PickPlaceTask().expert(env)
        frames = [env.reset(seed=5)[0]]
        for _ in range(60):
            frames.append(env.step(expert.act())[0])
        env.close()
        return frames

    first, second = record(), record()
    assert all(np.array_equal(a[key], b[key]) for a, b in zip(first, second, strict=True) for key in a)


def test_colours_and_places_vary_and_keep_apart(env: gym.Env) -> None:
    cell: PickPlaceEnv = env.unwrapped  # type: ignore[assignment]
    colours, places = set(), []
    for seed in range(60):
        _, info = env.reset(seed=seed)
        pair = tuple(tuple(cell.model.geom(name).rgba.tolist()) for name in scene.BLOCKS)
        assert pair[0] == tuple(cell.model.geom("plate").rgba.tolist())
        assert pair[0] == pytest.approx(scene.COLOURS[info["target"]])
        colours.add(pair)
        here = np.array([cell.plate()[:2], cell.block()[:2], cell.block("distractor")[:2]])
        assert np.linalg.norm(here - np.roll(here, 1, axis=0), axis=1).min() > APART - 0.002
        places.append(here[1])
    assert len(colours) == 6
    assert (np.ptp(places, axis=0) > [0.2, 0.25]).all()


def test_blocks_and_plate_are_always_in_the_scene_picture(env: gym.Env) -> None:
    cell: PickPlaceEnv = env.unwrapped  # type: ignore[assignment]
    half_field = np.tan(np.deg2rad(cell.model.camera("scene").fovy[0]) / 2)
    for seed in range(200):
        env.reset(seed=seed)
        eye, axes = cell.data.camera("scene").xpos, cell.data.camera("scene").xmat.reshape(3, 3)
        for centre, radius in ((cell.plate(), scene.PLATE_RADIUS), (cell.block()[:3], 0.03)):
            right, up, back = axes.T @ (centre - eye)
            assert max(abs(right), abs(up)) + radius < -back * half_field


@pytest.mark.parametrize("seed", range(6))
def test_target_and_distractor_show_in_their_colours_at_64_pixels(seed: int) -> None:
    env = PickPlaceTask().make()
    cell: PickPlaceEnv = env.unwrapped  # type: ignore[assignment]
    obs, info = env.reset(seed=seed)
    for rgba in (cell.model.geom("target").rgba, cell.model.geom("distractor").rgba):
        channel = int(np.argmax(rgba[:3]))
        picture = obs["camera/scene"].astype(int)
        others = np.delete(picture, channel, axis=2).max(axis=2)
        assert (picture[..., channel] > 1.5 * others).sum() >= 8, info
    env.close()


def test_a_missed_grasp_is_named_once_and_the_expert_recovers(env: gym.Env) -> None:
    # given a gripper that closes in the air
    _, info = env.reset(seed=1)
    seen = []
    for _ in range(8):
        info = env.step(HOLD_CLOSED)[4]
        seen += [info["event"]] if info["event"] else []
    assert seen == ["missed grasp"] and info["failure"] == "missed grasp"
    # when the expert takes over
    expert = PickPlaceTask().expert(env)
    info, later = finish(env, expert.act)
    # then it opens, grasps and places, and no failure is left
    assert info["success"] and info["failure"] == "" and later == []
    ((t, kind),) = info["events"]
    assert kind == "missed grasp" and 0 < t <= 0.4


class MistakesDistractor:
    """The cell with both blocks' names exchanged, as a policy that mixes up the colours sees it."""

    def __init__(self, cell: PickPlaceEnv) -> None:
        self._cell = cell
        self.unwrapped = self
        self.tcp, self.plate, self.width = cell.tcp, cell.plate, cell.width

    def block(self) -> np.ndarray:
        return self._cell.block("distractor")

    def pad_forces(self) -> np.ndarray:
        return self._cell.pad_forces("distractor")

    def grips(self, name: str = "target") -> bool:
        return self._cell.grips("target" if name == "distractor" else "distractor")

    def above_plate(self) -> float:
        return np.inf


def test_gripping_the_distractor_is_the_wrong_block(env: gym.Env) -> None:
    env.reset(seed=2)
    cell: PickPlaceEnv = env.unwrapped  # type: ignore[assignment]
    confused = PickPlaceExpert(MistakesDistractor(cell))  # type: ignore[arg-type]
    info, events = finish(env, confused.act)
    assert events[0] == "wrong block"
    assert info["failure"] == "wrong block" and not info["success"]


def carry_up(env: gym.Env, seed: int, height: float) -> PickPlaceExpert:
    """The expert until it carries the block at `height` [m] with the plate not beneath it."""
    env.reset(seed=seed)
    expert, cell = PickPlaceExpert(env), env.unwrapped
    for _ in range(TIME_LIMIT):
        env.step(expert.act())
        if cell.block()[2] > height and np.isinf(cell.above_plate()):  # type: ignore[attr-defined]
            return expert
    raise AssertionError("the expert never carried the block")


def test_a_block_let_go_on_the_way_is_dropped(env: gym.Env) -> None:
    carry_up(env, 3, 0.06)
    seen = [env.step(HOLD_OPEN)[4]["event"] for _ in range(10)]
    assert [event for event in seen if event] == ["dropped block"]
    assert seen.index("dropped block") < 3


def test_the_expert_recovers_from_a_drop(env: gym.Env) -> None:
    expert = carry_up(env, 3, 0.06)
    for _ in range(6):
        env.step(HOLD_OPEN)
    info, _ = finish(env, expert.act)
    assert info["success"] and [kind for _, kind in info["events"]] == ["dropped block"]


def test_standing_still_is_stuck(env: gym.Env) -> None:
    env.reset(seed=4)
    info, events = finish(env, lambda: HOLD_OPEN)
    assert info["failure"] == "stuck" and set(events) == {"stuck"}
    assert info["events"][0][0] == pytest.approx(STUCK_S)


def test_a_block_pushed_out_of_reach_ends_the_episode(env: gym.Env) -> None:
    env.reset(seed=4)
    cell: PickPlaceEnv = env.unwrapped  # type: ignore[assignment]
    cell.data.joint("target").qpos[:2] = [0.5, 0.4]
    _, _, terminated, _, info = env.step(HOLD_OPEN)
    assert terminated and info["failure"] == "missed grasp"


@pytest.mark.parametrize("seed", range(3))
def test_every_failed_episode_is_labelled(env: gym.Env, seed: int) -> None:
    env.reset(seed=seed)
    env.action_space.seed(seed)
    info, _ = finish(env, env.action_space.sample)
    assert info["success"] or info["failure"] in ("missed grasp", "wrong block", "dropped block", "stuck")


def test_progress_sums_to_the_reward_and_success_gives_one(env: gym.Env) -> None:
    _, _ = env.reset(seed=7)
    cell: PickPlaceEnv = env.unwrapped  # type: ignore[assignment]
    start, expert, total = cell._potential, PickPlaceExpert(env), 0.0
    while True:
        _, reward, terminated, _, info = env.step(expert.act())
        total += float(reward)
        if terminated:
            break
    assert info["success"] and total == pytest.approx(cell._potential - start + 1.0)


def test_setting_the_block_down_is_no_drop() -> None:
    watch = FailureWatch()
    watch.look(Glimpse(t=0.0, width=0.038, grips_target=True, height=0.06))
    watch.look(Glimpse(t=0.1, width=0.038, grips_target=True, height=0.006, above_plate=0.002, potential=0.5))
    assert watch.look(Glimpse(t=0.2, width=0.08, height=0.004, above_plate=0.0, potential=1.0)) == ""


def test_setting_the_block_down_beside_the_plate_is_a_drop() -> None:
    watch = FailureWatch()
    watch.look(Glimpse(t=0.0, width=0.038, grips_target=True, height=0.06))
    assert watch.look(Glimpse(t=0.1, width=0.08, height=0.0)) == "dropped block"


def test_the_failure_in_force_is_the_earliest_until_the_target_is_gripped_anew() -> None:
    watch = FailureWatch()
    watch.look(Glimpse(t=0.0, width=0.02))
    watch.look(Glimpse(t=0.1, width=0.08))
    watch.look(Glimpse(t=0.2, width=0.038, grips_distractor=True))
    assert watch.kind == "missed grasp" and [kind for _, kind in watch.events] == ["missed grasp", "wrong block"]
    watch.look(Glimpse(t=0.3, width=0.038, grips_target=True, potential=0.4))
    assert watch.kind == ""
