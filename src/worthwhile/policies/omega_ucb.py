"""ω-UCB and ω*-UCB (Heyden et al., KDD 2024): asymmetric confidence bounds for the ratio, one set of arms per kind."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from worthwhile.decision import NOTHING, Decision
from worthwhile.learning import Moments, new_moments, record_moments
from worthwhile.policies.base import not_negative, positive
from worthwhile.rng import Rng, uniform
from worthwhile.state import Floats, Indices

TRUSTED_PULLS = 30.0  # ω* uses the sample variance from here on
TINY = 1e-12


class State(NamedTuple):
    """Arms with second moments, and the tasks of every kind so far, t."""

    arms: Moments
    arrivals: Floats  # (kinds,)


def spread(pulls: float, mean: float, squares: float, low: float, high: float, adaptive: bool) -> float:
    """η: the sample variance as a share of the largest that a variable in [low, high] with this mean can have."""
    room = (high - mean) * (mean - low)
    if not adaptive or pulls < TRUSTED_PULLS or room <= 0.0:
        return 1.0
    return min(1.0, squares / (pulls * room))


def omega(mean: float, pulls: float, weight: float, low: float, high: float) -> tuple[float, float]:
    """Lower and upper confidence bound ω₋, ω₊ for the mean of a variable in [low, high]."""
    above, span = mean - low, high - low  # counted from low: no digits are lost far from 0
    a = max(pulls + weight, TINY)
    half = (2.0 * pulls * above + weight * span) / (2.0 * a)
    root = math.sqrt(max(0.0, half * half - pulls * above * above / a))
    return low + (half - root), low + (half + root)


class OmegaUcb(NamedTuple):
    """Largest ω₊(reward)/ω₋(cost) per kind; ties at random.

    Take it for one kind, many options and bounded rewards and costs, which it must be told; adaptive where variances
    are small. It is blind to the other kinds: with several, its regret can grow with every task.
    """

    reward_max: float  # M
    cost_max: float
    reward_low: float = 0.0  # m
    cost_low: float = 0.0
    rho: float = 0.25  # ¼ is best in practice, 1 has the logarithmic proof
    adaptive: bool = False  # ω*: scale by the sample variance

    def check(self) -> None:
        positive(self, "cost_max")
        not_negative(self, "rho")

    def init(self, kinds: int, options: int) -> State:
        return State(new_moments(kinds, options), np.zeros(kinds))

    def choose(self, state: State, kind: int, options: Indices, pending: Indices, rng: Rng) -> Decision:
        arms = state.arms
        best, best_score, ties = NOTHING, -math.inf, 1.0
        base = 2.0 * self.rho * math.log(state.arrivals[kind] + 1.0)  # z²
        for draw, option in enumerate(options):
            n = arms.pulls[kind, option]
            r, c = arms.mean_reward[kind, option], arms.mean_cost[kind, option]
            s_r, s_c = arms.reward_squares[kind, option], arms.cost_squares[kind, option]
            eta_r = spread(n, r, s_r, self.reward_low, self.reward_max, self.adaptive)
            eta_c = spread(n, c, s_c, self.cost_low, self.cost_max, self.adaptive)
            _, reward = omega(r, n, eta_r * base, self.reward_low, self.reward_max)
            cost, _ = omega(c, n, eta_c * base, self.cost_low, self.cost_max)
            reward, cost = min(reward, self.reward_max), max(cost, 0.0)
            score = math.inf if cost <= TINY or n == 0.0 else reward / cost
            if score > best_score:
                best, best_score, ties = Decision(option, reward, cost), score, 1.0
            elif score == best_score:
                ties += 1.0
                if uniform(rng, draw) * ties < 1.0:
                    best = Decision(option, reward, cost)
        return best

    def judge(self, state: State, kind: int, option: int) -> Decision:
        return Decision(option, state.arms.mean_reward[kind, option], state.arms.mean_cost[kind, option])

    def learn(self, state: State, kind: int, made: Decision, reward: float, cost: float, rng: Rng) -> None:
        state.arrivals[kind] += 1.0
        record_moments(state.arms, kind, made.option, reward, cost)

    def observe(self, state: State, kind: int, option: int, reward: float, cost: float, rng: Rng) -> None:
        record_moments(state.arms, kind, option, reward, cost)
