"""The optimum: Dinkelbach against all policies, the identity behind pseudo-regret, and the advice."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import every_policy
from worthwhile.errors import BadParameter, BadProblem
from worthwhile.goals.goal import Goal
from worthwhile.goals.suggestions import suggestions_of
from worthwhile.optimum import bounds_of, loss, means_of, ratio_of, solve, value
from worthwhile.problem import Problem, seven_kinds, two_kinds
from worthwhile.theory import theorem_bound

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


def test_a_degenerate_problem_is_given_floors_and_a_cost_per_task_to_choose_from() -> None:
    row = {"mini": (0.02, 0.001), "middle": (0.6, 0.04), "large": (0.9, 0.2)}
    problem = Problem.of({"x": (1.0, row)})
    best = solve(problem)
    assert best.degenerate
    *floors, added = best.suggestions
    assert [suggestion.floor for suggestion in floors] == [0.46, 0.72, 0.86]
    for suggestion in floors:
        reached = solve(problem, floor=suggestion.floor)
        assert (suggestion.reward, suggestion.cost) == (reached.reward, reached.cost)
    assert added.added_cost is not None
    mended = solve(problem.with_added_cost(added.added_cost))
    assert (added.reward, added.cost) == pytest.approx((mended.reward, mended.cost - added.added_cost))
    assert added.reward == 0.9
    assert solve(problem.with_added_cost(0.95 * added.added_cost)).reward == 0.6  # not much less would do
    assert "Here: with floor 0.46: 0.46 at 0.0306 per task; with floor 0.72: 0.72 at 0.104 per task;" in best.advice[0]
    assert best.advice[0].endswith("with 0.29 added to every task's cost: 0.9 at 0.2 per task.")


def test_nothing_is_suggested_where_the_cheapest_option_is_as_good_as_any_or_a_goal_is_set() -> None:
    same = solve(Problem.of({"x": (1.0, {"a": (1.0, 1.0), "b": (1.0, 2.0), "c": (0.5, 3.0)})}))
    assert (same.degenerate, same.suggestions) == (True, [])
    assert same.advice[0].endswith("or set another goal: a floor or a budget.")
    row = {"small": (1.0, 1.0), "large": (4.0, 5.0)}
    with_goal = solve(Problem.of({"x": (1.0, row)}), floor=2.0)
    assert (with_goal.degenerate, with_goal.suggestions, with_goal.advice) == (True, [], [])


@given(problems())
def test_suggestions_are_what_they_promise(problem: Problem) -> None:
    for suggestion in suggestions_of(means_of(problem)):
        if suggestion.floor is not None:
            reached = solve(problem, floor=suggestion.floor)
            assert not reached.infeasible
        else:
            reached = solve(problem.with_added_cost(suggestion.added_cost or 0.0))
        cost = reached.cost - (suggestion.added_cost or 0.0)
        assert (suggestion.reward, suggestion.cost) == pytest.approx((reached.reward, cost), rel=1e-9, abs=1e-9)


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


FLAKY = {"steady": (1.0, 1.0), "flaky": (1.0, 0.5, 0.4, 0.3), "hopeless": (1.0, 0.01, 1.0, 0.01)}


def test_without_floor_and_budget_the_optimum_is_one_option_per_kind_at_the_price_of_the_best_ratio() -> None:
    best = solve(two_kinds(0.8))
    assert best.goal == Goal()
    assert best.shares.tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert best.prices.tolist() == [best.ratio, best.ratio]
    assert (best.best_ratio, best.infeasible) == (best.ratio, ())


def test_an_optimum_under_a_goal_says_what_the_ratio_would_be_without_it() -> None:
    free, kept = solve(two_kinds(0.75)), solve(two_kinds(0.75), floor=2.625)
    assert kept.best_ratio == free.ratio
    assert (kept.ratio, kept.reward, kept.cost) == pytest.approx((2.625 / 1.0625, 2.625, 1.0625))
    assert kept.best.tolist() == [0, 1]  # a1 only every fourth time
    assert (kept.gaps == free.gaps).all()


def test_a_problem_may_have_a_goal_of_its_own_and_what_is_said_takes_its_place() -> None:
    kinds = {"x": (1.0, {"small": (0.5, 1.0), "large": (0.9, 3.0)})}
    problem = Problem.of(kinds, goal=Goal("cost", 0.7))
    assert solve(problem).cost == pytest.approx(2.0)
    assert solve(problem, budget=1.5).reward == pytest.approx(0.6)
    assert solve(problem, goal="ratio").ratio == 0.5
    assert problem.with_added_cost(1.0).goal == Goal("cost", 0.7)
    assert problem != Problem.of(kinds)
    with pytest.raises(BadProblem, match="floor of 'y': there is no kind of that name"):
        Problem.of(kinds, goal=Goal("cost", {"y": 0.7}))
    with pytest.raises(BadProblem, match=r"goal = 'cost'; it is a Goal, for instance Goal\('cost', floor=0.8\)"):
        Problem.of(kinds, goal="cost")
    with pytest.raises(BadParameter, match="floor of 'y': there is no kind of that name"):
        solve(problem, floor={"y": 0.7})


def test_towards_a_floor_a_failure_is_a_task_with_reward_0_that_was_paid_for() -> None:
    problem = Problem.of({"x": (1.0, FLAKY)})
    best = solve(problem, floor=0.8)  # flaky brings 0.6 for 0.3 + 0.12 a task
    assert best.shares[0] == pytest.approx([0.5, 0.5, 0.0])
    assert (best.reward, best.cost) == pytest.approx((0.8, 0.5 * 1.0 + 0.5 * 0.42))
    assert best.prices == pytest.approx([0.4 / 0.58])
    assert best.best_ratio == pytest.approx(0.6 / 0.42)


def test_what_always_fails_is_taken_under_no_goal() -> None:
    problem = Problem.of({"x": (1.0, FLAKY)})
    assert solve(problem, floor=-1.0).shares[0].tolist() == [0.0, 1.0, 0.0]
    poor = solve(problem, budget=0.2)
    assert "the cheapest options take 0.42 per task" in poor.infeasible[0]
    assert poor.advice == [f"infeasible: {poor.infeasible[0]}"]


def test_a_budget_has_to_pay_for_the_cost_that_every_task_has() -> None:
    problem = Problem.of({"x": (1.0, {"small": (0.5, 1.0), "large": (0.9, 3.0)})})
    assert solve(problem.with_added_cost(1.0), budget=3.0).shares == pytest.approx(solve(problem, budget=2.0).shares)
