"""The forest's formulas, worked out by hand, and what a grown one holds, counted again from its reports."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from worthwhile.policies import forest as forests
from worthwhile.policies import growing
from worthwhile.policies.features import CATEGORY, MISSING, feature_number, feature_vector, room_for
from worthwhile.policies.forest import (
    KIND,
    LEAF,
    NODES,
    TREES,
    Forest,
    Local,
    feature_of,
    gate,
    goes_left,
    keep,
    kind_number,
    leaf_of,
    leaf_of_row,
    leaves_of,
    local_of,
    new_forest,
    scale_forest,
    score_forecast,
    success,
    take_in_report,
)
from worthwhile.policies.growing import DEEPEST, SMALLEST_LEAF, feature_with_value, gain_of_split, grow_trees
from worthwhile.rng import Rng

RED, BLUE = feature_number("red"), feature_number("blue")
KAPPA = 3.0  # κ, how many reports a node is worth less than it has


# numbers


def test_features_are_numbers_and_a_category_is_beyond_all_of_them() -> None:
    assert [feature_number(value) for value in (3, -0.5, True, False)] == [3.0, -0.5, 1.0, 0.0]
    assert math.copysign(1.0, feature_number(-0.0)) == 1.0  # one zero, or a split would part equal numbers
    assert math.isnan(feature_number(None))
    assert CATEGORY <= min(RED, BLUE) < max(RED, BLUE) < 2.0 * CATEGORY
    assert RED == feature_number("red") != BLUE
    vector = feature_vector({"b": "red", "new": 1, "none": None}, {"a": 0, "b": 1, "none": 2}, 4)
    assert [math.isnan(number) for number in vector] == [True, False, True, True]
    assert vector[1] == RED
    assert [room_for(features) for features in (0, 1, 8, 9, 256)] == [0, 8, 8, 16, 256]


@pytest.mark.parametrize(
    ("number", "value", "missing_left", "left"),
    [
        (1.0, 2.0, False, True),
        (2.0, 2.0, False, True),
        (2.5, 2.0, True, False),
        (-1e100, -1e100, False, True),
        (RED, RED, False, True),  # of a category: that one, and no other
        (BLUE, RED, False, False),
        (RED, BLUE, True, False),
        (5.0, RED, True, False),  # a number where others have categories
        (RED, 5.0, True, False),  # and the other way round: beyond all numbers
        (MISSING, 2.0, True, True),
        (MISSING, 2.0, False, False),
        (MISSING, RED, True, True),
        (MISSING, RED, False, False),
        (MISSING, MISSING, False, True),  # the split is whether it is missing
        (1.0, MISSING, True, False),
        (RED, MISSING, True, False),
    ],
)
def test_which_way_a_number_goes(number: float, value: float, missing_left: bool, left: bool) -> None:
    assert goes_left(number, value, missing_left) is left


def test_a_kind_is_like_a_category() -> None:
    assert kind_number(0) == CATEGORY < kind_number(1) < kind_number(1 << 20) < 2.0 * CATEGORY
    assert goes_left(kind_number(3), kind_number(3), False)
    assert not goes_left(kind_number(2), kind_number(3), False)


# what is foretold


def small_tree(weight: float = 1.0) -> Forest:
    """One tree: feature 0 up to 0.5 is left; there, red is left again. Sums are of option 0, 1 and 2."""
    forest = new_forest(1, 3, 8)
    trees, making = forest.trees, forest.making
    making.made[0], making.slot[0] = 1, 1  # its nodes are 0, 1, …
    trees.feature[:5], trees.child[:5], trees.parent[:5] = [0, 1, LEAF, LEAF, LEAF], [1, 3, 0, 0, 0], [-1, 0, 0, 1, 1]
    trees.value[:2] = [0.5, RED]
    trees.weight[:5] = weight * np.array([[12, 6, 0], [5, 6, 0], [7, 0, 0], [2, 1, 0], [3, 5, 0]])
    trees.reward[:5] = weight * np.array([[9, 9, 9], [5, 3, 0], [-5, 0, 0], [4, 2, 0], [1, 1, 0]])
    trees.cost[:5] = weight * np.array([[9, 9, 9], [0, 1, 0], [1, 0, 0], [-2, 0, 0], [2, 1, 0]])
    return forest


def task(*features: float) -> Any:
    return np.array([*features, *[MISSING] * (8 - len(features))])


@pytest.mark.parametrize("weight", [1.0, 4.0, 2.0**390])
def test_means_are_shrunk_down_the_path_towards_the_one_above(weight: float) -> None:
    """(4 + 3·(5 + 3·0)/(5 + 3))/(2 + 3): two reports of sum 4, below five of sum 5, below the root, which adds 0."""
    forest = small_tree(weight)
    leaves = leaves_of(forest, 0, task(0.1, RED))
    assert leaves[-1] == 3
    near = local_of(forest, leaves, 0, weight)
    assert near.reward == pytest.approx((4 + 3 * 5 / 8) / 5, rel=1e-15)
    assert near.cost == pytest.approx((-2 + 3 * 0 / 8) / 5, rel=1e-15)
    assert near.reports == 2.0


def test_an_option_without_reports_in_a_leaf_is_judged_by_the_node_above() -> None:
    forest = small_tree()
    right = leaves_of(forest, 0, task(0.7))
    assert right[-1] == 2
    assert local_of(forest, right, 0, 1.0) == pytest.approx((-5 / 10, 1 / 10, 0.0, 7.0))
    assert local_of(forest, right, 1, 1.0) == (0.0, 0.0, 0.0, 0.0)  # above is the root: no more than its mean
    forest.trees.weight[4, 1] = forest.trees.reward[4, 1] = forest.trees.cost[4, 1] = 0.0
    assert local_of(forest, leaves_of(forest, 0, task(0.1, BLUE)), 1, 1.0) == pytest.approx((3 / 9, 1 / 9, 0.0, 0.0))


def test_what_is_foretold_of_a_rare_option_is_a_part_of_what_it_did() -> None:
    """One report, 2 above the mean: a quarter of it; with two nodes that have no other, no more than 7/16 of it."""
    forest = small_tree()
    forest.trees.weight[[1, 3], 2], forest.trees.reward[[1, 3], 2] = 1.0, 2.0
    near = local_of(forest, leaves_of(forest, 0, task(0.1, RED)), 2, 1.0)
    assert near.reward == pytest.approx(2.0 * (1 / 4 + 3 / 4 * 1 / 4))
    assert near.reports == 1.0
    assert local_of(forest, leaves_of(forest, 0, task(0.1, BLUE)), 2, 1.0).reward == pytest.approx(2.0 / 4)
    assert local_of(forest, leaves_of(forest, 0, task(0.9)), 2, 1.0) == (0.0, 0.0, 0.0, 0.0)


def test_missing_features_take_their_side() -> None:
    forest = small_tree()
    assert leaf_of(forest.trees, 0, 0, task()) == 2
    forest.trees.missing_left[0] = True
    assert leaf_of(forest.trees, 0, 0, task()) == 4
    forest.trees.missing_left[1] = True
    assert leaf_of(forest.trees, 0, 0, task()) == 3
    assert leaf_of(forest.trees, 0, 0, task(0.5, MISSING)) == 3


def test_a_tree_can_part_kinds() -> None:
    forest = small_tree()
    forest.trees.feature[0], forest.trees.value[0] = KIND, kind_number(2)
    assert [leaf_of(forest.trees, 0, kind, task(0.9, RED)) for kind in range(4)] == [2, 2, 3, 2]


def test_trees_count_alike_and_the_one_being_made_not_at_all() -> None:
    forest = small_tree()
    trees, making = forest.trees, forest.making
    for part in trees:  # the second tree is the same, the third one is not finished
        part[NODES : NODES + 5] = part[2 * NODES : 2 * NODES + 5] = part[:5]
    trees.child[NODES : NODES + 2] += NODES
    trees.parent[NODES + 1 : NODES + 5] += NODES
    trees.reward[NODES : NODES + 5] *= 3.0
    making.made[0], making.slot[0] = 2, 2
    leaves = leaves_of(forest, 0, task(0.1, RED))
    assert leaves[-2:] == (3, NODES + 3)
    near = local_of(forest, leaves, 0, 1.0)
    assert near.reward == pytest.approx(2 * (4 + 3 * 5 / 8) / 5)
    assert near.cost == pytest.approx(-2 / 5)


# how far it is trusted


def gates_with(squares: float, products: float, all_squares: float, all_products: float) -> Any:
    gates = new_forest(2, 3, 8).gates
    gates.squares[1, 2], gates.products[1, 2] = squares, products
    gates.all_squares[0], gates.all_products[0] = all_squares, all_products
    return gates


@pytest.mark.parametrize("weight", [1.0, 8.0])
def test_the_gate_is_a_slope_less_its_error_that_starts_from_the_slope_of_all(weight: float) -> None:
    """Of all: (20 − √16)/(16 + 1). Of the option: (6 + 1.5·that − √9·9/10.5)/(9 + 1.5)."""
    gates = gates_with(9.0 * weight, 6.0 * weight, 16.0 * weight, 20.0 * weight)
    assert gate(gates, 1, 2, weight) == pytest.approx((6 + 1.5 * 16 / 17 - 27 / 10.5) / 10.5, rel=1e-15)
    assert gate(gates, 0, 0, weight) == pytest.approx(16 / 17, rel=1e-15)  # nothing of its own


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ((0.0, 0.0, 0.0, 0.0), 0.0),
        ((4.0, 1.0, 4.0, 1.0), 0.0),  # no further from nothing than its error
        ((4.0, -9.0, 100.0, 200.0), 0.0),
        ((100.0, 300.0, 100.0, 300.0), 1.0),
        ((0.0, 0.0, 100.0, -300.0), 0.0),
    ],
)
def test_nothing_is_believed_before_it_came_true_and_nothing_more_than_was_said(
    numbers: tuple[float, float, float, float], expected: float
) -> None:
    assert gate(gates_with(*numbers), 1, 2, 1.0) == expected


def test_a_forecast_is_scored_in_units_of_the_variance() -> None:
    """Foretold ½ − 2·⅛ = ¼. Happened (1 − 0.6) − 2·(2 − 1.5) = −0.6. Variance ½, weight 2."""
    gates = gates_with(1.0, 2.0, 3.0, 4.0)
    gates.weight[1, 2], gates.reward[1, 2], gates.cost[1, 2] = 4.0, 0.6, 1.5
    score_forecast(gates, Local(0.5, 0.125, 0.0, 9.0), 1, 2, 1.0, 2.0, 2.0, 0.5, 2.0)
    assert gates.squares[1, 2] == pytest.approx(1.0 + 2 * 0.0625 / 0.5)
    assert gates.products[1, 2] == pytest.approx(2.0 - 2 * 0.25 * 0.6 / 0.5)
    assert gates.all_squares[0] == pytest.approx(3.0 + 2 * 0.0625 / 0.5)
    assert gates.all_products[0] == pytest.approx(4.0 - 2 * 0.25 * 0.6 / 0.5)


@pytest.mark.parametrize(("weight", "variance"), [(2.0, 0.5), (4.0, 0.0), (0.0, 0.5)])
def test_one_report_or_no_variance_scores_nothing(weight: float, variance: float) -> None:
    gates = gates_with(1.0, 2.0, 3.0, 4.0)
    gates.weight[1, 2] = weight
    score_forecast(gates, Local(0.5, 0.125, 0.0, 9.0), 1, 2, 1.0, 2.0, 2.0, variance, 2.0)
    assert (gates.squares[1, 2], gates.products[1, 2]) == (1.0, 2.0)
    assert (gates.all_squares[0], gates.all_products[0]) == (3.0, 4.0)


@pytest.mark.parametrize(("foretold", "variance"), [(1e200, 1.0), (1e99, math.inf), (1e160, math.inf), (1.0, 1e-290)])
def test_a_forecast_beyond_reason_scores_nothing(foretold: float, variance: float) -> None:
    gates = gates_with(1.0, 2.0, 3.0, 4.0)
    gates.weight[1, 2] = 4.0
    score_forecast(gates, Local(foretold, 0.125, 0.0, 9.0), 1, 2, 1e10, 2.0, 2.0, variance, 2.0)
    assert gates.squares[1, 2] == 1.0
    assert np.isfinite([gates.products[1, 2], gates.all_squares[0], gates.all_products[0]]).all()


def test_what_was_foretold_is_taken_off_a_report_before_its_mean_is_taken() -> None:
    """Half is believed: of a reward 0.4 beyond the mean, of a cost 1.5 beyond a mean of 2, so 1 + ½·1.5/2 times it."""
    forest = new_forest(1, 2, 8)
    forest.gates.weight[0, 1], forest.gates.reward[0, 1], forest.gates.cost[0, 1] = 3.0, 0.5, 2.0
    take_in_report(forest, Local(0.4, 1.5, 0.0, 9.0), 0.5, 0, task(1.0), 1, 1.2, 5.5, 0.0, 1.0)
    assert (forest.ahead_reward[0], forest.ahead_cost[0]) == (0.2, 1.375)
    assert forest.gates.weight[0, 1] == 4.0
    assert forest.gates.reward[0, 1] == pytest.approx((3 * 0.5 + 1.0) / 4)
    assert forest.gates.cost[0, 1] == pytest.approx((3 * 2.0 + 4.0) / 4)
    assert (forest.rows.reward[0], forest.rows.cost[0], forest.rows.used[0]) == (1.2, 5.5, 1)


def test_what_is_taken_off_a_success_is_what_was_foretold_of_a_completed_task() -> None:
    """Nine in ten fail, at 0.5, where a success is 1 for 1; here none does. Elsewhere a completed task costs 5.5.

    Where it succeeds, it brings as much as elsewhere: nothing is taken off that.
    """
    forest, arm = new_forest(1, 2, 8), (0, 1)
    gates = forest.gates
    gates.weight[arm], gates.reward[arm], gates.cost[arm], gates.failed[arm] = 1e9, 0.1, 0.55, 0.9
    take_in_report(forest, Local(0.9, 0.45, -0.9, 9.0), 1.0, 0, task(1.0), 1, 1.0, 1.0, 0.0, 1.0)
    assert forest.ahead_reward[0] == pytest.approx(0.0, abs=1e-12)
    assert 1.0 / forest.ahead_cost[0] == pytest.approx(1.0 + 9 * 0.5)
    assert gates.failed[arm] == pytest.approx(0.9)
    assert success(gates, *arm, 0.0) == pytest.approx(0.1)
    assert (success(gates, *arm, 0.5), success(gates, *arm, -2.0)) == (0.1, 1.0)


@pytest.mark.parametrize(("mean", "foretold", "times"), [(2.0, 99.0, 10.0), (2.0, -2.0, 0.1), (0.0, 5.0, 1.0)])
def test_a_cost_is_foretold_within_bounds(mean: float, foretold: float, times: float) -> None:
    forest = new_forest(1, 2, 8)
    forest.gates.weight[0, 1], forest.gates.cost[0, 1] = 3.0, mean
    take_in_report(forest, Local(0.0, foretold, 0.0, 9.0), 1.0, 0, task(1.0), 1, 1.0, 1.0, 0.0, 1.0)
    assert forest.ahead_cost[0] == pytest.approx(times)


# which reports are kept


def test_when_it_is_full_the_option_with_most_reports_gives_up_its_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forests, "ROWS", 12)
    rows, luck = new_forest(2, 4, 8).rows, np.random.default_rng(0)
    kept: list[tuple[int, float]] = []  # by hand: (option, reward) in order of arrival
    for number in range(200):
        option = int(luck.choice(4, p=[0.7, 0.2, 0.07, 0.03]))
        if len(kept) == 12:
            counts = [sum(one == other for one, _ in kept) for other in range(4)]
            kept.remove(next(report for report in kept if report[0] == counts.index(max(counts))))
        kept.append((option, float(number)))
        row = keep(rows, number % 2, task(float(number)), option, float(number), 1.0, 0.0, 1.0)
        assert (rows.option[row], rows.reward[row], rows.kind[row]) == (option, number, number % 2)
        assert rows.features[row, 0] == number
        used = int(rows.used[0])
        assert used == min(number + 1, 12)
        assert sorted(zip(rows.option[:used].tolist(), rows.reward[:used].tolist(), strict=True)) == sorted(kept)
        assert rows.number.tolist() == [sum(one == other for one, _ in kept) for other in range(4)]
    assert rows.seen[0] == 200
    assert min(rows.number) >= 1  # what is rare is not crowded out
    for option in range(4):  # from the oldest on, each names the next younger one
        row, chain = int(rows.oldest[option]), []
        for _ in range(rows.number[option]):
            chain.append((option, float(rows.reward[row])))
            youngest, row = row, int(rows.following[row])
        assert chain == [report for report in kept if report[0] == option]
        assert youngest == rows.youngest[option]


def test_features_are_known_up_to_the_last_that_any_report_had() -> None:
    rows = new_forest(1, 2, 8).rows
    for features, known in ((task(), 0), (task(1.0), 1), (task(MISSING, MISSING, RED), 3), (task(0.0, 2.0), 3)):
        keep(rows, 0, features, 0, 1.0, 1.0, 0.0, 1.0)
        assert rows.known[0] == known


# splits


def rows_with(*reports: Any) -> Any:
    rows = new_forest(1, 2, 32).rows
    for features in reports:
        keep(rows, 0, np.array([*features, *[MISSING] * (32 - len(features))]), 0, 1.0, 1.0, 0.0, 1.0)
    return rows


def test_the_feature_of_a_split_is_the_one_drawn_or_another_that_a_report_has() -> None:
    rows = rows_with([MISSING, 2.0, MISSING], [MISSING, MISSING, RED])
    assert [feature_with_value(rows, 0, start, 0) for start in range(4)] == [1, 1, KIND, KIND]
    assert [feature_with_value(rows, 1, start, 1) for start in range(4)] == [2, 2, 2, KIND]
    assert [feature_with_value(rows, 0, start, 2) for start in range(4)] == [KIND, 1, 1, KIND]  # in steps of 3, of 4
    assert [feature_with_value(rows_with([1.0] * 20), 0, start, 7) for start in (0, 7, 19, 20)] == [0, 7, 19, KIND]


def test_a_report_without_features_is_split_by_its_kind() -> None:
    rows = rows_with([MISSING] * 20, [1.0] * 20)
    assert [feature_with_value(rows, 0, start, draw) for start in (0, 7, 20) for draw in (0, 5, 99)] == [KIND] * 9
    assert feature_with_value(rows_with([]), 0, 0, 3) == KIND  # nobody has features: kinds alone are left


def test_every_feature_that_a_report_has_is_about_as_likely_wherever_those_are_that_it_lacks() -> None:
    rows, count = rows_with([MISSING] * 11 + [1.0] * 5 + [MISSING] * 14), Counter[int]()
    for start in range(30 + 1):
        count.update(feature_with_value(rows, 0, start, draw) for draw in range(0, 128, 2))
    assert set(count) == {11, 12, 13, 14, 15, KIND}
    assert max(count.values()) < 1.5 * min(count.values())


def forest_of_kinds(sizes: Sequence[int], options: Sequence[Sequence[int]]) -> Forest:
    """A tree about to grow, from so many reports of every kind, each with one of the kind's options in turn."""
    forest = new_forest(len(sizes), 6, 8)
    for kind, size in enumerate(sizes):
        for number in range(size):
            option = options[kind][number % len(options[kind])]
            keep(forest.rows, kind, task(float(number % 7)), option, float(number % 3), 1.0, 0.0, 1.0)
    growing.start_tree(forest, 0.5)
    growing.count_node(forest, 0)
    return forest


@pytest.mark.parametrize(
    ("sizes", "options", "parted"),
    [
        ([20, 20], [[0, 1], [2, 3]], True),
        ([20, 20], [[0, 1], [1, 2]], False),  # what one kind tells of option 1 may be true in the other
        ([40], [[0, 1]], False),
        ([16, 4], [[0, 1], [2, 3]], False),  # too few for a leaf
        ([300, 25], [[0, 1], [2, 3]], None),  # only the larger one, with the rest on the other side
    ],
)
def test_kinds_without_a_common_option_are_parted(
    sizes: list[int], options: list[list[int]], parted: bool | None
) -> None:
    forest = forest_of_kinds(sizes, options)
    found = {growing.parts_kinds(forest, 0, Rng(7, tree)) for tree in range(40)}
    assert found == ({True, False} if parted is None else {parted})
    if parted:
        assert forest.making.best_feature[0] == KIND
        assert forest.making.best_value[0] in {kind_number(0), kind_number(1)}


def test_parting_kinds_takes_none_of_the_levels_of_a_tree() -> None:
    forest = forest_of_kinds([20, 20, 20], [[0, 1], [2, 3], [4, 5]])
    while forest.making.phase[0] == forests.SPLITTING:
        growing.look_for_split(forest, Rng(7, 1))
    by_kind = [node for node in nodes_of(forest, 0) if forest.trees.feature[node] == KIND]
    assert by_kind == [0, int(forest.trees.child[0]) + 1]  # one kind, then another of the two that are left
    assert [int(forest.making.depth[node]) for node in range(3)] == [0, 0, 0]
    assert max(forest.making.depth[: forest.making.nodes[0]]) > 0


def test_the_gain_of_a_split_is_how_far_apart_its_sides_are() -> None:
    """Option 0: 4 of 10 are left, with 4 of 2 in sum, 3.2 more than expected: 3.2²/2·(1/(4 + 3) + 1/(6 + 3))."""
    making = new_forest(1, 4, 8).making
    making.variance[:] = [2.0, 1.0, 1.0, 0.0]
    making.counts[:], making.totals[:] = [10, 4, 5, 8], [2.0, 1.0, 1.0, 1.0]
    making.left_counts[:], making.left_totals[:] = [4, 0, 5, 4], [4.0, 0.0, 1.0, 9.0]
    assert gain_of_split(making) == pytest.approx(3.2**2 / 2 * (1 / 7 + 1 / 9), rel=1e-14)
    making.left_counts[1], making.left_totals[1] = 1, 3.0  # 2¾ more than expected
    assert gain_of_split(making) == pytest.approx(3.2**2 / 2 * (1 / 7 + 1 / 9) + 2.75**2 * (1 / 4 + 1 / 6), rel=1e-14)


def forest_of(count: int, seed: int = 0) -> Forest:
    """So many reports of three options and two kinds, whose rewards depend on a number, a category and a gap."""
    forest, luck = new_forest(2, 3, 8), np.random.default_rng(seed)
    for _ in range(count):
        number, colour, kind, option = luck.normal(), luck.choice([RED, BLUE]), luck.integers(2), luck.integers(3)
        seldom = luck.normal() if luck.random() < 0.5 else MISSING
        good = (number > 0.0) + 0.5 * (colour == RED) * (option == 1) + (math.isnan(seldom) and kind == 1)
        reward = (good if option else 0.5) + 0.1 * luck.normal()
        take_in_report(
            forest, Local(0.0, 0.0, 0.0, 0.0), 0.0, int(kind), task(number, colour, seldom), int(option), reward,
            1.0 + 0.1 * luck.random(), float(luck.random() < 0.1 * option), 1.0,
        )  # fmt: skip
        grow_trees(forest, 0.5, 7)
    return forest


@pytest.fixture(scope="module")
def grown() -> Forest:
    return forest_of(160)


def nodes_of(forest: Forest, tree: int) -> list[int]:
    """All nodes of a tree, from its root down."""
    nodes = [tree * NODES]
    for node in nodes:
        if forest.trees.feature[node] >= 0:
            nodes += [int(forest.trees.child[node]), int(forest.trees.child[node]) + 1]
    return nodes


def finished(forest: Forest) -> list[int]:
    """Trees that count."""
    slot = int(forest.making.slot[0])
    return [(slot - back) % (TREES + 1) for back in range(1, min(int(forest.making.made[0]), TREES) + 1)]


def depth_of(forest: Forest, node: int) -> int:
    return 0 if forest.trees.parent[node] < 0 else 1 + depth_of(forest, int(forest.trees.parent[node]))


def test_every_node_has_the_reports_that_pass_it(grown: Forest) -> None:
    rows, trees = grown.rows, grown.trees
    assert grown.making.made[0] > TREES
    for tree in finished(grown):
        expected = np.zeros((NODES, 3))
        for row in range(int(rows.used[0])):
            node = leaf_of_row(trees, rows, tree, row)
            assert node == leaf_of(trees, tree, int(rows.kind[row]), rows.features[row])
            while node >= 0:
                expected[node - tree * NODES, rows.option[row]] += 1.0
                node = int(trees.parent[node])
        assert np.array_equal(trees.weight[tree * NODES : (tree + 1) * NODES], expected)


def test_trees_split_by_all_there_is_and_no_leaf_is_too_small(grown: Forest) -> None:
    trees, by = grown.trees, set()
    for tree in finished(grown):
        nodes = nodes_of(grown, tree)
        assert len(nodes) == len(set(nodes)) <= NODES
        for node in nodes:
            by.add(int(trees.feature[node]))
            assert trees.weight[node].sum() >= SMALLEST_LEAF
            assert depth_of(grown, node) <= DEEPEST
            if trees.feature[node] >= 0:
                assert trees.weight[node].tolist() == trees.weight[trees.child[node] :][:2].sum(axis=0).tolist()
    assert by == {LEAF, 0, 1, 2, KIND}
    assert grown.gates.importance[0] > max(grown.gates.importance[1:3])
    assert not grown.gates.importance[3:].any()


def brute_force(forest: Forest, kind: int, features: Any, option: int) -> Local:
    """From the definitions: m = (S + κ·m above)/(n + κ), and m = 0 in the root."""
    found = []
    for tree in finished(forest):
        path = [tree * NODES]
        while forest.trees.feature[path[-1]] >= 0:
            feature, node = int(forest.trees.feature[path[-1]]), path[-1]
            number = kind_number(kind) if feature == KIND else float(features[feature])
            left = goes_left(number, float(forest.trees.value[node]), bool(forest.trees.missing_left[node]))
            path.append(int(forest.trees.child[node]) + (not left))
        reward = cost = failed = 0.0
        for node in path[1:]:
            number = forest.trees.weight[node, option] + KAPPA
            reward = (forest.trees.reward[node, option] + KAPPA * reward) / number
            cost = (forest.trees.cost[node, option] + KAPPA * cost) / number
            failed = (forest.trees.failed[node, option] + KAPPA * failed) / number
        found.append((reward, cost, failed, forest.trees.weight[path[-1], option]))
    return Local(*np.mean(found, axis=0))


def test_what_is_foretold_is_what_the_definition_says(grown: Forest) -> None:
    luck = np.random.default_rng(3)
    for _ in range(60):
        features = np.where(luck.random(8) < 0.3, MISSING, luck.normal(size=8))
        features[1] = luck.choice([RED, BLUE, feature_number("never seen")])
        kind = int(luck.integers(2))
        leaves = leaves_of(grown, kind, features)
        for option in range(3):
            assert local_of(grown, leaves, option, 1.0) == pytest.approx(brute_force(grown, kind, features, option))


def test_heavier_reports_in_a_heavier_forest_foretell_the_same_to_the_bit(grown: Forest) -> None:
    heavy = forest_of(100)
    leaves = leaves_of(heavy, 1, task(0.3, RED))
    before = [local_of(heavy, leaves, option, 1.0) for option in range(3)]
    heavy.gates.squares[1], heavy.gates.products[1], heavy.gates.all_squares[0] = 7.0, 6.0, 20.0
    heavy.gates.all_products[0] = 19.0
    trusted = gate(heavy.gates, 1, 0, 1.0)
    assert 0.0 < trusted < 1.0
    scale_forest(heavy, 2.0**-30)
    assert [local_of(heavy, leaves, option, 2.0**-30) for option in range(3)] == before
    assert gate(heavy.gates, 1, 0, 2.0**-30) == trusted
    assert set(heavy.rows.weight[:100]) == {2.0**-30}


# growing a little at a time


def shape_of(forest: Forest, tree: int) -> list[Any]:
    """What splits it, and where."""
    part = slice(tree * NODES, tree * NODES + len(nodes_of(forest, tree)))
    trees = forest.trees
    split = trees.feature[part] >= 0
    rows = (trees.feature[part], trees.parent[part], trees.weight[part])
    splits = trees.value[part][split], trees.missing_left[part][split], trees.child[part][split]
    return [array.tobytes() for array in (*rows, *splits)]


def test_a_tree_is_the_same_however_much_of_it_grows_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes, steps = [], []
    for work in (1, 500, 8000, 10**9):
        monkeypatch.setattr(growing, "WORK", work)
        monkeypatch.setattr(forests, "FIRST_ROWS", 100)
        forest = forest_of(100)
        steps.append(0)
        while forest.making.made[0] == 0:
            steps[-1] += 1
            grow_trees(forest, 0.25 * steps[-1], 7)  # the price when it began is what counts
        shapes.append(shape_of(forest, 0))
        assert len(nodes_of(forest, 0)) > 10
    assert shapes[1:] == shapes[:-1]
    assert steps[0] > 10 * steps[1] > 50
    assert steps[-1] == 0


def test_reports_that_come_while_a_tree_grows_are_counted_in_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growing, "WORK", 200)
    forest = forest_of(170)
    assert forest.making.made[0] >= 1
    for tree in finished(forest):
        assert forest.trees.weight[tree * NODES].tolist() == forest.rows.number.tolist()


def test_no_report_does_more_work_than_there_is_and_that_of_one_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forests, "FIRST_ROWS", 300)
    looked, at_once = [0], 0
    really = growing.goes_left

    def counted(*given: Any) -> bool:
        looked[0] += 1
        return really(*given)

    monkeypatch.setattr(growing, "goes_left", counted)
    forest, most = forest_of(300), 0
    for _ in range(40):
        at_once = max(at_once, looked[0])
        looked[0] = 0
        filled = int(forest.making.candidate[0]) if forest.making.phase[0] == forests.FILLING else 0
        grow_trees(forest, 0.5, 7)
        if forest.making.phase[0] == forests.FILLING:
            most = max(most, int(forest.making.candidate[0]) - filled)
    assert growing.WORK <= at_once <= growing.WORK + 300
    assert most <= growing.WORK / DEEPEST + 1
    assert forest.making.made[0] > 2


def test_while_nothing_is_due_nothing_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growing, "goes_left", None)
    forest = forest_of(forests.FIRST_ROWS - 1)
    assert forest.making.phase[0] == 0
    with pytest.raises(TypeError):
        forest_of(forests.FIRST_ROWS)


def test_trees_are_made_anew_ever_more_seldom() -> None:
    forest = forest_of(90)
    making = forest.making
    while making.phase[0]:
        grow_trees(forest, 0.5, 7)
    made, forest.rows.seen[0] = int(making.made[0]), math.ceil(making.next_start[0]) - 1
    grow_trees(forest, 0.5, 7)
    assert making.made[0] == made
    forest.rows.seen[0] += 1
    grow_trees(forest, 0.5, 7)
    assert making.phase[0]
    while making.phase[0]:
        grow_trees(forest, 0.5, 7)
    assert making.made[0] == made + 1
    assert making.next_start[0] == forest.rows.seen[0] + 0.5 / TREES * making.rows[0]


def test_a_feature_of_a_report_may_be_its_kind() -> None:
    forest = forest_of(3)
    assert [feature_of(forest.rows, row, KIND) for row in range(3)] == [
        kind_number(int(forest.rows.kind[row])) for row in range(3)
    ]
