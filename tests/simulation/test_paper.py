"""The paper's numbers: its toy example, its optima, its Algorithm 1, its theorem."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import Tasks, algorithm_1
from worthwhile.optimum import gap, ratio_of, regret, solve
from worthwhile.policies.dol_rm import DolRm
from worthwhile.problem import Noise, Problem, seven_kinds, two_kinds
from worthwhile.rng import Rng
from worthwhile.simulation.environments import synthetic
from worthwhile.simulation.simulator import simulate
from worthwhile.theory import theorem_bound

TOY = {"S1": (0.8, {"a1": (3.0, 1.0)}), "S2": (0.2, {"a2": (1.0, 1.0), "a3": (3.0, 2.0)})}


def test_greedy_loses_to_reverse_on_the_toy_example() -> None:
    toy = Problem.of(TOY)
    greedy, reverse = np.array([0, 2]), np.array([0, 1])
    assert ratio_of(toy, greedy) == pytest.approx(2.5, abs=1e-12)
    assert ratio_of(toy, reverse) == pytest.approx(2.6, abs=1e-12)
    best = solve(toy)
    assert best.greedy.tolist() == greedy.tolist()
    assert best.best.tolist() == reverse.tolist()


@pytest.mark.parametrize(
    ("problem", "ratio", "greedy"),
    [
        (two_kinds(0.8), 2.6, 2.5),
        (two_kinds(0.6), 2.2, 3.0 / 1.4),
        (two_kinds(0.2), 3.0 / 1.8, 3.0 / 1.8),
        (seven_kinds(), 2.425 / 1.15, 2.1),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_the_optima_of_the_papers_problems(problem: Problem, ratio: float, greedy: float) -> None:
    best = solve(problem)
    assert best.ratio == pytest.approx(ratio, rel=1e-12)
    assert best.greedy_ratio == pytest.approx(greedy, rel=1e-12)


def test_greedy_is_optimal_when_the_first_kind_is_rare() -> None:
    best = solve(two_kinds(0.2))
    assert best.best.tolist() == best.greedy.tolist()
    assert best.ratio == pytest.approx(1.6667, abs=5e-5)


bounded = st.floats(0.05, 5.0)
sizes = st.integers(1, 4)


def random_tasks(seed: int, kinds: int, options: int, spread: float, count: int = 1000) -> Tasks:
    """Tasks of random kinds with random offers; costs can be negative where the noise is large."""
    rng = np.random.default_rng(seed)
    offered = rng.random((kinds, options)) < 0.7
    offered[np.arange(kinds), rng.integers(options, size=kinds)] = True
    mean_reward, mean_cost = rng.uniform(0.1, 3.0, (2, kinds, options))
    arrivals = rng.choice(kinds, size=count, p=rng.dirichlet(np.ones(kinds)))
    reward = mean_reward[arrivals] + spread * rng.standard_normal((count, options))
    cost = mean_cost[arrivals] + spread * rng.standard_normal((count, options))
    return Tasks(arrivals, offered, reward, cost)


@given(
    seed=st.integers(0, 2**32), kinds=sizes, options=sizes, spread=st.floats(0.0, 2.0), reward_max=bounded,
    cost_min=bounded, low=st.floats(-1.0, 2.0), span=st.floats(0.0, 5.0), horizon=st.integers(2, 10**9),
    anytime=st.booleans(), noise=st.sampled_from([1.0, 0.5, 2.0]),
)  # fmt: skip
def test_dol_rm_is_algorithm_1_to_the_last_bit(
    seed: int, kinds: int, options: int, spread: float, reward_max: float, cost_min: float, low: float, span: float,
    horizon: int, anytime: bool, noise: float,
) -> None:  # fmt: skip
    tasks = random_tasks(seed, kinds, options, spread)
    expected = algorithm_1(tasks, horizon, reward_max, cost_min, low, low + span, anytime, noise)
    policy = DolRm(horizon, reward_max, cost_min, low, low + span, anytime=anytime, noise=noise)
    state, offers = policy.init(kinds, options), [np.flatnonzero(row).astype(np.uint32) for row in tasks.offered]
    pending = np.zeros(options, np.uint32)
    decisions, ratios = [], []
    for place, kind in enumerate(tasks.kinds):
        made = policy.choose(state, kind, offers[kind], pending, Rng(0, place + 1))
        reward, cost = tasks.reward[place, made.option], tasks.cost[place, made.option]
        policy.learn(state, kind, made, reward, cost, Rng(0, place + 1))
        decisions.append(int(made.option))
        ratios.append(float(state.price[0]))
    assert (decisions, ratios) == expected
    assert low <= min(ratios) <= max(ratios) <= low + span


def test_the_theorem_recomputed_by_hand() -> None:
    bound = theorem_bound(two_kinds(0.8), 10_000)  # r from 1 to 3, c from 1 to 2, θ from ½ to 3, three pairs
    width = 4 * math.sqrt(3 * 10_000 * math.log(10_000))
    assert width == pytest.approx(2102.6087, abs=1e-3)
    assert bound.learning_error == pytest.approx(4 * width / 10_000, rel=1e-12)
    squares = 100 * (2.5**2 / 4 + 12.5 / 2) + 2.5 * 4 * width / 2
    assert bound.ratio_error == pytest.approx(squares, rel=1e-12)
    assert bound.robbins_monro_gap == pytest.approx(math.sqrt(2 * 10_000 * squares) / 10_000, rel=1e-12)
    assert bound.gap == pytest.approx(0.84104 + 1.50296, abs=2e-4)
    assert bound.regret == pytest.approx(10_000 * bound.gap, rel=1e-12)


def test_the_theorem_holds_where_its_noise_assumption_does() -> None:
    problem = replace(two_kinds(0.8), reward_noise=Noise(sd=0.5), cost_noise=Noise(sd=0.5))
    result = simulate(synthetic(problem), ["dol-rm"], tasks=10_000, runs=20, seed=5, marks=[100, 1000])
    rewards, costs = (result.measure(name)[:, 0] for name in ("expected_reward", "expected_cost"))
    gaps = gap(2.6, rewards, costs)
    assert np.array_equal(regret(2.6, rewards, costs, result.marks.astype(float)), result.marks * gaps)
    for tasks, measured in zip(result.marks.tolist(), gaps, strict=True):
        assert measured <= theorem_bound(problem, tasks).gap
    assert gaps[-1] < 0.05  # and it does learn: greedy's gap is 0.1


def test_the_gap_is_that_of_mean_sums_not_the_mean_of_ratios() -> None:
    rewards, costs = np.array([[1.0], [9.0]]), np.array([[1.0], [3.0]])
    assert gap(3.0, rewards, costs).tolist() == [0.5]  # |3 − 10/4|, not |3 − (1 + 3)/2|
