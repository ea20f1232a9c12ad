"""The best reward − cost of each kind, by upper confidence bounds: the goal of cost-aware cascading bandits."""

from __future__ import annotations

from typing import NamedTuple

from worthwhile.decision import Decision, most_promising
from worthwhile.learning import new_arms, optimistic, record
from worthwhile.policies.base import not_negative, positive
from worthwhile.policies.ucb import State
from worthwhile.rng import Rng
from worthwhile.state import Indices


class GapUcb(NamedTuple):
    """Largest optimistic reward − price·optimistic cost per kind, at a price that it is told and never learns.

    A baseline, told the horizon, the largest reward and the least cost: it depends on the unit of cost, and is right
    where the price happens to be θ*.
    """

    horizon: int
    reward_max: float
    cost_min: float
    price: float = 1.0  # of a unit of cost, in units of reward
    noise: float = 1.0

    def check(self) -> None:
        positive(self, "horizon", "cost_min")
        not_negative(self, "price")
        not_negative(self, "noise")

    def init(self, kinds: int, options: int) -> State:
        return State(new_arms(kinds, options))

    def choose(self, state: State, kind: int, options: Indices, pending: Indices, rng: Rng) -> Decision:
        return most_promising(self, state.arms, self.price, kind, options, pending)

    def judge(self, state: State, kind: int, option: int) -> Decision:
        reward, cost = optimistic(self, state.arms, kind, option)
        return Decision(option, reward, cost)

    def learn(self, state: State, kind: int, made: Decision, reward: float, cost: float, rng: Rng) -> None:
        record(state.arms, kind, made.option, reward, cost)

    def observe(self, state: State, kind: int, option: int, reward: float, cost: float, rng: Rng) -> None:
        record(state.arms, kind, option, reward, cost)
