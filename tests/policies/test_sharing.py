"""What kinds tell one another of their options: the two-way model against brute force and numbers found by hand."""

from __future__ import annotations

import math
import random
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference import least_shared_evidence_on_a_grid
from worthwhile import state as states
from worthwhile.compiling import machine_code
from worthwhile.decision import Decision
from worthwhile.live import engines
from worthwhile.policies.imed import RatioImed, State, index_of_new
from worthwhile.policies.sharing import (
    Effects,
    Forecast,
    cell_variance,
    evidence_of_others,
    forecast,
    foretold,
    is_shared,
    natural_log,
    option_effect,
    take_in_cell,
    trust,
    variance,
)
from worthwhile.rng import Rng

RNG, OPTIONS, IDLE = Rng(7, 3), np.arange(3, dtype=np.uint32), np.zeros(3, np.uint32)
Report = tuple[int, int, float, float]  # kind, option, reward, cost


def learn(state: State, kind: int, option: int, reward: float, cost: float) -> None:
    RatioImed().learn(state, kind, Decision(option, 0.0, 0.0), reward, cost, RNG)


def state_after(*reports: Report, kinds: int = 3, options: int = 3) -> State:
    state = RatioImed().init(kinds, options)
    for report in reports:
        learn(state, *report)
    return state


class Plain(NamedTuple):
    """One measure of the model as plain lists and loops have it."""

    value: dict[tuple[int, int], float]
    kind: list[float]
    new: list[float]  # first values, in their order
    errors: list[float]  # squared and weighted
    plain_errors: list[float]


def effect_of_option(plain: Plain, option: int) -> float:
    """Σ (value − effect of the kind), with a tenth of a cell at the overall mean."""
    mean = sum(plain.new) / len(plain.new) if plain.new else 0.0
    beyond = [value - plain.kind[kind] for (kind, other), value in plain.value.items() if other == option]
    return (sum(beyond) + 0.1 * mean) / (len(beyond) + 0.1)


def enter(plain: Plain, kind: int, option: int, value: float) -> None:
    """One report: score the forecast of a new cell, then fit the effect of its kind."""
    if (kind, option) not in plain.value:
        here = [known for (other, _), known in plain.value.items() if other == kind]
        there = [known for (_, other), known in plain.value.items() if other == option]
        if here and there:
            unsure = 1.0 / (len(here) + 0.5) + 1.0 / (len(there) + 0.1)
            error = value - plain.kind[kind] - effect_of_option(plain, option)
            plain.errors.append(error**2 / (1.0 + unsure))
            plain.plain_errors.append((value - sum(here) / len(here)) ** 2 / (1.0 + 1.0 / len(here)))
        plain.new.append(value)
    plain.value[kind, option] = value
    cells = {option: known for (other, option), known in plain.value.items() if other == kind}
    beyond = sum(known - effect_of_option(plain, option) for option, known in cells.items())
    plain.kind[kind] = beyond / (len(cells) + 0.5)


def agrees(effects: Effects, plain: Plain, state: State) -> None:
    close = {"rel": 1e-9, "abs": 1e-9}
    assert effects.kind.tolist() == pytest.approx(plain.kind, **close)
    tried = state.arms.pulls > 0.0
    for (kind, option), value in plain.value.items():
        assert effects.value[kind, option] == pytest.approx(value, **close)
    beyond = np.where(tried, effects.value - effects.kind[:, None], 0.0)
    assert effects.total == pytest.approx(beyond.sum(axis=0), **close)
    for option, cells in enumerate(tried.sum(axis=0).tolist()):
        assert option_effect(effects, option, cells) == pytest.approx(effect_of_option(plain, option), **close)
    assert effects.mean[0] == pytest.approx(np.mean(plain.new), **close)
    assert effects.squares[0] == pytest.approx(np.var(plain.new) * len(plain.new), **close)
    assert effects.error[0] == pytest.approx(sum(plain.errors), **close)
    assert effects.plain_error[0] == pytest.approx(sum(plain.plain_errors), **close)


@pytest.mark.parametrize("seed", range(4))
def test_effects_are_those_of_a_direct_computation_after_every_report(seed: int) -> None:
    luck, state = np.random.default_rng(seed), RatioImed().init(4, 5)
    reward, cost = (Plain({}, [0.0] * 4, [], [], []) for _ in range(2))
    seen: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for _ in range(120):
        kind, option = int(luck.integers(4)), int(luck.integers(5))
        reports = seen.setdefault((kind, option), [])
        reports.append((float(luck.normal(kind - option, 1.0)), float(luck.uniform(0.6, 1.4) * (1 + option))))
        learn(state, kind, option, *reports[-1])
        if len(reports) <= 8:  # later ones change nothing
            mean = np.mean(reports, axis=0)
            enter(reward, kind, option, float(mean[0]))
            enter(cost, kind, option, math.log(mean[1]))
        agrees(state.sharing.reward, reward, state)
        agrees(state.sharing.cost, cost, state)
    sharing, tried = state.sharing, state.arms.pulls > 0.0
    assert (sharing.kinds[0], sharing.cells[0]) == (tried.any(axis=1).sum(), tried.sum())
    assert sharing.kind_cells.tolist() == tried.sum(axis=1).tolist()
    assert sharing.option_cells.tolist() == tried.sum(axis=0).tolist()
    assert sharing.foretold[0] == len(reward.errors) == len(cost.errors)


def test_a_cost_that_has_no_logarithm_counts_as_what_the_model_foretold() -> None:
    state = state_after((0, 0, 1.0, 2.0), (0, 1, 1.0, 8.0), (1, 0, 1.0, 2.0))
    expected = foretold(state.sharing, state.sharing.cost, 1, 1)
    learn(state, 1, 1, 1.0, -3.0)
    assert state.sharing.cost.value[1, 1] == expected
    assert state.sharing.cost.error[0] == 0.0
    assert state.sharing.cost.plain_error[0] == pytest.approx((expected - math.log(2.0)) ** 2 / 2.0)


# Rewards 3 and 1 of options 0 and 1 in kind 0, 5 of option 0 in kind 1; every cost is e^reward, so that both measures
# have the same numbers. Kind 0 has no effect: its two cells differ from their options' effects by ± the same. The mean
# is 3, so option 0 has the effect (3 + 5 + 0.3)/2.1 = 83/21, and kind 1 (5 − 83/21)/1.5 = 44/63.
THREE: tuple[Report, ...] = tuple((k, o, r, math.exp(r)) for k, o, r in ((0, 0, 3.0), (0, 1, 1.0), (1, 0, 5.0)))
FORESEEN = 13 / 11 + 44 / 63  # option 1: (1 + 0.3)/1.1
UNSURE = 1 + 1 / 1.5 + 1 / 1.1
FORESEEN_VARIANCE = 4 * UNSURE  # ½ Σ (value − 3)² = ½ (0 + 4 + 4)
SURPRISE = (2 - FORESEEN) ** 2 / UNSURE
SQUARES = 8.75  # Σ (value − 2.75)² once there is a fourth cell, of 2: its third is the variance, thrice that the prior
DOUBT = 1 / 4  # ½/√(1 + 3) after one forecast
ONE_GOOD_FORECAST = math.sqrt(1 - (SURPRISE + SQUARES) / (9 / 2 + SQUARES) - DOUBT)
HEARSAY = 4.6  # the most that a forecast counts for


def test_a_forecast_worked_out_by_hand() -> None:
    state = state_after(*THREE)
    for effects in (state.sharing.reward, state.sharing.cost):
        assert effects.kind.tolist() == pytest.approx([0.0, 44 / 63, 0.0])
        assert variance(state.sharing, effects) == pytest.approx(4.0)
        assert cell_variance(state.sharing, effects, 1, 1) == pytest.approx(FORESEEN_VARIANCE)
    hand = (FORESEEN, math.exp(FORESEEN), FORESEEN_VARIANCE, FORESEEN_VARIANCE)
    assert forecast(state.sharing, 1, 1) == pytest.approx(hand)
    assert forecast(state.sharing, 2, 2)[:2] == pytest.approx((3.0, math.exp(3.0)))  # nobody knows: the overall mean
    assert cell_variance(state.sharing, state.sharing.reward, 2, 2) == pytest.approx(4 * (1 + 2 + 10))


def test_the_score_of_a_forecast_worked_out_by_hand() -> None:
    """The cell turns out to be 2: 2 − 1303/693 off by the model, 2 − 5 by the mean of its kind's one other cell."""
    state = state_after(*THREE, (1, 1, 2.0, math.exp(2.0)))
    sharing = state.sharing
    assert sharing.foretold[0] == 1.0
    for effects in (sharing.reward, sharing.cost):
        assert effects.error[0] == pytest.approx(SURPRISE)
        assert effects.plain_error[0] == pytest.approx(9 / 2)
        interaction = (SURPRISE + SQUARES) / (1 + 3)
        assert cell_variance(sharing, effects, 2, 0) == pytest.approx(interaction * (1 + 1 / 0.5 + 1 / 2.1))
    assert trust(state_after(*THREE).sharing, 0.0) == 0.0  # before the first forecast
    assert trust(sharing, 0.0) == pytest.approx(ONE_GOOD_FORECAST)
    assert trust(sharing, 7.0) == pytest.approx(trust(sharing, 0.0))  # both measures are equally good


def test_in_the_trust_costs_count_by_what_a_task_costs() -> None:
    """One measure as above, which the model foretells well; the other's last is that of the kind's other cell instead:
    its plain mean is not off at all, the model by 5 − FORESEEN, and Σ (value − 3.5)² = 11."""
    off = (5 - FORESEEN) ** 2 / UNSURE

    def by_hand(well: float, badly: float) -> float:
        """The measures weigh this much in R − θC."""
        errors, plain = well * (SURPRISE + SQUARES) + badly * (off + 11), well * (9 / 2 + SQUARES) + badly * 11
        return math.sqrt(max(0.0, 1 - errors / plain - DOUBT))

    costs_off, rewards_off = (state_after(*THREE, (1, 1, r, math.exp(c))).sharing for r, c in ((2.0, 5.0), (5.0, 2.0)))
    trusts = [trust(costs_off, unit) for unit in (0.0, 0.1, 0.3, 1.0, 1e3)]
    assert trusts[0] > trusts[1] > trusts[2] > 0.2
    assert trusts == pytest.approx([ONE_GOOD_FORECAST, by_hand(1, 0.01), by_hand(1, 0.09), 0.0, 0.0])
    trusts = [trust(rewards_off, unit) for unit in (0.0, 1.0, 4.0, 1e3)]
    assert trusts == pytest.approx([0.0, 0.0, by_hand(16, 1), by_hand(1e6, 1)])
    assert 0.2 < trusts[2] < trusts[3] == pytest.approx(ONE_GOOD_FORECAST, rel=1e-4)


@pytest.mark.parametrize("trusted", [0.0, 0.25, 1.0])
def test_the_index_of_a_new_option_worked_out_by_hand(trusted: float) -> None:
    state = state_after(*THREE)
    state.failures.anywhere.kinds[1] = 3.0
    often = math.log(1 + 3 / 2)  # it failed in 3 kinds, and works in 1 and, perhaps, here

    def index(top: float, price: float) -> float:
        return index_of_new(state, 1, 1, price, top, 5.0, math.log(2.0), trusted)

    price_of_a_try = math.log(2.0) + 0.5 * math.log(1 + (2 / 5) ** 2)
    evidence = 5 * math.log(1 + 2**2 / (2 * FORESEEN_VARIANCE) / 5)
    start = often + (1 - trusted) * math.log(1 / 2)
    assert index(FORESEEN - 9.0, 0.0) == index(FORESEEN - 1e-9, 0.0) == pytest.approx(start)
    assert index(FORESEEN + 2.0, 0.0) == pytest.approx(start + trusted * (price_of_a_try + evidence))
    cost = math.exp(FORESEEN)
    by_reward, by_cost = 2**2 / (2 * FORESEEN_VARIANCE), math.log(1 - 2 / cost) ** 2 / (2 * FORESEEN_VARIANCE)
    evidence = 5 * math.log(1 + 1 / (1 / by_reward + 1 / by_cost) / 5)
    assert index(FORESEEN - cost + 2.0, 1.0) == pytest.approx(start + trusted * (price_of_a_try + evidence))
    hopeless = math.log(2.0) + 0.5 * math.log(1 + (1000 / 5) ** 2) + HEARSAY
    assert index(FORESEEN + 1000.0, 0.0) == pytest.approx(start + trusted * hopeless)


def test_what_nobody_trusts_counts_for_nothing_however_certain_it_looks() -> None:
    """All first rewards are 0 and all costs 1: the variances are 0, and evidence would have no end.

    Kind 1 has a mean reward of ½ by now: option 0 the effect ½/2.1, the kind (½ − ½/2.1)/1.5 = 11/63, option 1 none.
    """
    state = state_after((0, 0, 0.0, 1.0), (0, 1, 0.0, 1.0), (1, 0, 0.0, 1.0), (1, 0, 1.0, 1.0))
    assert trust(state.sharing, 1.0) == 0.0
    assert index_of_new(state, 1, 1, 0.25, 0.25, 0.5, 0.0, 0.0) == math.log(1 / 2)
    behind = 0.25 - (11 / 63 - 0.25)
    most = HEARSAY + 0.5 * math.log(1 + (behind / 0.5) ** 2)
    assert index_of_new(state, 1, 1, 0.25, 0.25, 0.5, 0.0, 1.0) == pytest.approx(most)
    assert RatioImed().choose(state, 1, OPTIONS[:2], IDLE, RNG).option == 1


def test_a_kind_is_told_something_once_another_has_a_result() -> None:
    state = state_after((0, 0, 1.0, 1.0))
    assert [is_shared(state.sharing, kind) for kind in range(3)] == [False, True, True]
    learn(state, 1, 2, 1.0, 1.0)
    assert all(is_shared(state.sharing, kind) for kind in range(3))


def full_table(value: Any, noise: float = 0.0) -> State:
    """Every cell reported twice, kind after kind; rewards as given, and costs of e^−reward."""
    kinds, options = value.shape
    luck, state = np.random.default_rng(1), RatioImed().init(kinds, options)
    for kind in range(kinds):
        for option in luck.permutation(options).tolist():
            for _ in range(2):
                learn(
                    state, kind, option, value[kind, option] + luck.normal(0.0, noise), math.exp(-value[kind, option])
                )
    return state


@pytest.mark.parametrize("unit", [0.0, 0.3, 100.0])
def test_trust_is_near_1_where_kinds_differ_by_a_constant_and_0_where_they_have_nothing_in_common(unit: float) -> None:
    luck = np.random.default_rng(3)
    alike = luck.normal(size=(1, 8)) + luck.normal(size=(25, 1))
    assert trust(full_table(alike).sharing, unit) > 0.93
    assert 0.3 < trust(full_table(alike + luck.normal(size=(25, 8))).sharing, unit) < 0.8
    unlike = luck.normal(size=(25, 8)) + luck.normal(size=(25, 1))
    assert trust(full_table(unlike).sharing, unit) < 0.2
    opposite = np.outer(np.tile([1.0, -1.0], 12), luck.normal(size=8))
    assert trust(full_table(opposite).sharing, unit) == 0.0


def test_trust_does_not_depend_on_units_and_nothing_known_deserves_none() -> None:
    luck = np.random.default_rng(4)
    value = luck.normal(size=(1, 6)) + 0.5 * luck.normal(size=(9, 6))
    assert trust(RatioImed().init(3, 3).sharing, 1.0) == 0.0
    assert trust(full_table(1024.0 * value / 1024.0).sharing, 1.0) == trust(full_table(value).sharing, 1.0)
    same = np.full((4, 4), 0.7)
    assert trust(full_table(same).sharing, 1.0) == 0.0


numbers = st.floats(1e-300, 1e300) | st.floats(-300.0, 300.0).map(lambda power: 10.0**power) | st.floats(0.5, 2.0)


@settings(max_examples=1000)
@given(number=numbers)
def test_the_logarithm_is_a_logarithm(number: float) -> None:
    assert natural_log(number) == pytest.approx(math.log(number), rel=1e-14, abs=0.0)


def test_the_logarithm_has_the_same_bits_compiled() -> None:
    luck, code = np.random.default_rng(0), machine_code(natural_log, {})
    sample = [*(10.0 ** luck.uniform(-307, 308, 2000)), *luck.uniform(0.5, 2.0, 2000), 5e-324, 1.7976931348623157e308]
    assert [natural_log(number).hex() for number in map(float, sample)] == [
        float(code(number)).hex() for number in map(float, sample)
    ]
    assert natural_log(1.0) == 0.0


variances = st.floats(-4.0, 4.0).map(lambda power: 10.0**power)


def untailed(evidence: float) -> float:
    """What x was, if the evidence is 5 ln(1 + x/5)."""
    return 5.0 * math.expm1(evidence / 5.0)


def counted(x: float) -> float:
    """The other way round, and what hearsay may count for at most."""
    return min(5.0 * math.log1p(x / 5.0), HEARSAY)


@settings(max_examples=100)
@given(reward_variance=variances, log_cost_variance=variances, price=variances, share=st.floats(1e-6, 1e-3))
def test_evidence_of_others_is_the_least_of_all_ways_to_make_up_for_a_small_share(
    reward_variance: float, log_cost_variance: float, price: float, share: float
) -> None:
    foreseen = Forecast(1.0, 3.0, reward_variance, log_cost_variance)
    behind = share * 3.0 * price
    expected = least_shared_evidence_on_a_grid(behind, 3.0 * price, reward_variance, log_cost_variance)
    found = untailed(evidence_of_others(foreseen, behind, price))
    assert found == pytest.approx(expected, rel=2e-3, abs=1e-14)


@settings(max_examples=100)
@given(reward_variance=variances, log_cost_variance=variances, share=st.floats(1e-3, 3.0))
def test_evidence_of_others_is_never_less_than_the_least_nor_more_than_by_reward_alone(
    reward_variance: float, log_cost_variance: float, share: float
) -> None:
    expected = least_shared_evidence_on_a_grid(share, 1.0, reward_variance, log_cost_variance)
    found = evidence_of_others(Forecast(1.0, 1.0, reward_variance, log_cost_variance), share, 1.0)
    by_reward, rounding = 0.5 * share**2 / reward_variance, 2e-15  # of 5 ln(1 + x/5) for a small x
    assert counted(expected * (1.0 - 1e-4)) - rounding <= found <= counted(by_reward * (1.0 + 1e-9)) + rounding
    if share < 0.5:
        assert found <= counted(expected * (1.0 + 0.5 * share + 1e-4)) + rounding


@pytest.mark.parametrize("price", [-2.0, 0.0, 0.5])
@pytest.mark.parametrize("variances", [(1.0, 1.0), (1e-3, 10.0), (10.0, 1e-3), (1.0, 0.0)])
def test_the_further_behind_the_more_evidence_up_to_what_hearsay_counts_for(
    price: float, variances: tuple[float, float]
) -> None:
    foreseen = Forecast(1.0, 2.0, *variances)
    found = [evidence_of_others(foreseen, behind, price) for behind in np.geomspace(1e-6, 1e6, 500).tolist()]
    assert found == sorted(found)
    assert np.isfinite(found).all()
    assert found[0] < 1e-3
    assert found[-1] == HEARSAY


def test_where_only_costs_vary_what_they_cannot_make_up_for_counts_for_as_much_as_hearsay_can() -> None:
    foreseen = Forecast(1.0, 2.0, 0.0, 0.5)
    assert untailed(evidence_of_others(foreseen, 1.0, 1.0)) == pytest.approx(math.log(2.0) ** 2)
    assert evidence_of_others(foreseen, 2.0, 1.0) == HEARSAY
    assert evidence_of_others(Forecast(1.0, 2.0, 0.0, 0.0), 1.0, 1.0) == HEARSAY


def test_the_largest_and_smallest_numbers_leave_the_model_defined() -> None:
    """Far beyond what schedulers accept: squares overflow, the effects themselves do not."""
    luck, state = random.Random(3), RatioImed().init(4, 5)
    arms, sharing = engines.views(state.arms), engines.views(state.sharing)  # Python's own numbers: no warnings
    for _ in range(300):
        kind, option = luck.randrange(4), luck.randrange(5)
        new = arms.pulls[kind, option] == 0.0
        arms.pulls[kind, option] += 1.0
        arms.mean_reward[kind, option] = luck.uniform(-1.0, 1.0) * 10.0 ** luck.choice([-300, 0, 300])
        arms.mean_cost[kind, option] = luck.choice([-1.0, 0.0, 1.0, 1.0]) * 10.0 ** luck.choice([-300, 0, 300])
        take_in_cell(sharing, arms, kind, option, new)
        foreseen = forecast(sharing, kind, option)
        assert math.isfinite(foreseen.reward)
        assert 0.0 <= foreseen.cost < math.inf
        assert 0.0 <= trust(sharing, abs(arms.mean_cost[kind, option])) <= 1.0
        assert not any(np.isnan(array).any() for _, array in states.arrays(state.sharing))
