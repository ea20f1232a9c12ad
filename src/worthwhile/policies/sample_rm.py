"""Sample-RM: DOL-RM with the observed reward and cost in Eq. (8), the classical Robbins-Monro method."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from worthwhile.decision import Decision, most_promising, robbins_monro
from worthwhile.learning import new_arms, optimistic, record
from worthwhile.policies.base import not_negative, ordered, positive
from worthwhile.policies.dol_rm import State
from worthwhile.rng import Rng
from worthwhile.state import Indices


class SampleRm(NamedTuple):
    """DOL-RM whose θ follows the observed reward and cost instead of the estimates.

    It must be told what DOL-RM must. Take it to see why the paper steps on estimates: noise goes straight into θ.
    """

    horizon: int
    reward_max: float
    cost_min: float
    price_min: float
    price_max: float
    noise: float = 1.0

    def check(self) -> None:
        positive(self, "horizon", "cost_min")
        not_negative(self, "noise")
        ordered(self, "price_min", "price_max")

    def init(self, kinds: int, options: int) -> State:
        return State(new_arms(kinds, options), np.zeros(1), np.zeros(1), np.full(1, self.price_min))

    def choose(self, state: State, kind: int, options: Indices, pending: Indices, rng: Rng) -> Decision:
        return most_promising(self, state.arms, state.price[0], kind, options, pending)

    def judge(self, state: State, kind: int, option: int) -> Decision:
        reward, cost = optimistic(self, state.arms, kind, option)
        return Decision(option, reward, cost)

    def learn(self, state: State, kind: int, made: Decision, reward: float, cost: float, rng: Rng) -> None:
        state.tasks[0] += 1.0
        state.step[0] = 1.0 / (self.cost_min * (state.tasks[0] + 1.0))
        state.price[0] = robbins_monro(state.price[0], state.step[0], reward, cost, self.price_min, self.price_max)
        record(state.arms, kind, made.option, reward, cost)

    def observe(self, state: State, kind: int, option: int, reward: float, cost: float, rng: Rng) -> None:
        record(state.arms, kind, option, reward, cost)
