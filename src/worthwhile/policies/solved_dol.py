"""Solved DOL: after every task, θ is the exact optimum of the problem as optimism sees it; docs/theory.md bounds it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from worthwhile.decision import Decision, most_promising
from worthwhile.learning import Arms, new_arms, optimistic, record
from worthwhile.policies.base import not_negative, positive
from worthwhile.policies.plug_in_dol import best_tried
from worthwhile.rng import Rng
from worthwhile.state import Floats, Indices

MOST_ROUNDS = 100  # of Dinkelbach's iteration; it takes two or three


class State(NamedTuple):
    """N, R̄, C̄ of every (kind, option), how often each kind has arrived, and the price θ."""

    arms: Arms
    arrivals: Floats  # (kinds,)
    price: Floats


def solved(policy: SolvedDol, state: State) -> float:
    """The root θ of Σ arrivals · max(r̂ − θč) over tried options, by Dinkelbach's iteration from the price before."""
    price: float = state.price[0]
    for round_number in range(MOST_ROUNDS):
        reward, cost = 0.0, 0.0
        for kind in range(len(state.arrivals)):
            if state.arrivals[kind] > 0.0:
                best_reward, best_cost = best_tried(policy, state.arms, price, kind)
                reward += state.arrivals[kind] * best_reward
                cost += state.arrivals[kind] * best_cost
        better = reward / cost
        if round_number > 0 and better <= price:  # from the second round on it rises until it is the root
            break
        price = better
    return price


class SolvedDol(NamedTuple):
    """DOL with θ solved exactly after every task from the optimistic estimates and the arrivals so far.

    Take it for its proof, O(√(T log T)) and O(log T) where gaps are fixed: it must be told the horizon, the largest
    reward and the least cost, and a task takes time in proportion to all kinds and options.
    """

    horizon: int
    reward_max: float
    cost_min: float
    noise: float = 1.0

    def check(self) -> None:
        positive(self, "horizon", "cost_min")
        not_negative(self, "noise")

    def init(self, kinds: int, options: int) -> State:
        return State(new_arms(kinds, options), np.zeros(kinds), np.zeros(1))

    def choose(self, state: State, kind: int, options: Indices, pending: Indices, rng: Rng) -> Decision:
        return most_promising(self, state.arms, state.price[0], kind, options, pending, True)

    def judge(self, state: State, kind: int, option: int) -> Decision:
        reward, cost = optimistic(self, state.arms, kind, option)
        return Decision(option, reward, cost)

    def learn(self, state: State, kind: int, made: Decision, reward: float, cost: float, rng: Rng) -> None:
        record(state.arms, kind, made.option, reward, cost)
        state.arrivals[kind] += 1.0
        state.price[0] = solved(self, state)

    def observe(self, state: State, kind: int, option: int, reward: float, cost: float, rng: Rng) -> None:
        record(state.arms, kind, option, reward, cost)
