"""BTS: Thompson sampling for ratios with Beta posteriors on rewards and costs turned into coins."""

from __future__ import annotations

import math
from typing import NamedTuple

from worthwhile.decision import NOTHING, Decision
from worthwhile.learning import Arms, new_arms, record
from worthwhile.policies.base import positive
from worthwhile.policies.ucb import State
from worthwhile.rng import DRAWS_PER_GAMMA, LEARNING_DRAW, UNIT_32, Rng, beta, bits
from worthwhile.state import Indices


def toss(policy: Bts, arms: Arms, kind: int, option: int, reward: float, cost: float, rng: Rng, draw: int) -> None:
    """Turn a reward and a cost into coins and record them; one draw has both, so that 1 000 options find room."""
    for_reward, for_cost = bits(rng, draw)
    win = 1.0 if (for_reward + 0.5) * UNIT_32 * policy.reward_max < reward else 0.0
    spend = 1.0 if (for_cost + 0.5) * UNIT_32 * policy.cost_max < cost else 0.0
    record(arms, kind, option, win, spend)


class Bts(NamedTuple):
    """Largest ratio of draws from Beta posteriors; a reward x in [0, 1] counts as a win with chance x.

    A baseline for one kind and results that are this or that, told the largest reward and cost; turning other results
    into coins adds noise.
    """

    reward_max: float
    cost_max: float

    def check(self) -> None:
        positive(self, "cost_max")

    def init(self, kinds: int, options: int) -> State:
        return State(new_arms(kinds, options))

    def choose(self, state: State, kind: int, options: Indices, pending: Indices, rng: Rng) -> Decision:
        arms = state.arms
        best, best_score = NOTHING, -math.inf
        for position, option in enumerate(options):
            n, draw = arms.pulls[kind, option], 4 * DRAWS_PER_GAMMA * position
            wins, spends = n * arms.mean_reward[kind, option], n * arms.mean_cost[kind, option]
            reward = beta(rng, draw, 1.0 + wins, 1.0 + n - wins)  # r̃
            cost = beta(rng, draw + 2 * DRAWS_PER_GAMMA, 1.0 + spends, 1.0 + n - spends)  # c̃
            if reward / cost > best_score:
                best, best_score = Decision(option, reward * self.reward_max, cost * self.cost_max), reward / cost
        return best

    def judge(self, state: State, kind: int, option: int) -> Decision:
        reward, cost = state.arms.mean_reward[kind, option], state.arms.mean_cost[kind, option]
        return Decision(option, reward * self.reward_max, cost * self.cost_max)

    def learn(self, state: State, kind: int, made: Decision, reward: float, cost: float, rng: Rng) -> None:
        toss(self, state.arms, kind, made.option, reward, cost, rng, LEARNING_DRAW)

    def observe(self, state: State, kind: int, option: int, reward: float, cost: float, rng: Rng) -> None:
        toss(self, state.arms, kind, option, reward, cost, rng, LEARNING_DRAW - 1 - option)
