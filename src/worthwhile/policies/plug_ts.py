"""Plug-in Thompson sampling: draws of reward − θ·cost, with θ solved from the means and arrivals seen so far."""

from __future__ import annotations

import math
from typing import NamedTuple

from worthwhile.decision import NOTHING, Decision, PlugIn, arrive, contribute, new_plug_in, settle
from worthwhile.learning import Arms, Moments, new_moments, record_moments
from worthwhile.policies.base import positive
from worthwhile.rng import Rng, normals
from worthwhile.state import Indices

PRIOR_PULLS = 3.0  # an option's variance starts from its kind's, worth so many pulls


class State(NamedTuple):
    """Means and second moments of every (kind, option), and the plug-in price."""

    arms: Moments
    plug_in: PlugIn


def squares(arms: Moments, kind: int, option: int, price: float) -> float:
    """Σ(z − z̄)² of one option, z = R − θC."""
    arm = kind, option
    return max(  # type: ignore[no-any-return]
        0.0, arms.reward_squares[arm] + price * (price * arms.cost_squares[arm] - 2.0 * arms.products[arm])
    )


def pooled_variance(arms: Moments, kind: int, options: Indices, price: float) -> float:
    """The variance of z that the options on offer have in common."""
    total, freedom = 0.0, 0.0
    for option in options:
        if arms.pulls[kind, option] > 1.0:
            total += squares(arms, kind, option, price)
            freedom += arms.pulls[kind, option] - 1.0
    return total / freedom if freedom > 0.0 else 0.0


def refresh(arms: Arms | Moments, plug_in: PlugIn, kind: int) -> None:
    """Let the kind contribute its best tried option under the current price."""
    price = plug_in.price[0]
    best_reward, best_cost, best_score = 0.0, 0.0, -math.inf
    for option in range(arms.pulls.shape[1]):
        if arms.pulls[kind, option] > 0.0:
            reward, cost = arms.mean_reward[kind, option], arms.mean_cost[kind, option]
            if reward - price * cost > best_score:
                best_reward, best_cost, best_score = reward, cost, reward - price * cost
    contribute(plug_in, kind, best_reward, best_cost)


class PlugTs(NamedTuple):
    """Largest draw from N(R̄ − θC̄, V/N), V estimated, θ solved from the means and arrivals so far; told nothing.

    Thompson sampling for several kinds: take it where choices should be random. Where noise is about as large for all
    options it loses somewhat more than the default, with heavy tails or very unequal noise about as much.
    """

    first_tries: int = 2  # of every option before draws begin: one says nothing of how results vary, but is cheaper

    def check(self) -> None:
        positive(self, "first_tries")

    def init(self, kinds: int, options: int) -> State:
        return State(new_moments(kinds, options), new_plug_in(kinds))

    def choose(self, state: State, kind: int, options: Indices, pending: Indices, rng: Rng) -> Decision:
        arms, price = state.arms, state.plug_in.price[0]
        pooled = pooled_variance(arms, kind, options, price)
        best, best_score = NOTHING, -math.inf
        for draw, option in enumerate(options):
            reward, cost = arms.mean_reward[kind, option], arms.mean_cost[kind, option]
            pulls, score = arms.pulls[kind, option], math.inf
            if pulls > 0.0 and pulls + pending[option] >= self.first_tries:
                total = squares(arms, kind, option, price) + PRIOR_PULLS * pooled
                variance = total / (pulls - 1.0 + PRIOR_PULLS)
                normal, _ = normals(rng, draw)
                score = reward - price * cost + math.sqrt(variance / pulls) * normal  # z̃
            if score > best_score:
                best, best_score = Decision(option, reward, cost), score
        return best

    def judge(self, state: State, kind: int, option: int) -> Decision:
        return Decision(option, state.arms.mean_reward[kind, option], state.arms.mean_cost[kind, option])

    def learn(self, state: State, kind: int, made: Decision, reward: float, cost: float, rng: Rng) -> None:
        record_moments(state.arms, kind, made.option, reward, cost)
        other = arrive(state.plug_in, kind)
        refresh(state.arms, state.plug_in, kind)
        refresh(state.arms, state.plug_in, other)
        settle(state.plug_in)

    def observe(self, state: State, kind: int, option: int, reward: float, cost: float, rng: Rng) -> None:
        record_moments(state.arms, kind, option, reward, cost)
