"""Eq. (2)-(8), the plug-in price and the optimum on small numbers, worked out by hand.

Nothing here is made anew when the code changes: if a number differs, the code no longer computes what is written.
"""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError, fields, replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest

from worthwhile.decision import (
    NOTHING,
    Decision,
    PlugIn,
    arrive,
    contribute,
    most_promising,
    new_plug_in,
    robbins_monro,
    settle,
    sum_up,
)
from worthwhile.errors import BadParameter, BadProblem
from worthwhile.learning import (
    Arms,
    confidence_width,
    new_arms,
    new_moments,
    one_more,
    optimistic,
    record,
    record_moments,
)
from worthwhile.optimum import (
    best_single,
    bounds_of,
    gap,
    loss,
    ratio_of,
    regret,
    solve,
    value,
)
from worthwhile.problem import Problem
from worthwhile.theory import theorem_bound

ROOT_LOG_100 = 2.14596602628934724  # √(ln 100)


class Told(NamedTuple):
    """What optimism is told."""

    horizon: int = 100
    reward_max: float = 5.0
    cost_min: float = 0.25
    noise: float = 0.5


def arms_with(pulls: list[float], mean_reward: list[float], mean_cost: list[float]) -> Arms:
    """Two kinds; the second has these."""
    arms = new_arms(2, len(pulls))
    arms.pulls[1], arms.mean_reward[1], arms.mean_cost[1] = pulls, mean_reward, mean_cost
    return arms


def indices(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.uint32)


def test_nothing_is_known_at_first() -> None:
    for arms in (new_arms(2, 3), new_moments(2, 3)):
        assert all(array.shape == (2, 3) and not array.any() for array in arms)
        arms.pulls[0, 0] = 1.0
        assert arms.mean_reward[0, 0] == 0.0


@pytest.mark.parametrize(("pulls", "width"), [(1.0, ROOT_LOG_100), (4.0, ROOT_LOG_100 / 2), (9.0, ROOT_LOG_100 / 3)])
def test_the_confidence_width_is_the_root_of_log_horizon_over_pulls(pulls: float, width: float) -> None:
    assert confidence_width(pulls, 100) == pytest.approx(width, rel=1e-14)


def test_optimism_adds_the_width_to_the_reward_and_takes_it_from_the_cost_within_the_bounds() -> None:
    arms = arms_with([0.0, 4.0], [9.0, 1.0], [9.0, 2.0])
    width = 0.5 * ROOT_LOG_100 / 2  # Eq. (2)-(3), with noise ½
    assert optimistic(Told(), arms, 1, 1) == pytest.approx((1.0 + width, 2.0 - width), rel=1e-14)
    assert optimistic(Told(noise=2.0), arms, 1, 1) == pytest.approx((1.0 + 4 * width, 0.25), rel=1e-14)
    assert optimistic(Told(reward_max=1.2, cost_min=1.9), arms, 1, 1) == (1.2, 1.9)
    assert optimistic(Told(), arms, 1, 0) == (5.0, 0.25)  # no pulls: the best possible


def test_a_pull_moves_the_means_by_its_share() -> None:
    arms = arms_with([2.0, 0.0], [0.5, 0.0], [4.0, 0.0])
    record(arms, 1, 0, 2.0, 1.0)
    record(arms, 1, 1, 7.0, 0.5)
    assert arms.pulls.tolist() == [[0.0, 0.0], [3.0, 1.0]]  # Eq. (4)
    assert arms.mean_reward.tolist() == [[0.0, 0.0], [1.0, 7.0]]  # (½·2 + 2)/3, Eq. (5)
    assert arms.mean_cost.tolist() == [[0.0, 0.0], [3.0, 0.5]]  # (4·2 + 1)/3, Eq. (6)


@pytest.mark.parametrize("weights", [(1, 1, 1), (1, 2, 4)])
def test_second_moments_are_weighted_sums_of_squares_around_the_weighted_means(weights: tuple[int, ...]) -> None:
    rewards, costs, arms = (1, 4, 2), (2, 1, 5), new_moments(2, 2)
    for weight, reward, cost in zip(weights, rewards, costs, strict=True):
        record_moments(arms, 1, 0, float(reward), float(cost), float(weight))
    total = sum(weights)
    r = Fraction(sum(w * x for w, x in zip(weights, rewards, strict=True)), total)
    c = Fraction(sum(w * x for w, x in zip(weights, costs, strict=True)), total)
    rows = list(zip(weights, rewards, costs, strict=True))
    squares = [
        sum(w * (x - r) ** 2 for w, x, _ in rows),
        sum(w * (x - c) ** 2 for w, _, x in rows),
        sum(w * (x - r) * (y - c) for w, x, y in rows),
    ]
    found = [array[1, 0] for array in arms]
    assert found == pytest.approx([float(number) for number in (total, r, c, *squares)], rel=1e-14)
    assert all(array[0].tolist() == [0.0, 0.0] and array[1, 1] == 0.0 for array in arms)


def test_a_pull_without_a_weight_counts_once() -> None:
    arms = new_moments(1, 1)
    record_moments(arms, 0, 0, 1.0, 4.0)
    record_moments(arms, 0, 0, 3.0, 2.0)
    assert [array[0, 0] for array in arms] == [2.0, 2.0, 3.0, 2.0, 2.0, -2.0]
    assert one_more(one_more((0.0,) * 6, 1.0, 4.0, 1.0), 3.0, 2.0, 1.0) == (2.0, 2.0, 3.0, 2.0, 2.0, -2.0)


def test_a_robbins_monro_step_goes_towards_the_root_and_stays_in_its_interval() -> None:
    assert robbins_monro(2.0, 0.25, 3.0, 1.0, 0.0, 10.0) == 2.25  # 2 + ¼(3 − 2·1), Eq. (8)
    assert robbins_monro(2.0, 0.25, 3.0, 2.5, 0.0, 10.0) == 1.5  # 2 + ¼(3 − 2·2½)
    assert robbins_monro(2.0, 0.25, 3.0, 1.0, 0.0, 2.125) == 2.125
    assert robbins_monro(2.0, 0.25, 3.0, 2.5, 1.75, 10.0) == 1.75


def test_the_most_promising_option_has_the_largest_optimistic_reward_less_its_priced_cost() -> None:
    arms = arms_with([1.0, 4.0, 4.0, 4.0], [9.0, 1.0, 2.0, 2.0], [1.0, 1.5, 3.0, 3.0])
    width = 0.5 * ROOT_LOG_100 / 2
    cheap, dear = (1, 1.0 + width, 1.5 - width), (2, 2.0 + width, 3.0 - width)  # −½ apart at price 1, ¼ at ½

    def choose(price: float, kind: int, *options: int) -> Decision:
        return most_promising(Told(), arms, price, kind, indices(*options), indices(0, 0, 0, 0))

    assert choose(1.0, 1, 1, 2, 3) == pytest.approx(cheap, rel=1e-14)
    assert choose(0.5, 1, 1, 2, 3) == pytest.approx(dear, rel=1e-14)
    assert choose(0.5, 1, 3, 2, 1).option == 3  # the first of equals
    assert choose(0.5, 0, 3, 1) == (3, 5.0, 0.25)  # another kind: no pulls
    assert choose(0.5, 1) == NOTHING == (0xFFFFFFFF, 0.0, 0.0)


def totals(plug_in: PlugIn) -> list[float]:
    return [plug_in.total_reward[0], plug_in.total_cost[0]]


def test_the_plug_in_price_step_by_step() -> None:
    plug_in = new_plug_in(4)
    assert all(not array.any() for array in plug_in)
    assert [array.shape for array in plug_in] == [(1,)] * 3 + [(4,)] * 4 + [(1,)] * 2
    settle(plug_in)
    assert plug_in.price[0] == 0.0  # no cost yet

    assert arrive(plug_in, 2) == 2  # the only kind known
    contribute(plug_in, 2, 3.0, 2.0)
    assert totals(plug_in) == [3.0, 2.0]
    settle(plug_in)
    assert plug_in.price[0] == 1.5

    assert arrive(plug_in, 0, 2.0) == 0  # its turn: after kind 2, the second that arrived
    contribute(plug_in, 0, 1.0, 4.0)
    assert totals(plug_in) == [5.0, 10.0]  # 3 + 2·1, 2 + 2·4
    settle(plug_in)
    assert plug_in.price[0] == 0.5

    assert arrive(plug_in, 2) == 2
    assert totals(plug_in) == [5.0, 10.0]  # an arrival counts when its kind contributes
    contribute(plug_in, 2, 3.0, 2.0)
    contribute(plug_in, 0, 5.0, 3.0)
    assert totals(plug_in) == [16.0, 10.0]  # 2·3 + 2·5, 2·2 + 2·3
    settle(plug_in)
    assert plug_in.price[0] == 1.6
    assert plug_in.arrivals.tolist() == [2.0, 0.0, 2.0, 0.0]
    assert plug_in.reward.tolist() == [10.0, 0.0, 6.0, 0.0]
    assert plug_in.cost.tolist() == [6.0, 0.0, 4.0, 0.0]
    assert plug_in.known[: plug_in.known_kinds[0]].tolist() == [2, 0]


def test_kinds_are_refreshed_in_turn_and_totals_added_up_anew_once_a_round() -> None:
    plug_in = new_plug_in(3)
    turns = [int(arrive(plug_in, kind)) for kind in (1, 2, 0, 0, 0, 0, 0)]
    assert turns == [1, 2, 0, 1, 2, 0, 1]
    plug_in.reward[:], plug_in.cost[:] = [1.0, 2.0, 4.0], [8.0, 16.0, 32.0]
    plug_in.total_reward[0], plug_in.total_cost[0] = 99.0, 99.0  # what running differences have come to
    arrive(plug_in, 0)
    arrive(plug_in, 0)
    assert totals(plug_in) == [99.0, 99.0]
    arrive(plug_in, 0)
    assert totals(plug_in) == [7.0, 56.0]


def test_only_known_kinds_are_added_up() -> None:
    plug_in = new_plug_in(3)
    arrive(plug_in, 2)
    arrive(plug_in, 1)
    plug_in.reward[:], plug_in.cost[:] = [1.0, 2.0, 4.0], [8.0, 16.0, 32.0]
    sum_up(plug_in)
    assert totals(plug_in) == [6.0, 48.0]


@pytest.mark.parametrize("cost", [0.0, -2.0])
def test_the_price_stays_while_the_total_cost_is_not_positive(cost: float) -> None:
    plug_in = new_plug_in(1)
    plug_in.price[0] = 1.25
    arrive(plug_in, 0)
    contribute(plug_in, 0, 3.0, cost)
    settle(plug_in)
    assert plug_in.price[0] == 1.25


# θ: 1.8 for the cheapest → 4.25/2 with b for y → 3.75/1.75 = 15/7 with c for y, since 1 − 15/7 > 3 − 2·15/7
THREE_KINDS = Problem.of(
    {
        "x": (0.5, {"a": (2.0, 1.0), "b": (5.0, 2.0)}),
        "y": (0.25, {"b": (3.0, 2.0), "c": (1.0, 1.0)}),
        "z": (0.25, {"c": (4.0, 2.0)}),
    }
)


def test_the_optimum_of_three_kinds() -> None:
    best = solve(THREE_KINDS)
    assert best.ratio == pytest.approx(15 / 7, rel=1e-15)
    assert best.best.tolist() == [1, 2, 2]
    assert (best.reward, best.cost) == (3.75, 1.75)
    assert best.gaps == pytest.approx(np.array([[6 / 7, 0, 0], [0, 1 / 7, 0], [0, 0, 0]]), abs=1e-15)
    assert best.greedy.tolist() == [1, 1, 2]
    assert (best.greedy_ratio, best.cheapest_ratio) == (4.25 / 2, 2.25 / 1.25)
    assert (best.single, best.single_ratio) == (1, 4.25 / 2)  # b; z has no choice
    assert not best.degenerate
    assert best.advice == []


def test_the_value_of_a_choice_is_its_mean_over_arrivals() -> None:
    assert value(THREE_KINDS, np.array([0, 1, 2])) == (1.0 + 0.75 + 1.0, 0.5 + 0.5 + 0.5)
    assert ratio_of(THREE_KINDS, np.array([0, 1, 2])) == 2.75 / 1.5


def test_the_best_single_option_is_one_that_every_kind_with_a_choice_offers() -> None:
    row = {"a": (1.0, 1.0), "b": (4.0, 2.0), "c": (1.0, 2.0)}
    assert best_single(Problem.of({"x": (0.5, row), "y": (0.5, {**row, "b": (3.0, 2.0)})})) == (1, 1.75)
    assert best_single(Problem.of({"x": (0.5, {"a": (1.0, 1.0)}), "y": (0.5, {"b": (1.0, 1.0)})})) == (None, None)
    apart = {"x": (0.5, {"a": (1.0, 1.0), "b": (1.0, 1.0)}), "y": (0.5, {"c": (1.0, 1.0), "d": (1.0, 1.0)})}
    assert best_single(Problem.of(apart)) == (None, None)


def test_greedy_takes_the_best_ratio_of_each_kind() -> None:
    best = solve(Problem.of({"x": (0.5, {"a": (2.0, 1.0), "b": (3.0, 2.0)}), "y": (0.5, {"b": (1.0, 2.0)})}))
    assert (best.greedy.tolist(), best.greedy_ratio) == ([0, 1], 3.0 / 3.0)


def test_an_optimum_stays_as_it_was_found() -> None:
    for found in (solve(THREE_KINDS), theorem_bound(THREE_KINDS, 16)):
        with pytest.raises(FrozenInstanceError):
            setattr(found, fields(found)[0].name, 1.0)


def test_only_a_problem_is_solved() -> None:
    with pytest.raises(BadProblem, match=r"'toy' is no Problem; read_problem\(name or file\) gives one"):
        solve("toy")  # type: ignore[arg-type]


def test_a_problem_is_degenerate_when_the_cheapest_options_are_best_but_for_rounding() -> None:
    def optimum(reward: float) -> tuple[bool, int]:
        best = solve(Problem.of({"x": (1.0, {"dear": (reward, 3.0), "cheap": (1.0, 1.0)})}))
        return best.degenerate, int(best.best[0])

    assert optimum(3.0) == (True, 1)
    assert optimum(3.0 * (1.0 + 1e-13)) == (True, 0)
    assert optimum(3.0 * (1.0 + 1e-11)) == (False, 0)


def test_where_nothing_can_be_chosen_nothing_is_degenerate() -> None:
    assert not solve(Problem.of({"x": (0.5, {"a": (1.0, 1.0)}), "y": (0.5, {"b": (1.0, 1.0)})})).degenerate


def test_advice_is_given_where_the_best_ratio_is_not_positive() -> None:
    lost = solve(Problem.of({"x": (1.0, {"a": (-1.0, 2.0)})}))
    assert lost.advice == [
        "θ* = -0.5 is not positive: dear options then look good, because they dilute a loss. "
        "Shift the rewards so that doing nothing is worth 0."
    ]
    assert len(replace(lost, ratio=0.0).advice) == 1
    assert replace(lost, ratio=1e-9).advice == []
    assert replace(lost, ratio=1.0, degenerate=True).advice == [
        "degenerate: the cheapest option is best for every kind, so there is nothing to learn but prices. "
        "Add the cost that a task has whatever option it takes (set-up, review, a worker's idle time), or set "
        "another goal: a floor or a budget."
    ]


def test_loss_gap_and_regret() -> None:
    assert loss(2.5, 2.0) == 0.2
    assert loss(-2.0, -3.0) == 0.5
    rewards, costs = np.array([[1.0, 4.0], [9.0, 6.0]]), np.array([[1.0, 2.0], [3.0, 2.0]])  # (runs, marks)
    assert gap(3.0, rewards, costs).tolist() == [0.5, 0.5]  # |3 − 10/4|, |3 − 10/4|
    assert gap(2.0, rewards, costs).tolist() == [0.5, 0.5]
    assert regret(3.0, rewards, costs, np.array([10.0, 100.0])).tolist() == [5.0, 50.0]


@pytest.mark.parametrize(
    ("offers", "bounds"),
    [
        ({"a": (1.0, 4.0), "b": (3.0, 0.5)}, (1.0, 3.0, 0.5, 4.0, 0.25, 6.0)),
        ({"a": (-1.0, 4.0), "b": (3.0, 0.5)}, (-1.0, 3.0, 0.5, 4.0, -2.0, 6.0)),
        ({"a": (-1.0, 4.0), "b": (-3.0, 0.5)}, (-3.0, -1.0, 0.5, 4.0, -6.0, -0.25)),
        ({"a": (0.0, 4.0), "b": (0.0, 0.5)}, (0.0, 0.0, 0.5, 4.0, 0.0, 0.0)),
    ],
)
def test_the_price_lies_between_the_extreme_rewards_over_the_extreme_costs(
    offers: dict[str, tuple[float, float]], bounds: tuple[float, ...]
) -> None:
    assert bounds_of(Problem.of({"x": (1.0, offers)})) == bounds


WIDTH = 4.0 * math.sqrt(2 * 16 * 4 * 0.693147180559945309)  # 4√(|pairs|·T·ln T) for two pairs, T = 16


def test_the_theorem_where_costs_differ() -> None:
    """r from 1 to 2, c from ½ to 2, θ from ½ to 4: b = ½·7², θ_gap = 3½."""
    bound = theorem_bound(Problem.of({"x": (1.0, {"a": (1.0, 0.5), "b": (2.0, 2.0)})}), 16)
    assert bound.learning_error == pytest.approx(5 * WIDTH / (16 * 0.5), rel=1e-14)
    squares = 4 * (3.5**2 / 4 + 24.5 / (2 * 0.5**2)) + 3.5 * 5 * WIDTH / (2 * 0.5)
    assert bound.ratio_error == pytest.approx(squares, rel=1e-14)
    assert bound.robbins_monro_gap == pytest.approx(1.5 / (16 * 0.5) * math.sqrt(2 * 16 * squares), rel=1e-14)
    assert bound.gap == pytest.approx(bound.learning_error + bound.robbins_monro_gap, rel=1e-14)
    assert bound.regret == pytest.approx(16 * bound.gap, rel=1e-14)


def test_the_theorem_where_all_costs_are_the_same_and_a_reward_is_0() -> None:
    bound = theorem_bound(Problem.of({"x": (1.0, {"a": (0.0, 0.5), "b": (2.0, 0.5)})}), 16)
    assert bound.ratio_error == pytest.approx(4 * (4.0**2 / 4 + 2.0 / (2 * 0.5**2)) + 4 * 5 * WIDTH, rel=1e-14)
    assert bound.robbins_monro_gap == bound.learning_error == pytest.approx(0.625 * WIDTH, rel=1e-14)


def test_the_theorem_where_all_costs_are_2() -> None:
    """r from 1 to 2, θ from ½ to 1: b = ½·1²."""
    bound = theorem_bound(Problem.of({"x": (1.0, {"a": (1.0, 2.0), "b": (2.0, 2.0)})}), 16)
    squares = 4 * (0.5**2 / 4 + 0.5 / (2 * 2.0**2)) + 0.5 * 2 * WIDTH / (2 * 2.0)
    assert bound.ratio_error == pytest.approx(squares, rel=1e-14)


def test_the_theorem_starts_at_two_tasks_and_needs_rewards_of_0_or_more() -> None:
    problem = Problem.of({"x": (1.0, {"a": (0.0, 0.5), "b": (2.0, 0.5)})})
    assert theorem_bound(problem, 2).gap > 0.0
    with pytest.raises(BadParameter, match="horizon = 1; the bound needs at least 2 tasks"):
        theorem_bound(problem, 1)
    with pytest.raises(BadParameter, match=r"a mean reward of -0.5; the proof needs rewards of 0 or more"):
        theorem_bound(Problem.of({"x": (1.0, {"a": (-0.5, 0.5), "b": (2.0, 0.5)})}), 16)
