"""Running-ratio DOL: θ = ΣR/ΣC so far, which is Robbins-Monro with step 1/ΣC."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from worthwhile.decision import Decision, most_promising
from worthwhile.learning import Arms, new_arms, optimistic, record
from worthwhile.policies.base import not_negative, positive
from worthwhile.rng import Rng
from worthwhile.state import Floats, Indices


class State(NamedTuple):
    """Arms, the two totals and their quotient."""

    arms: Arms
    total_reward: Floats
    total_cost: Floats
    price: Floats


class RunningRatio(NamedTuple):
    """DOL with the ratio achieved so far as θ.

    Take it where no bounds on θ are known: it must be told the horizon, the largest reward and the least cost.
    """

    horizon: int
    reward_max: float
    cost_min: float
    noise: float = 1.0

    def check(self) -> None:
        positive(self, "horizon", "cost_min")
        not_negative(self, "noise")

    def init(self, kinds: int, options: int) -> State:
        return State(new_arms(kinds, options), np.zeros(1), np.zeros(1), np.zeros(1))

    def choose(self, state: State, kind: int, options: Indices, pending: Indices, rng: Rng) -> Decision:
        return most_promising(self, state.arms, state.price[0], kind, options, pending)

    def judge(self, state: State, kind: int, option: int) -> Decision:
        reward, cost = optimistic(self, state.arms, kind, option)
        return Decision(option, reward, cost)

    def learn(self, state: State, kind: int, made: Decision, reward: float, cost: float, rng: Rng) -> None:
        state.total_reward[0] += reward
        state.total_cost[0] += cost
        if state.total_cost[0] > 0.0:
            state.price[0] = state.total_reward[0] / state.total_cost[0]
        record(state.arms, kind, made.option, reward, cost)

    def observe(self, state: State, kind: int, option: int, reward: float, cost: float, rng: Rng) -> None:
        record(state.arms, kind, option, reward, cost)
