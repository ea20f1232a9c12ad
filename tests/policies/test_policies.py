"""Policies against their formulas, recomputed in other ways."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import SILENT, drive, same_for_all
from worthwhile.decision import Decision, arrive, contribute, new_plug_in, settle
from worthwhile.errors import BadParameter
from worthwhile.optimum import solve
from worthwhile.policies.base import checked, known
from worthwhile.policies.fixed import RandomOption
from worthwhile.policies.omega_ucb import omega, spread
from worthwhile.policies.registry import LIST, make
from worthwhile.problem import Noise, Problem, seven_kinds, two_kinds
from worthwhile.rng import Rng
from worthwhile.simulation.simulator import simulate


@given(
    mean=st.floats(0.0, 1.0), pulls=st.integers(1, 10_000), z=st.floats(0.01, 4.0), eta=st.floats(0.01, 1.0),
    low=st.floats(-2.0, 2.0), span=st.floats(0.1, 10.0),
)  # fmt: skip
def test_omega_bounds_solve_their_defining_equation(
    mean: float, pulls: int, z: float, eta: float, low: float, span: float
) -> None:
    high, x = low + span, low + mean * span
    for bound in omega(x, float(pulls), eta * z * z, low, high):
        room = max(0.0, (high - bound) * (bound - low))
        assert abs(x - bound) == pytest.approx(z * math.sqrt(eta * room / pulls), abs=1e-6 * span)
        assert low - 1e-9 * span <= bound <= high + 1e-9 * span
    lower, upper = omega(x, float(pulls), eta * z * z, low, high)
    assert lower <= x + 1e-9 * span
    assert upper >= x - 1e-9 * span


def test_omega_star_narrows_its_bounds_only_when_it_has_seen_enough() -> None:
    squares = 29 * 0.01  # a sample variance of 0.01, of at most 30/29 · 0.25
    assert spread(29.0, 0.5, squares, 0.0, 1.0, adaptive=True) == 1.0
    assert spread(30.0, 0.5, squares, 0.0, 1.0, adaptive=False) == 1.0
    assert spread(30.0, 0.5, squares, 0.0, 1.0, adaptive=True) == pytest.approx(0.01 / (30 / 29 * 0.25))


def test_the_plug_in_ratio_is_dinkelbachs_fixed_point() -> None:
    problem = seven_kinds()
    best = solve(problem)
    plug_in = new_plug_in(len(problem.kinds))
    for kind in np.random.default_rng(0).choice(len(problem.kinds), size=500, p=problem.arrival):
        for refreshed in (kind, arrive(plug_in, kind)):
            offered = np.flatnonzero(problem.offered[refreshed])
            scores = problem.reward[refreshed, offered] - plug_in.price[0] * problem.cost[refreshed, offered]
            option = offered[np.argmax(scores)]
            contribute(plug_in, refreshed, problem.reward[refreshed, option], problem.cost[refreshed, option])
        settle(plug_in)
    seen = Problem("seen", problem.kinds, problem.options, plug_in.arrivals / 500, problem.reward, problem.cost)
    assert plug_in.arrivals.sum() == 500
    assert plug_in.price[0] == pytest.approx(solve(seen).ratio, rel=1e-9)
    assert plug_in.price[0] == pytest.approx(best.ratio, rel=0.1)


def test_the_running_ratio_is_all_reward_over_all_cost() -> None:
    problem = two_kinds(0.8)
    state, _ = drive(make("running-ratio-dol", known(problem, 500)), problem, 500)
    arms = state.arms
    reward, cost = (arms.pulls * arms.mean_reward).sum(), (arms.pulls * arms.mean_cost).sum()
    assert state.price[0] == pytest.approx(reward / cost, rel=1e-9)


def test_explore_first_tries_every_option_before_any_twice() -> None:
    problem = same_for_all({"a": (0.1, 2.0), "b": (3.0, 1.0), "c": (0.2, 2.0)}, kinds=1, **SILENT)
    policy: Any = make("dol-rm,explore_first=true", known(problem, 100))
    assert drive(policy, problem, 3)[1].tolist() == [[1, 1, 1]]
    pending = np.array([0, 1, 0], np.uint32)
    assert policy.choose(policy.init(1, 3), 0, np.array([1, 2], np.uint32), pending, Rng(0, 1)).option == 2


def test_the_oracle_and_the_optimum_lose_next_to_nothing() -> None:
    result = simulate(two_kinds(0.8), ["oracle", "optimum", "random-option"], tasks=5000, runs=4, seed=2)
    regret = result.mean("regret")
    assert regret["optimum"] == 0.0
    assert 0.0 < regret["oracle"] < 10.0
    assert regret["random-option"] > 200.0


def test_ratio_policies_settle_on_the_greedy_option_and_reward_policies_on_the_dear_one() -> None:
    names = ["ratio-ucb", "ratio-ts", "omega-ucb", "m-ucb", "b-greedy", "reward-ucb", "reward-ts"]
    result = simulate(two_kinds(0.8), names, tasks=20_000, runs=2, seed=4)
    always_greedy = 20_000 * 0.2 * 0.6  # every task of the second kind loses 0.6
    for name, regret in result.mean("regret").items():
        assert 0.8 * always_greedy < regret < 1.05 * always_greedy, name


def test_the_fixed_option_is_taken_where_it_is_on_offer() -> None:
    problem = two_kinds(0.8)
    _, pulls = drive(make("fixed-option,option=a2", known(problem, 200)), problem, 200)
    assert pulls[0].tolist() == [pulls[0].sum(), 0]
    assert pulls[1].tolist() == [0, pulls[1].sum()]


def test_the_random_option_is_fair() -> None:
    problem = same_for_all({"a": (1.0, 1.0), "b": (1.0, 1.0), "c": (1.0, 1.0)}, kinds=1)
    _, pulls = drive(make("random-option", known(problem, 3000)), problem, 3000)
    assert np.abs(pulls - 1000).max() < 5 * math.sqrt(3000 * 2 / 9)


def test_bernoulli_posteriors_count_coins_of_the_right_bias() -> None:
    problem = same_for_all({"a": (0.3, 0.8)}, kinds=1, reward_noise=Noise(sd=0.0), cost_noise=Noise(sd=0.0))
    told = known(problem, 4000)._replace(reward_max=1.0, cost_max=1.0)
    state, _ = drive(make("bts", told), problem, 4000)
    assert abs(state.arms.mean_reward[0, 0] - 0.3) < 5 * math.sqrt(0.21 / 4000)
    assert abs(state.arms.mean_cost[0, 0] - 0.8) < 5 * math.sqrt(0.16 / 4000)


@pytest.mark.parametrize("name", LIST)
def test_a_policy_refuses_whichever_of_its_numbers_is_not_finite(name: str) -> None:
    told = known(two_kinds(), 100)
    for field, value in make(name, told)._asdict().items():
        if isinstance(value, float):
            with pytest.raises(BadParameter, match=f"{field} = nan; it must be a finite number"):
                make(f"{name},{field}=nan", told)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dol-rm,horizon=0", "DolRm: horizon = 0; it must be above 0"),
        ("sample-rm,cost_min=0", "SampleRm: cost_min = 0.0; it must be above 0"),
        ("running-ratio-dol,noise=-1", "RunningRatio: noise = -1.0; it must be 0 or more"),
        ("plug-in-dol,noise=-1", "PlugInDol: noise = -1.0; it must be 0 or more"),
        ("reward-ucb,horizon=-3", "RewardUcb: horizon = -3; it must be above 0"),
        ("ratio-ucb,cost_min=0", "RatioUcb: cost_min = 0.0; it must be above 0"),
        ("reward-ts,noise=-1", "RewardThompson: noise = -1.0; it must be 0 or more"),
        ("ratio-ts,cost_min=-1", "RatioThompson: cost_min = -1.0; it must be above 0"),
        ("omega-ucb,cost_max=0", "OmegaUcb: cost_max = 0.0; it must be above 0"),
        ("m-ucb,cost_max=0", "MUcb: cost_max = 0.0; it must be above 0"),
        ("bts,cost_max=0", "Bts: cost_max = 0.0; it must be above 0"),
        ("oracle,price_min=9,price_max=8", "Oracle: price_min = 9.0; it must not be above price_max = 8.0"),
        ("dol-rm,price_min=9,price_max=8", "DolRm: price_min = 9.0; it must not be above price_max = 8.0"),
    ],
)
def test_a_policy_checks_its_own_fields(text: str, message: str) -> None:
    with pytest.raises(BadParameter, match=message):
        make(text, known(two_kinds(), 100))


def test_a_policy_without_a_check_is_taken_as_it_is() -> None:
    assert checked(RandomOption()) == RandomOption()


def test_without_the_truth_a_policy_says_what_it_must_be_told() -> None:
    with pytest.raises(BadParameter, match="must be told horizon; write reward-ucb,horizon=value, or use ratio-imed"):
        make("reward-ucb")
    with pytest.raises(BadParameter, match="no option 'z' here"):
        make("fixed-option,option=z", options=["a", "b"])
    assert make("fixed-option,option=b", options=["a", "b"]).choose(
        None, 0, np.array([0, 1], np.uint32), np.zeros(2, np.uint32), Rng(0, 1)
    ) == Decision(1, 0.0, 0.0)
