"""DOL-RM: double-optimistic learning, Robbins-Monro decisions (Xu et al., AAMAS 2024, Algorithm 1)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from worthwhile.decision import Decision, most_promising, robbins_monro
from worthwhile.learning import Arms, new_arms, optimistic, record
from worthwhile.policies.base import not_negative, ordered, positive
from worthwhile.rng import Rng
from worthwhile.state import Floats, Indices


class State(NamedTuple):
    """N, R̄, C̄ of every (kind, option), the number of tasks t, the step η and the price θ."""

    arms: Arms
    tasks: Floats
    step: Floats
    price: Floats


class DolRm(NamedTuple):
    """The paper's algorithm: optimistic reward − θ·optimistic cost, θ by Robbins-Monro steps.

    Take it to reproduce the paper, or for its theorem: it must be told the horizon and the bounds. It is good where it
    is told the standard deviation of rewards as `noise`; with noise much smaller than told it explores for very long.
    """

    horizon: int  # T
    reward_max: float
    cost_min: float
    price_min: float
    price_max: float
    anytime: bool = False  # η = 1/(c_min (t+1)), as in the paper's figures, instead of 1/(c_min √T)
    noise: float = 1.0  # multiplies √(log T/N)
    explore_first: bool = False  # every option of a kind once before anything else

    def check(self) -> None:
        positive(self, "horizon", "cost_min")
        not_negative(self, "noise")
        ordered(self, "price_min", "price_max")

    def init(self, kinds: int, options: int) -> State:
        step = 1.0 / (self.cost_min * math.sqrt(self.horizon))  # η
        return State(new_arms(kinds, options), np.zeros(1), np.full(1, step), np.full(1, self.price_min))

    def choose(self, state: State, kind: int, options: Indices, pending: Indices, rng: Rng) -> Decision:
        return most_promising(
            self, state.arms, state.price[0], kind, options, pending, self.explore_first
        )  # argmax r̂ − θ·č, Eq. (2), (3) and (7)

    def judge(self, state: State, kind: int, option: int) -> Decision:
        reward, cost = optimistic(self, state.arms, kind, option)
        return Decision(option, reward, cost)

    def learn(self, state: State, kind: int, made: Decision, reward: float, cost: float, rng: Rng) -> None:
        state.tasks[0] += 1.0
        if self.anytime:
            state.step[0] = 1.0 / (self.cost_min * (state.tasks[0] + 1.0))  # η_t
        state.price[0] = robbins_monro(
            state.price[0], state.step[0], made.reward_estimate, made.cost_estimate, self.price_min, self.price_max
        )  # Eq. (8)
        record(state.arms, kind, made.option, reward, cost)  # Eq. (4)-(6)

    def observe(self, state: State, kind: int, option: int, reward: float, cost: float, rng: Rng) -> None:
        record(state.arms, kind, option, reward, cost)
