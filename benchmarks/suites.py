"""The arena's problems: one row per suite, every problem drawn from a seed.

Rows of random problems have two halves: seeds to develop a policy on, and seeds to report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from recorded import TABLES, recorded, shuffled
from worthwhile import Environment, Problem, random_problem, seven_kinds, two_kinds
from worthwhile.experiments.omega_benchmark import NOISES, world
from worthwhile.experiments.sizes import problem_of
from worthwhile.problem import Noise
from worthwhile.random_problems import FAMILIES
from worthwhile.simulation.environments.synthetic import synthetic

PROBLEMS = 30  # of a random row
REPORT, DEVELOP, APART = 0, 10_000, 20_000  # the first seed of each half, and of the same half with another --seed
FEW = 6  # problems of a row whose every run is slow
NEAR = 0.02  # how far apart the options of a kind are in a near-tie


class Row(NamedTuple):
    """Worlds of one sort: a fixed one to run many times, or many random ones."""

    name: str
    worlds: tuple[Environment, ...]
    delay: int = 0
    told: str = ""  # what rivals with a range are told besides the truth about the means

    @property
    def one_kind(self) -> bool:
        return len(self.worlds[0].problem.kinds) == 1


def rows(first: int, tables: Path | None) -> Iterator[Row]:
    """All rows, in the order of the table."""
    for problem in (two_kinds(0.8), two_kinds(0.6), seven_kinds()):
        yield Row(f"paper {problem.name}", (synthetic(problem),))
    for family in FAMILIES:
        yield random_row(family, lambda seed, family=family: random_problem(family, seed), first)
    for noise in NOISES:
        for options in (10, 50):
            worlds = tuple(world(noise, options, first + seed) for seed in range(PROBLEMS))
            yield Row(f"{noise}, {options} options", worlds, told="reward_max=1,cost_max=1")
    for cv in (1.0, 3.0):
        yield random_row(f"costs with cv {cv:g}", lambda seed, cv=cv: heavy(seed, cv), first)
    yield random_row("costs that never vary", lambda seed: fixed_costs(random_problem("unit", seed)), first)
    for correlation in (-0.9, -0.5, 0.5, 0.9):
        yield random_row(f"correlation {correlation:g}", lambda seed, c=correlation: correlated(seed, c), first)
    yield random_row("1 000 kinds", lambda seed: problem_of("kinds", 1000, seed), first, FEW)
    yield random_row("100 options", lambda seed: problem_of("options", 100, seed), first)
    yield random_row("near-ties", near_ties, first)
    yield random_row("no noise", lambda seed: silent(random_problem("unit", seed)), first)
    for delay in (10, 100, 1000):
        row = random_row(f"delay {delay}", lambda seed: shuffled(random_problem("train", seed), seed), first)
        yield row._replace(delay=delay)
    for name, added in TABLES.items():
        if tables and (tables / f"{name}.parquet").is_file():
            yield Row(name, (recorded(tables, name, added),))


def random_row(name: str, draw: Callable[[int], Problem], first: int, count: int = PROBLEMS) -> Row:
    """A row of random problems."""
    return Row(name, tuple(synthetic(draw(first + seed)) for seed in range(count)))


def heavy(seed: int, cv: float) -> Problem:
    """The unit family with log-normal costs that vary by a multiple of their mean."""
    return replace(random_problem("unit", seed), cost_noise=Noise("lognormal", cv=cv))


def correlated(seed: int, correlation: float) -> Problem:
    """The unit family with reward and cost tied."""
    return replace(random_problem("unit", seed), correlation=correlation)


def fixed_costs(problem: Problem) -> Problem:
    """The same problem with costs that are known after one try."""
    return replace(problem, cost_noise=Noise(sd=0.0))


def silent(problem: Problem) -> Problem:
    """The same problem without noise."""
    return replace(problem, reward_noise=Noise(sd=0.0), cost_noise=Noise(sd=0.0))


def near_ties(seed: int) -> Problem:
    """The unit family with the options of each kind drawn to within 2 % of its first."""
    problem = random_problem("unit", seed)
    rng = np.random.default_rng([seed, 2])
    factors = rng.uniform(1.0 - NEAR, 1.0 + NEAR, (2, *problem.reward.shape))
    there = np.where(problem.offered, 1.0, np.nan)
    return replace(
        problem,
        reward=problem.reward[:, :1] * factors[0] * there,
        cost=problem.cost[:, :1] * factors[1] * there,
    )
