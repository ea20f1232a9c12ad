"""Synthetic worlds: a problem's means with Gaussian, (generalised) Bernoulli, Beta, Gamma or log-normal noise.

Every task has two standard normal latents. A family turns a latent into an observation, rising with it, so that the
same task is lucky or unlucky under every policy, and `correlation` ties reward and cost (exactly for Gaussian noise;
for the others it is the correlation of the normal scores).
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from worthwhile.errors import BadParameter
from worthwhile.problem import FAMILIES, TOSSES, Noise, Problem
from worthwhile.simulation.environments.base import Drift, Environment, cumulative, draw_kinds
from worthwhile.state import Floats, Indices

GAUSSIAN, BERNOULLI, BETA, GAMMA, LOGNORMAL, GENERALISED_BERNOULLI = range(len(FAMILIES))
STEPS = 64  # quantile table: nodes per unit of normal score
REACH = 9  # … from −9 to 9
GRID = 20_001


class Scatter(NamedTuple):
    """How latents become observations: a family, its parameter per (kind, option), and tables if it needs them."""

    family: int
    mean: Floats
    spread: Floats
    table: npt.NDArray[np.int64]  # (kinds, options): row of `quantiles`
    quantiles: Floats  # (tables, nodes): observation / mean at evenly spaced normal scores; or thresholds on the score


def observe_at(scatter: Scatter, kind: int, option: int, score: float) -> float:
    """The observation at a normal score."""
    mean, spread = scatter.mean[kind, option], scatter.spread[kind, option]
    if scatter.family == GAUSSIAN:
        return mean + spread * score  # type: ignore[no-any-return]
    if scatter.family == BERNOULLI:
        return 1.0 if score > -spread else 0.0
    if scatter.family == LOGNORMAL:
        return mean * math.exp(spread * (score - 0.5 * spread))  # type: ignore[no-any-return]
    row = scatter.table[kind, option]
    if scatter.family == GENERALISED_BERNOULLI:
        return wins(scatter.quantiles[row], score) / TOSSES
    place = (max(-REACH + 0.0, min(REACH - 1e-9, score)) + REACH) * STEPS
    node = int(place)
    low, high = scatter.quantiles[row, node], scatter.quantiles[row, node + 1]
    return mean * (low + (high - low) * (place - node))  # type: ignore[no-any-return]


def wins(thresholds: Floats, score: float) -> float:
    """How many of the rising thresholds a score exceeds."""
    count = 0.0
    for threshold in thresholds:
        if score > threshold:
            count += 1.0
    return count


class SyntheticWorld(NamedTuple):
    """Independent tasks around fixed means."""

    shares: Floats
    reward: Scatter
    cost: Scatter
    correlation: float
    rest: float  # √(1 − correlation²)

    def draw(self, generator: np.random.Generator, count: int) -> tuple[Indices, Floats]:
        return draw_kinds(self.shares, generator, count), generator.standard_normal((count, 2))

    def feedback(self, kind: int, option: int, latent: Floats) -> tuple[float, float]:
        score = self.correlation * latent[0] + self.rest * latent[1]
        return observe_at(self.reward, kind, option, latent[0]), observe_at(self.cost, kind, option, score)


class FailingWorld(NamedTuple):
    """Independent tasks around fixed means, some of which fail."""

    shares: Floats
    reward: Scatter
    cost: Scatter
    correlation: float
    rest: float
    failure: Floats  # (kinds, options, 2): the normal score below which a task fails, and c_f/c

    def draw(self, generator: np.random.Generator, count: int) -> tuple[Indices, Floats]:
        return draw_kinds(self.shares, generator, count), generator.standard_normal((count, 3))

    def feedback(self, kind: int, option: int, latent: Floats) -> tuple[float, float]:
        score = self.correlation * latent[0] + self.rest * latent[1]
        cost = observe_at(self.cost, kind, option, score)
        if latent[2] < self.failure[kind, option, 0]:
            return math.nan, cost * self.failure[kind, option, 1]
        return observe_at(self.reward, kind, option, latent[0]), cost


class GaussianWorld(NamedTuple):
    """Independent tasks around fixed means with Gaussian noise: the paper's case, in a quarter of the machine code."""

    shares: Floats
    reward: Floats  # (kinds, options, 2): mean and standard deviation
    cost: Floats
    correlation: float
    rest: float

    def draw(self, generator: np.random.Generator, count: int) -> tuple[Indices, Floats]:
        return draw_kinds(self.shares, generator, count), generator.standard_normal((count, 2))

    def feedback(self, kind: int, option: int, latent: Floats) -> tuple[float, float]:
        score = self.correlation * latent[0] + self.rest * latent[1]
        return (
            self.reward[kind, option, 0] + self.reward[kind, option, 1] * latent[0],
            self.cost[kind, option, 0] + self.cost[kind, option, 1] * score,
        )


def synthetic(problem: Problem) -> Environment:
    """An environment that draws rewards and costs around a problem's means.

    >>> from worthwhile.problem import seven_kinds
    >>> synthetic(seven_kinds()).name
    'seven-kinds'
    """
    offered = problem.offered
    world = SyntheticWorld(
        cumulative(problem.arrival),
        scatter(problem.reward_noise, problem.reward, offered),
        scatter(problem.cost_noise, problem.cost, offered),
        float(problem.correlation),
        math.sqrt(1.0 - problem.correlation**2),
    )
    if problem.can_fail:
        return Environment(problem, FailingWorld(*world, failure_of(problem)))
    if problem.reward_noise.family == problem.cost_noise.family == "gaussian":
        reward, cost = (np.stack([each.mean, each.spread], axis=-1) for each in (world.reward, world.cost))
        return Environment(problem, GaussianWorld(world.shares, reward, cost, world.correlation, world.rest))
    return Environment(problem, world)


def failure_of(problem: Problem) -> Floats:
    """What a `FailingWorld` needs to know of failures; they scatter as successes do, around their own mean cost."""
    rate, cost = problem.failures
    below = np.array([quantile(share) for share in rate.ravel()]).reshape(rate.shape)
    return np.stack([below, np.where(problem.offered, cost / np.where(problem.offered, problem.cost, 1.0), 0.0)], -1)


def scatter(noise: Noise, means: Floats, offered: npt.NDArray[np.bool_]) -> Scatter:
    """Precompute what a family needs."""
    mean = np.where(offered, means, 0.0)
    deviation = np.where(offered, noise.deviation(mean), 0.0)
    relative = np.divide(deviation, np.abs(mean), out=np.zeros_like(mean), where=mean != 0.0)
    family = FAMILIES.index(noise.family)
    spread, table, quantiles = deviation, np.zeros(mean.shape, np.int64), np.ones((1, 2))
    if family == BERNOULLI:
        spread = np.array([quantile(p) for p in mean.ravel()]).reshape(mean.shape)
    elif family == LOGNORMAL:
        spread = np.sqrt(np.log1p(relative**2))
    elif family == GENERALISED_BERNOULLI:
        table = np.arange(mean.size).reshape(mean.shape)
        quantiles = np.stack([binomial_thresholds(chance) for chance in mean.ravel()])
    elif family in (BETA, GAMMA):
        shape = np.stack([relative, mean if family == BETA else np.ones_like(mean)], axis=-1).reshape(-1, 2)
        distinct, rows = np.unique(shape, axis=0, return_inverse=True)
        table = rows.reshape(mean.shape).astype(np.int64)
        quantiles = np.stack([tabulate(family, cv, middle) for cv, middle in distinct])
    return Scatter(family, mean, spread, table, quantiles)


def quantile(p: float) -> float:
    """The standard normal score below which a share p lies."""
    return -math.inf if p <= 0.0 else math.inf if p >= 1.0 else NormalDist().inv_cdf(p)


def binomial_thresholds(chance: float) -> Floats:
    """The normal scores above which a Binomial(TOSSES, chance) number of wins exceeds 0, 1, …"""
    at_most = np.cumsum([math.comb(TOSSES, k) * chance**k * (1.0 - chance) ** (TOSSES - k) for k in range(TOSSES)])
    return np.array([quantile(p) for p in at_most])


def tabulate(family: int, cv: float, mean: float) -> Floats:
    """Observation / mean at evenly spaced normal scores, scaled so that the tabled distribution has exactly mean 1."""
    scores = np.arange(-REACH * STEPS, REACH * STEPS + 1) / STEPS
    if cv == 0.0:
        return np.ones_like(scores)
    if family == GAMMA:
        shape = 1.0 / cv**2
        logs = np.linspace(math.log(shape) - 60.0 / min(shape, 1.0), math.log(shape + 50.0 + 12.0 * shape**0.5), GRID)
        density = shape * logs - np.exp(logs)  # of ln x
        values = np.exp(logs)
    else:
        total = (1.0 - mean) / (mean * cv**2) - 1.0
        ones, zeros = mean * total, (1.0 - mean) * total
        logs = np.linspace(-60.0 / min(ones, 1.0), 60.0 / min(zeros, 1.0), GRID)
        density = -ones * np.logaddexp(0.0, -logs) - zeros * np.logaddexp(0.0, logs)  # of ln(x/(1−x))
        values = 1.0 / (1.0 + np.exp(-logs))
    density = np.exp(density - density.max())
    mass = np.concatenate([[0.0], np.cumsum(density[1:] + density[:-1])])
    normal = NormalDist()
    levels = np.array([normal.cdf(score) if score < 0.0 else 1.0 - normal.cdf(-score) for score in scores])
    quantiles = np.interp(levels, mass / mass[-1], values)
    scaled: Floats = quantiles / mean_of_table(quantiles, scores)
    return scaled


def mean_of_table(quantiles: Floats, scores: Floats) -> float:
    """E q(z) for a piecewise linear q and standard normal z, in closed form."""
    normal = NormalDist()
    below = np.array([normal.cdf(score) for score in scores])
    peak = np.exp(-0.5 * scores**2) / math.sqrt(2.0 * math.pi)
    slope = np.diff(quantiles) * STEPS
    inner = (quantiles[:-1] - slope * scores[:-1]) * np.diff(below) - slope * np.diff(peak)
    return float(inner.sum() + quantiles[0] * below[0] + quantiles[-1] * (1.0 - below[-1]))


def drifting(changes: list[tuple[int, Problem]], steps: int = 1) -> Drift:
    """Problems that follow one another: at once (steps = 1), or each moving to the next in so many equal steps.

    >>> from worthwhile.problem import two_kinds
    >>> [start for start, _ in drifting([(0, two_kinds(0.8)), (5000, two_kinds(0.6))]).stages()]
    [0, 5000]
    """
    if steps < 1:
        raise BadParameter(f"steps = {steps}; a drift needs at least 1")
    given = Drift([(start, synthetic(problem)) for start, problem in changes])  # checks times and names
    stages: list[tuple[int, Environment]] = []
    for (start, old), (end, new) in pairwise(changes):
        count = min(steps, end - start)
        for step in range(count):
            stages.append((start + (end - start) * step // count, synthetic(between(old, new, step / count))))
    return Drift([*stages, given.changes[-1]])


def between(old: Problem, new: Problem, share: float) -> Problem:
    """The problem so far on the way from one to another."""
    arrival = (1.0 - share) * old.arrival + share * new.arrival
    reward = (1.0 - share) * old.reward + share * new.reward
    changed = replace(old, arrival=arrival, reward=reward, cost=(1.0 - share) * old.cost + share * new.cost)
    if not (old.can_fail or new.can_fail):
        return changed
    rate, cost = (
        (1.0 - share) * before + share * after for before, after in zip(old.failures, new.failures, strict=True)
    )
    return replace(changed, failure_rate=rate, failure_cost=np.where(cost > 0.0, cost, changed.cost))
