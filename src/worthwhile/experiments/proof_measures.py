"""The quantities that the lemmas bound, measured as they are stated: from sums over tasks and from θ at the marks."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from worthwhile.experiments.growth import Statistic, resampled
from worthwhile.optimum import bounds_of
from worthwhile.problem import Problem
from worthwhile.simulation.results import Results
from worthwhile.state import Floats
from worthwhile.theory import theorem_bound

REWARD_EXCESS, COST_EXCESS, REWARD, COST, COST_ESTIMATE, REGRET, SUMS = range(7)  # columns of a sample
ORDERS = {
    "gap": -0.25,
    "epsilon": -0.5,
    "kappa": -0.5,
    "learning_error": -0.5,
    "robbins_monro_gap": -0.25,
    "distance_sum": 0.75,
    "lyapunov_sum": 0.5,
}  # the paper's, as powers of T
HIDDEN_LOGS = {"epsilon": 0.5, "kappa": 0.5, "learning_error": 0.5}  # powers of log T that the paper's orders leave out


def sample_of(results: Results, policy: str) -> Floats:
    """(runs, columns): Σ(r̂−r), Σ(c−č), Σr, Σc, Σč and pseudo-regret of a run, then (θ−θ*)² at `times`."""
    column = results.policies.index(policy)
    names = ("expected_reward", "expected_cost", "estimated_reward", "estimated_cost", "regret")
    reward, cost, reward_estimate, cost_estimate, regret = (results.measure(name)[:, column, -1] for name in names)
    sums = np.stack([reward_estimate - reward, cost - cost_estimate, reward, cost, cost_estimate, regret], axis=-1)
    return np.concatenate([sums, (prices(results, policy) - results.best.ratio) ** 2], axis=-1)


def times(results: Results) -> Floats:
    """Before the first task, and at the marks."""
    return np.concatenate([[0.0], results.marks])


def prices(results: Results, policy: str) -> Floats:
    """(runs, times): θ, which starts at θ_min."""
    price = results.measure("price")[:, results.policies.index(policy)]
    return np.concatenate([np.full((len(price), 1), bounds_of(results.problem).price_min), price], axis=-1)


def mean_and_spread(values: Floats) -> tuple[Floats, Floats]:
    """Over runs, the first axis."""
    return values.mean(axis=0), values.std(axis=0)


def integral(at: Floats, values: Floats) -> Floats:
    """Of a curve known at some times, straight in between: the sum over all tasks, but for that."""
    area: Floats = 0.5 * (values[..., 1:] + values[..., :-1]) @ np.diff(at)
    return area


def statistics(results: Results) -> dict[str, Statistic]:
    """What the lemmas bound, from means over runs of a sample's columns."""
    best, at = results.best.ratio, times(results)
    return {
        "gap": lambda mean: mean[..., REGRET] / mean[..., COST],  # |θ* − Σr/Σc|, with E[θ*·Σc − Σr] = pseudo-regret
        "epsilon": lambda mean: np.abs(mean[..., REWARD_EXCESS]) / mean[..., COST_ESTIMATE],  # |Σr̂/Σč − Σr/Σč|
        "kappa": lambda mean: np.abs(cost_part(mean)) / mean[..., COST_ESTIMATE],  # |Σr/Σč − Σr/Σc|
        "learning_error": lambda mean: (  # |Σr̂/Σč − Σr/Σc|
            np.abs(mean[..., REWARD_EXCESS] + cost_part(mean)) / mean[..., COST_ESTIMATE]
        ),
        "robbins_monro_gap": lambda mean: (  # |θ* − Σr̂/Σč|, with pseudo-regret as above
            np.abs(mean[..., REWARD_EXCESS] + best * mean[..., COST_EXCESS] - mean[..., REGRET])
            / mean[..., COST_ESTIMATE]
        ),
        "distance_sum": lambda mean: integral(at, np.sqrt(mean[..., SUMS:])),  # Σ√E(θ−θ*)²
        "lyapunov_sum": lambda mean: integral(at, 0.5 * mean[..., SUMS:]),  # Σ E V, V = ½(θ−θ*)²
        "last_distance": lambda mean: np.sqrt(mean[..., -1]),  # √E(θ−θ*)² after the last task
    }


def without_log(results: Results, name: str) -> Statistic:
    """A statistic divided by the power of log T that the paper's order leaves out."""
    statistic, hidden = statistics(results)[name], math.log(results.marks[-1]) ** HIDDEN_LOGS.get(name, 0.0)
    return lambda mean: statistic(mean) / hidden


def cost_part(mean: Floats) -> Floats:
    """Σr/Σc·Σ(c−č): how much of the learning error costs make."""
    part: Floats = mean[..., REWARD] / mean[..., COST] * mean[..., COST_EXCESS]
    return part


def bounds(problem: Problem, tasks: int) -> dict[str, float]:
    """The explicit bound of each quantity, with the corrected constants."""
    whole, price_max = theorem_bound(problem, tasks), bounds_of(problem).price_max
    return {
        "gap": whole.gap,
        "epsilon": whole.learning_error / (1.0 + price_max),
        "kappa": whole.learning_error * price_max / (1.0 + price_max),
        "learning_error": whole.learning_error,
        "robbins_monro_gap": whole.robbins_monro_gap,
        "distance_sum": math.sqrt(2.0 * tasks * whole.ratio_error),
        "lyapunov_sum": whole.ratio_error,
    }


class Term(NamedTuple):
    """One quantity of the proof, of one policy on one problem at one T."""

    problem: str
    policy: str
    tasks: int
    runs: int
    quantity: str
    value: float
    error: float
    bound: float  # for dol-rm


def terms(problem: str, results: Results, policy: str, seed: int) -> list[Term]:
    """All quantities, with standard errors from resampled runs."""
    sample, tasks = sample_of(results, policy), int(results.marks[-1])
    mean, again = sample.mean(axis=0), resampled(sample, np.random.default_rng(seed))
    measured, limits = statistics(results), bounds(results.problem, tasks)
    values = {name: (float(measured[name](mean)), float(measured[name](again).std(ddof=1))) for name in ORDERS}
    return [Term(problem, policy, tasks, len(sample), name, *value, limits[name]) for name, value in values.items()]
