"""How much speaks against an option that looks worse than the best: K, as docs/policies.md derives it."""

from __future__ import annotations

import math
from typing import NamedTuple

from worthwhile.learning import Moments
from worthwhile.state import Indices

PRIOR_PULLS = 10.0  # n₀: an option's variances start from V, its kind's, worth so many pulls
UNLIKE = 4.0  # from so many times its kind's variance on, an option's own variance takes the prior's pulls away
RELATIVE_FLOOR = 1e-18  # of a squared mean: smaller variances are rounding
CORRELATED = 1.0 - 1e-12  # more than this is rounding, too


class Pool(NamedTuple):
    """What the options of a kind share: the price θ, and their pooled variances and covariance V."""

    price: float
    weight: float  # of one report now; sums of weights stand for numbers of pulls
    positive_costs: bool  # every cost seen so far, of any kind
    reward: float
    cost: float
    product: float
    relative_cost: float  # of C/C̄


def pool(arms: Moments, kind: int, options: Indices, price: float, weight: float, positive_costs: bool) -> Pool:
    """The options on offer, pooled; one that has reported once knows nothing of variances."""
    pulls, _, mean_cost, reward_squares, cost_squares, products = arms
    reward, cost, product, freedom, relative_cost, relative_freedom = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for option in options:
        arm = kind, option
        more = pulls[arm] - weight
        if more > 0.0:
            freedom += more
            reward += reward_squares[arm]
            squares, mean = cost_squares[arm], mean_cost[arm]
            cost += squares
            product += products[arm]
            if mean > 0.0:
                relative_freedom += more
                relative_cost += squares / (mean * mean)
    freedom = freedom if freedom > weight else weight
    relative_freedom = relative_freedom if relative_freedom > weight else weight
    relative_cost /= relative_freedom
    return Pool(price, weight, positive_costs, reward / freedom, cost / freedom, product / freedom, relative_cost)


def evidence(arms: Moments, arm: tuple[int, int], behind: float, pooled: Pool, failure_variance: float = 0.0) -> float:
    """K: the evidence per pull that an option is not the best, though it looks `behind` by d = z* − z.

    The option may have a higher reward, a lower cost, or some of both: the least unlikely way counts. An option that
    fails now and then has costs that vary more than those of its kind, by `failure_variance`.
    """
    all_pulls, mean_reward, mean_cost, reward_squares, cost_squares, products = arms
    price, weight, positive_costs, pooled_reward, pooled_cost, pooled_product, relative_cost = pooled
    pulls, reward, cost = all_pulls[arm], mean_reward[arm], mean_cost[arm]
    pooled_cost = (relative_cost * cost * cost if positive_costs else pooled_cost) + failure_variance
    squared_reward, squared_cost = reward_squares[arm], cost_squares[arm]  # SS
    prior, freedom = PRIOR_PULLS * weight, UNLIKE * (pulls - weight)  # n₀
    if freedom > 0.0:  # an option that is far noisier than its kind is judged by itself
        if squared_reward > freedom * pooled_reward:
            prior *= freedom * pooled_reward / squared_reward
        if squared_cost > freedom * pooled_cost:
            prior *= freedom * pooled_cost / squared_cost
    reward_variance = (squared_reward + prior * pooled_reward) / pulls  # (SS + n₀V)/n
    floor = RELATIVE_FLOOR * (reward * reward + behind * behind)
    reward_variance = reward_variance if reward_variance > floor else floor
    cost_variance = (squared_cost + prior * pooled_cost) / pulls
    floor = RELATIVE_FLOOR * cost * cost
    cost_variance = cost_variance if cost_variance > floor else floor
    unit = price * cost  # θC̄
    nu = reward_variance / (unit * unit) if positive_costs and price > 0.0 and unit * unit > 0.0 else 0.0
    if nu > 0.0:
        total = least_gamma_evidence(behind / unit, nu, cost * cost / cost_variance)
    else:  # costs may be negative, or these numbers are too far apart
        covariance = (products[arm] + prior * pooled_product) / pulls
        total = gaussian_evidence(behind, price, cost, reward_variance, cost_variance, covariance)
    per_pull: float = (pulls + prior) / pulls * total  # (n + n₀)/n
    return per_pull


def gaussian_evidence(
    behind: float, price: float, cost: float, reward_variance: float, cost_variance: float, covariance: float
) -> float:
    """Reward and cost Gaussian, with their covariance; a mean cost cannot fall below 0."""
    variance = reward_variance + price * price * cost_variance - 2.0 * price * covariance  # v = Var(R − θC)
    if variance <= RELATIVE_FLOOR * behind * behind:
        return math.inf
    saved, most = behind * (price * cost_variance - covariance) / variance, max(cost, 0.0)
    if saved <= most:  # the cost need not fall below 0
        return 0.5 * math.log(1.0 + behind * behind / variance)
    gained, determinant = behind - price * most, reward_variance * cost_variance
    limit = CORRELATED * math.sqrt(determinant)
    covariance = max(-limit, min(limit, covariance))
    determinant -= covariance * covariance  # of Σ
    if determinant <= 0.0:
        return math.inf
    shift = cost_variance * gained * gained + (2.0 * covariance * gained + reward_variance * most) * most
    return 0.5 * math.log(1.0 + shift / determinant)  # s′Σ⁻¹s, s = (gained, −most)


def least_gamma_evidence(delta: float, nu: float, kappa: float) -> float:
    """The least `gamma_evidence` for any share y of the cost saved, found among the roots of a cubic.

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
    root = math.sqrt(p)
    angle = math.acos(max(-1.0, min(1.0, q / (p * root)))) / 3.0
    for turn in range(0, 3, 2):  # the root in the middle is a crest
        y = middle + 2.0 * root * math.cos(angle - 2.0 * math.pi / 3.0 * turn)
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
    """k(δ − y) + κ(u − ln(1 + u)): a share y of the cost is saved, the reward makes up the rest of d.

    Reward: Gaussian of unknown variance ν. Cost: Gamma of shape κ.
    """
    if y >= 1.0:
        return math.inf
    rest, u = delta - y, y / (1.0 - y)
    return 0.5 * math.log(1.0 + rest * rest / nu) + kappa * (u - math.log1p(u))
