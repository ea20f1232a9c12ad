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
from worlds import Coin, coins, heavy_tails, own_noise, slow_start, sure
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
    new: bool = False  # since the commit that the default is compared with
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
    for row in new_rows(first):
        yield row._replace(new=True)
    for name, added in TABLES.items():
        if tables and (tables / f"{name}.parquet").is_file():
            yield Row(name, (recorded(tables, name, added),))


def random_row(name: str, draw: Callable[[int], Problem], first: int, count: int = PROBLEMS) -> Row:
    """A row of random problems."""
    return Row(name, tuple(synthetic(draw(first + seed)) for seed in range(count)))


def new_rows(first: int) -> Iterator[Row]:
    """What real tasks do and textbook problems do not."""
    yield from coin_rows(first)
    yield from noise_rows(first)
    yield from failure_rows(first)
    yield random_row("300 Zipf kinds", zipf, first, FEW)


def coin_rows(first: int) -> Iterator[Row]:
    """All-or-nothing results, and first tasks that are not like the others."""
    once, toss = sure(1.0), Coin(0.0, 1.0, 0.5)
    fair = {"sure": (sure(0.45), once), "coin": (toss, once)}
    yield Row("fair coin", (coins("fair-coin", fair),))
    yield Row("fair coin, noisy costs", (coins("fair-coin-noisy-costs", fair, cost_cv=0.3),))
    yield Row("jackpot", tuple(jackpot(first + seed) for seed in range(PROBLEMS)))
    costly = {"sure": (once, once), "coin": (once, Coin(0.1, 5.0, 0.1))}
    yield Row("cost coin", (coins("cost-coin", costly),))
    slow = {"steady": (1.0, 0.2, 0.0), "fast": (1.0, 0.1, 5.0)}
    yield Row("slow first call", (slow_start("slow-first-call", slow, noise=0.1),))
    yield Row("every first call is slow", tuple(slow_calls(first + seed) for seed in range(PROBLEMS)))


def jackpot(seed: int) -> Environment:
    """A sure 1 beside an option that is worth 1.5 on average, all of it in 10 to 30 % of its tasks."""
    chance = np.random.default_rng([seed, 3]).uniform(0.1, 0.3)
    options = {"sure": (sure(1.0), sure(1.0)), "jackpot": (Coin(0.0, 1.5 / chance, chance), sure(1.0))}
    return coins(f"jackpot-{seed}", options)


def slow_calls(seed: int) -> Environment:
    """Two to five options whose first task costs 1 to 100 times as much as later ones."""
    rng = np.random.default_rng([seed, 4])
    count = int(rng.integers(2, 6))
    reward, cost, times = rng.uniform(0.5, 1.0, count), rng.uniform(0.1, 0.4, count), 100.0 ** rng.uniform(size=count)
    offers = {f"a{at}": (reward[at], cost[at], cost[at] * (times[at] - 1.0)) for at in range(count)}
    return slow_start(f"slow-calls-{seed}", offers, noise=0.1)


def noise_rows(first: int) -> Iterator[Row]:
    """Noise that is unlike Gaussian noise of one size."""
    worlds = tuple(unequal_noise(random_problem("unit", seed), seed) for seed in range(first, first + PROBLEMS))
    yield Row("noise 300 × apart", worlds)
    for correlation in (-0.95, 0.95):
        name = f"correlation {correlation:g}, Gamma costs"
        yield random_row(name, lambda seed, c=correlation: positively_correlated(seed, c), first)
    tails = tuple(heavy_tails(random_problem("unit", first + seed), 0.1) for seed in range(PROBLEMS))
    yield Row("heavy tails", tails)
    yield random_row("rewards of 1 in 1 000", rare_rewards, first)


def unequal_noise(problem: Problem, seed: int) -> Environment:
    """The same means with standard deviations from 0.002 to 0.6."""
    return own_noise(problem, 0.6 * 300.0 ** -np.random.default_rng([seed, 5]).uniform(size=problem.reward.shape))


def positively_correlated(seed: int, correlation: float) -> Problem:
    """The unit family with reward and cost tied, and Gamma costs, which are never negative."""
    return replace(correlated(seed, correlation), cost_noise=Noise("gamma", cv=0.5))


def rare_rewards(seed: int) -> Problem:
    """Three options; a task in 300 to 3 000 brings 1, all others nothing."""
    rng = np.random.default_rng([seed, 6])
    offers = {f"a{at}": (1e-3 * 10.0 ** rng.uniform(-0.5, 0.5), rng.uniform(0.5, 1.0)) for at in range(3)}
    costs = Noise("lognormal", cv=0.3)
    return Problem.of({"task": (1.0, offers)}, name=f"rare-{seed}", reward_noise=Noise("bernoulli"), cost_noise=costs)


def failure_rows(first: int) -> Iterator[Row]:
    """Options that fail, at anything from a thousandth of a success's cost to all of it."""
    yield random_row("one option always fails", always_failing, first)
    for words, low, high in (("often", 0.3, 0.9), ("sometimes", 0.0, 0.2)):
        yield random_row(f"options fail {words}", lambda seed, at=(low, high): failing(seed, *at), first)


def failing(seed: int, low: float, high: float) -> Problem:
    """The unit family with log-normal costs, where each option of a kind fails at a rate from low to high."""
    problem, rng = heavy(seed, 0.3), np.random.default_rng([seed, 7])
    rate, share = rng.uniform(low, high, problem.reward.shape), 1000.0 ** -rng.uniform(size=problem.reward.shape)
    return replace(problem, failure_rate=rate, failure_cost=problem.cost * share)


def always_failing(seed: int) -> Problem:
    """The same, where nothing fails but one option of every kind, which does nothing else."""
    problem, rng = failing(seed, 0.0, 0.0), np.random.default_rng([seed, 8])
    assert problem.failure_rate is not None
    rate = problem.failure_rate.copy()
    for kind, offered in enumerate(problem.offered):
        rate[kind, rng.choice(np.flatnonzero(offered))] = 1.0
    return replace(problem, failure_rate=rate)


def zipf(seed: int) -> Problem:
    """300 kinds, the nth arriving 1/n as often as the first, and six options that are alike in all of them."""
    rng, size = np.random.default_rng([seed, 9]), (300, 6)
    reward, cost = (
        rng.uniform(0.3, 1.0, (1, size[1])) * rng.uniform(0.5, 1.0, (size[0], 1)) * rng.uniform(0.8, 1.2, size)
        for _ in range(2)
    )
    arrival = 1.0 / np.arange(1.0, size[0] + 1.0)
    names = (
        tuple(f"{letter}{number}" for number in range(1, count + 1)) for letter, count in zip("sa", size, strict=True)
    )
    noise = Noise(sd=0.2), Noise("lognormal", cv=0.3)
    return Problem(f"zipf-{seed}", *names, arrival / arrival.sum(), reward, cost, *noise)


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
