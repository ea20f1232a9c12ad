"""Failures, as the default policy takes them: what they cost a completed task, and who is benched for how long."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from worthwhile.decision import Decision
from worthwhile.policies.failures import failure_variance
from worthwhile.policies.imed import RatioImed, State
from worthwhile.rng import Rng

RNG, OPTIONS = Rng(7, 3), np.arange(3, dtype=np.uint32)
IDLE = np.zeros(3, np.uint32)


def made(option: int) -> Decision:
    return Decision(option, 0.0, 0.0)


def new_state(*events: tuple[int, float | None, float], policy: RatioImed | None = None) -> State:
    """After so many (option, reward or None for a failure, cost)."""
    policy = policy or RatioImed()
    state = policy.init(2, 3)
    for event in events:
        happen(state, *event, policy=policy)
    return state


def happen(state: State, option: int, reward: float | None, cost: float, policy: RatioImed | None = None) -> None:
    policy = policy or RatioImed()
    if reward is None:
        policy.fail(state, 0, made(option), cost, RNG)
    else:
        policy.learn(state, 0, made(option), reward, cost, RNG)


def chosen(state: State, offered: int = 3, pending: Any = IDLE) -> int:
    return int(RatioImed().choose(state, 0, OPTIONS[:offered], pending, RNG).option)


def completed_cost(state: State, option: int) -> float:
    """As the index and the price count it."""
    arms, failures = state.arms, state.failures
    return float(arms.mean_cost[0, option] + failures.unpaid[0, option] / arms.pulls[0, option])


def test_a_completed_task_costs_c_and_cf_times_f_over_1_minus_f() -> None:
    luck = np.random.default_rng(3)
    fails, costs = luck.random(500) < 0.4, luck.gamma(2.0, 1.0, 500)
    state = new_state(*((0, None if fail else 1.0, float(cost)) for fail, cost in zip(fails, costs, strict=True)))
    rate, success, failure = fails.mean(), costs[~fails].mean(), costs[fails].mean()
    assert completed_cost(state, 0) == pytest.approx(success + failure * rate / (1 - rate), rel=1e-12)


def test_brute_force_agrees_on_what_a_completed_task_costs() -> None:
    """Whole tasks, each tried until it works: their mean cost is what the policy has learned."""
    luck = np.random.default_rng(4)
    state, total = RatioImed().init(2, 3), 0.0
    for _ in range(4000):
        while luck.random() < 0.75:
            total += 0.5
            happen(state, 0, None, 0.5)
        total += 2.0
        happen(state, 0, 1.0, 2.0)
    assert completed_cost(state, 0) == pytest.approx(total / 4000, rel=1e-12)
    assert completed_cost(state, 0) == pytest.approx(2.0 + 0.5 * 0.75 / 0.25, rel=0.05)
    assert state.plug_in.price[0] == pytest.approx(1.0 / completed_cost(state, 0), rel=1e-12)


def test_an_option_that_fails_at_nearly_no_cost_does_not_win() -> None:
    state = RatioImed().init(2, 3)
    tries = [0, 0, 0]
    for _ in range(300):
        option = chosen(state)
        tries[option] += 1
        happen(state, option, None if option == 2 else 0.8 - 0.1 * option, 1e-6 if option == 2 else 1.0)
    assert tries[2] == 6  # tasks 3, 14, 44, 97, 178 and 291
    assert tries[0] > 280


def test_a_benched_option_is_tried_again_after_ten_k_root_k_reports_of_its_kind() -> None:
    state, tries = new_state((0, 1.0, 1.0)), []
    for report in range(2, 600):
        option = chosen(state, offered=2)
        tries += [report] * option
        happen(state, option, None if option else 1.0, 1.0)
    assert tries == [
        2,
        13,
        43,
        96,
        177,
        290,
        438,
    ]  # 1 more than 10, 28.3, 52.0, 80, 111.8 and 147.0 after the one before


def test_another_kind_does_not_shorten_the_wait() -> None:
    state = new_state((0, 1.0, 1.0), (1, None, 1.0))
    for _ in range(100):
        RatioImed().learn(state, 1, made(0), 1.0, 1.0, RNG)
    assert chosen(state, offered=2) == 0


def test_no_probe_while_one_runs() -> None:
    state = new_state((0, 1.0, 1.0), (1, None, 1.0), *[(0, 1.0, 1.0)] * 9)
    assert chosen(state, offered=2) == 0
    happen(state, 0, 1.0, 1.0)
    assert chosen(state, offered=2) == 1
    assert chosen(state, offered=2, pending=np.array([0, 1, 0], np.uint32)) == 0


def test_the_first_success_brings_an_option_back_and_it_pays_for_its_failures() -> None:
    state = new_state((0, 0.5, 1.0), (1, None, 0.25), (1, None, 0.25))
    assert RatioImed().benched(state, 0, 1)
    happen(state, 1, 0.9, 1.0)
    assert not RatioImed().benched(state, 0, 1)
    assert state.arms.mean_cost[0, 1] == 1.5


def test_one_failure_of_an_option_that_works_is_no_reason_to_bench_it_but_three_are() -> None:
    state = new_state(*[(0, 0.9, 1.0)] * 50, (1, 0.5, 1.0))
    for failures in (1, 2, 3):
        happen(state, 0, None, 1e-6)
        assert RatioImed().benched(state, 0, 0) == (failures >= 2)
    assert chosen(state, offered=2) == 1  # which is the best that works; and the price is its own
    assert state.plug_in.price[0] == pytest.approx(0.5)


def test_an_option_that_often_fails_has_to_fail_longer_in_a_row() -> None:
    mixed = [(0, 0.9, 1.0), (0, None, 0.1)] * 25
    state, failures = new_state(*mixed, (0, 0.9, 1.0)), 0
    while not RatioImed().benched(state, 0, 0):
        happen(state, 0, None, 0.1)
        failures += 1
    assert failures == 10  # (26/53)¹⁰ · 60 tasks < 1/20


def test_where_nothing_works_the_options_take_turns_and_intervals_do_not_grow() -> None:
    state, tries = RatioImed().init(2, 3), [0, 0, 0]
    for _ in range(300):
        option = chosen(state)
        tries[option] += 1
        happen(state, option, None, 1.0)
    assert tries == [100, 100, 100]
    assert state.plug_in.price[0] == 0.0
    happen(state, chosen(state), 1.0, 1.0)
    assert max(RatioImed().next_try(state, 0, option) for option in range(3)) <= 10  # the others are tried soon


def test_a_kind_in_which_nothing_has_succeeded_does_not_enter_the_price() -> None:
    state = new_state((0, 1.0, 2.0))
    for _ in range(10):
        RatioImed().fail(state, 1, made(0), 50.0, RNG)
    assert state.plug_in.price[0] == 0.5


def test_failures_of_tasks_that_were_running_already_do_not_make_the_wait_longer() -> None:
    state = new_state(*[(0, 0.5, 1.0)] * 5, *[(1, 0.9, 1.0)] * 20)
    for _ in range(100):
        happen(state, 1, None, 0.1)
    assert RatioImed().next_try(state, 0, 1) <= 80  # their own reports are waited for, too
    assert state.failures.failed[0, 1] + state.failures.in_a_row[0, 1] == 100.0


def test_where_failing_is_usual_the_wait_is_shorter() -> None:
    steady = new_state(*[(0, 0.5, 1.0)] * 10, (1, None, 1.0))
    flaky = new_state(*[(0, 0.5, 1.0), (0, None, 1.0)] * 10, (0, 0.5, 1.0), (1, None, 1.0))
    assert RatioImed().next_try(steady, 0, 1) == 10
    assert RatioImed().next_try(flaky, 0, 1) == 3  # 10 · (12/22)²


def test_costs_of_failures_vary_as_geometric_numbers_do() -> None:
    luck, costs = np.random.default_rng(5), []
    state = RatioImed().init(2, 3)
    for _ in range(5000):
        failures = int(luck.geometric(0.25)) - 1
        for _ in range(failures):
            happen(state, 0, None, 0.5)
        happen(state, 0, 1.0, 2.0)
        costs.append(2.0 + 0.5 * failures)
    assert failure_variance(state.failures, state.arms, (0, 0), 1.0) == pytest.approx(np.var(costs), rel=0.1)
    assert state.arms.cost_squares[0, 0] == pytest.approx(5000 * np.var(costs), rel=1e-9)


def test_the_first_cost_of_an_option_that_failed_before_is_no_one_off() -> None:
    state = new_state(*[(1, 1.0, 1.0)] * 5, *[(0, None, 1.0)] * 9, (0, 1.0, 1.0), (0, 1.0, 1.0))
    assert completed_cost(state, 0) == 5.5


def test_what_is_unpaid_fades_with_the_pulls_that_it_is_divided_by() -> None:
    policy = RatioImed(half_life=10.0)
    state = new_state(*[(0, 1.0, 1.0)] * 20, (0, None, 1000.0), policy=policy)
    before = completed_cost(state, 0)
    for _ in range(100):
        happen(state, 1, 0.5, 1.0, policy)
    assert completed_cost(state, 0) == pytest.approx(before)


def test_late_reports_of_losses_never_make_a_mean_cost_negative() -> None:
    for half_life in (0.0, 1.0, 50.0):
        policy = RatioImed(half_life=half_life)
        state = new_state(*[(1, 1.0, 100.0)] * 3, policy=policy)
        for _ in range(64):
            policy.fail(state, 0, made(0), 100.0, RNG)
        for _ in range(64):
            policy.take_back(state, 0, 0, 100.0, RNG)
            policy.observe(state, 0, 0, 0.0, 1.0, RNG)
            assert state.arms.mean_cost[0, 0] > 0.9
        assert half_life > 0.0 or state.arms.mean_cost[0, 0] == pytest.approx(1.0)


def test_a_loss_is_taken_back_once_also_after_forgiving() -> None:
    policy, state = RatioImed(), new_state(*[(0, 1.0, 1.0)] * 3, (0, None, 50.0))
    policy.forgive(state, 0, 0)
    policy.take_back(state, 0, 0, 50.0, RNG)
    policy.observe(state, 0, 0, 1.0, 1.0, RNG)
    assert completed_cost(state, 0) == 1.0


def test_a_loss_that_is_taken_back_leaves_no_trace_but_the_arrival() -> None:
    policy, state = RatioImed(), new_state((0, 1.0, 1.0), (0, 1.0, 1.0))
    happen(state, 1, None, 0.7)
    policy.take_back(state, 0, 1, 0.7, RNG)
    policy.observe(state, 0, 1, 0.8, 0.7, RNG)
    assert not policy.benched(state, 0, 1)
    assert (state.arms.pulls[0, 1], state.arms.mean_cost[0, 1]) == (1.0, 0.7)
    assert state.plug_in.arrivals[0] == 3.0


def test_a_loss_taken_back_after_a_success_has_paid_for_it_is_paid_back() -> None:
    policy, state = RatioImed(), new_state((0, 1.0, 1.0), (0, None, 0.5), (0, 1.0, 1.0))
    policy.take_back(state, 0, 0, 0.5, RNG)
    assert state.arms.mean_cost[0, 0] == 1.0


def test_forgiving_brings_a_benched_option_back() -> None:
    policy, state = RatioImed(), new_state((0, 0.5, 1.0), (1, None, 0.25))
    policy.forgive(state, 0, 1)
    assert not policy.benched(state, 0, 1)
    assert chosen(state, offered=2) == 1  # as if it were new


def test_further_attempts_are_no_arrivals() -> None:
    policy, state = RatioImed(), new_state((0, None, 1.0))
    policy.observe_failure(state, 0, 1, 1.0, RNG)
    policy.observe(state, 0, 2, 1.0, 1.0, RNG)
    assert state.plug_in.arrivals[0] == 1.0


def test_failures_fade_as_reports_do() -> None:
    policy = RatioImed(half_life=2.0)
    state = new_state(*[(0, 1.0, 1.0), (0, None, 1.0)] * 2000, policy=policy)  # weights are scaled down on the way
    share = state.failures.failed[0, 0] / state.arms.pulls[0, 0]
    assert 0.5 < share < 1.5
    assert np.isfinite(completed_cost(state, 0))
