"""What docs/theory.md proves: upper bounds on the regret of the DOL family, and a lower bound for every policy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from worthwhile.errors import BadParameter
from worthwhile.optimum import bounds_of, solve
from worthwhile.problem import Noise, Problem
from worthwhile.state import Floats

BOUNDED = ("bernoulli", "generalised-bernoulli", "beta")  # from 0 to 1, and so sub-Gaussian with σ = ½
LONGEST = 10**18  # tasks: beyond, √ and log of whole numbers are no use


@dataclass(frozen=True)
class TheoremBound:
    """The paper's theorem with corrected constants, piece by piece."""

    learning_error: float  # Lemma 1
    ratio_error: float  # Σ E V_t, Lemmas 4 and 5
    robbins_monro_gap: float  # Lemma 2
    gap: float
    regret: float
    failure: float  # at most this is the probability that a width fails, and the bound with it; 1: not covered


def theorem_bound(problem: Problem, horizon: int, noise: float = 1.0) -> TheoremBound:
    """An upper bound on Gap(T) and R(T) of DOL-RM with step 1/(c_min √T) and widths of noise·√(log T/N).

    The proof needs noise ≥ 2σ; where that fails, as with the paper's own N(0, 1), `failure` is 1.
    """
    check(problem, horizon, noise)
    r_min, r_max, c_min, c_max, price_min, price_max = bounds_of(problem)
    root, span = math.sqrt(horizon), price_max - price_min
    optimism = optimism_sum(problem, horizon, noise, r_max - r_min)
    optimism += price_max * optimism_sum(problem, horizon, noise, c_max - c_min)
    learning_error = optimism / (horizon * c_min)
    ratio_error = root * (span**2 / 4.0 + drift_constant(problem) / (2.0 * c_min**2)) + span * optimism / (2.0 * c_min)
    robbins_monro_gap = max(
        learning_error, (c_max - c_min) / (horizon * c_min) * math.sqrt(2.0 * horizon * ratio_error)
    )
    total = learning_error + robbins_monro_gap
    failure = width_failure(problem, horizon, noise)
    return TheoremBound(learning_error, ratio_error, robbins_monro_gap, total, horizon * total, failure)


def check(problem: Problem, horizon: int, noise: float) -> None:
    """Refuse what no proof here covers."""
    if isinstance(horizon, bool) or not isinstance(horizon, int | np.integer) or not 2 <= horizon <= LONGEST:
        raise BadParameter(f"horizon = {horizon}; the bound needs at least 2 tasks, a whole number up to 10^18")
    if not (math.isfinite(noise) and noise > 0.0):
        raise BadParameter(f"noise = {noise}; it multiplies the widths and must be above 0 and finite")
    r_min = bounds_of(problem).reward_min
    if r_min < 0.0:
        raise BadParameter(f"a mean reward of {r_min:g}; the proof needs rewards of 0 or more (θ ≥ 0): shift them")
    sub_gaussian(problem)


def sub_gaussian(problem: Problem) -> float:
    """σ: the largest sub-Gaussian parameter of all rewards and costs; refuses noise that has none."""
    means = {"reward": problem.reward, "cost": problem.cost}
    noises = {"reward": problem.reward_noise, "cost": problem.cost_noise}
    return max(parameter(noises[name], means[name][problem.offered], name) for name in means)


def parameter(noise: Noise, means: Floats, name: str) -> float:
    """The sub-Gaussian parameter of one noise at its means."""
    if noise.family in BOUNDED:
        return 0.5
    if noise.family != "gaussian":
        raise BadParameter(
            f"{noise.family} {name}s are not sub-Gaussian: no width of the form √(log T/N) holds for them, and so the "
            "theorem does not; cap them, or count their logarithm"
        )
    return float(noise.deviation(means).max())


def width_failure(problem: Problem, horizon: int, noise: float) -> float:
    """At most this is the probability that any of M·T means of rewards or costs ever leaves its width; at most 1."""
    sigma, pairs = sub_gaussian(problem), int(problem.offered.sum())
    if sigma == 0.0:
        return 0.0
    exponent = 1.0 - noise**2 / (2.0 * sigma**2)
    return float(min(1.0, 4.0 * pairs * math.exp(exponent * math.log(horizon))))


def optimism_sum(problem: Problem, horizon: int, noise: float, spread: float) -> float:
    """B ≥ Σ(r̂ − r), and ≥ Σ(c − č): two widths per task; a first pull errs by the spread of the means instead."""
    pairs, log = int(problem.offered.sum()), math.log(horizon)
    first = max(0.0, spread - 2.0 * noise * math.sqrt(log))
    return 4.0 * noise * math.sqrt(pairs * horizon * log) + pairs * first


def drift_constant(problem: Problem) -> float:
    """b ≥ ½E(r̂ − θč)², of Lemma 4."""
    r_min, r_max, c_min, c_max, price_min, price_max = bounds_of(problem)
    return 0.5 * max(r_max - price_min * c_min, price_max * c_max - r_min) ** 2


class RegretBounds(NamedTuple):
    """Upper bounds on R(T) = T·Gap(T): theorems 1, 2 and 3 of docs/theory.md."""

    dol_rm: float  # step 1/(c_min √T): of order T^¾
    dol_rm_anytime: float  # step 1/(c_min (t+1)): of order √(M T) log T
    solved_dol: float  # θ solved exactly: of order √(M T log T)
    failure: float  # as in TheoremBound


def regret_bounds(problem: Problem, horizon: int, noise: float = 1.0) -> RegretBounds:
    """Sharper bounds than the paper's: R(T) ≤ (Σ optimism + (c_max − c_min) Σ E|θ_t − θ*|)/c_min."""
    check(problem, horizon, noise)
    r_min, r_max, c_min, c_max, price_min, _ = bounds_of(problem)
    best, log = solve(problem).ratio, math.log(horizon)
    optimism = optimism_sum(problem, horizon, noise, r_max - r_min)
    optimism += best * optimism_sum(problem, horizon, noise, c_max - c_min)
    start, drift = 0.5 * (best - price_min) ** 2, drift_constant(problem) / c_min**2
    squares = squared_optimism_sum(problem, horizon, noise) / (2.0 * c_min**2)
    fixed_step = math.sqrt(2.0 * horizon * (math.sqrt(horizon) * (start + drift) + squares))
    falling_step = 2.0 * math.sqrt(2.0 * horizon * (start + drift * log + squares))
    distances = fixed_step, falling_step, solved_distance(problem, horizon, optimism)
    fixed, falling, solved = ((optimism + (c_max - c_min) * distance) / c_min for distance in distances)
    solved += int(problem.offered.sum()) * largest_error(problem) / c_min  # every option once, whatever it costs
    return RegretBounds(fixed, falling, solved, width_failure(problem, horizon, noise))


def largest_error(problem: Problem) -> float:
    """w_max = (r_max − r_min) + θ*(c_max − c_min): no optimism and no gap is larger."""
    r_min, r_max, c_min, c_max, _, _ = bounds_of(problem)
    return (r_max - r_min) + solve(problem).ratio * (c_max - c_min)


def squared_optimism_sum(problem: Problem, horizon: int, noise: float) -> float:
    """W ≥ Σ E w², w = (r̂ − r) + θ*(c − č): w_max at a pair's first pull, then at most 2 (1 + θ*) widths."""
    pairs, log, best = int(problem.offered.sum()), math.log(horizon), solve(problem).ratio
    return pairs * (largest_error(problem) ** 2 + 4.0 * noise**2 * (1.0 + best) ** 2 * log * (1.0 + log))


def solved_distance(problem: Problem, horizon: int, optimism: float) -> float:
    """Σ E|θ_t − θ*| of solved-dol: by the chance of arrivals, by optimism, and by options that are not tried yet."""
    c_min, best, error = bounds_of(problem).cost_min, solve(problem), largest_error(problem)
    pairs, kinds, root = int(problem.offered.sum()), len(problem.kinds), math.sqrt(horizon)
    tops = (problem.reward - best.ratio * problem.cost)[np.arange(kinds), best.best]  # z*
    spread = math.sqrt(float(problem.arrival @ tops**2))
    chance, untried = root * (2.0 * spread + error * math.sqrt(kinds)), pairs * error * (2.0 + math.log(horizon))
    return best.ratio + (chance + optimism + untried) / c_min


def lower_bound(problem: Problem) -> float:
    """The pseudo-regret per ln T that no policy can stay below which is consistent on all problems with this noise.

    Σ gap/KL over all options that are not optimal: KL is the least information that tells the option from one with
    other means that would be optimal. Gaussian noise only.

    >>> from worthwhile.problem import two_kinds
    >>> round(lower_bound(two_kinds(0.8)), 1), round(lower_bound(two_kinds(0.6)), 1)
    (25.9, 58.4)
    """
    reward_sd, cost_sd = (gaussian_sd(noise) for noise in (problem.reward_noise, problem.cost_noise))
    if problem.can_fail:
        raise BadParameter("options that fail: the lower bound is worked out for tasks that are always completed")
    best = solve(problem)
    arrives = np.broadcast_to((problem.arrival > 0.0)[:, None], problem.offered.shape)
    worse = problem.offered & arrives & (best.gaps > 1e-12 * (1.0 + abs(best.ratio)))
    return math.fsum(
        gap / information(gap, cost, best.ratio, reward_sd, cost_sd, problem.correlation)
        for gap, cost in zip(best.gaps[worse].tolist(), problem.cost[worse].tolist(), strict=True)
    )


def gaussian_sd(noise: Noise) -> float:
    """The standard deviation of Gaussian noise that is the same at every mean; refuses other noise."""
    if noise.family != "gaussian" or noise.cv is not None or noise.sd == 0.0:
        given = f"{noise.family} noise, sd {noise.sd}, cv {noise.cv}"
        raise BadParameter(f"{given}; the lower bound is worked out for Gaussian noise with a positive sd")
    return 1.0 if noise.sd is None else noise.sd


def information(gap: float, cost: float, price: float, reward_sd: float, cost_sd: float, correlation: float) -> float:
    """The least Kullback–Leibler divergence to means with r − θ*c larger by the gap and a cost above 0.

    It is a parabola in the change of cost x ≥ −c, the reward's change being gap + θ*x.
    """
    rest = 1.0 - correlation**2
    if rest <= 0.0:
        raise BadParameter(f"correlation = {correlation:g}; the lower bound needs one between −1 and 1, without them")

    def divergence(x: float) -> float:
        u, v = (gap + price * x) / reward_sd, x / cost_sd
        return (u * u - 2.0 * correlation * u * v + v * v) / (2.0 * rest)

    slope, curve = price / reward_sd, 1.0 / cost_sd
    lowest = -(gap / reward_sd) * (slope - correlation * curve)
    lowest /= slope * slope - 2.0 * correlation * slope * curve + curve * curve
    return divergence(max(lowest, -cost))
