"""What features are worth to the default, in made worlds: the same tasks with features and without, on fixed seeds."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest

from worthwhile import Environment, Noise, Problem, simulate
from worthwhile.policies.features import MISSING, feature_number
from worthwhile.state import Floats, Indices

ITEMS, RUNS, TASKS = 4000, 4, 4000
APART = ((0.75, 0.45, 0.5, 0.3), (0.45, 0.75, 0.5, 0.3))  # the first two options are each best in one half
SILENT = Noise()

pytestmark = pytest.mark.slow  # machine code is made once, for all of these


class Halves(NamedTuple):
    """Items of two halves, in which options pay differently; features may say in which half an item is."""

    known: Floats  # (items, features)
    half: Floats  # (items,): 0 or 1
    kind: Indices  # (items,)
    reward: Floats  # (2, options): chances of a reward

    def draw(self, generator: np.random.Generator, count: int) -> tuple[Indices, Floats]:
        latent = generator.random((count, 3))
        return self.kind[(latent[:, 0] * len(self.kind)).astype(np.int64)], latent

    def feedback(self, kind: int, option: int, latent: Floats) -> tuple[float, float]:
        half = int(self.half[int(latent[0] * len(self.half))])
        return (1.0 if latent[1] < self.reward[half, option] else 0.0), 0.7 * math.exp(0.6 * latent[2])

    def features(self, kind: int, latent: Floats) -> Floats:
        return self.known[int(latent[0] * len(self.half))]


def gain(known: Floats, half: Floats, kind: Floats | None = None, reward: object = APART, tasks: int = TASKS) -> float:
    """ΣR/ΣC with features, in units of that without."""
    kinds = np.zeros(ITEMS) if kind is None else kind
    number, means = int(kinds.max()) + 1, np.array(reward)
    shares = np.array([[np.mean(half[kinds == k] == h) for h in (0, 1)] for k in range(number)])
    arrival = np.bincount(kinds.astype(np.int64)) / ITEMS
    names, options = tuple("kl"[:number]), tuple("abcd")
    cost = np.full((number, 4), 0.7 * (math.exp(0.6) - 1.0) / 0.6)
    problem = Problem("halves", names, options, arrival, shares @ means, cost, SILENT, SILENT)
    ratios = []
    for seen in (known, np.zeros((ITEMS, 0))):
        world = Halves(np.ascontiguousarray(seen), half, kinds.astype(np.uint32), means)
        results = simulate(Environment(problem, world), tasks=tasks, runs=RUNS, marks=[tasks], progress=False)
        ratios.append(float(results.measure("ratio")[:, 0, -1].mean()))
    return ratios[0] / ratios[1]


def noise(features: int, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).random((ITEMS, features))


def halves(seed: int = 1) -> Floats:
    return np.random.default_rng(seed).integers(2, size=ITEMS).astype(np.float64)


def test_one_split_among_ten_numbers_is_found() -> None:
    known = noise(10)
    assert gain(known, (known[:, 0] > 0.5).astype(np.float64)) > 1.1


def test_useless_features_cost_little() -> None:
    assert gain(noise(10), halves()) > 0.98
    assert gain(noise(10), halves(), reward=(APART[0], APART[0])) > 0.98


def test_a_category_can_carry_it() -> None:
    """Four of eight texts are of one half: no order among them could tell."""
    half, luck = halves(), np.random.default_rng(2)
    texts = np.array([feature_number(f"text {number}") for number in range(8)])
    known = noise(4)
    known[:, 2] = texts[2 * luck.integers(4, size=ITEMS) + half.astype(np.int64)]
    assert gain(known, half) > 1.05


def test_a_truth_can_carry_it() -> None:
    known, half = noise(4), halves()
    known[:, 3] = half
    assert gain(known, half) > 1.1


def test_that_a_feature_is_missing_can_carry_it() -> None:
    known, half = noise(4), halves()
    known[half == 1.0, 1] = MISSING
    assert gain(known, half) > 1.1


def test_features_that_only_some_tasks_have_are_used_for_those() -> None:
    known = noise(3)
    half = (known[:, 0] > 0.5).astype(np.float64)
    known[np.random.default_rng(4).random(ITEMS) < 0.4] = MISSING
    assert 1.03 < gain(known, half) < 1.2


def test_kinds_with_features_of_their_own_do_not_disturb_each_other() -> None:
    kind = np.random.default_rng(5).integers(2, size=ITEMS).astype(np.float64)
    known = noise(6)
    half = np.where(kind == 0.0, known[:, 0] > 0.5, known[:, 4] > 0.5).astype(np.float64)
    known[kind == 0.0, 3:] = MISSING
    known[kind == 1.0, :3] = MISSING
    assert gain(known, half, kind) > 1.05


def test_where_one_kind_has_features_the_other_loses_nothing() -> None:
    kind = np.random.default_rng(5).integers(2, size=ITEMS).astype(np.float64)
    known = noise(3)
    half = np.where(kind == 0.0, known[:, 0] > 0.5, 0.0).astype(np.float64)
    known[kind == 1.0] = MISSING
    assert gain(known, half, kind) > 1.03
