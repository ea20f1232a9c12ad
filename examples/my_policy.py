"""A policy of your own, complete: mostly the best reward − θ·cost so far, with θ = ΣR/ΣC, sometimes anything.

worthwhile simulate seven-kinds --policy ratio-imed --policy my_policy:Curious,rate=0.1
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from worthwhile import Decision, Rng
from worthwhile.learning import Arms, new_arms, record
from worthwhile.rng import uniform


class State(NamedTuple):
    """Everything that is remembered: arrays shaped (1,), (kinds,) or (kinds, options)."""

    arms: Arms  # pulls, mean_reward and mean_cost, each (kinds, options)
    total_reward: np.ndarray[Any, Any]  # (1,)
    total_cost: np.ndarray[Any, Any]
    price: np.ndarray[Any, Any]  # `simulate` draws the curve of a field with this name


def worth(arms: Arms, kind: int, option: int, price: float) -> float:
    """Reward − θ·cost; shared code is a module-level function, not a method."""
    if arms.pulls[kind, option] == 0.0:
        return math.inf
    return arms.mean_reward[kind, option] - price * arms.mean_cost[kind, option]  # type: ignore[no-any-return]


class Curious(NamedTuple):
    """The best option so far, and with chance `rate` any option."""

    rate: float = 0.05

    def init(self, kinds: int, options: int) -> State:
        return State(new_arms(kinds, options), np.zeros(1), np.zeros(1), np.zeros(1))

    def choose(self, state: State, kind: int, options: Any, pending: Any, rng: Rng) -> Decision:
        chosen, best_score = options[0], -math.inf
        for option in options:
            score = worth(state.arms, kind, option, state.price[0])
            if score > best_score:
                chosen, best_score = option, score
        if uniform(rng, 0) < self.rate:
            chosen = options[int(uniform(rng, 1) * len(options))]
        return Decision(chosen, state.arms.mean_reward[kind, chosen], state.arms.mean_cost[kind, chosen])

    def judge(self, state: State, kind: int, option: int) -> Decision:
        return Decision(option, state.arms.mean_reward[kind, option], state.arms.mean_cost[kind, option])

    def learn(self, state: State, kind: int, made: Decision, reward: float, cost: float, rng: Rng) -> None:
        state.total_reward[0] += reward
        state.total_cost[0] += cost
        if state.total_cost[0] > 0.0:
            state.price[0] = state.total_reward[0] / state.total_cost[0]
        record(state.arms, kind, made.option, reward, cost)

    def observe(self, state: State, kind: int, option: int, reward: float, cost: float, rng: Rng) -> None:
        record(state.arms, kind, option, reward, cost)
