"""Ratio-IMED, the default: needs no bounds, no horizon, no noise scale.

Indexed minimum empirical divergence (Honda and Takemura, 2015) on the paper's reward − θ·cost, with θ solved from the
means and arrivals seen so far. docs/policies.md derives it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from worthwhile.decision import NOTHING, Decision, PlugIn, arrive, contribute, new_plug_in, scale_plug_in, settle
from worthwhile.learning import Moments, new_moments, record_moments, scale_moments
from worthwhile.policies.base import bad, positive
from worthwhile.policies.evidence import evidence, pool
from worthwhile.rng import Rng, uniform
from worthwhile.state import Floats, Indices

SECOND_LOOK = 7.0  # one pull alone never counts for more evidence than this: e⁷ ≈ 1 100
LOG_2 = 0.6931471805599453
HEAVIEST = 2.0**400  # weights are scaled down when one gets here
LIGHTEST = 2.0**-400  # what has been seen once never weighs nothing, or it would count as new


class State(NamedTuple):
    """Means and second moments of every (kind, option), the plug-in price, and the least cost ever seen.

    Where evidence fades, each report weighs more than the one before, and a pull counts for weight/(weight now).
    """

    arms: Moments
    plug_in: PlugIn
    least_cost: Floats  # (1,)
    weight: Floats  # (1,) of a report now; always 1 if nothing fades


def best_tried(arms: Moments, price: float, kind: int, options: Iterable[int]) -> tuple[int, float, float, float]:
    """How many of the options have reported; R̄, C̄ and z* = R̄ − θC̄ of the best of them."""
    pulls, mean_reward, mean_cost, _, _, _ = arms
    tried, best_reward, best_cost, best_score = 0, 0.0, 0.0, -math.inf
    for option in options:
        arm = kind, option
        if pulls[arm] > 0.0:
            tried += 1
            reward, cost = mean_reward[arm], mean_cost[arm]
            score = reward - price * cost
            if score > best_score:
                best_reward, best_cost, best_score = reward, cost, score
    return tried, best_reward, best_cost, best_score


def refresh(state: State, kind: int) -> None:
    """Let the kind contribute its best tried option under the current price."""
    every = range(state.arms.pulls.shape[1])
    _, reward, cost, _ = best_tried(state.arms, state.plug_in.price[0], kind, every)
    contribute(state.plug_in, kind, reward, cost)


def fade(state: State, half_life: float) -> None:
    """The next report weighs 2^(1/half-life) times as much as this one, by an approximation without powers."""
    step = 0.5 * LOG_2 / half_life
    state.weight[0] *= (1.0 + step) / (1.0 - step)
    if state.weight[0] > HEAVIEST:
        scale = 1.0 / state.weight[0]
        scale_moments(state.arms, scale, LIGHTEST)
        scale_plug_in(state.plug_in, scale, LIGHTEST)
        state.weight[0] = 1.0


def first_untried(pulls: Floats, kind: int, options: Indices, pending: Indices) -> int:
    """The position of the first option that has neither reported nor is running; −1 if there is none."""
    position = -1
    for at, option in enumerate(options):
        if position < 0 and pulls[kind, option] == 0.0 and pending[option] == 0:
            position = at
    return position


def least_busy(options: Indices, pending: Indices, rng: Rng) -> int:
    """The position of the option with the fewest tasks running, ties at random: all run, and none has reported."""
    fewest, ties, position = math.inf, 0.0, -1
    for at, option in enumerate(options):
        running = pending[option]
        if running < fewest:
            fewest, ties, position = running, 1.0, at
        elif running == fewest:
            ties += 1.0
            if uniform(rng, at) * ties < 1.0:
                position = at
    return position


class RatioImed(NamedTuple):
    """The default: takes the option with the least evidence against its being the best; needs no bounds, no tuning.

    What a try would cost counts as well. It must be told nothing, and loses least on nearly every problem measured;
    ω-UCB is better with one kind and 100 options, DOL-RM told exact bounds in the first few hundred tasks. Where things
    change, set a half-life.
    """

    half_life: float = 0.0  # tasks after which evidence counts half, where things change; 0: it never fades
    caution: float = 1.0  # evidence it takes to leave an option alone; less is quicker, and fails more often

    def check(self) -> None:
        positive(self, "caution")
        if self.half_life != 0 and self.half_life < 1:
            raise bad(self, "half_life", "give a number of tasks, at least 1, or 0 for no fading")

    def init(self, kinds: int, options: int) -> State:
        return State(new_moments(kinds, options), new_plug_in(kinds), np.full(1, math.inf), np.ones(1))

    def choose(self, state: State, kind: int, options: Indices, pending: Indices, rng: Rng) -> Decision:
        arms, price, weight = state.arms, state.plug_in.price[0], state.weight[0]
        all_pulls, mean_reward, mean_cost, _, _, _ = arms
        if len(options) == 1:
            option = options[0]
            return Decision(option, mean_reward[kind, option], mean_cost[kind, option])
        tried, leader_reward, _, top = best_tried(arms, price, kind, options)  # top is z*
        if tried < len(options):
            forced = first_untried(all_pulls, kind, options, pending)
            if forced < 0 and tried == 0:
                forced = least_busy(options, pending, rng)
            if forced >= 0:
                option = options[forced]
                return Decision(option, mean_reward[kind, option], mean_cost[kind, option])
        pooled = pool(arms, kind, options, price, weight, state.least_cost[0] > 0.0)
        worth, log_rivals = abs(leader_reward), math.log(len(options) - 1.0)  # w, ln(A − 1)
        best, best_index = options[0], math.inf
        for option in options:
            arm = kind, option
            if all_pulls[arm] > 0.0:
                reported = all_pulls[arm] / weight
                pulls = reported + pending[option]  # m
                index, behind = math.log(pulls), top - (mean_reward[arm] - price * mean_cost[arm])  # ln m, d
                if behind > 0.0:
                    setback = behind / worth if worth > 0.0 else 0.0  # d/w: what a try costs, in tasks of the leader
                    index += log_rivals + 0.5 * math.log(1.0 + setback * setback)
                    if index < best_index:  # evidence can only raise it
                        against = evidence(arms, arm, behind, pooled) * (pulls / self.caution)  # m·K
                        index += min(against, SECOND_LOOK) if reported <= 1.0 else against
                if index < best_index:
                    best, best_index = option, index
        if best_index == math.inf:
            return NOTHING
        return Decision(best, mean_reward[kind, best], mean_cost[kind, best])

    def judge(self, state: State, kind: int, option: int) -> Decision:
        return Decision(option, state.arms.mean_reward[kind, option], state.arms.mean_cost[kind, option])

    def learn(self, state: State, kind: int, made: Decision, reward: float, cost: float, rng: Rng) -> None:
        record_moments(state.arms, kind, made.option, reward, cost, state.weight[0])
        state.least_cost[0] = min(state.least_cost[0], cost)
        other = arrive(state.plug_in, kind, state.weight[0])
        refresh(state, kind)
        if other != kind:
            refresh(state, other)
        settle(state.plug_in)
        if self.half_life > 0.0:
            fade(state, self.half_life)

    def observe(self, state: State, kind: int, option: int, reward: float, cost: float, rng: Rng) -> None:
        record_moments(state.arms, kind, option, reward, cost, state.weight[0])
        state.least_cost[0] = min(state.least_cost[0], cost)
