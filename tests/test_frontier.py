"""The frontier: what is best under a goal equals the linear programme, and its prices say why."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linear_programme import best_value
from worthwhile.goals.frontier import Means, Plan, frontier_of, plan_of
from worthwhile.goals.goal import Goal, goal_of

NAMES = "abcdef"
grid = st.integers(-8, 16).map(lambda number: number / 8)  # where ties and options in line are common
rewards = grid | st.floats(-2.0, 5.0).map(lambda number: round(number, 6))
costs = st.integers(1, 16).map(lambda number: number / 8) | st.floats(0.01, 10.0).map(lambda number: round(number, 6))
shares = st.sampled_from([0.0, 1.0, 1.0, 2.0]) | st.floats(0.05, 1.0)
places = st.integers(-4, 24).map(lambda number: number / 20) | st.floats(-0.2, 1.2).map(lambda place: round(place, 3))


def means_of(kinds: dict[str, tuple[float, list[tuple[float, float]]]]) -> Means:
    """From {kind: (weight, [(reward, cost)])}."""
    size = max(len(row) for _, row in kinds.values())
    reward, cost = np.full((2, len(kinds), size), np.nan)
    for kind, (_, row) in enumerate(kinds.values()):
        reward[kind, : len(row)], cost[kind, : len(row)] = zip(*row, strict=True)
    weights = np.array([weight for weight, _ in kinds.values()])
    return Means(tuple(kinds), tuple(map(str, range(size))), weights / weights.sum(), reward, cost)


@st.composite
def in_line(draw: st.DrawFn) -> list[tuple[float, float]]:
    """Options of which each costs more than the one before and brings as much more, but for rounding."""
    start, slope = (draw(st.integers(-97, 97)) / 97 for _ in range(2))
    return [(start + slope * cost, cost) for cost in draw(st.lists(costs, min_size=2, max_size=5, unique=True))]


offers = st.lists(st.tuples(rewards, costs), min_size=2, max_size=5) | in_line()


@st.composite
def means(draw: st.DrawFn) -> Means:
    rows = draw(st.lists(st.tuples(shares, offers | st.lists(st.tuples(rewards, costs), min_size=1)), max_size=4))
    first = draw(st.tuples(st.floats(0.05, 1.0), offers))
    return means_of(dict(zip(NAMES, [first, *rows], strict=False)))


@st.composite
def cases(draw: st.DrawFn) -> tuple[Means, Goal]:
    """Means, and a goal within their reach or somewhat beyond."""
    given_means = draw(means())
    floor = draw(st.sampled_from(["none", "total", "kinds"]))
    limits: dict[str, Any] = {}
    if floor == "total":
        limits["floor"] = between(*totals(given_means, given_means.reward), draw(places))
    if floor == "kinds":
        named = draw(st.lists(st.sampled_from(range(len(given_means.kinds))), min_size=1, unique=True))
        low, high = np.nanmin(given_means.reward, axis=1), np.nanmax(given_means.reward, axis=1)
        limits["floor"] = {given_means.kinds[kind]: between(low[kind], high[kind], draw(places)) for kind in named}
    if draw(st.booleans()):
        limits["budget"] = max(0.001, between(*totals(given_means, given_means.cost), draw(places)))
    aims = ["ratio"] + ["cost"] * ("floor" in limits) + ["reward"] * ("budget" in limits)
    return given_means, Goal(draw(st.sampled_from(aims)), **limits)


def totals(given_means: Means, values: Any) -> tuple[float, float]:
    """The smallest and largest mean per task."""
    return tuple(float(given_means.arrival @ end(values, axis=1)) for end in (np.nanmin, np.nanmax))  # type: ignore[return-value]


def between(low: float, high: float, place: float) -> float:
    return float(low + place * (high - low))


def check_against_the_linear_programme(given_means: Means, goal: Goal) -> None:
    plan, best = plan_of(given_means, goal), best_value(given_means, goal)
    check_sums(given_means, plan)
    assert (best is None) == bool(plan.infeasible)
    if best is not None:
        reached = {"ratio": plan.ratio, "cost": plan.cost, "reward": plan.reward}[goal.goal]
        assert reached == pytest.approx(best, rel=1e-9, abs=1e-9)
        check_kept(given_means, goal, plan)
        check_prices(given_means, plan)
    elif goal.floor is not None and (least := best_value(given_means, Goal("cost", goal.floor))) is not None:
        assert plan.cost == pytest.approx(least, rel=1e-9)  # the floor comes first
        check_kept(given_means, Goal("cost", goal.floor), plan)


def check_sums(given_means: Means, plan: Plan) -> None:
    """Shares are shares of options on offer, and make the mean reward and cost."""
    assert (plan.shares >= 0.0).all()
    assert not plan.shares[np.isnan(given_means.reward)].any()
    assert plan.shares.sum(axis=1) == pytest.approx(1.0)
    for total, values in ((plan.reward, given_means.reward), (plan.cost, given_means.cost)):
        assert total == pytest.approx(float(given_means.arrival @ np.nansum(plan.shares * values, axis=1)), abs=1e-12)


def check_kept(given_means: Means, goal: Goal, plan: Plan) -> None:
    """Floors and budget."""
    own = dict(zip(given_means.kinds, np.nansum(plan.shares * given_means.reward, axis=1), strict=True))
    assert all(own[kind] >= floor - 1e-9 for kind, floor in goal.floors.items())
    assert plan.reward >= (-math.inf if goal.total_floor is None else goal.total_floor) - 1e-9
    assert plan.cost <= (math.inf if goal.budget is None else goal.budget) + 1e-9


def check_prices(given_means: Means, plan: Plan) -> None:
    """Every option that is taken is worth the most at its kind's price."""
    for kind, price in enumerate(plan.prices):
        reward, cost = given_means.reward[kind], given_means.cost[kind]
        worth = -cost if math.isinf(price) else reward - price * cost
        taken = plan.shares[kind] > 0.0
        assert worth[taken] == pytest.approx(np.nanmax(worth), rel=1e-9, abs=1e-9)


@given(cases())
def test_the_best_under_a_goal_is_that_of_the_linear_programme(case: tuple[Means, Goal]) -> None:
    check_against_the_linear_programme(*case)


@pytest.mark.slow
@settings(max_examples=max(1_000, settings().max_examples))
@given(cases())
def test_a_thousand_times_the_best_under_a_goal_is_that_of_the_linear_programme(case: tuple[Means, Goal]) -> None:
    check_against_the_linear_programme(*case)


TWO = means_of({"A": (0.5, [(1.0, 2.0), (0.6, 0.3)]), "B": (0.5, [(1.0, 1.0), (0.8, 0.5), (0.5, 0.22)])})


def test_the_best_ratio_above_a_floor_judges_other_kinds_at_the_ratio_of_exactly_these_choices() -> None:
    plan = plan_of(TWO, goal_of("ratio", floor={"A": 1.0}))
    assert plan.ratio == pytest.approx(0.72)
    assert plan.shares.tolist() == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    assert plan.prices == pytest.approx([0.4 / 1.7, 0.72])  # A at what its floor asks for, B at the ratio
    without_floor = plan_of(TWO, Goal())
    assert without_floor.ratio == pytest.approx(1.1 / 0.52)
    assert without_floor.shares[1].tolist() == [0.0, 0.0, 1.0]
    assert (1.0 + 0.5) / (2.0 + 0.22) < 0.68  # what judging B at that ratio would give, with A at its floor


def test_a_slack_floor_has_an_infinite_price_and_takes_the_better_of_the_cheapest() -> None:
    means = means_of({"x": (1.0, [(0.5, 1.0), (0.7, 1.0), (0.9, 2.0)])})
    plan = plan_of(means, goal_of(floor=0.6))
    assert plan.prices.tolist() == [math.inf]
    assert plan.shares.tolist() == [[0.0, 1.0, 0.0]]
    assert (plan.reward, plan.cost, plan.infeasible) == (0.7, 1.0, ())


def test_a_floor_out_of_reach_has_price_0_and_takes_the_cheaper_of_the_best() -> None:
    means = means_of({"x": (1.0, [(0.5, 1.0), (0.9, 3.0), (0.9, 2.0)])})
    plan = plan_of(means, goal_of(floor={"x": 0.95}))
    assert plan.prices.tolist() == [0.0]
    assert plan.shares.tolist() == [[0.0, 0.0, 1.0]]
    assert plan.infeasible == (
        "floor 0.95 of kind 'x' cannot be reached: its best option, '2', brings 0.9. "
        "Lower the floor, or offer a better option.",
    )


def test_of_many_floors_out_of_reach_the_first_ten_are_named() -> None:
    kinds = [f"kind {number}" for number in range(13)]
    means = means_of(dict.fromkeys(kinds, (1.0, [(0.5, 1.0)])))
    said = plan_of(means, goal_of(floor=dict.fromkeys(kinds, 0.6))).infeasible
    assert [kind for kind in kinds if repr(kind) in " ".join(said)] == kinds[:10]
    assert said[10:] == ("the floors of 3 more kinds cannot be reached; those kinds have price 0.",)


def test_a_budget_that_buys_everything_has_price_0_and_one_that_buys_nothing_an_infinite_price() -> None:
    means = means_of({"x": (1.0, [(0.5, 1.0), (0.9, 3.0)])})
    rich, poor = plan_of(means, goal_of(budget=5.0)), plan_of(means, goal_of(budget=0.5))
    assert (rich.prices.tolist(), rich.cost, rich.infeasible) == ([0.0], 3.0, ())
    assert (poor.prices.tolist(), poor.cost) == ([math.inf], 1.0)
    assert poor.infeasible == (
        "budget 0.5 cannot be kept: the cheapest options take 1 per task. Raise the budget, or offer cheaper options.",
    )


def test_where_floor_and_budget_cannot_both_be_kept_the_floor_comes_first() -> None:
    means = means_of({"x": (1.0, [(0.5, 1.0), (0.9, 3.0)])})
    for aim in ("ratio", "cost", "reward"):
        plan = plan_of(means, Goal(aim, floor=0.7, budget=1.5))
        assert (plan.reward, plan.cost) == pytest.approx((0.7, 2.0))
        assert plan.prices == pytest.approx([0.2])
        assert plan.infeasible == (
            "budget 1.5 cannot be kept: keeping the floor, which comes first, takes 2 per task. "
            "Raise the budget, or lower the floor.",
        )


def test_a_floor_of_all_tasks_is_met_where_that_is_cheapest() -> None:
    plan = plan_of(TWO, goal_of(floor=0.9))
    assert plan.prices == pytest.approx([0.4 / 1.7, 0.4 / 1.7])
    assert plan.shares[1].tolist() == [1.0, 0.0, 0.0]
    assert plan.shares[0] == pytest.approx([0.5, 0.5, 0.0])
    assert (plan.reward, plan.cost) == pytest.approx((0.9, 0.5 * 1.15 + 0.5 * 1.0))


def test_floor_and_budget_at_a_bend_take_one_option_and_no_crumbs_of_the_next() -> None:
    means = means_of({"x": (1.0, [(0.1, 0.1), (0.3, 0.3), (0.4, 0.7)]), "y": (2.0, [(0.1, 0.1), (0.7, 0.3)])})
    bend = frontier_of(means)
    for cost, reward in zip(bend.cost.tolist(), bend.reward.tolist(), strict=True):
        for goal in (goal_of(floor=reward), goal_of(budget=cost)):
            plan = plan_of(means, goal)
            assert set(plan.shares.ravel().tolist()) == {0.0, 1.0}
            assert plan.infeasible == ()
            assert (plan.reward, plan.cost) == pytest.approx((reward, cost), rel=1e-12)


def test_of_options_in_line_the_nearest_are_mixed() -> None:
    means = means_of({"x": (1.0, [(0.1, 0.1), (0.3, 0.3), (0.2, 0.2)])})
    assert plan_of(means, goal_of(floor=0.2)).shares.tolist() == [[0.0, 0.0, 1.0]]
    assert plan_of(means, goal_of(budget=0.25)).shares[0] == pytest.approx([0.0, 0.5, 0.5])


def test_options_in_line_but_for_rounding_are_taken_in_their_order() -> None:
    rng = np.random.default_rng(1)
    for _ in range(2_000):
        start, slope, *cost = rng.random(7).tolist()
        row = [(start + slope * one, one) for one in sorted(cost)]
        floor = between(row[0][0], row[-1][0], rng.random())
        shares = plan_of(means_of({"x": (0.3, row), "y": (0.7, row)}), goal_of(floor=floor)).shares
        assert shares.sum(axis=1) == pytest.approx([1.0, 1.0])


def test_limits_that_are_off_by_rounding_make_no_crumbs() -> None:
    row = [(0.25, 0.25), (0.5, 0.5), (0.6, 1.0)]
    more, less = math.nextafter(0.5, 1.0), math.nextafter(0.5, 0.0)
    for weights in ((1.0,), (0.3, 0.4, 0.2, 0.1)):
        means = means_of({name: (weight, row) for name, weight in zip("abcd", weights, strict=False)})
        floor, budget = plan_of(means, goal_of(floor=more)), plan_of(means, goal_of(budget=less))
        assert floor.shares.tolist() == budget.shares.tolist() == [[0.0, 1.0, 0.0]] * len(weights)
        assert (set(floor.prices), floor.infeasible) == ({1.0}, ())
        assert budget.prices == pytest.approx(0.2)
        best, dear = plan_of(means, goal_of(floor=more + 0.1)), plan_of(means, goal_of(budget=less - 0.25))
        assert best.infeasible == dear.infeasible == ()


@given(means())
def test_every_point_of_the_frontier_is_the_most_reward_for_its_cost(given_means: Means) -> None:
    bends = frontier_of(given_means)
    assert (np.diff(bends.cost) > 0.0).all()
    assert (np.diff(bends.reward) > 0.0).all()
    assert (np.diff(bends.price[1:]) <= 0.0).all()
    for cost, reward in zip(bends.cost, bends.reward, strict=True):
        assert best_value(given_means, goal_of(budget=float(cost))) == pytest.approx(reward, rel=1e-9, abs=1e-9)
    assert bends.price[1:] == pytest.approx(np.diff(bends.reward) / np.diff(bends.cost), rel=1e-6)


def test_a_kind_that_never_arrives_is_given_a_choice_but_makes_no_bend() -> None:
    means = means_of({"x": (1.0, [(0.5, 1.0), (0.9, 3.0)]), "never": (0.0, [(1.0, 1.0), (5.0, 2.0)])})
    assert len(frontier_of(means).cost) == 2
    assert plan_of(means, goal_of(floor=0.7)).shares[1].tolist() == [0.0, 1.0]
    assert plan_of(means, goal_of(floor={"never": 3.0})).shares[1].tolist() == [0.5, 0.5]
    assert plan_of(means, goal_of(budget=math.nextafter(1.0, 0.0))).shares.tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_a_loss_is_diluted_only_as_far_as_the_floor_allows() -> None:
    means = means_of({"x": (1.0, [(-1.0, 1.0), (-2.0, 10.0)])})
    assert plan_of(means, Goal()).ratio == pytest.approx(-0.2)
    for floor in (-1.25, {"x": -1.25}):
        plan = plan_of(means, goal_of("ratio", floor=floor))
        assert plan.shares[0] == pytest.approx([0.75, 0.25])
        assert plan.prices == pytest.approx([-1 / 9])
    out_of_reach = plan_of(means, goal_of("ratio", floor=-0.5))
    assert (out_of_reach.shares[0].tolist(), out_of_reach.prices.tolist()) == ([1.0, 0.0], [0.0])


def test_on_its_way_down_a_kind_stays_where_its_floor_stopped_it() -> None:
    row = [(-1.0, 1.0), (-1.1, 3.0), (-1.3, 5.0)]
    means = means_of({"x": (0.5, row), "y": (0.5, row)})
    both = plan_of(means, goal_of("ratio", floor=-1.05))
    assert both.shares == pytest.approx(np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]))
    assert both.prices == pytest.approx([-0.05, -0.05])
    one = plan_of(means, goal_of("ratio", floor={"x": -1.05}))
    assert one.shares == pytest.approx(np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]))
    assert one.prices == pytest.approx([-0.05, one.ratio])
