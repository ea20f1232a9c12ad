"""Ratio-IMED, the default: needs no bounds, no horizon, no noise scale.

Indexed minimum empirical divergence (Honda and Takemura, 2015) on the paper's reward − θ·cost, with θ solved from the
means and arrivals seen so far. docs/policies.md derives it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from worthwhile.coins import Rng, uniform
from worthwhile.decision import NOTHING, Decision, PlugIn, arrive, contribute, new_plug_in, settle
from worthwhile.learning import Moments, new_moments, record_moments
from worthwhile.state import Indices

PRIOR_PULLS = 2.0  # weight of the kind's pooled variance in each option's own
FORCED_REPEATS = 3.0  # second pulls of a kind that are made whatever the first ones said
RELATIVE_FLOOR = 1e-18  # of a squared mean: smaller variances are rounding


class State(NamedTuple):
    """Means and second moments of every (kind, option), and the plug-in ratio."""

    arms: Moments
    plug_in: PlugIn


class Spread(NamedTuple):
    """A kind's variances, pooled over its options."""

    gap: float  # of R − θC
    reward: float
    cost: float  # relative to the squared mean: cv²


def pool(arms: Moments, kind: int, options: Indices, ratio: float) -> Spread:
    """Pooled variances of the options on offer."""
    gap, reward, cost, freedom, cost_freedom = 0.0, 0.0, 0.0, 0.0, 0.0
    for option in options:
        pulls = arms.pulls[kind, option]
        if pulls > 1.0:
            freedom += pulls - 1.0
            reward += arms.reward_squares[kind, option]
            gap += gap_squares(arms, kind, option, ratio)
            mean = arms.mean_cost[kind, option]
            if mean > 0.0:
                cost += arms.cost_squares[kind, option] / (mean * mean)
                cost_freedom += pulls - 1.0
    freedom, cost_freedom = max(freedom, 1.0), max(cost_freedom, 1.0)
    return Spread(gap / freedom, reward / freedom, cost / cost_freedom)


def gap_squares(arms: Moments, kind: int, option: int, ratio: float) -> float:
    """Σ (Z − Z̄)² of Z = R − θC."""
    squares = arms.reward_squares[kind, option] + ratio * ratio * arms.cost_squares[kind, option]
    return max(0.0, squares - 2.0 * ratio * arms.products[kind, option])  # type: ignore[no-any-return]


def gaussian_evidence(arms: Moments, kind: int, option: int, ratio: float, behind: float, spread: Spread) -> float:
    """Evidence per pull that R − θC, Gaussian with unknown variance, does not reach the best; behind = z* − z."""
    pulls = arms.pulls[kind, option]
    variance = (gap_squares(arms, kind, option, ratio) + PRIOR_PULLS * spread.gap) / (pulls + PRIOR_PULLS)
    if variance <= 0.0:
        return math.inf
    return 0.5 * math.log(1.0 + behind * behind / variance)


def positive_evidence(arms: Moments, kind: int, option: int, ratio: float, behind: float, spread: Spread) -> float:
    """The same with a Gaussian reward and a Gamma cost: the least unlikely way to make up for `behind`.

    A share y of the cost is saved, the reward makes up the rest. The saving costs κ(ln(1−y) + 1/(1−y) − 1), the reward
    ½ ln(1 + (δ−y)²/ν); δ and ν are `behind` and the reward's variance in units of θC̄. The minimum is a root of a cubic.
    """
    pulls, mean_cost = arms.pulls[kind, option], arms.mean_cost[kind, option]
    weight = pulls + PRIOR_PULLS
    reward_variance = (arms.reward_squares[kind, option] + PRIOR_PULLS * spread.reward) / weight
    mean_reward = arms.mean_reward[kind, option]
    reward_variance = max(reward_variance, RELATIVE_FLOOR * (mean_reward * mean_reward + behind * behind))
    cost_variance = (arms.cost_squares[kind, option] / (mean_cost * mean_cost) + PRIOR_PULLS * spread.cost) / weight
    shape = 1.0 / max(cost_variance, RELATIVE_FLOOR)  # κ
    unit = ratio * mean_cost
    delta, nu = behind / unit, reward_variance / (unit * unit)
    return least_evidence(delta, nu, shape)


def least_evidence(delta: float, nu: float, shape: float) -> float:
    """Minimum over y in [0, min(δ, 1)) of ½ ln(1 + (δ−y)²/ν) + κ(ln(1−y) + 1/(1−y) − 1)."""
    # stationary points: y³ − a y² + b y − c = 0
    a = (delta + 2.0 + 2.0 * shape * delta) / (1.0 + shape)
    b = (2.0 * delta + 1.0 + shape * (nu + delta * delta)) / (1.0 + shape)
    c = delta / (1.0 + shape)
    third = a / 3.0
    p = third * third - b / 3.0
    q = third * third * third - 0.5 * third * b + 0.5 * c
    least = evidence_at(0.0, delta, nu, shape)
    if delta < 1.0:
        least = min(least, evidence_at(delta, delta, nu, shape))
    inside = q * q - p * p * p
    if inside >= 0.0:
        root = abs(q) + math.sqrt(inside)
        root = math.copysign(math.exp(math.log(root) / 3.0), q) if root > 0.0 else 0.0
        y = third + root + (p / root if root != 0.0 else 0.0)
        return min(least, evidence_at(y, delta, nu, shape))
    size = math.sqrt(p)
    angle = math.acos(max(-1.0, min(1.0, q / (p * size)))) / 3.0
    for turn in range(3):
        y = third + 2.0 * size * math.cos(angle - 2.0 * math.pi / 3.0 * turn)
        least = min(least, evidence_at(y, delta, nu, shape))
    return least


def evidence_at(y: float, delta: float, nu: float, shape: float) -> float:
    """What it takes to save the share y of the cost; out of reach outside [0, min(δ, 1))."""
    if y < 0.0 or y > delta or y >= 1.0:
        return math.inf
    rest = delta - y
    return 0.5 * math.log(1.0 + rest * rest / nu) + shape * (math.log(1.0 - y) + y / (1.0 - y))


def refresh(state: State, kind: int) -> None:
    """Let the kind contribute its best tried option under the current ratio."""
    arms, ratio = state.arms, state.plug_in.ratio[0]
    best_reward, best_cost, best_score = 0.0, 0.0, -math.inf
    for option in range(arms.pulls.shape[1]):
        if arms.pulls[kind, option] > 0.0:
            reward, cost = arms.mean_reward[kind, option], arms.mean_cost[kind, option]
            if reward - ratio * cost > best_score:
                best_reward, best_cost, best_score = reward, cost, reward - ratio * cost
    contribute(state.plug_in, kind, best_reward, best_cost)


def start(arms: Moments, kind: int, options: Indices, pending: Indices, ratio: float, rng: Rng) -> int:
    """The position of the option that must be tried now: once each, then a few best ones again; −1 when done."""
    fewest, ties, position, reported, repeats = math.inf, 0.0, -1, False, 0.0
    again, again_score, untried = -1, -math.inf, -1
    for place, option in enumerate(options):
        pulls = arms.pulls[kind, option]
        running = pulls + pending[option]
        if running == 0.0 and untried < 0:
            untried = place
        reported = reported or pulls > 0.0
        repeats += running - 1.0
        if pulls == 1.0 and running == 1.0:
            score = arms.mean_reward[kind, option] - ratio * arms.mean_cost[kind, option]
            if score > again_score:
                again, again_score = place, score
        if running < fewest:
            fewest, ties, position = running, 1.0, place
        elif running == fewest:
            ties += 1.0
            if uniform(rng, place) * ties < 1.0:
                position = place
    if untried >= 0:
        return untried
    if not reported:
        return position
    return again if repeats < FORCED_REPEATS else -1


class RatioImed(NamedTuple):
    """The default. Least evidence against being the best, plus log of its pulls; nothing to tune."""

    def init(self, kinds: int, options: int) -> State:
        return State(new_moments(kinds, options), new_plug_in(kinds))

    def choose(self, state: State, kind: int, options: Indices, pending: Indices, rng: Rng) -> Decision:
        arms, ratio = state.arms, state.plug_in.ratio[0]
        forced = 0 if len(options) == 1 else start(arms, kind, options, pending, ratio, rng)
        if forced >= 0:
            option = options[forced]
            return Decision(option, arms.mean_reward[kind, option], arms.mean_cost[kind, option])
        top = -math.inf  # z*
        for option in options:
            if arms.pulls[kind, option] > 0.0:
                top = max(top, arms.mean_reward[kind, option] - ratio * arms.mean_cost[kind, option])
        spread = pool(arms, kind, options, ratio)
        best, best_index = NOTHING, math.inf
        for option in options:
            if arms.pulls[kind, option] > 0.0:
                reward, cost = arms.mean_reward[kind, option], arms.mean_cost[kind, option]
                pulls = arms.pulls[kind, option] + pending[option]
                index, behind = math.log(pulls), top - (reward - ratio * cost)
                if behind > 0.0 and index < best_index:
                    if cost > 0.0 and ratio > 0.0:
                        index += pulls * positive_evidence(arms, kind, option, ratio, behind, spread)
                    else:
                        index += pulls * gaussian_evidence(arms, kind, option, ratio, behind, spread)
                if index < best_index:
                    best, best_index = Decision(option, reward, cost), index
        return best

    def judge(self, state: State, kind: int, option: int) -> Decision:
        return Decision(option, state.arms.mean_reward[kind, option], state.arms.mean_cost[kind, option])

    def learn(self, state: State, kind: int, made: Decision, reward: float, cost: float, rng: Rng) -> None:
        record_moments(state.arms, kind, made.option, reward, cost)
        other = arrive(state.plug_in, kind)
        refresh(state, kind)
        refresh(state, other)
        settle(state.plug_in)

    def observe(self, state: State, kind: int, option: int, reward: float, cost: float, rng: Rng) -> None:
        record_moments(state.arms, kind, option, reward, cost)
