"""Ratio-IMED, the default: needs no bounds, no horizon, no noise scale.

Indexed minimum empirical divergence (Honda and Takemura, 2015) on the paper's reward − θ·cost, with θ solved from the
means and arrivals seen so far. docs/policies.md derives it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from worthwhile.coins import Rng, uniform
from worthwhile.decision import NOTHING, Decision, PlugIn, arrive, contribute, new_plug_in, settle
from worthwhile.learning import Moments, new_moments, record_moments
from worthwhile.state import Floats, Indices

PRIOR_PULLS = 10.0  # an option's variance starts from its kind's, worth so many pulls
FORCED_REPEATS = 3.0  # second pulls of a kind that are made whatever the first ones said
RELATIVE_FLOOR = 1e-18  # of a squared mean: smaller variances are rounding


class State(NamedTuple):
    """Means and second moments of every (kind, option), the plug-in ratio, and the least cost ever seen."""

    arms: Moments
    plug_in: PlugIn
    least_cost: Floats  # (1,)


class Spread(NamedTuple):
    """A kind's variances, pooled over its options."""

    gap: float  # of R − θC
    reward: float
    cost: float
    relative_cost: float  # of C/C̄


def gap_squares(arms: Moments, kind: int, option: int, ratio: float) -> float:
    """Σ (Z − Z̄)² of Z = R − θC."""
    squares = arms.reward_squares[kind, option] + ratio * ratio * arms.cost_squares[kind, option]
    return max(0.0, squares - 2.0 * ratio * arms.products[kind, option])  # type: ignore[no-any-return]


def pool(arms: Moments, kind: int, options: Indices, ratio: float) -> Spread:
    """Pooled variances of the options on offer."""
    gap, reward, cost, freedom, relative_cost, relative_freedom = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for option in options:
        more = arms.pulls[kind, option] - 1.0
        if more > 0.0:
            freedom += more
            gap += gap_squares(arms, kind, option, ratio)
            reward += arms.reward_squares[kind, option]
            cost += arms.cost_squares[kind, option]
            mean = arms.mean_cost[kind, option]
            if mean > 0.0:
                relative_freedom += more
                relative_cost += arms.cost_squares[kind, option] / (mean * mean)
    freedom, relative_freedom = max(freedom, 1.0), max(relative_freedom, 1.0)
    return Spread(gap / freedom, reward / freedom, cost / freedom, relative_cost / relative_freedom)


def evidence(
    arms: Moments, kind: int, option: int, ratio: float, behind: float, spread: Spread, positive: bool
) -> float:
    """Evidence per pull that this option is not the best, though it looks `behind` by z* − z; K in docs/policies.md.

    The option may have a higher reward, a lower cost, or some of both: the least unlikely way counts.
    """
    pulls, cost = arms.pulls[kind, option], arms.mean_cost[kind, option]
    trust: float = (pulls + PRIOR_PULLS) / pulls
    if cost <= 0.0 or ratio <= 0.0:
        variance: float = (gap_squares(arms, kind, option, ratio) + PRIOR_PULLS * spread.gap) / pulls
        total = math.log(1.0 + behind * behind / variance) if variance > 0.0 else math.inf
        return 0.5 * trust * total
    reward = arms.mean_reward[kind, option]
    reward_variance = (arms.reward_squares[kind, option] + PRIOR_PULLS * spread.reward) / pulls
    reward_variance = max(reward_variance, RELATIVE_FLOOR * (reward * reward + behind * behind))
    pooled = spread.relative_cost * cost * cost if positive else spread.cost
    cost_variance = (arms.cost_squares[kind, option] + PRIOR_PULLS * pooled) / (pulls * cost * cost)
    unit = ratio * cost
    delta, nu, kappa = behind / unit, reward_variance / (unit * unit), 1.0 / max(cost_variance, RELATIVE_FLOOR)
    return trust * least_evidence(delta, nu, kappa, positive)


def least_evidence(delta: float, nu: float, kappa: float, positive: bool) -> float:
    """The least `evidence_at` any share y of the cost saved; its stationary points are the roots of a cubic."""
    if positive:
        scale = 1.0 + kappa
        a = (delta + 2.0 + 2.0 * kappa * delta) / scale
        b = (2.0 * delta + 1.0 + kappa * (nu + delta * delta)) / scale
        c = delta / scale
    else:
        a, b, c = 1.5 * delta, 0.5 * (nu + delta * delta + 1.0 / kappa), 0.5 * delta / kappa
    middle = a / 3.0  # y³ − a y² + b y − c = 0, with y = middle + x
    p = middle * middle - b / 3.0
    q = middle * middle * middle - 0.5 * middle * b + 0.5 * c
    least = min(evidence_at(0.0, delta, nu, kappa, positive), evidence_at(min(delta, 1.0), delta, nu, kappa, positive))
    square = q * q - p * p * p
    roots = 1 if square >= 0.0 else 3
    size = math.sqrt(max(p, 0.0))
    angle = 0.0 if roots == 1 else math.acos(max(-1.0, min(1.0, q / (p * size)))) / 3.0
    for turn in range(roots):
        if roots == 1:
            x = cube_root(q, math.sqrt(square), p)
        else:
            x = 2.0 * size * math.cos(angle - 2.0 * math.pi / 3.0 * turn)
        least = min(least, evidence_at(middle + x, delta, nu, kappa, positive))
    return least


def cube_root(q: float, root: float, p: float) -> float:
    """The one real root of x³ − 3p x − 2q = 0 (Cardano), root = √(q² − p³)."""
    cube = abs(q) + root
    if cube == 0.0:
        return 0.0
    part = math.copysign(math.exp(math.log(cube) / 3.0), q)
    return part + p / part


def evidence_at(y: float, delta: float, nu: float, kappa: float, positive: bool) -> float:
    """What speaks against a share y of the cost saved and the rest of `behind` made up by the reward.

    Reward: Gaussian with unknown variance. Cost: Gamma of shape κ where all costs are positive, else Gaussian too.
    """
    if y < 0.0 or y > delta or y > 1.0 or (positive and y == 1.0):
        return math.inf
    rest = delta - y
    for_reward = 0.5 * math.log(1.0 + rest * rest / nu)
    if positive:
        return for_reward + kappa * (math.log(1.0 - y) + y / (1.0 - y))
    return for_reward + 0.5 * math.log(1.0 + kappa * y * y)


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
        return State(new_moments(kinds, options), new_plug_in(kinds), np.full(1, math.inf))

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
        spread, positive = pool(arms, kind, options, ratio), state.least_cost[0] > 0.0
        best, best_index = NOTHING, math.inf
        for option in options:
            if arms.pulls[kind, option] > 0.0:
                reward, cost = arms.mean_reward[kind, option], arms.mean_cost[kind, option]
                pulls = arms.pulls[kind, option] + pending[option]
                index, behind = math.log(pulls), top - (reward - ratio * cost)
                if behind > 0.0 and index < best_index:
                    index += pulls * evidence(arms, kind, option, ratio, behind, spread, positive)
                if index < best_index:
                    best, best_index = Decision(option, reward, cost), index
        return best

    def judge(self, state: State, kind: int, option: int) -> Decision:
        return Decision(option, state.arms.mean_reward[kind, option], state.arms.mean_cost[kind, option])

    def learn(self, state: State, kind: int, made: Decision, reward: float, cost: float, rng: Rng) -> None:
        record_moments(state.arms, kind, made.option, reward, cost)
        state.least_cost[0] = min(state.least_cost[0], cost)
        other = arrive(state.plug_in, kind)
        refresh(state, kind)
        refresh(state, other)
        settle(state.plug_in)

    def observe(self, state: State, kind: int, option: int, reward: float, cost: float, rng: Rng) -> None:
        record_moments(state.arms, kind, option, reward, cost)
        state.least_cost[0] = min(state.least_cost[0], cost)
