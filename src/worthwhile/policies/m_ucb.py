"""m-UCB: the ratio of a capped upper and a lower Hoeffding bound, per kind, on rewards and costs scaled to [0, 1]."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from worthwhile.decision import NOTHING, Decision
from worthwhile.learning import Arms, new_arms, record
from worthwhile.policies.base import positive
from worthwhile.rng import Rng
from worthwhile.state import Floats, Indices


class State(NamedTuple):
    """Arms, and the tasks of every kind so far."""

    arms: Arms
    arrivals: Floats  # (kinds,)


class MUcb(NamedTuple):
    """Largest min(r̄ + ε, 1)/(c̄ − ε) per kind, ε = √(ln(t−1)/n)/16.

    A baseline, told the largest reward and cost: good where noise is small, and blind to the other kinds.
    """

    reward_max: float
    cost_max: float
    width: float = 0.0625  # 2⁻⁴

    def check(self) -> None:
        positive(self, "cost_max")

    def init(self, kinds: int, options: int) -> State:
        return State(new_arms(kinds, options), np.zeros(kinds))

    def choose(self, state: State, kind: int, options: Indices, pending: Indices, rng: Rng) -> Decision:
        arms = state.arms
        best, best_score = NOTHING, -math.inf
        log_tasks = math.log(max(1.0, state.arrivals[kind]))  # this task is number arrivals + 1
        for option in options:
            pulls = arms.pulls[kind, option]
            epsilon = self.width * math.sqrt(log_tasks / pulls) if pulls > 0.0 else math.inf
            reward = min(1.0, arms.mean_reward[kind, option] / self.reward_max + epsilon)
            cost = max(0.0, arms.mean_cost[kind, option] / self.cost_max - epsilon)
            score = math.inf if cost == 0.0 else reward / cost
            if score > best_score:
                best, best_score = Decision(option, reward * self.reward_max, cost * self.cost_max), score
        return best

    def judge(self, state: State, kind: int, option: int) -> Decision:
        return Decision(option, state.arms.mean_reward[kind, option], state.arms.mean_cost[kind, option])

    def learn(self, state: State, kind: int, made: Decision, reward: float, cost: float, rng: Rng) -> None:
        state.arrivals[kind] += 1.0
        record(state.arms, kind, made.option, reward, cost)

    def observe(self, state: State, kind: int, option: int, reward: float, cost: float, rng: Rng) -> None:
        record(state.arms, kind, option, reward, cost)
