"""The coins: published vectors, moments, and no number used twice."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import numpy as np
import pytest

from worthwhile.policies.base import known
from worthwhile.policies.registry import LIST, make
from worthwhile.problem import Problem
from worthwhile.rng import DRAWS_PER_TASK, Rng, beta, bits, gamma, normals, uniform

COUNT = 20_000


@pytest.mark.parametrize(
    ("counter", "key", "words"),
    [
        ((0x00000000, 0x00000000), 0x00000000, (0xFF1DAE59, 0x6CD10DF2)),
        ((0xFFFFFFFF, 0xFFFFFFFF), 0xFFFFFFFF, (0x2C3F628B, 0xAB4FD7AD)),
        ((0x243F6A88, 0x85A308D3), 0x13198A2E, (0xDD7CE038, 0xF62A4C12)),
    ],
)
def test_philox_gives_its_published_words(counter: tuple[int, int], key: int, words: tuple[int, int]) -> None:
    left, right = counter
    task, draw = ((right // DRAWS_PER_TASK) << 32) | left, right % DRAWS_PER_TASK
    assert bits(Rng(key, task), draw) == words


@pytest.mark.parametrize("number", [np.uint32, np.int64, np.uint64])
def test_numpy_integers_are_the_same_coins(number: Any) -> None:
    plain = [bits(Rng(0xDEADBEEF, task), draw) for task in (1, 2**31, 2**32 + 5) for draw in (0, 7, 65_535)]
    typed = [
        bits(Rng(number(0xDEADBEEF), np.int64(task)), number(draw))
        for task in (1, 2**31, 2**32 + 5)
        for draw in (0, 7, 65_535)
    ]
    assert typed == plain


def within(values: list[float], mean: float, deviation: float) -> bool:
    """Whether the sample's mean and standard deviation are within five standard errors (fourth moments ≤ 12σ⁴)."""
    error = deviation / math.sqrt(len(values))
    return abs(np.mean(values) - mean) < 5 * error and abs(np.std(values) - deviation) < 5 * error * 1.7


def draws(make_one: Callable[[Rng], float]) -> list[float]:
    """One number for each of many tasks."""
    return [make_one(Rng(99, task)) for task in range(COUNT)]


def test_uniform_numbers_fill_the_unit_interval() -> None:
    values = draws(lambda rng: uniform(rng, 3))
    assert within(values, 0.5, math.sqrt(1 / 12))
    assert 0.0 <= min(values) < 0.001
    assert 0.999 < max(values) < 1.0


def test_normal_numbers_come_in_independent_standard_pairs() -> None:
    pairs = np.array([normals(Rng(99, task), 0) for task in range(COUNT)])
    assert within(pairs[:, 0].tolist(), 0.0, 1.0)
    assert within(pairs[:, 1].tolist(), 0.0, 1.0)
    assert abs(np.corrcoef(pairs.T)[0, 1]) < 5 / math.sqrt(COUNT)
    assert abs((pairs < -1.0).mean() - 0.158655) < 0.01


@pytest.mark.parametrize("shape", [1.0, 2.5, 40.0])
def test_gamma_numbers_have_mean_and_variance_of_their_shape(shape: float) -> None:
    assert within(draws(lambda rng: gamma(rng, 0, shape)), shape, math.sqrt(shape))


@pytest.mark.parametrize(("ones", "zeros"), [(1.0, 1.0), (2.0, 5.0), (30.0, 4.0)])
def test_beta_numbers_have_their_moments(ones: float, zeros: float) -> None:
    total = ones + zeros
    deviation = math.sqrt(ones * zeros / (total**2 * (total + 1)))
    assert within(draws(lambda rng: beta(rng, 0, ones, zeros)), ones / total, deviation)


def test_keys_tasks_and_draws_all_matter() -> None:
    words = {bits(Rng(key, task), draw) for key in range(10) for task in range(100) for draw in range(10)}
    assert len(words) == 10 * 100 * 10


@contextmanager
def watching_coins() -> Iterator[list[int]]:
    """The number of every draw that is made meanwhile."""
    seen: list[int] = []

    def watch(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code is bits.__code__:
            seen.append(int(frame.f_locals["draw"]))

    sys.setprofile(watch)
    try:
        yield seen
    finally:
        sys.setprofile(None)


@pytest.mark.parametrize("name", list(LIST))
def test_choosing_learning_and_observing_never_share_a_coin(name: str) -> None:
    most = 1000  # options per decision, the documented limit
    options = {f"a{number}": (1.0 + number % 7, 1.0 + number % 5) for number in range(most)}
    policy: Any = make(name, known(Problem.of({"x": (1.0, options)}), 1000))
    state, rng = policy.init(1, most), Rng(1, 1)
    with watching_coins() as choosing:
        made = policy.choose(state, 0, list(range(most)), [0] * most, rng)
    with watching_coins() as learning:
        policy.learn(state, 0, made, 1.0, 1.0, rng)
    with watching_coins() as observing:
        for option in range(most):
            policy.observe(state, 0, option, 1.0, 1.0, rng)
    assert not set(choosing) & set(learning + observing)
    assert len(set(learning + observing)) == len(learning + observing)
    assert all(0 <= draw < DRAWS_PER_TASK for draw in choosing + learning + observing)
