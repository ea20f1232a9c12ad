"""Upper confidence bounds, in the two readings of the paper's "classic UCB": on the reward, and on the ratio."""

from __future__ import annotations

import math
from typing import NamedTuple

from worthwhile.decision import NOTHING, Decision
from worthwhile.learning import Arms, confidence_width, new_arms, optimistic, record
from worthwhile.policies.base import not_negative, positive
from worthwhile.rng import Rng
from worthwhile.state import Indices


class State(NamedTuple):
    """N, R̄, C̄ of every (kind, option)."""

    arms: Arms


class RewardUcb(NamedTuple):
    """Largest R̄ + √(log T/N) per kind; blind to cost.

    A baseline, told the horizon: its regret grows with every task where the highest reward is not worth its cost.
    """

    horizon: int
    noise: float = 1.0

    def check(self) -> None:
        positive(self, "horizon")
        not_negative(self, "noise")

    def init(self, kinds: int, options: int) -> State:
        return State(new_arms(kinds, options))

    def choose(self, state: State, kind: int, options: Indices, pending: Indices, rng: Rng) -> Decision:
        arms = state.arms
        best, best_score = NOTHING, -math.inf
        for option in options:
            pulls = arms.pulls[kind, option]
            width = self.noise * confidence_width(pulls, self.horizon) if pulls > 0.0 else 0.0
            reward = arms.mean_reward[kind, option] + width
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


class RatioUcb(NamedTuple):
    """Largest optimistic reward / optimistic cost per kind; blind to the other kinds.

    A baseline, told the horizon, the largest reward and the least cost: right where there is one kind; with several,
    its regret can grow with every task.
    """

    horizon: int
    reward_max: float
    cost_min: float
    noise: float = 1.0

    def check(self) -> None:
        positive(self, "horizon", "cost_min")
        not_negative(self, "noise")

    def init(self, kinds: int, options: int) -> State:
        return State(new_arms(kinds, options))

    def choose(self, state: State, kind: int, options: Indices, pending: Indices, rng: Rng) -> Decision:
        best, best_score = NOTHING, -math.inf
        for option in options:
            reward, cost = optimistic(self, state.arms, kind, option)
            if reward / cost > best_score:
                best, best_score = Decision(option, reward, cost), reward / cost
        return best

    def judge(self, state: State, kind: int, option: int) -> Decision:
        reward, cost = optimistic(self, state.arms, kind, option)
        return Decision(option, reward, cost)

    def learn(self, state: State, kind: int, made: Decision, reward: float, cost: float, rng: Rng) -> None:
        record(state.arms, kind, made.option, reward, cost)

    def observe(self, state: State, kind: int, option: int, reward: float, cost: float, rng: Rng) -> None:
        record(state.arms, kind, option, reward, cost)
