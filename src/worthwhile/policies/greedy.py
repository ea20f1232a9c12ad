"""Per-kind greedy: the best observed ratio of each kind, always, or mostly (b-greedy explores with chance K/t)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from worthwhile.decision import NOTHING, Decision
from worthwhile.learning import Arms, new_arms, record
from worthwhile.policies.base import not_negative
from worthwhile.policies.m_ucb import State as CountingState
from worthwhile.policies.ucb import State
from worthwhile.rng import Rng, uniform
from worthwhile.state import Indices

SMALLEST = 1e-300  # a cost at or below 0 counts as this, so that the ratio keeps its sign


def best_ratio(arms: Arms, kind: int, options: Indices) -> Decision:
    """The tried option with the largest R̄/C̄; NOTHING if none was tried."""
    best, best_score = NOTHING, -math.inf
    for option in options:
        if arms.pulls[kind, option] > 0.0:
            reward, cost = arms.mean_reward[kind, option], arms.mean_cost[kind, option]
            score = reward / max(cost, SMALLEST)
            if score > best_score:
                best, best_score = Decision(option, reward, cost), score
    return best


class KindGreedy(NamedTuple):
    """Tries everything once, then always the best observed ratio of the kind: the paper's greedy, learned.

    It must be told nothing. Take it to see what ignoring θ costs; one unlucky first try can mislead it for good.
    """

    def init(self, kinds: int, options: int) -> State:
        return State(new_arms(kinds, options))

    def choose(self, state: State, kind: int, options: Indices, pending: Indices, rng: Rng) -> Decision:
        best = best_ratio(state.arms, kind, options)
        for option in options[::-1]:
            if state.arms.pulls[kind, option] == 0.0:
                best = Decision(option, 0.0, 0.0)
        return best

    def judge(self, state: State, kind: int, option: int) -> Decision:
        return Decision(option, state.arms.mean_reward[kind, option], state.arms.mean_cost[kind, option])

    def learn(self, state: State, kind: int, made: Decision, reward: float, cost: float, rng: Rng) -> None:
        record(state.arms, kind, made.option, reward, cost)

    def observe(self, state: State, kind: int, option: int, reward: float, cost: float, rng: Rng) -> None:
        record(state.arms, kind, option, reward, cost)


class BGreedy(NamedTuple):
    """Any option with chance min(1, K/t), else the best observed ratio of the kind.

    A baseline that must be told nothing; it recovers from unlucky tries, and is blind to the other kinds.
    """

    exploration: float = 1.0  # multiplies K/t

    def check(self) -> None:
        not_negative(self, "exploration")

    def init(self, kinds: int, options: int) -> CountingState:
        return CountingState(new_arms(kinds, options), np.zeros(kinds))

    def choose(self, state: CountingState, kind: int, options: Indices, pending: Indices, rng: Rng) -> Decision:
        best = best_ratio(state.arms, kind, options)
        explore = uniform(rng, 0) * (state.arrivals[kind] + 1.0) < self.exploration * len(options)
        if explore or best.option == NOTHING.option:
            option = options[int(uniform(rng, 1) * len(options))]
            return Decision(option, state.arms.mean_reward[kind, option], state.arms.mean_cost[kind, option])
        return best

    def probability(self, state: CountingState, kind: int, options: Indices, option: int) -> float:
        best, count = best_ratio(state.arms, kind, options).option, len(options)
        explores = min(1.0, self.exploration * count / (state.arrivals[kind] + 1.0)) if best >= 0 else 1.0
        return explores / count + (1.0 - explores) * float(option == best)

    def judge(self, state: CountingState, kind: int, option: int) -> Decision:
        return Decision(option, state.arms.mean_reward[kind, option], state.arms.mean_cost[kind, option])

    def learn(self, state: CountingState, kind: int, made: Decision, reward: float, cost: float, rng: Rng) -> None:
        state.arrivals[kind] += 1.0
        record(state.arms, kind, made.option, reward, cost)

    def observe(self, state: CountingState, kind: int, option: int, reward: float, cost: float, rng: Rng) -> None:
        record(state.arms, kind, option, reward, cost)
