"""Where the residual's data comes from: many lanes driven by base and correction, filed as n-step transitions."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from robot_fb.algorithms.residual.config import ResidualConfig
from robot_fb.runtime.lanes import Lanes, LaneStep
from robot_fb.training.mixer import Mixer
from robot_fb.training.replay import NStep, ReplayBuffer
from robot_fb.types import Obs


class Rollout:
    """Drives the lanes and keeps what happens.

    Args:
        lanes: open simulations.
        policy: the `residual` policy.
        config: settings.
        seed: of exploration and of the policy's own draws.

    Attributes:
        online: every transition.
        successes: those of episodes that succeeded, once more.
        recent: (success, steps) of the last 100 episodes.
        steps: decisions made, all lanes together.
    """

    def __init__(self, lanes: Lanes, policy: Any, config: ResidualConfig, seed: int) -> None:
        self.lanes, self.policy, self.config = lanes, policy, config
        self.online, self.successes = ReplayBuffer(config.buffer), ReplayBuffer(config.buffer // 2)
        self.recent: deque[tuple[bool, int]] = deque(maxlen=100)
        self.steps = self.episodes = 0
        self._rng = np.random.default_rng([seed, 1])
        self._nstep = NStep(config.n_step, config.gamma)
        self._noise = np.zeros((lanes.count, policy.spec.action.dim))
        self._noisy = np.ones(lanes.count, bool)
        self._prefix, self._length = np.zeros((2, lanes.count), int)
        self._episode: list[list[dict[str, np.ndarray]]] = [[] for _ in range(lanes.count)]
        policy.reset_lanes(lanes.count, seed)
        self._obs = lanes.reset()
        self._look(self._obs, np.ones(lanes.count, bool))

    def send(self, explore: bool) -> None:
        """Starts one decision of every lane: the correction with noise, or (not `explore`) the base with noise."""
        config, rng = self.config, self._rng
        keep = config.noise_memory
        fresh = rng.normal(size=self._noise.shape) if explore else rng.uniform(-1.7, 1.7, self._noise.shape)
        self._noise = keep * self._noise + np.sqrt(1 - keep**2) * fresh
        if explore:
            correction = self.policy.correction(self._obs, self._plan) + config.noise * self._noise
            correction *= self.policy.acting(self.lanes.count)
        else:
            correction = config.bootstrap_noise * self._noise * self._noisy[:, None]
        correction = np.clip(correction, -1, 1) * self.policy.head.mask.numpy() * self._state["alive"]
        correction[self._prefix > 0] = 0.0
        self._action = self.policy.combine(self._plan[:, 0], correction).astype(np.float32)
        self.lanes.send(self._action)

    def receive(self) -> None:
        """Waits for the decision that `send` started, and files it."""
        step = self.lanes.receive()
        state, action = self._state, self.policy.units(self._action)
        self._obs = step.obs
        self._look(step.obs, step.over)
        cost = self.config.force_cost(step.force, self.lanes.careful_n)
        rows = state | {
            "action": action,
            "reward": (step.reward - cost).astype(np.float32),
            "terminated": step.over,
            "kept": self._prefix <= 0,
            "lane": np.arange(self.lanes.count),
            **{f"next_{key}": value for key, value in self._state.items()},
        }
        self._prefix -= 1
        self._file(self._nstep.push(rows, step.over), step)
        self.steps += self.lanes.count

    def decide(self, explore: bool) -> None:
        """One decision of every lane, waited for."""
        self.send(explore)
        self.receive()

    def success_rate(self) -> float:
        """Over the last 100 episodes; 0 before the first ended."""
        return float(np.mean([ok for ok, _ in self.recent])) if self.recent else 0.0

    def _look(self, obs: Obs, fresh: np.ndarray) -> None:
        """The base's plan for `obs`, and what the learner sees of both."""
        policy, head = self.policy, self.policy.head
        self._plan = policy.base.act_lanes(obs, fresh)
        self._state = {
            "proprio": head.proprioception(obs),
            "touch": head.touch.flatten(obs),
            "gate": policy.gate(obs),
            "alive": policy.alive(obs),
            "plan": policy.plan_features(self._plan),
            "visual": policy.embed_lanes(obs),
        }

    def _file(self, rows: dict[str, np.ndarray], step: LaneStep) -> None:
        self._length += 1
        if rows:
            of_lane, kept = rows.pop("lane"), rows.pop("kept")
            self.online.add_batch({key: value[kept] for key, value in rows.items()})
            for lane in np.unique(of_lane):
                mine = (of_lane == lane) & kept
                self._episode[lane].append({key: value[mine] for key, value in rows.items()})
        for lane in np.flatnonzero(step.over):
            parts, self._episode[lane] = self._episode[lane], []
            if step.success[lane]:
                self.successes.add_batch({key: np.concatenate([p[key] for p in parts]) for key in parts[0]})
            self.recent.append((bool(step.success[lane]), int(self._length[lane])))
            self._length[lane] = 0
            self._prefix[lane] = self._rng.integers(self.config.prefix_steps + 1)
            self.episodes += 1
            self._noise[lane] = 0.0
            self._noisy[lane] = self._rng.random() < 0.5


class OnlineMixer(Mixer):
    """Batches while the robot goes on: the lanes make a decision whenever enough updates were made for the last one.

    The physics of a decision runs in the lanes' processes while the learner works on the batches between.

    Args:
        rollout: gives the data.
        config: shares and updates per step.
        seed: of the draws.
        before: called before each decision.
    """

    def __init__(self, rollout: Rollout, config: ResidualConfig, seed: int, before: Callable[[], None]) -> None:
        share = config.success_share
        shares = {"online": max(1 - share, 1e-6), "successes": max(share, 1e-6)}
        super().__init__({"online": rollout.online, "successes": rollout.successes}, config.batch, shares, seed)
        self._rollout, self._before = rollout, before
        self._updates_per_decision = config.updates_per_step * rollout.lanes.count
        self._credit = 0.0
        self._sent = False

    def state(self) -> dict[str, Any]:
        """Where draws and robot time stand; the episodes under way are not kept."""
        return super().state() | {"steps": self._rollout.steps, "episodes": self._rollout.episodes}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Goes on from a `state`, with new episodes."""
        super().restore(state)
        self._rollout.steps, self._rollout.episodes = int(state["steps"]), int(state["episodes"])

    def next(self) -> dict[str, Any]:
        """The next batch; moves the lanes when it is time."""
        if self._credit < 1:
            if self._sent:
                self._rollout.receive()
            self._before()
            self._rollout.send(explore=True)
            self._sent = True
            self._credit += self._updates_per_decision
        self._credit -= 1
        return super().next()
