"""How a price is pursued, worked out by hand: its steps, the sides of a kink, the balance of what was wanted."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worthwhile.policies.pursuit import (
    BUDGET,
    FLOOR,
    FREE,
    LATEST,
    MOST_BEHIND,
    MOST_PLANNED,
    MOST_SAVED,
    PRICELESS,
    SMALLEST_STEP,
    SOONEST,
    Pursuit,
    at_its_end,
    enter,
    higher,
    lower,
    move,
    new_pursuit,
    side,
    wanted_now,
)


def pursuit_after(*more: bool, unit: float = 3.0) -> Pursuit:
    """After these moves of the second of two prices."""
    pursuit = new_pursuit(2)
    for one in more:
        move(pursuit, 1, one, unit)
    return pursuit


def test_the_first_price_is_the_usual_one() -> None:
    for more in (True, False):
        pursuit = pursuit_after(more)
        assert (pursuit.price[1], lower(pursuit, 1), higher(pursuit, 1)) == (3.0, 3.0, 3.0)


def test_steps_grow_by_half_in_one_direction_and_halve_when_it_turns() -> None:
    prices = [pursuit_after(*[True] * moves).price[1] for moves in range(1, 6)]
    steps = 1.375, 1.5625, 1.84375, 2.0  # ¼ · 1.5, … and never more than 1
    assert prices == pytest.approx([3.0 * math.prod(steps[:count]) for count in range(5)], rel=1e-15)
    turned = pursuit_after(True, True, False)
    assert (turned.price[1], turned.step[1]) == (4.125 / 1.1875, 0.1875)
    assert pursuit_after(True, True, False, True).price[1] == 4.125 / 1.1875 * 1.09375


@given(st.floats(1e-4, 1e4))
def test_a_price_goes_back_and_forth_over_its_kink_in_the_smallest_steps(kink: float) -> None:
    """And does not go round for ever, two steps there and two back, the same at every report."""
    pursuit = new_pursuit(1)
    for _ in range(60):
        move(pursuit, 0, bool(pursuit.price[0] < kink), 1.0)
    for _ in range(8):
        move(pursuit, 0, bool(pursuit.price[0] < kink), 1.0)
        assert lower(pursuit, 0) < kink <= higher(pursuit, 0) < lower(pursuit, 0) * (1.0 + 3.0 * SMALLEST_STEP)


def test_the_kink_is_between_the_last_prices_on_either_side_of_it() -> None:
    """Prices 3, 4.125, …: a move up says that the one before was below the kink, a move down that it was above."""
    for more, between in (
        ((True, True), (3.0, 4.125)),  # not tried yet: as good a guess as any
        ((True, True, True), (4.125, 4.125 * 1.5625)),
        ((True, True, True, False), (4.125, 4.125 * 1.5625)),
        ((True, False), (3.0 / 1.125, 3.0)),
    ):
        pursuit = pursuit_after(*more)
        assert (lower(pursuit, 1), higher(pursuit, 1)) == between


def test_a_price_stays_within_its_ends_and_says_so() -> None:
    highest, lowest = (pursuit_after(*[more] * 60) for more in (True, False))
    assert (highest.price[1], lowest.price[1]) == (3.0 * PRICELESS, 3.0 * FREE)
    assert (at_its_end(highest, 1, 3.0), at_its_end(lowest, 1, 3.0), at_its_end(pursuit_after(True), 1, 3.0)) == (
        1,
        -1,
        0,
    )


def test_the_other_prices_stay_as_they_are() -> None:
    pursuit = pursuit_after(True, True)
    enter(pursuit, 1, FLOOR, 0.8, 1.0, 0.5, 0.6, 0.8)
    assert all(array[0] == fresh[0] for array, fresh in zip(pursuit, new_pursuit(2), strict=True))


def test_what_is_missing_of_a_floor_and_over_a_budget_is_behind() -> None:
    floor, budget = new_pursuit(1), new_pursuit(1)
    enter(floor, 0, FLOOR, 0.8, 3.0, 2.0, 2.1, 0.8)  # three tasks brought 2.0 instead of 2.4
    enter(budget, 0, BUDGET, 0.8, 3.0, 2.0, 2.1, 0.8)  # … or cost as much
    assert (floor.behind[0], budget.behind[0]) == (pytest.approx(0.4), pytest.approx(-0.4))
    for pursuit in (floor, budget):
        assert (pursuit.tasks[0], pursuit.came[0]) == (3.0, 2.0)
        assert pursuit.squares[0] == pytest.approx(0.16)
        assert pursuit.recent[0] == pytest.approx(2.0 / 3.0)


def test_a_balance_keeps_little_of_what_was_saved_and_more_of_what_is_missing() -> None:
    rich, poor = new_pursuit(1), new_pursuit(1)
    enter(rich, 0, FLOOR, 0.5, 0.0, 1e6, 1e6, 0.5)
    enter(poor, 0, FLOOR, 0.5, 1e6, 0.0, 0.0, 0.5)
    assert (rich.behind[0], poor.behind[0]) == (-MOST_SAVED * 0.5, MOST_BEHIND * 0.5)
    assert (rich.planned[0], poor.planned[0]) == (-MOST_PLANNED * 0.5, MOST_PLANNED * 0.5)


def test_the_recent_mean_forgets() -> None:
    pursuit = new_pursuit(1)
    for came in (0.0, 1.0, 0.5):
        enter(pursuit, 0, FLOOR, 0.5, 1.0, came, came, 0.5)
    assert pursuit.recent[0] == pytest.approx(0.5)  # of few, just their mean
    for _ in range(5000):
        enter(pursuit, 0, FLOOR, 0.5, 1.0, 0.9, 0.9, 0.5)
    assert pursuit.recent[0] == pytest.approx(0.9, abs=0.0001)


def with_balance(behind: float, tasks: float, squares: float) -> Pursuit:
    """So much behind after so many tasks."""
    pursuit = new_pursuit(1)
    pursuit.behind[0], pursuit.tasks[0], pursuit.squares[0] = behind, tasks, squares
    return pursuit


@pytest.mark.parametrize(
    ("tasks", "over"),
    [(10.0, SOONEST), (1000.0, 1000.0), (1e5, LATEST)],  # as many as have been, within these
)
def test_a_balance_is_evened_out_in_as_many_tasks_as_have_been(tasks: float, over: float) -> None:
    pursuit = with_balance(6.0, tasks, 0.0)
    assert wanted_now(pursuit, 0, FLOOR, 0.5) == pytest.approx(0.5 + 6.0 / over)
    assert wanted_now(pursuit, 0, BUDGET, 0.5) == pytest.approx(0.5 - 6.0 / over)
    assert wanted_now(with_balance(-6.0, tasks, 0.0), 0, FLOOR, 0.5) == pytest.approx(0.5 - 6.0 / over)


def test_a_balance_is_evened_out_sooner_where_chance_would_put_it_off_by_more_than_is_tolerated() -> None:
    """A variance of 0.05 a task makes 20 · 0.5 in 2 000 tasks; for a budget, 10 · 0.5 in 500."""
    pursuit = with_balance(6.0, 1e5, 0.05 * 1e5)
    assert wanted_now(pursuit, 0, FLOOR, 0.5) == pytest.approx(0.5 + 6.0 / 2000.0)
    assert wanted_now(pursuit, 0, BUDGET, 0.5) == pytest.approx(0.5 - 6.0 / 500.0)
    wild = with_balance(6.0, 1e5, 1e5)
    assert wanted_now(wild, 0, FLOOR, 0.5) == pytest.approx(0.5 + 6.0 / SOONEST)
    assert wanted_now(wild, 0, FLOOR, 0.0) == pytest.approx(6.0 / SOONEST)  # a floor may be 0


def test_the_side_of_a_kink_is_chosen_so_that_what_is_expected_is_what_is_wanted() -> None:
    pursuit = pursuit_after(True, True, False)
    for sign in (FLOOR, BUDGET):
        assert side(pursuit, 1, sign, 0.5, 0.0, 0.0) == higher(pursuit, 1)
        assert side(pursuit, 1, sign, 0.5, 4.0, 1.9) == lower(pursuit, 1)  # running: 2.0 are wanted of them
        assert side(pursuit, 1, sign, 0.5, 4.0, 2.1) == higher(pursuit, 1)
    enter(pursuit, 1, FLOOR, 0.5, 1.0, 0.5, 0.2, 0.5)  # it brought what was wanted, but by luck
    assert pursuit.planned[1] == pytest.approx(0.3)
    assert side(pursuit, 1, FLOOR, 0.5, 0.0, 0.0) == lower(pursuit, 1)
