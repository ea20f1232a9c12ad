"""Thompson sampling with Gaussian posteriors (Russo et al., 2018), on the reward and on the ratio."""

from __future__ import annotations

import math
from typing import NamedTuple

from worthwhile.decision import NOTHING, Decision
from worthwhile.learning import new_arms, record
from worthwhile.policies.base import not_negative, positive
from worthwhile.policies.ucb import State
from worthwhile.rng import Rng, normals
from worthwhile.state import Indices


class RewardThompson(NamedTuple):
    """Largest draw from N(R̄, noise²/N) per kind; blind to cost.

    A baseline that supposes noise of unit size: it loses as `RewardUcb` does.
    """

    noise: float = 1.0

    def check(self) -> None:
        not_negative(self, "noise")

    def init(self, kinds: int, options: int) -> State:
        return State(new_arms(kinds, options))

    def choose(self, state: State, kind: int, options: Indices, pending: Indices, rng: Rng) -> Decision:
        arms = state.arms
        best, best_score = NOTHING, -math.inf
        for draw, option in enumerate(options):
            pulls = arms.pulls[kind, option]
            normal, _ = normals(rng, draw)
            spread = self.noise / math.sqrt(pulls) if pulls > 0.0 else 0.0
            reward = arms.mean_reward[kind, option] + spread * normal  # r̃
            score = reward if pulls > 0.0 else math.inf
            if score > best_score:
                best, best_score = Decision(option, reward, arms.mean_cost[kind, option]), score
        return best

    def judge(self, state: State, kind: int, option: int) -> Decision:
        return Decision(option, state.arms.mean_reward[kind, option], state.arms.mean_cost[kind, option])

    def learn(self, state: State, kind: int, made: Decision, reward: float, cost: float, rng: Rng) -> None:
        record(state.arms, kind, made.option, reward, cost)

    def observe(self, state: State, kind: int, option: int, reward: float, cost: float, rng: Rng) -> None:
        record(state.arms, kind, option, reward, cost)


class RatioThompson(NamedTuple):
    """Largest ratio of draws from N(R̄, noise²/N) and N(C̄, noise²/N), the latter at least c_min.

    A baseline for one kind and noise of unit size, told the least cost; with tiny rewards and costs it hardly learns.
    """

    cost_min: float
    noise: float = 1.0

    def check(self) -> None:
        positive(self, "cost_min")
        not_negative(self, "noise")

    def init(self, kinds: int, options: int) -> State:
        return State(new_arms(kinds, options))

    def choose(self, state: State, kind: int, options: Indices, pending: Indices, rng: Rng) -> Decision:
        arms = state.arms
        best, best_score = NOTHING, -math.inf
        for draw, option in enumerate(options):
            pulls = arms.pulls[kind, option]
            for_reward, for_cost = normals(rng, draw)
            spread = self.noise / math.sqrt(pulls) if pulls > 0.0 else 0.0
            reward = arms.mean_reward[kind, option] + spread * for_reward  # r̃
            cost = max(self.cost_min, arms.mean_cost[kind, option] + spread * for_cost)  # c̃
            score = reward / cost if pulls > 0.0 else math.inf
            if score > best_score:
                best, best_score = Decision(option, reward, cost), score
        return best

    def judge(self, state: State, kind: int, option: int) -> Decision:
        return Decision(option, state.arms.mean_reward[kind, option], state.arms.mean_cost[kind, option])

    def learn(self, state: State, kind: int, made: Decision, reward: float, cost: float, rng: Rng) -> None:
        record(state.arms, kind, made.option, reward, cost)

    def observe(self, state: State, kind: int, option: int, reward: float, cost: float, rng: Rng) -> None:
        record(state.arms, kind, option, reward, cost)
