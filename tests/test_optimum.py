"""The optimum: Dinkelbach against all policies, the identity behind pseudo-regret, and the advice."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import every_policy
from worthwhile.errors import BadParameter
from worthwhile.optimum import bounds_of, loss, ratio_of, solve, theorem_bound, value
from worthwhile.problem import Problem, seven_kinds, two_kinds

amounts = st.floats(-5.0, 5.0)
prices = st.floats(0.01, 10.0)
offers = st.dictionaries(st.sampled_from(["a", "b", "c"]), st.tuples(amounts, prices), min_size=1)
weights = st.floats(0.05, 1.0)


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Problems small enough to try every policy."""
    kinds = draw(st.lists(st.tuples(weights, offers), min_size=1, max_size=4))
    total = sum(weight for weight, _ in kinds)
    return Problem.of({str(place): (weight / total, row) for place, (weight, row) in enumerate(kinds)})


@given(problems())
def test_no_policy_beats_the_optimum_and_the_optimum_is_one_of_them(problem: Problem) -> None:
    best = solve(problem)
    ratios = every_policy(problem)
    assert best.ratio == pytest.approx(max(ratios)[0], rel=1e-9, abs=1e-9)
    assert ratio_of(problem, best.best) == pytest.approx(best.ratio, rel=1e-12, abs=1e-12)
    assert best.reward / best.cost == pytest.approx(best.ratio, rel=1e-12, abs=1e-12)


@given(problems())
def test_pseudo_regret_is_what_the_optimum_would_have_earned_for_the_same_cost(problem: Problem) -> None:
    best = solve(problem)
    rows = np.arange(len(problem.kinds))
    for _, choice in every_policy(problem):
        reward, cost = value(problem, np.array(choice))
        regret = float(problem.arrival @ best.gaps[rows, choice])
        assert regret == pytest.approx(best.ratio * cost - reward, rel=1e-9, abs=1e-9)
        assert regret >= 0.0


@given(problems())
def test_rivals_are_what_they_are_called(problem: Problem) -> None:
    best = solve(problem)
    offered = [np.flatnonzero(row) for row in problem.offered]
    cheapest = [row[np.argmin(problem.cost[kind, row])] for kind, row in enumerate(offered)]
    assert best.cheapest_ratio == pytest.approx(ratio_of(problem, np.array(cheapest)))
    for kind, row in enumerate(offered):
        ratios = problem.reward[kind, row] / problem.cost[kind, row]
        assert problem.reward[kind, best.greedy[kind]] / problem.cost[kind, best.greedy[kind]] == ratios.max()
    singles = [
        ratio_of(problem, np.array([option if option in row else row[0] for row in offered]))
        for option in range(len(problem.options))
        if all(option in row or len(row) == 1 for row in offered)
    ]
    if max(map(len, offered)) == 1 or not singles:
        assert best.single is None
    else:
        assert best.single_ratio == pytest.approx(max(singles))


def test_a_problem_whose_cheapest_options_win_is_degenerate_until_tasks_have_a_fixed_cost() -> None:
    row = {"small": (1.0, 1.0), "large": (4.0, 5.0)}
    problem = Problem.of({"x": (0.5, row), "y": (0.5, row)})
    assert solve(problem).degenerate
    assert "Add the cost that a task has whatever option it takes" in solve(problem).advice[0]
    mended = solve(problem.with_added_cost(2.0))
    assert not mended.degenerate
    assert mended.advice == []
    assert mended.ratio == pytest.approx(4.0 / 7.0)


def test_a_problem_without_choice_is_not_called_degenerate() -> None:
    assert not solve(Problem.of({"x": (1.0, {"only": (1.0, 1.0)})})).degenerate


def test_a_loss_looks_better_when_diluted_and_the_advice_says_so() -> None:
    best = solve(Problem.of({"x": (1.0, {"cheap": (-1.0, 1.0), "dear": (-2.0, 10.0)})}))
    assert best.ratio == pytest.approx(-0.2)
    assert best.best.tolist() == [1]
    assert "Shift the rewards so that doing nothing is worth 0" in best.advice[0]


def test_loss_is_the_missing_share_of_the_best_ratio() -> None:
    best = solve(two_kinds(0.8))
    assert loss(best.ratio, best.greedy_ratio) == pytest.approx(1 - 2.5 / 2.6)
    assert loss(-0.2, -1.0) == pytest.approx(4.0)  # losing five times as much per cost is four times worse


def test_bounds_hold_every_possible_ratio() -> None:
    assert bounds_of(seven_kinds()) == (1.0, 3.0, 1.0, 2.0, 0.5, 3.0)
    bounds = bounds_of(Problem.of({"x": (1.0, {"a": (-1.0, 0.5), "b": (-4.0, 2.0)})}))
    assert (bounds.price_min, bounds.price_max) == (-8.0, -0.5)


@given(problems())
def test_the_optimal_ratio_lies_within_the_bounds(problem: Problem) -> None:
    bounds, best = bounds_of(problem), solve(problem)
    slack = 1e-9 * (1.0 + abs(best.ratio))
    assert bounds.price_min - slack <= best.ratio <= bounds.price_max + slack


def test_the_theorem_needs_a_horizon() -> None:
    with pytest.raises(BadParameter, match="horizon = 1; the bound needs at least 2"):
        theorem_bound(two_kinds(), 1)


def test_the_bound_refuses_negative_rewards_because_its_proof_needs_a_positive_ratio() -> None:
    with pytest.raises(BadParameter, match="a mean reward of -1"):
        theorem_bound(Problem.of({"x": (1.0, {"a": (-1.0, 1.0), "b": (2.0, 1.0)})}), 100)
