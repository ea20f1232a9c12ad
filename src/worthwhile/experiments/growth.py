"""How fast regret and errors grow with the number of tasks: a fitted power of T, with its error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from worthwhile.optimum import gap
from worthwhile.simulation.results import Results
from worthwhile.state import Floats
from worthwhile.theory import theorem_bound

RESAMPLES = 200
Statistic = Callable[[Floats], Floats]  # (…, columns) means over runs → (…) one positive number


class Power(NamedTuple):
    """The exponent of T that fits best, and its standard error."""

    exponent: float
    error: float

    def at_most(self, order: float) -> bool:
        """Whether it is no larger, but for two standard errors."""
        return self.exponent <= order + 2.0 * self.error

    def __str__(self) -> str:
        return f"{self.exponent:.3f} ± {self.error:.3f}"


def fitted_power(tasks: Sequence[int], samples: Sequence[Floats], statistics: Sequence[Statistic], seed: int) -> Power:
    """The power of T in a statistic of means over runs: per T a sample (runs, columns), whose runs are resampled."""
    rng, pairs = np.random.default_rng(seed), list(zip(samples, statistics, strict=True))
    exact = np.stack([statistic(sample.mean(axis=0)) for sample, statistic in pairs])
    again = np.stack([statistic(resampled(sample, rng)) for sample, statistic in pairs], axis=-1)
    return Power(float(slope(tasks, exact)), float(slope(tasks, again).std(ddof=1)))


def slope(tasks: Sequence[int], values: Floats) -> Floats:
    """Of log value on log tasks, by least squares; values are (…, tasks)."""
    steps = np.log(tasks)
    steps = steps - steps.mean()
    exponents: Floats = np.log(values) @ steps / (steps @ steps)
    return exponents


def resampled(sample: Floats, rng: np.random.Generator) -> Floats:
    """(resamples, columns): means over runs drawn with replacement."""
    runs = len(sample)
    weights = rng.multinomial(runs, np.full(runs, 1.0 / runs), size=RESAMPLES) / runs
    means: Floats = weights @ sample
    return means


class Regret(NamedTuple):
    """Gap and regret of one policy on one problem at one T."""

    problem: str
    policy: str
    tasks: int
    runs: int
    gap: float  # |θ* − E ΣR / E ΣC|, as the paper defines it
    gap_error: float
    regret: float  # T·Gap(T) by pseudo-regret, see `regret_sample`
    regret_error: float
    pseudo_regret: float
    pseudo_regret_error: float
    bound: float  # on the regret of dol-rm


def regrets(name: str, results: Results) -> list[Regret]:
    """One row per policy, at the last task."""
    tasks, runs = int(results.marks[-1]), len(results.runs)
    bound = theorem_bound(results.problem, tasks).regret
    rows = []
    for column, policy in enumerate(results.policies):
        reward, cost = (results.measure(sums)[:, column, -1] for sums in ("expected_reward", "expected_cost"))
        sample = regret_sample(results, policy)
        pseudo = quotient(sample[:, 0] / tasks, np.ones(runs))
        direct = float(gap(results.best.ratio, reward, cost)), quotient(reward, cost)[1]
        rows.append(Regret(name, policy, tasks, runs, *direct, *quotient(*sample.T), *pseudo, bound))
    return rows


def regret_sample(results: Results, policy: str) -> Floats:
    """(runs, 2): T × pseudo-regret, and cost.

    The quotient of their means is R(T), because E[θ*·ΣC − ΣR] is the mean pseudo-regret; but it is free of the chance
    in arrivals, which hides a gap near 0.
    """
    column = results.policies.index(policy)
    regret, cost = (results.measure(sums)[:, column, -1] for sums in ("regret", "expected_cost"))
    return np.stack([results.marks[-1] * regret, cost], axis=-1)


def regret_from(mean: Floats) -> Floats:
    """R(T) from the means of a `regret_sample`."""
    regret: Floats = mean[..., 0] / mean[..., 1]
    return regret


def quotient(over: Floats, under: Floats) -> tuple[float, float]:
    """A ratio of means over runs, and its standard error."""
    ratio = over.mean() / under.mean()
    return float(ratio), float((over - ratio * under).std(ddof=1) / under.mean() / np.sqrt(len(over)))
