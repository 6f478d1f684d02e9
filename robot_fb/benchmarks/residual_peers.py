"""The residual's action space for Stable-Baselines3: its SAC and PPO learn the correction on the same lanes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from robot_fb.algorithms.residual.config import ResidualConfig
from robot_fb.algorithms.residual.rollout import Rollout
from robot_fb.errors import ConfigError
from robot_fb.runtime.lanes import Lanes
from robot_fb.runtime.seeds import EVALUATION, TRAINING
from robot_fb.runtime.tasks import find_task

LANES = 8
SCALES_FROM = 800
"""Decisions of the base alone, from which observation scales are measured."""


class Features:
    """What our actor sees, as one flat vector: proprioception, gated touch, the base's plan.

    Args:
        policy: a `residual` policy whose scales are set.
    """

    def __init__(self, policy: Any) -> None:
        self.policy = policy
        head = policy.head
        self.active = np.flatnonzero(head.mask.numpy())
        self.size = head.proprio_dim + head.touch.size + head.plan_dim

    def __call__(self, obs: Any, plan: np.ndarray) -> np.ndarray:
        """(B, size) float32 for streams and plans with a leading axis B."""
        policy, head = self.policy, self.policy.head
        proprio = (head.proprioception(obs) - head.mean.numpy()) / head.std.numpy()
        touch = head.touch.flatten(obs) / head.touch.scale.numpy()[head.touch.channel.numpy()] * policy.gate(obs)
        flat = [np.clip(proprio, -5, 5), np.clip(touch, -5, 5), policy.plan_features(plan).reshape(len(plan), -1)]
        return np.concatenate(flat, axis=1).astype(np.float32)

    def correction(self, action: np.ndarray) -> np.ndarray:
        """(B, action_dim) from the peer's (B, active) action."""
        full = np.zeros((len(action), self.policy.head.action_dim), np.float32)
        full[:, self.active] = action
        return full


def make_vector_env(lanes: Lanes, features: Features, config: ResidualConfig) -> Any:
    """An SB3 `VecEnv` over the lanes: observation `features`, action the correction in [-1, 1], our reward."""
    from stable_baselines3.common.vec_env import VecEnv

    class ResidualLanes(VecEnv):
        def __init__(self) -> None:
            observed = spaces.Box(-np.inf, np.inf, (features.size,), np.float32)
            acted = spaces.Box(-1.0, 1.0, (len(features.active),), np.float32)
            super().__init__(lanes.count, observed, acted)

        def _see(self, obs: Any, fresh: np.ndarray) -> np.ndarray:
            self._plan = features.policy.base.act_lanes(obs, fresh)
            return features(obs, self._plan)

        def reset(self) -> np.ndarray:
            features.policy.base.reset_lanes(lanes.count, 0)
            return self._see(lanes.reset(), np.ones(lanes.count, bool))

        def step_async(self, actions: np.ndarray) -> None:
            lanes.send(features.policy.combine(self._plan[:, 0], features.correction(actions)).astype(np.float32))

        def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
            step = lanes.receive()
            reward = step.reward - config.force_cost(step.force, lanes.careful_n)
            return self._see(step.obs, step.over), reward, step.over, [{} for _ in range(lanes.count)]

        def close(self) -> None:
            """The lanes are closed by whoever opened them."""

        def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
            return [None] * lanes.count

        def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
            raise NotImplementedError

        def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
            raise NotImplementedError

        def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
            return [False] * lanes.count

    return ResidualLanes()


def learn(name: str, policy: Any, task: str, steps: int, config: ResidualConfig, seed: int, bar: Any) -> Any:
    """Trains SB3's SAC or PPO on the residual action space.

    Args:
        name: "sac" or "ppo".
        policy: an untrained `residual` policy over the base; its scales are set here.
        task: to learn on.
        steps: decisions, those for the scales included.
        config: rewards and discount, the same as ours.
        seed: of everything.
        bar: called with the decisions done.

    Returns:
        The SB3 model and its `Features`.

    Raises:
        ConfigError: SB3 is not installed.
    """
    try:
        import stable_baselines3 as sb3
        from stable_baselines3.common.callbacks import BaseCallback
    except ImportError as error:
        raise ConfigError("the peers need stable-baselines3", do="pip install 'robot-fb[peers]'") from error
    import torch

    class Show(BaseCallback):
        def _on_step(self) -> bool:
            bar(SCALES_FROM + self.num_timesteps)
            return True

    with Lanes(task, LANES, TRAINING.seed(seed, 0)) as lanes:
        rollout = Rollout(lanes, policy, ResidualConfig(bootstrap_noise=0.0), seed)
        while rollout.steps < SCALES_FROM:
            rollout.decide(explore=False)
        seen = rollout.online.rows()
        policy.head.fit_scale(seen["proprio"], seen["touch"])
        features = Features(policy)
        env = make_vector_env(lanes, features, config)
        if name == "sac":
            model: Any = sb3.SAC(
                "MlpPolicy", env, gamma=config.gamma, gradient_steps=lanes.count, learning_starts=2_000,
                batch_size=256, seed=seed, device="cpu",
            )
        else:  # as in residual policy learning with PPO: a small start and a last layer of zeros
            model = sb3.PPO(
                "MlpPolicy", env, gamma=config.gamma, n_steps=256, batch_size=256, seed=seed, device="cpu",
                policy_kwargs={"log_std_init": -1.0},
            )
            torch.nn.init.zeros_(model.policy.action_net.weight)
            torch.nn.init.zeros_(model.policy.action_net.bias)
        model.learn(steps - SCALES_FROM, callback=Show())
    return model, features


def evaluate(model: Any, features: Features, task: str, episodes: int, seed: int) -> Sequence[tuple[bool, float, str]]:
    """(success, peak force [N], failure) of the same held-out episodes that `robot-fb eval` runs."""
    env = find_task(task).make()
    base, found = features.policy.base, []
    for episode in range(episodes):
        drawn = EVALUATION.seed(seed, episode)
        obs, info = env.reset(seed=drawn)
        base.reset_lanes(1, drawn)
        fresh, over = np.ones(1, bool), False
        while not over:
            lanes = {key: np.asarray(value)[None] for key, value in obs.items()}
            plan = base.act_lanes(lanes, fresh)
            action, _ = model.predict(features(lanes, plan), deterministic=True)
            executed = features.policy.combine(plan[:, 0], features.correction(action))[0].astype(np.float32)
            obs, _, terminated, truncated, info = env.step(executed)
            fresh, over = np.zeros(1, bool), terminated or truncated
        found.append((bool(info["success"]), float(info.get("peak_force", np.nan)), str(info.get("failure", ""))))
    env.close()
    return found
