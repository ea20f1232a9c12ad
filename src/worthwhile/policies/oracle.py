"""Policies that know the true means: the oracle (Neely, 2021) learns only θ, the optimum knows θ* too."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from worthwhile.decision import NOTHING, Decision, robbins_monro
from worthwhile.policies.base import ordered, positive
from worthwhile.rng import Rng
from worthwhile.state import Floats, Indices


class State(NamedTuple):
    """The number of tasks t and the price θ."""

    tasks: Floats
    price: Floats


def best_by_truth(mean_reward: Floats, mean_cost: Floats, price: float, kind: int, options: Indices) -> Decision:
    """The option with the largest r − θ·c."""
    best, best_score = NOTHING, -math.inf
    for option in options:
        reward, cost = mean_reward[kind, option], mean_cost[kind, option]
        if reward - price * cost > best_score:
            best, best_score = Decision(option, reward, cost), reward - price * cost
    return best


class Oracle(NamedTuple):
    """Knows every mean reward and cost, but not the arrivals (Neely, 2021).

    For simulations only: shows how much of a loss is due to unknown arrivals.
    """

    mean_reward: Floats
    mean_cost: Floats
    cost_min: float
    price_min: float
    price_max: float

    def check(self) -> None:
        positive(self, "cost_min")
        ordered(self, "price_min", "price_max")

    def init(self, kinds: int, options: int) -> State:
        return State(np.zeros(1), np.full(1, self.price_min))

    def choose(self, state: State, kind: int, options: Indices, pending: Indices, rng: Rng) -> Decision:
        return best_by_truth(self.mean_reward, self.mean_cost, state.price[0], kind, options)

    def judge(self, state: State, kind: int, option: int) -> Decision:
        return Decision(option, self.mean_reward[kind, option], self.mean_cost[kind, option])

    def learn(self, state: State, kind: int, made: Decision, reward: float, cost: float, rng: Rng) -> None:
        state.tasks[0] += 1.0
        step = 1.0 / (self.cost_min * (state.tasks[0] + 1.0))
        state.price[0] = robbins_monro(
            state.price[0], step, made.reward_estimate, made.cost_estimate, self.price_min, self.price_max
        )

    def observe(self, state: State, kind: int, option: int, reward: float, cost: float, rng: Rng) -> None:
        pass


class Optimum(NamedTuple):
    """Knows everything, θ* included: the horizontal line in the paper's figures.

    For simulations only: the ceiling.
    """

    mean_reward: Floats
    mean_cost: Floats
    best_ratio: float

    def init(self, kinds: int, options: int) -> State:
        return State(np.zeros(1), np.full(1, self.best_ratio))

    def choose(self, state: State, kind: int, options: Indices, pending: Indices, rng: Rng) -> Decision:
        return best_by_truth(self.mean_reward, self.mean_cost, self.best_ratio, kind, options)

    def judge(self, state: State, kind: int, option: int) -> Decision:
        return Decision(option, self.mean_reward[kind, option], self.mean_cost[kind, option])

    def learn(self, state: State, kind: int, made: Decision, reward: float, cost: float, rng: Rng) -> None:
        state.tasks[0] += 1.0

    def observe(self, state: State, kind: int, option: int, reward: float, cost: float, rng: Rng) -> None:
        pass
