"""The default's index, term by term, as docs/policies.md gives it; worked out by hand or from the reports themselves.

An index is read off `choose` alone, so that these tests hold for any way to compute it: with the leader's running tasks
raised until the option is taken instead, ln(the leader's pulls) is the option's index. If the default's index is
changed on purpose, its term here is changed by hand, too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from reference import least_gamma_evidence_on_a_grid
from worthwhile.decision import Decision
from worthwhile.policies.imed import RatioImed, State
from worthwhile.rng import Rng, uniform

KIND, RNG = 1, Rng(7, 3)
ABSENT = 1e200  # so many running tasks that nobody would take the option
Reports = Mapping[int, Sequence[tuple[float, float]]]


def indices(*numbers: int) -> Any:
    return np.array(numbers, np.uint32)


def state_after(reports: Reports, price: float, least_cost: float | None = None, weight: float = 1.0) -> State:
    """KIND has these reports; the price is given, and so are the least cost and the weight of a report, if any."""
    policy = RatioImed()
    state = policy.init(2, 4)
    state.weight[0] = weight
    for option, pairs in reports.items():
        for reward, cost in pairs:
            policy.learn(state, KIND, Decision(option, 0.0, 0.0), reward, cost, RNG)
    state.plug_in.price[0] = price
    if least_cost is not None:
        state.least_cost[0] = least_cost
    return state


def index_of(
    option: int, leader: int, state: State, offer: Sequence[int], running: int = 0, policy: RatioImed | None = None
) -> float:
    """ln of the leader's pulls, running ones included, at which both are level; the rest are kept out of it."""
    pending = np.full(4, ABSENT)
    pending[option] = running
    reported = state.arms.pulls[KIND, leader] / state.weight[0]
    low, high = -30.0, 600.0
    for _ in range(80):
        middle = 0.5 * (low + high)
        pending[leader] = math.exp(middle) - reported
        chosen = (policy or RatioImed()).choose(state, KIND, indices(*offer), pending, RNG).option
        assert chosen in (option, leader)
        low, high = (low, middle) if chosen == option else (middle, high)
    return low


def moments(pairs: Sequence[tuple[float, float]]) -> tuple[float, float, float, float, float, float]:
    """Number, means, squares and products of some reports, from their definitions."""
    number = len(pairs)
    r, c = (sum(pair[place] for pair in pairs) / number for place in (0, 1))
    reward_squares = sum((reward - r) ** 2 for reward, _ in pairs)
    cost_squares = sum((cost - c) ** 2 for _, cost in pairs)
    return number, r, c, reward_squares, cost_squares, sum((reward - r) * (cost - c) for reward, cost in pairs)


# Costs that never vary can save nothing, so the reward alone has to catch up. Option 2 is at z* = 4 − 1, option 0 is 2
# behind. V = (2 + 6)/(1 + 2) = 8/3, and 3 pulls speak against it with (3 + 10)/2 · ln(1 + 3·2²/(6 + 10·8/3)).
SAME_COSTS: Reports = {2: [(3.0, 1.0), (5.0, 1.0)], 0: [(1.0, 1.0), (1.0, 1.0), (4.0, 1.0)]}
EVIDENCE = 6.5 * math.log(67 / 49)
PRICE_OF_A_TRY = 0.5 * math.log(1.25)  # ½ ln(1 + (2/4)²)


def test_the_index_is_evidence_and_the_logs_of_pulls_rivals_and_the_price_of_a_try() -> None:
    state = state_after(SAME_COSTS, price=1.0)
    assert index_of(0, 2, state, (0, 2)) == pytest.approx(math.log(3) + PRICE_OF_A_TRY + EVIDENCE, rel=1e-10)
    assert index_of(0, 2, state, (2, 0)) == pytest.approx(math.log(3) + PRICE_OF_A_TRY + EVIDENCE, rel=1e-10)


@pytest.mark.parametrize("offer", [(0, 1, 2), (3, 0, 1, 2)])
def test_rivals_count_by_the_log_of_their_number(offer: tuple[int, ...]) -> None:
    """The others on offer run and have not reported: they tell nothing of variances."""
    expected = math.log(3) + math.log(len(offer) - 1) + PRICE_OF_A_TRY + EVIDENCE
    assert index_of(0, 2, state_after(SAME_COSTS, price=1.0), offer) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("running", [1, 2, 30])
def test_running_tasks_count_as_pulls(running: int) -> None:
    pulls = 3 + running
    expected = math.log(pulls) + PRICE_OF_A_TRY + EVIDENCE * pulls / 3
    assert index_of(0, 2, state_after(SAME_COSTS, price=1.0), (0, 2), running) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("caution", [0.5, 4.0])
def test_caution_divides_the_evidence_alone(caution: float) -> None:
    expected = math.log(3) + PRICE_OF_A_TRY + EVIDENCE / caution
    found = index_of(0, 2, state_after(SAME_COSTS, price=1.0), (0, 2), policy=RatioImed(caution=caution))
    assert found == pytest.approx(expected, rel=1e-10)


def test_a_try_is_priced_in_the_leaders_reward_whatever_its_sign() -> None:
    lost: Reports = {option: [(reward - 8.0, cost) for reward, cost in pairs] for option, pairs in SAME_COSTS.items()}
    expected = math.log(3) + 0.5 * math.log(1 + (2 / 4) ** 2) + EVIDENCE  # the leader's reward is −4
    assert index_of(0, 2, state_after(lost, price=1.0), (0, 2)) == pytest.approx(expected, rel=1e-10)
    nothing: Reports = {
        option: [(reward - 4.0, cost) for reward, cost in pairs] for option, pairs in SAME_COSTS.items()
    }
    expected = math.log(3) + EVIDENCE  # the leader earns nothing: a try has no price in its tasks
    assert index_of(0, 2, state_after(nothing, price=1.0), (0, 2)) == pytest.approx(expected, rel=1e-10)
    cheap: Reports = {2: [(5.0, 2.0), (5.0, 2.0)], 0: [(4.0, 2.0), (4.0, 2.0), (4.0, 2.0)]}
    assert index_of(0, 2, state_after(cheap, price=1.0), (0, 2)) > math.log(3) + 0.5 * math.log(1 + 0.2**2)


def test_options_at_the_top_are_compared_by_their_pulls_alone() -> None:
    state = state_after({0: [(1.0, 1.0)] * 3, 2: [(2.0, 2.0)] * 2}, price=1.0)  # both at 0
    assert index_of(0, 2, state, (0, 1, 2, 3)) == pytest.approx(math.log(3), rel=1e-10)
    assert index_of(0, 2, state, (0, 1, 2, 3), running=4) == pytest.approx(math.log(7), rel=1e-10)
    level = np.array([0.0, 0.0, 1.0, 0.0])
    assert RatioImed().choose(state, KIND, indices(0, 2), level, RNG).option == 0  # the first of equals
    assert RatioImed().choose(state, KIND, indices(2, 0), level, RNG).option == 2


@pytest.mark.parametrize("weight", [1.0, 2.0**20])
def test_evidence_is_the_same_whatever_a_report_weighs_now(weight: float) -> None:
    state = state_after(SAME_COSTS, price=1.0, weight=weight)
    expected = math.log(5) + PRICE_OF_A_TRY + EVIDENCE * 5 / 3
    assert index_of(0, 2, state, (0, 2), running=2) == pytest.approx(expected, rel=1e-9)


def test_old_pulls_count_for_their_share_of_a_new_one() -> None:
    """All was reported when reports weighed half: 1 pull and 1½ pulls are left, and V has ½ freedom, counted as 1."""
    state = state_after(SAME_COSTS, price=1.0)
    state.weight[0] = 2.0
    pulls, squares, pooled = 1.5, 3.0, 3.0 / 1.0  # 6/2; the leader's one pull is no freedom
    evidence = (pulls + 10) / 2 * math.log(1 + pulls * 4 / (squares + 10 * pooled))
    expected = math.log(pulls) + PRICE_OF_A_TRY + evidence
    assert index_of(0, 2, state, (0, 2)) == pytest.approx(expected, rel=1e-10)


def limited(index: float, number: int, options: int) -> float:
    """Two reports have a limit: √2 · 4.6, with four times the rivals."""
    return min(index, math.log(number) + 4.6 * math.sqrt(number) + 4 * math.log(options - 1)) if number <= 2 else index


VARYING: Reports = {
    0: [(1.0, 2.0), (1.5, 1.0), (0.5, 3.0), (1.5, 2.5)],
    1: [(3.0, 4.0)],
    2: [(4.0, 1.5), (5.0, 2.0), (3.5, 1.0)],
    3: [(0.5, 0.25), (0.25, 0.5)],
}


def gamma_index(option: int, leader: int, offer: Sequence[int], price: float) -> float:
    """By docs/policies.md, from the reports: Gaussian rewards of unknown variance, Gamma costs."""
    rows = {each: moments(VARYING[each]) for each in offer}
    freedom = sum(row[0] - 1 for row in rows.values())
    pooled_reward = sum(row[3] for row in rows.values()) / freedom
    pooled_relative_cost = sum(row[4] / row[2] ** 2 for row in rows.values()) / freedom
    n, reward, cost, reward_squares, cost_squares, _ = rows[option]
    top = rows[leader][1] - price * rows[leader][2]
    behind = top - (reward - price * cost)
    nu = (reward_squares + 10 * pooled_reward) / n / (price * cost) ** 2
    kappa = cost**2 * n / (cost_squares + 10 * pooled_relative_cost * cost**2)
    evidence = (n + 10) * least_gamma_evidence_on_a_grid(behind / (price * cost), nu, kappa)
    price_of_a_try = 0.5 * math.log(1 + (behind / rows[leader][1]) ** 2)
    return limited(math.log(n) + math.log(len(offer) - 1) + price_of_a_try + evidence, int(n), len(offer))


@pytest.mark.parametrize("offer", [(0, 2), (0, 1, 2), (0, 1, 2, 3)])
@pytest.mark.parametrize("price", [0.25, 1.0])
def test_the_index_where_all_costs_are_positive(price: float, offer: tuple[int, ...]) -> None:
    state = state_after(VARYING, price)
    for option in offer:
        if option != 2 and len(VARYING[option]) > 1:  # one pull has a limit of its own
            assert index_of(option, 2, state, offer) == pytest.approx(gamma_index(option, 2, offer, price), rel=1e-8)


def gaussian_index(option: int, leader: int, offer: Sequence[int], price: float, positive_costs: bool = False) -> float:
    """By docs/policies.md, from the reports: Gaussian rewards and costs, with their covariance."""
    rows = {each: moments(VARYING[each]) for each in offer}
    freedom = sum(row[0] - 1 for row in rows.values())
    pooled = [sum(row[place] for row in rows.values()) / freedom for place in (3, 4, 5)]
    n, reward, cost, *sums = rows[option]
    if positive_costs:  # then costs vary in proportion, whatever the price
        pooled[1] = sum(row[4] * (cost / row[2]) ** 2 for row in rows.values()) / freedom
    variance, cost_variance, covariance = ((own + 10 * kinds) / n for own, kinds in zip(sums, pooled, strict=True))
    top = rows[leader][1] - price * rows[leader][2]
    behind = top - (reward - price * cost)
    whole = variance + price**2 * cost_variance - 2 * price * covariance
    squares = behind**2 / whole
    if (
        behind * (price * cost_variance - covariance) / whole > cost
    ):  # the cost falls to 0, the reward makes up the rest
        shift = np.array([behind - price * cost, -cost])
        squares = shift @ np.linalg.inv([[variance, covariance], [covariance, cost_variance]]) @ shift
    evidence = (n + 10) / 2 * math.log(1 + squares)
    price_of_a_try = 0.5 * math.log(1 + (behind / rows[leader][1]) ** 2)
    return limited(math.log(n) + math.log(len(offer) - 1) + price_of_a_try + evidence, int(n), len(offer))


@pytest.mark.parametrize("offer", [(0, 2), (0, 1, 2), (0, 1, 2, 3)])
@pytest.mark.parametrize("price", [0.25, 1.0, 4.0])
@pytest.mark.parametrize("least_cost", [0.0, -1.0])
def test_the_index_where_some_cost_was_not_positive(least_cost: float, price: float, offer: tuple[int, ...]) -> None:
    state = state_after(VARYING, price, least_cost)
    leader = max(offer, key=lambda each: moments(VARYING[each])[1] - price * moments(VARYING[each])[2])
    for option in offer:
        if option != leader and len(VARYING[option]) > 1:
            expected = gaussian_index(option, leader, offer, price)
            assert index_of(option, leader, state, offer) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("price", [0.0, -0.5])
def test_costs_count_as_gaussian_where_the_price_is_not_positive(price: float) -> None:
    state = state_after(VARYING, price)
    expected = gaussian_index(3, 2, (2, 3), price, positive_costs=True)
    assert index_of(3, 2, state, (2, 3)) == pytest.approx(expected, rel=1e-10)


def test_costs_count_as_gaussian_where_the_price_is_too_small_to_square() -> None:
    assert index_of(0, 2, state_after(VARYING, 1e-200), (0, 2)) == pytest.approx(
        gaussian_index(0, 2, (0, 2), 1e-200, positive_costs=True), rel=1e-10
    )


ONE_PULL = ([(5.0, 1.0)] * 3, (2.0, 1.0))  # the leader and a worse option, without noise
SETBACK = 0.5 * math.log(1 + (3 / 5) ** 2)


def test_one_pull_alone_never_counts_for_more_than_4_6_where_there_is_one_rival() -> None:
    """Nothing has noise, so nothing speaks for a second look but this limit; what a try costs is part of it."""
    pairs, worse = ONE_PULL
    one = state_after({2: pairs, 0: [worse]}, 1.0)
    assert index_of(0, 2, one, (0, 2)) == pytest.approx(4.6, rel=1e-10)
    assert index_of(0, 2, one, (0, 2), running=1) == pytest.approx(math.log(2) + 4.6, rel=1e-10)
    faded = state_after({2: pairs, 0: [worse] * 2}, 1.0)
    faded.weight[0] = 2.0  # two pulls that are worth one
    assert index_of(0, 2, faded, (0, 2)) == pytest.approx(4.6, rel=1e-10)


def test_two_pulls_count_for_root_two_times_as_much_and_three_are_certain_where_nothing_has_noise() -> None:
    pairs, worse = ONE_PULL
    two, three = (state_after({2: pairs, 0: [worse] * number}, 1.0) for number in (2, 3))
    assert index_of(0, 2, two, (0, 2)) == pytest.approx(math.log(2) + 4.6 * math.sqrt(2), rel=1e-10)
    least_variance = 1e-18 * (2.0**2 + 3.0**2)  # smaller ones are rounding
    certain = math.log(3) + SETBACK + (3 + 10) / 2 * math.log(1 + 3.0**2 / least_variance)
    assert index_of(0, 2, three, (0, 2)) == pytest.approx(certain, rel=1e-10)


def test_with_more_rivals_one_pull_counts_for_seven_and_the_price_or_for_4_6_and_four_times_the_rivals() -> None:
    pairs, worse = ONE_PULL
    for rivals, expected in ((2, 4.6 + 4 * math.log(2)), (3, 7.0 + math.log(3) + SETBACK)):
        others = {option: [worse] * 9 for option in (1, 3)[: rivals - 1]}
        state = state_after({2: pairs, 0: [worse], **others}, 1.0)
        assert index_of(0, 2, state, (0, 2, *others)) == pytest.approx(expected, rel=1e-10)


def test_rewards_of_nothing_count_for_1_9_times_the_log_of_one_more() -> None:
    for number in (2, 5, 40):
        state = state_after({2: [(5.0, 1.0)] * 3, 0: [(0.0, 1.0)] * number}, 1.0)
        price_of_a_try = 0.5 * math.log(1 + (5 / 5) ** 2)
        expected = math.log(number) + price_of_a_try + 1.9 * math.log(number + 1)
        assert index_of(0, 2, state, (0, 2)) == pytest.approx(expected, rel=1e-10)


def test_rivals_count_twice_beside_rewards_of_nothing() -> None:
    reports = {2: [(5.0, 1.0)] * 3, 0: [(0.0, 1.0)] * 5, 1: [(0.0, 2.0)] * 9, 3: [(0.0, 2.0)] * 9}
    expected = math.log(5) + 0.5 * math.log(2) + 1.9 * math.log(6) + 2 * math.log(3)
    assert index_of(0, 2, state_after(reports, 1.0), (0, 1, 2, 3)) == pytest.approx(expected, rel=1e-10)


def test_the_variance_of_the_kind_means_little_to_an_option_that_is_far_noisier() -> None:
    """Its own squares are 8, the leader's 2 of 101 pulls: V = 10/101. Four times that explains 4·10/101 of the 8."""
    leader = [(5.0, 1.0)] * 99 + [(4.0, 1.0), (6.0, 1.0)]
    state = state_after({2: leader, 0: [(1.0, 1.0), (5.0, 1.0)]}, 1.0)
    pooled = 10 / 101
    prior = 10 * 4 * pooled / 8
    evidence = (2 + prior) / 2 * math.log(1 + 2 * 2.0**2 / (8 + prior * pooled))
    expected = math.log(2) + 0.5 * math.log(1 + (2 / 5) ** 2) + evidence
    assert index_of(0, 2, state, (0, 2)) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("first", "second", "forgotten"),
    [(5.0, 0.1, True), (0.61, 0.2, True), (0.59, 0.1, False), (0.61, 0.21, False), (0.1, 5.0, False)],
)
def test_a_first_cost_that_was_a_one_off_is_forgotten(first: float, second: float, forgotten: bool) -> None:
    state = state_after({2: [(1.0, 0.2)] * 9, 0: [(1.0, first), (1.0, second)]}, 1.0)
    assert state.arms.pulls[KIND, 0] == (1.0 if forgotten else 2.0)
    assert state.arms.mean_cost[KIND, 0] == pytest.approx(second if forgotten else 0.5 * (first + second))
    assert state.one_offs[KIND] == forgotten


def test_two_slow_calls_at_once_are_forgotten_too() -> None:
    state = state_after({2: [(1.0, 0.2)] * 9, 0: [(1.0, 5.0), (0.9, 5.2), (1.0, 0.1)]}, 1.0)
    assert [float(part[KIND, 0]) for part in state.arms] == [1.0, 1.0, 0.1, 0.0, 0.0, 0.0]


def test_a_first_cost_within_the_kinds_noise_is_kept() -> None:
    """Costs of 0.1 and 0.3 have a variance of ½ of their mean's square: 6·√2·√½ = 6 times the second above it."""
    noisy = [(1.0, 0.1), (1.0, 0.3)]
    for first, pulls in ((0.69, 2.0), (0.71, 1.0)):
        state = state_after({2: noisy, 0: [(1.0, first), (1.0, 0.1)]}, 1.0)
        assert state.arms.pulls[KIND, 0] == pulls


def test_a_first_cost_is_kept_where_another_option_costs_as_much_or_nothing_is_known_of_the_noise() -> None:
    state = state_after({2: [(1.0, 0.2)] * 9, 1: [(1.0, 2.0)] * 2, 0: [(1.0, 5.0), (1.0, 0.1)]}, 1.0)
    assert state.arms.pulls[KIND, 0] == 2.0
    assert state_after({0: [(1.0, 5.0), (1.0, 0.1)]}, 1.0).arms.pulls[KIND, 0] == 2.0


def test_where_one_first_cost_was_a_one_off_the_others_are_tried_again() -> None:
    state = state_after({1: [(1.0, 0.3)] * 9, 2: [(1.0, 5.0), (1.0, 0.2), (1.0, 0.2)], 0: [(1.0, 7.0)]}, 1.0)
    idle = np.zeros(4, np.uint32)
    assert RatioImed().choose(state, KIND, indices(0, 1, 2), idle, RNG).option == 0


def test_a_mean_cost_of_0_is_no_stumbling_block() -> None:
    """Rewards: V = ½, costs: V = 2 as the option's own, and nothing can be saved of 0."""
    state = state_after({2: [(3.0, 1.0), (4.0, 1.0)], 0: [(1.0, -1.0), (2.0, 1.0)]}, price=1.0)
    reward, cost, covariance = (0.5 + 10 * 0.5) / 2, (2 + 10 * 1) / 2, (1 + 10 * 0.5) / 2
    squares = 1.0**2 * cost / (reward * cost - covariance**2)  # 1 behind: z is 2½ and 1½
    expected = math.log(2) + 0.5 * math.log(1 + (1 / 3.5) ** 2) + (2 + 10) / 2 * math.log(1 + squares)
    assert index_of(0, 2, state, (0, 2)) == pytest.approx(expected, rel=1e-10)


def test_an_option_whose_price_tag_never_varies_and_cannot_catch_up_is_never_taken() -> None:
    """Gaussian, and reward and cost move together: R − θC has no variance at all."""
    pairs: Reports = {2: [(4.0, 1.0), (5.0, 2.0)], 0: [(1.0, 1.0), (2.0, 2.0), (1.0, 1.0)]}
    state, pending = state_after(pairs, 1.0, least_cost=-1.0), np.zeros(4)
    for running in (1e3, 1e9, 1e300):
        pending[2] = running
        assert RatioImed().choose(state, KIND, indices(0, 2), pending, RNG).option == 2


def test_an_only_option_is_taken_with_its_means() -> None:
    state = state_after({2: [(4.0, 1.0), (5.0, 2.0)]}, price=1.0)
    assert RatioImed().choose(state, KIND, indices(2), np.zeros(4), RNG) == (2, 4.5, 1.5)
    assert RatioImed().choose(state, KIND, indices(3), np.zeros(4), RNG) == (3, 0.0, 0.0)
    assert RatioImed().judge(state, KIND, 2) == (2, 4.5, 1.5)


def test_a_decision_carries_the_means_of_its_option() -> None:
    state = state_after(SAME_COSTS, price=1.0)
    assert RatioImed().choose(state, KIND, indices(0, 2), np.zeros(4), RNG) == (2, 4.0, 1.0)
    assert RatioImed().choose(state, KIND, indices(0, 2), np.array([0.0, 0.0, 1e9, 0.0]), RNG) == (0, 2.0, 1.0)
    assert RatioImed().choose(state, KIND, indices(2, 3, 1), np.zeros(4), RNG) == (3, 0.0, 0.0)  # not tried yet


@pytest.mark.parametrize(
    ("reported", "pending", "chosen"),
    [
        ([], [0, 0, 0, 0], 3),  # the first on offer
        ([3], [0, 0, 0, 0], 1),
        ([3], [0, 1, 0, 0], 0),  # what runs has been tried
        ([3, 1], [0, 0, 0, 5], 0),
        ([3], [1, 1, 0, 0], 3),  # all run or have reported: by their indices
        ([], [1, 0, 0, 1], 1),
    ],
)
def test_every_option_is_tried_once_first(reported: list[int], pending: list[int], chosen: int) -> None:
    state = state_after({option: [(1.0, 1.0)] for option in reported}, price=1.0)
    assert RatioImed().choose(state, KIND, indices(3, 1, 0), indices(*pending), RNG).option == chosen


def test_while_all_run_and_none_has_reported_the_fewest_running_are_joined_ties_at_random() -> None:
    policy, state = RatioImed(), RatioImed().init(2, 4)
    assert policy.choose(state, KIND, indices(3, 1, 0), indices(2, 1, 9, 3), RNG).option == 1
    seen = set()
    for task in range(1, 60):
        rng, expected = Rng(5, task), 3
        if uniform(rng, 1) * 2 < 1.0:  # the second of two with chance ½, the third of three with ⅓
            expected = 1
        if uniform(rng, 2) * 3 < 1.0:
            expected = 0
        assert policy.choose(state, KIND, indices(3, 1, 0), indices(4, 4, 9, 4), rng).option == expected
        seen.add(expected)
        late = 0 if uniform(rng, 2) * 2 < 1.0 else 1  # a new minimum starts the count of equals anew
        assert policy.choose(state, KIND, indices(3, 1, 0), indices(4, 4, 9, 5), rng).option == late
    assert seen == {0, 1, 3}


def test_the_price_is_that_of_the_best_tried_options_weighed_by_arrivals() -> None:
    policy = RatioImed()
    state = policy.init(2, 3)
    prices = []
    for kind, option, reward, cost in ((1, 0, 2.0, 1.0), (1, 2, 3.0, 3.0), (0, 1, 1.0, 2.0), (0, 1, 1.0, 2.0)):
        policy.learn(state, kind, Decision(option, 0.0, 0.0), reward, cost, RNG)
        prices.append(float(state.plug_in.price[0]))
    assert prices == [2.0, 2.0, 5 / 4, 6 / 6]  # (2, 1) beats (3, 3) at price 2; then (1, 2) once and twice
    policy.learn(state, 0, Decision(2, 0.0, 0.0), 4.0, 1.0, RNG)
    assert state.plug_in.price[0] == (4 + 3 * 4) / (2 + 3 * 1)


def test_a_kind_is_refreshed_by_the_arrivals_of_others() -> None:
    policy = RatioImed()
    state = policy.init(2, 2)
    for kind, option, reward, cost in ((0, 0, 4.0, 4.0), (0, 1, 1.0, 0.5), (1, 0, 1.0, 1.0)):
        policy.learn(state, kind, Decision(option, 0.0, 0.0), reward, cost, RNG)
    # at price 1, kind 0 had (4, 4) first, then 1 − ½ beat 4 − 4: (1, ½) twice; kind 1 adds (1, 1)
    assert state.plug_in.price[0] == 3 / 2
    policy.observe(state, 0, 1, -9.0, 1.0, RNG)  # (−4, ¾) now: worse than (4, 4)
    assert state.plug_in.price[0] == 3 / 2
    policy.learn(state, 1, Decision(0, 0.0, 0.0), 1.0, 1.0, RNG)
    assert state.plug_in.price[0] == (2 * 4 + 2) / (2 * 4 + 2)


def test_the_first_of_equal_options_counts_for_the_price() -> None:
    policy = RatioImed()
    state = policy.init(1, 3)
    state.arms.pulls[0], state.arms.mean_reward[0], state.arms.mean_cost[0] = [0, 1, 1], [9, 2, 2], [1, 4, 1]
    policy.learn(state, 0, Decision(1, 0.0, 0.0), 2.0, 4.0, RNG)
    assert state.plug_in.price[0] == 0.5  # at price 0 both earn 2: the first costs 4
    policy.learn(state, 0, Decision(1, 0.0, 0.0), 2.0, 4.0, RNG)
    assert state.plug_in.price[0] == 2.0


def test_learning_and_observing_note_the_least_cost() -> None:
    policy = RatioImed()
    state = policy.init(1, 2)
    assert (state.least_cost[0], state.weight[0]) == (math.inf, 1.0)
    policy.learn(state, 0, Decision(0, 0.0, 0.0), 1.0, 3.0, RNG)
    policy.observe(state, 0, 1, 1.0, 2.0, RNG)
    assert state.least_cost[0] == 2.0
    policy.learn(state, 0, Decision(0, 0.0, 0.0), 1.0, -3.0, RNG)
    policy.observe(state, 0, 1, 1.0, 2.0, RNG)
    assert state.least_cost[0] == -3.0


def test_a_side_observation_is_no_arrival() -> None:
    policy = RatioImed(half_life=2.0)
    state = policy.init(1, 2)
    state.weight[0] = 4.0
    policy.observe(state, 0, 1, 3.0, 2.0, RNG)
    assert state.arms.pulls.tolist() == [[0.0, 4.0]]
    assert (state.plug_in.arrivals[0], state.plug_in.price[0], state.weight[0]) == (0.0, 0.0, 4.0)


def test_the_next_report_weighs_more() -> None:
    """By (1 + s)/(1 − s) with s = ½ ln 2/half-life: 2^(1/half-life) but for s³."""
    policy = RatioImed(half_life=4.0)
    state = policy.init(1, 1)
    step = 0.69314718055994531 / 8
    growth = (1 + step) / (1 - step)
    assert growth == pytest.approx(2 ** (1 / 4), rel=1e-3)
    for _ in range(3):
        policy.learn(state, 0, Decision(0, 0.0, 0.0), 1.0, 3.0, RNG)
    assert state.weight[0] == pytest.approx(growth**3, rel=1e-14)
    assert state.arms.pulls[0, 0] == pytest.approx(1 + growth + growth**2, rel=1e-14)
    assert state.plug_in.arrivals[0] == pytest.approx(1 + growth + growth**2, rel=1e-14)
    still = RatioImed().init(1, 1)
    RatioImed().learn(still, 0, Decision(0, 0.0, 0.0), 1.0, 3.0, RNG)
    assert still.weight[0] == 1.0


def test_weights_are_scaled_down_together_and_what_was_seen_keeps_a_little() -> None:
    policy, heaviest = RatioImed(half_life=1.0), 2.0**400
    state = policy.init(3, 2)
    for kind, option, reward, cost in ((0, 0, 2.0, 1.0), (0, 0, 4.0, 3.0), (2, 1, 1.0, 1.0)):
        RatioImed().learn(state, kind, Decision(option, 0.0, 0.0), reward, cost, RNG)
    arms, plug_in = state.arms, state.plug_in
    for array in (arms.pulls, arms.reward_squares, arms.cost_squares, arms.products):
        array[0] *= heaviest  # kind 0 was reported lately, kind 2 when a report weighed 1
    plug_in.arrivals[0], plug_in.reward[0], plug_in.cost[0] = 2 * heaviest, 6 * heaviest, 4 * heaviest
    plug_in.total_reward[0], plug_in.total_cost[0] = 6 * heaviest, 4 * heaviest
    state.weight[0] = heaviest / 4
    policy.learn(state, 0, Decision(0, 0.0, 0.0), 3.0, 2.0, RNG)
    step = 0.69314718055994531 / 2
    growth = (1 + step) / (1 - step)  # a crude 2
    assert state.weight[0] == pytest.approx(heaviest / 4 * growth)  # not yet
    state.weight[0] = heaviest
    policy.learn(state, 0, Decision(0, 0.0, 0.0), 3.0, 2.0, RNG)
    assert state.weight[0] == 1.0
    pulls = (2 + 0.25 + 1) / growth
    assert arms.pulls == pytest.approx(np.array([[pulls, 0], [0, 0], [0, 2.0**-400]]), rel=1e-14, abs=0.0)
    assert arms.mean_reward[0, 0] == pytest.approx(3.0)
    for squares in (arms.reward_squares, arms.cost_squares, arms.products):
        assert squares[0, 0] == pytest.approx(2 / growth)
    assert plug_in.arrivals == pytest.approx([pulls, 0, 2.0**-400], rel=1e-14, abs=0.0)
    assert (plug_in.reward[0], plug_in.cost[0]) == pytest.approx((3 * pulls, 2 * pulls))
    assert (plug_in.total_reward[0], plug_in.total_cost[0]) == pytest.approx((3 * pulls, 2 * pulls))
    assert (plug_in.reward[2], plug_in.cost[2]) == pytest.approx((1 / (heaviest * growth),) * 2, rel=1e-14, abs=0.0)
    assert plug_in.price[0] == pytest.approx(1.5)


def test_weights_are_scaled_down_from_2_to_the_400th_on() -> None:
    policy = RatioImed(half_life=1.0)
    state = policy.init(1, 1)
    step = 0.69314718055994531 / 2
    growth = (1 + step) / (1 - step)
    assert 2.0 < growth < 2.1
    state.weight[0] = 2.0**398
    policy.learn(state, 0, Decision(0, 0.0, 0.0), 3.0, 2.0, RNG)
    assert state.weight[0] == pytest.approx(2.0**398 * growth)
    state.weight[0] = 2.0**399
    policy.learn(state, 0, Decision(0, 0.0, 0.0), 3.0, 2.0, RNG)
    assert state.weight[0] == 1.0
