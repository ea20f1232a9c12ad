"""Random problems of four families whose scales differ, drawn from a seed: unit, train, big, dollars."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from worthwhile.errors import BadParameter, did_you_mean
from worthwhile.problem import Noise, Problem

Offers = dict[str, tuple[float, float]]
SHORT, LONG = (1, 2, 3, 4, 5), (1, 5, 10, 15, 20)


def unit(rng: np.random.Generator) -> Offers:
    """Mean rewards and costs from 0.1 to 1."""
    return {name: (rng.uniform(0.1, 1.0), rng.uniform(0.1, 1.0)) for name in option_names(rng)}


def big(rng: np.random.Generator) -> Offers:
    """Rewards from 50 to 500, costs from 5 to 60."""
    return {name: (rng.uniform(50.0, 500.0), rng.uniform(5.0, 60.0)) for name in option_names(rng)}


def train(rng: np.random.Generator) -> Offers:
    """AUC that rises and levels off with the epochs trained, against a fixed cost and a cost per epoch."""
    epochs = SHORT if rng.random() < 0.5 else LONG
    top, tau = rng.uniform(0.6, 0.98), rng.uniform(1.0, 8.0)
    fixed, per_epoch = rng.uniform(0.01, 0.3), rng.uniform(0.02, 0.2)
    return {str(n): (0.5 + (top - 0.5) * (1.0 - math.exp(-n / tau)), fixed + per_epoch * n) for n in epochs}


def dollars(rng: np.random.Generator) -> Offers:
    """Calls that succeed or fail, for fractions of a cent."""
    base = rng.uniform(0.2, 0.8)
    offers = {}
    for name in option_names(rng):
        quality, call_price = rng.uniform(), 1e-3 * 10.0 ** rng.uniform(-1.0, 1.5)
        chance = base * (0.5 + 0.5 * quality) + 0.05 * math.log10(call_price / 1e-4)
        offers[name] = (min(0.98, chance), call_price + 0.002)
    return offers


FAMILIES: dict[str, tuple[Callable[[np.random.Generator], Offers], Noise, Noise]] = {
    "unit": (unit, Noise(sd=0.3), Noise(sd=0.3)),
    "train": (train, Noise(sd=0.04), Noise("lognormal", cv=0.08)),
    "big": (big, Noise(cv=0.2), Noise("lognormal", cv=0.2)),
    "dollars": (dollars, Noise("bernoulli"), Noise("lognormal", cv=0.5)),
}


def option_names(rng: np.random.Generator) -> list[str]:
    """Two to seven options."""
    return [f"a{number}" for number in range(1, 1 + int(rng.integers(2, 8)))]


def random_problem(family: str, seed: int) -> Problem:
    """A problem with two to eleven kinds; the same seed gives the same problem.

    >>> random_problem("train", 7) == random_problem("train", 7), len(random_problem("unit", 7).kinds) >= 2
    (True, True)
    """
    if family not in FAMILIES:
        raise BadParameter(f"no family {family!r}; {did_you_mean(family, FAMILIES)}")
    offers, reward_noise, cost_noise = FAMILIES[family]
    rng = np.random.default_rng([seed, list(FAMILIES).index(family)])
    count = int(rng.integers(2, 12))
    arrivals = rng.dirichlet(np.full(count, 2.0))
    kinds = {f"s{number}": (float(share), offers(rng)) for number, share in enumerate(arrivals, 1)}
    return Problem.of(kinds, name=f"{family}-{seed}", reward_noise=reward_noise, cost_noise=cost_noise)
