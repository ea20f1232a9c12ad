"""Ratio-IMED, the default: needs no bounds, no horizon, no noise scale.

Indexed minimum empirical divergence (Honda and Takemura, 2015) on the paper's reward − θ·cost, with θ solved from the
means and arrivals seen so far. docs/policies.md derives it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from worthwhile.decision import NOTHING, Decision, PlugIn, arrive, contribute, new_plug_in, settle
from worthwhile.learning import Moments, new_moments, record_moments
from worthwhile.rng import Rng, uniform
from worthwhile.state import Floats, Indices, Remembered

PRIOR_PULLS = 10.0  # an option's variance starts from its kind's, worth so many pulls
SECOND_LOOK = 7.0  # one pull alone never counts for more evidence than this: e⁷ ≈ 1 100
RELATIVE_FLOOR = 1e-18  # of a squared mean: smaller variances are rounding
CORRELATED = 1.0 - 1e-12  # more than this is rounding, too
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


class Spread(NamedTuple):
    """A kind's variances and covariance, pooled over its options."""

    reward: float
    cost: float
    product: float
    relative_cost: float  # of C/C̄


Standing = tuple[int, float, float, float]  # option, reports, log of what a try costs, evidence against it per pull


def pool(arms: Moments, kind: int, options: Indices, one: float) -> Spread:
    """Pooled over the options on offer; `one` is the weight of a pull now."""
    pulls, _, mean_cost, reward_squares, cost_squares, products = arms
    reward, cost, product, freedom, relative_cost, relative_freedom = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for option in options:
        arm = kind, option
        more = pulls[arm] - one
        if more > 0.0:
            freedom += more
            reward += reward_squares[arm]
            squares, mean = cost_squares[arm], mean_cost[arm]
            cost += squares
            product += products[arm]
            if mean > 0.0:
                relative_freedom += more
                relative_cost += squares / (mean * mean)
    freedom = freedom if freedom > one else one
    relative_freedom = relative_freedom if relative_freedom > one else one
    return Spread(reward / freedom, cost / freedom, product / freedom, relative_cost / relative_freedom)


def evidence(
    pulls: float, reward: float, cost: float, reward_squares: float, cost_squares: float, products: float,
    price: float, behind: float, spread: Spread, positive: bool, one: float,
) -> float:  # fmt: skip
    """Evidence per pull that an option is not the best, though it looks `behind` by z* − z; K in docs/policies.md.

    The option may have a higher reward, a lower cost, or some of both: the least unlikely way counts.
    """
    prior = PRIOR_PULLS * one
    reward_variance = (reward_squares + prior * spread.reward) / pulls
    floor = RELATIVE_FLOOR * (reward * reward + behind * behind)
    reward_variance = reward_variance if reward_variance > floor else floor
    pooled = spread.relative_cost * cost * cost if positive else spread.cost
    cost_variance = (cost_squares + prior * pooled) / pulls
    floor = RELATIVE_FLOOR * cost * cost
    cost_variance = cost_variance if cost_variance > floor else floor
    unit = price * cost
    nu = reward_variance / (unit * unit) if positive and price > 0.0 and unit * unit > 0.0 else 0.0
    if nu > 0.0:
        total = least_gamma_evidence(behind / unit, nu, cost * cost / cost_variance)
    else:  # costs may be negative, or these numbers are too far apart
        covariance = (products + prior * spread.product) / pulls
        total = gaussian_evidence(behind, price, cost, reward_variance, cost_variance, covariance)
    return (pulls + prior) / pulls * total


def gaussian_evidence(
    behind: float, price: float, cost: float, reward_variance: float, cost_variance: float, covariance: float
) -> float:
    """Reward and cost Gaussian, with their covariance; a mean cost cannot fall below 0."""
    variance = reward_variance + price * price * cost_variance - 2.0 * price * covariance  # of R − θC
    if variance <= RELATIVE_FLOOR * behind * behind:
        return math.inf
    saved, most = behind * (price * cost_variance - covariance) / variance, max(cost, 0.0)
    if saved <= most:
        return 0.5 * math.log(1.0 + behind * behind / variance)
    gained, left = behind - price * most, reward_variance * cost_variance
    limit = CORRELATED * math.sqrt(left)
    covariance = max(-limit, min(limit, covariance))
    left -= covariance * covariance
    if left <= 0.0:
        return math.inf
    shift = cost_variance * gained * gained + (2.0 * covariance * gained + reward_variance * most) * most
    return 0.5 * math.log(1.0 + shift / left)


def least_gamma_evidence(delta: float, nu: float, kappa: float) -> float:
    """The least `gamma_evidence` any share y of the cost saved, found among the roots of a cubic.

    It falls at y = 0 and rises at y = δ and near 1, so the least value is at a stationary point in between.
    """
    scale = 1.0 + kappa
    a = (delta + 2.0 + 2.0 * kappa * delta) / scale
    b = (2.0 * delta + 1.0 + kappa * (nu + delta * delta)) / scale
    c = delta / scale
    middle = a / 3.0  # y³ − a y² + b y − c = 0, with y = middle + x
    p = middle * middle - b / 3.0
    q = middle * middle * middle - 0.5 * middle * b + 0.5 * c
    least, square = 0.5 * math.log(1.0 + delta * delta / nu), q * q - p * p * p  # at y = 0
    if not square < 0.0:
        y = middle + cube_root(q, math.sqrt(square), p)
        value = gamma_evidence(0.0 if y < 0.0 else delta if y > delta else y, delta, nu, kappa)
        return value if value < least else least
    size = math.sqrt(p)
    angle = math.acos(max(-1.0, min(1.0, q / (p * size)))) / 3.0
    for turn in range(0, 3, 2):  # the root in the middle is a crest
        y = middle + 2.0 * size * math.cos(angle - 2.0 * math.pi / 3.0 * turn)
        value = gamma_evidence(0.0 if y < 0.0 else delta if y > delta else y, delta, nu, kappa)
        least = value if value < least else least
    return least


def cube_root(q: float, root: float, p: float) -> float:
    """The one real root of x³ − 3p x − 2q = 0 (Cardano), root = √(q² − p³)."""
    cube = abs(q) + root
    if cube == 0.0:
        return 0.0
    part = math.copysign(math.exp(math.log(cube) / 3.0), q)
    return part + p / part


def gamma_evidence(y: float, delta: float, nu: float, kappa: float) -> float:
    """What speaks against a share y of the cost saved and the rest of `behind` made up by the reward.

    Reward: Gaussian of unknown variance. Cost: Gamma of shape κ.
    """
    if y >= 1.0:
        return math.inf
    rest, saved = delta - y, y / (1.0 - y)
    return 0.5 * math.log(1.0 + rest * rest / nu) + kappa * (saved - math.log1p(saved))


@Remembered
def standings(state: State, kind: int, options: Indices) -> list[Standing]:
    """Every option that has reported: what speaks for and against it, apart from the tasks that are running."""
    arms, price, one = state.arms, state.plug_in.price[0], state.weight[0]
    all_pulls, mean_reward, mean_cost, reward_squares, cost_squares, products = arms
    top, worth = -math.inf, 0.0  # z*, and the reward of the option that has it
    for option in options:
        arm = kind, option
        if all_pulls[arm] > 0.0:
            reward = mean_reward[arm]
            score = reward - price * mean_cost[arm]
            if score > top:
                top, worth = score, abs(reward)
    spread, positive = pool(arms, kind, options, one), state.least_cost[0] > 0.0
    rivals, known = math.log(len(options) - 1.0), []
    for option in options:
        arm = kind, option
        pulls = all_pulls[arm]
        if pulls > 0.0:
            reward, cost = mean_reward[arm], mean_cost[arm]
            behind, try_cost, against = top - (reward - price * cost), 0.0, 0.0
            if behind > 0.0:
                tasks = behind / worth if worth > 0.0 else 0.0  # what a pull costs, in tasks of the best option
                try_cost = rivals + 0.5 * math.log(1.0 + tasks * tasks)
                against = evidence(
                    pulls, reward, cost, reward_squares[arm], cost_squares[arm], products[arm],
                    price, behind, spread, positive, one,
                )  # fmt: skip
            known.append((option, pulls / one, try_cost, against))
    return known


def refresh(state: State, kind: int) -> None:
    """Let the kind contribute its best tried option under the current price."""
    pulls, mean_reward, mean_cost, _, _, _ = state.arms
    price = state.plug_in.price[0]
    best_reward, best_cost, best_score = 0.0, 0.0, -math.inf
    for option in range(pulls.shape[1]):
        arm = kind, option
        if pulls[arm] > 0.0:
            reward, cost = mean_reward[arm], mean_cost[arm]
            score = reward - price * cost
            if score > best_score:
                best_reward, best_cost, best_score = reward, cost, score
    contribute(state.plug_in, kind, best_reward, best_cost)


def fade(state: State, half_life: float) -> None:
    """The next report weighs 2^(1/half-life) times as much as this one, by an approximation without powers.

    Once in a while all weights are scaled down.
    """
    arms, plug_in, _, weight = state
    step = 0.5 * LOG_2 / half_life
    weight[0] *= (1.0 + step) / (1.0 - step)
    if weight[0] > HEAVIEST:
        scale = 1.0 / weight[0]
        for kind in range(arms.pulls.shape[0]):
            for option in range(arms.pulls.shape[1]):
                if arms.pulls[kind, option] > 0.0:
                    arms.pulls[kind, option] = max(arms.pulls[kind, option] * scale, LIGHTEST)
                arms.reward_squares[kind, option] *= scale
                arms.cost_squares[kind, option] *= scale
                arms.products[kind, option] *= scale
            if plug_in.arrivals[kind] > 0.0:
                plug_in.arrivals[kind] = max(plug_in.arrivals[kind] * scale, LIGHTEST)
            plug_in.reward[kind] *= scale
            plug_in.cost[kind] *= scale
        plug_in.total_reward[0] *= scale
        plug_in.total_cost[0] *= scale
        weight[0] = 1.0


def start(pulls: Floats, kind: int, options: Indices, pending: Indices, rng: Rng) -> int:
    """The position of the option that must be tried now, each of them once; −1 when done."""
    untried, reported = -1, False
    for place, option in enumerate(options):
        if pulls[kind, option] > 0.0:
            reported = True
        elif pending[option] == 0 and untried < 0:
            untried = place
    if untried >= 0 or reported:
        return untried
    return least_busy(options, pending, rng)


def least_busy(options: Indices, pending: Indices, rng: Rng) -> int:
    """The position of the option with the fewest tasks running, ties at random: all run, and none has reported."""
    fewest, ties, position = math.inf, 0.0, -1
    for place, option in enumerate(options):
        running = pending[option]
        if running < fewest:
            fewest, ties, position = running, 1.0, place
        elif running == fewest:
            ties += 1.0
            if uniform(rng, place) * ties < 1.0:
                position = place
    return position


class RatioImed(NamedTuple):
    """The default. Least evidence against being the best, plus the log of what a try costs; nothing to tune."""

    half_life: float = 0.0  # tasks after which evidence counts half, where things change; 0: it never fades
    caution: float = 1.0  # evidence it takes to leave an option alone; less is quicker, and fails more often

    def init(self, kinds: int, options: int) -> State:
        return State(new_moments(kinds, options), new_plug_in(kinds), np.full(1, math.inf), np.ones(1))

    def choose(self, state: State, kind: int, options: Indices, pending: Indices, rng: Rng) -> Decision:
        all_pulls, mean_reward, mean_cost, _, _, _ = state.arms
        if len(options) == 1:
            option = options[0]
            return Decision(option, mean_reward[kind, option], mean_cost[kind, option])
        known = standings(state, kind, options)
        if len(known) < len(options):
            forced = start(all_pulls, kind, options, pending, rng)
            if forced >= 0:
                option = options[forced]
                return Decision(option, mean_reward[kind, option], mean_cost[kind, option])
        best, best_index = options[0], math.inf
        for option, reported, try_cost, against_pull in known:
            pulls = reported + pending[option]
            against = against_pull * (pulls / self.caution)
            index = math.log(pulls) + try_cost + (min(against, SECOND_LOOK) if reported <= 1.0 else against)
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
