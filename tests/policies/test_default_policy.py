"""The default policy: its evidence recomputed by brute force, what may not change its decisions, and odd inputs."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference import SILENT, drive, least_gamma_evidence_on_a_grid, least_gaussian_evidence_on_a_grid, same_for_all
from worthwhile import Scheduler
from worthwhile.decision import Decision
from worthwhile.errors import BadParameter
from worthwhile.optimum import solve
from worthwhile.policies.base import known
from worthwhile.policies.evidence import gaussian_evidence, least_gamma_evidence
from worthwhile.policies.imed import RatioImed
from worthwhile.policies.registry import DEFAULT, make
from worthwhile.problem import Noise, Problem, seven_kinds, two_kinds
from worthwhile.random_problems import FAMILIES, random_problem
from worthwhile.rng import Rng
from worthwhile.simulation.environments.synthetic import drifting
from worthwhile.simulation.simulator import simulate

sizes = st.floats(-6.0, 6.0).map(lambda power: 10.0**power)
powers_of_two = st.integers(-40, 40).map(lambda power: 2.0**power)
random_problems = st.builds(random_problem, st.sampled_from(list(FAMILIES)), st.integers(0, 1000))


@settings(max_examples=300)
@given(delta=sizes, nu=sizes, kappa=sizes | st.floats(6.0, 18.0).map(lambda power: 10.0**power))  # 10¹⁸: never varies
def test_the_closed_form_of_gamma_evidence_is_the_smallest_anywhere(delta: float, nu: float, kappa: float) -> None:
    expected = least_gamma_evidence_on_a_grid(delta, nu, kappa)
    assert least_gamma_evidence(delta, nu, kappa) == pytest.approx(expected, rel=1e-6, abs=1e-9)


@given(
    behind=st.floats(0.1, 10.0), ratio=st.floats(0.1, 10.0), cost=st.floats(-1.0, 10.0),
    reward_sd=st.floats(0.1, 10.0), cost_sd=st.floats(0.1, 10.0), correlation=st.floats(-0.99, 0.99),
)  # fmt: skip
def test_the_closed_form_of_gaussian_evidence_is_the_smallest_anywhere(
    behind: float, ratio: float, cost: float, reward_sd: float, cost_sd: float, correlation: float
) -> None:
    product = correlation * reward_sd * cost_sd
    covariance = np.array([[reward_sd**2, product], [product, cost_sd**2]])
    expected = least_gaussian_evidence_on_a_grid(behind, ratio, cost, covariance)
    found = gaussian_evidence(behind, ratio, cost, reward_sd**2, cost_sd**2, product)
    assert found == pytest.approx(expected, rel=1e-4, abs=1e-9)


@settings(max_examples=20)
@given(problem=random_problems, units=st.tuples(powers_of_two, powers_of_two))
def test_other_units_change_no_decision(problem: Problem, units: tuple[float, float]) -> None:
    state, pulls = drive(RatioImed(), problem, 400)
    other, same_pulls = drive(RatioImed(), problem, 400, units=units)
    assert np.array_equal(pulls, same_pulls)
    assert other.plug_in.price[0] * units[1] == state.plug_in.price[0] * units[0]


@settings(max_examples=10)
@given(problem=random_problems, extra=st.integers(1, 5))
def test_kinds_that_never_arrive_change_no_decision(problem: Problem, extra: int) -> None:
    assert np.array_equal(drive(RatioImed(), problem, 400)[1], drive(RatioImed(), problem, 400, extra=extra)[1])


def test_other_names_change_no_decision() -> None:
    problem = seven_kinds()
    renamed = replace(
        problem,
        kinds=tuple(f"kind {name}!" for name in reversed(problem.kinds)),
        options=tuple(f"♞{place}" for place, _ in enumerate(problem.options)),
    )
    losses = [simulate(one, [DEFAULT], 2000, 3).curves for one in (problem, renamed)]
    assert np.array_equal(*losses)


def odd_units(problem: Problem) -> Problem:
    """Rewards × 3.7, costs × 0.013, with their N(0, 1) noise."""
    by_reward, by_cost = 3.7, 0.013
    return replace(
        problem,
        reward=problem.reward * by_reward,
        cost=problem.cost * by_cost,
        reward_noise=Noise(sd=by_reward),
        cost_noise=Noise(sd=by_cost),
    )


def reordered(problem: Problem) -> Problem:
    """Kinds the other way round."""
    return replace(
        problem,
        kinds=problem.kinds[::-1],
        arrival=problem.arrival[::-1],
        reward=problem.reward[::-1],
        cost=problem.cost[::-1],
    )


@pytest.mark.parametrize("change", [odd_units, reordered])
def test_odd_units_and_another_order_of_kinds_change_no_loss(change: Any) -> None:
    problems = (seven_kinds(), change(seven_kinds()))
    results = [simulate(one, [DEFAULT], 10_000, 60, marks=[]) for one in problems]
    mean = [result.mean("loss")[DEFAULT] for result in results]
    error = [result.error("loss")[DEFAULT] for result in results]
    assert abs(mean[0] - mean[1]) < 3.0 * math.hypot(*error)


@pytest.mark.parametrize("added", [0.5, 3.0])
def test_a_fixed_cost_for_every_task_moves_the_ratio_to_the_new_optimum(added: float) -> None:
    problem = seven_kinds()
    dearer = replace(problem, cost=problem.cost + added)
    result = simulate(dearer, [DEFAULT], 20_000, 10, marks=[])
    assert solve(dearer).ratio < 0.8 * solve(problem).ratio
    assert result.mean("price")[DEFAULT] == pytest.approx(solve(dearer).ratio, rel=0.02)


@pytest.mark.parametrize("costs", [(1.0, 1.0, 1.0), (1.0, 1.2, 0.7)])
def test_costs_that_never_vary_are_as_good_as_costs_that_hardly_do(costs: tuple[float, float, float]) -> None:
    options = dict(zip("abc", zip((0.5, 0.6, 0.3), costs, strict=True), strict=True))
    scatter = {"none": Noise(sd=0.0), "little": Noise("gamma", cv=1e-3)}
    problems = [same_for_all(options, reward_noise=Noise(sd=0.3), cost_noise=noise) for noise in scatter.values()]
    results = [simulate(one, [DEFAULT], 3000, 60, marks=[]) for one in problems]
    mean = [result.mean("loss")[DEFAULT] for result in results]
    error = [result.error("loss")[DEFAULT] for result in results]
    assert abs(mean[0] - mean[1]) < 3.0 * math.hypot(*error)


ODD_PROBLEMS = {
    "no noise at all": same_for_all({"a": (1.0, 1.0), "b": (2.0, 1.5), "c": (0.5, 3.0)}, **SILENT),
    "all options equal": same_for_all({"a": (1.0, 1.0), "b": (1.0, 1.0), "c": (1.0, 1.0)}, **SILENT),
    "one option": same_for_all({"a": (1.0, 1.0)}),
    "no rewards": same_for_all({"a": (0.0, 1.0), "b": (0.0, 2.0)}, **SILENT),
    "losses only": same_for_all({"a": (-1.0, 1.0), "b": (-2.0, 0.5), "c": (-0.1, 4.0)}),
    "losses without noise": same_for_all({"a": (-1.0, 1.0), "b": (-2.0, 0.5)}, **SILENT),
    "costs over twelve orders": same_for_all(
        {"a": (1.0, 1e-6), "b": (1.0, 1.0), "c": (2.0, 1e6)}, cost_noise=Noise("lognormal", cv=0.3)
    ),
    "rewards over twelve orders": same_for_all(
        {"a": (1e-6, 1.0), "b": (1.0, 1.0), "c": (1e6, 2.0)}, reward_noise=Noise(cv=0.3)
    ),
    "costs that are often negative": same_for_all({"a": (1.0, 0.1), "b": (2.0, 0.1)}, cost_noise=Noise(sd=5.0)),
}


@pytest.mark.parametrize("name", list(ODD_PROBLEMS))
def test_the_default_tries_every_option_and_stays_finite_on(name: str) -> None:
    problem = ODD_PROBLEMS[name]
    policy: Any = make(DEFAULT, known(problem, 300))
    state, pulls = drive(policy, problem, 300)
    assert (pulls.sum(axis=0) > 0).all()
    assert np.isfinite(state.plug_in.price).all()
    result = simulate(problem, [DEFAULT], tasks=300, runs=2, threads=1)
    assert np.isfinite(result.curves).all()


def test_the_default_meets_every_kind_once_without_stumbling() -> None:
    problem = same_for_all({"a": (1.0, 1.0), "b": (2.0, 1.5)}, kinds=60)
    _, pulls = drive(make(DEFAULT, known(problem, 60)), problem, 60)
    assert pulls.sum() == 60


def test_an_option_is_not_dropped_for_one_unlucky_pull() -> None:
    """The other option has no noise, so there is nothing to suggest that this one does."""
    policy, options, pending = RatioImed(), np.arange(2, dtype=np.uint32), np.zeros(2, np.uint32)
    state, luck, lucky = policy.init(1, 2), np.random.default_rng(0), 0
    for task in range(1, 6001):
        made = policy.choose(state, 0, options, pending, Rng(1, task))
        if made.option == 1:
            reward = -1.0 if lucky == 0 else luck.normal(2.0, 2.0)
            lucky += 1
        else:
            reward = 1.0
        policy.learn(state, 0, made, reward, 1.0, Rng(1, task))
    assert lucky > 2500


def test_more_caution_explores_more() -> None:
    problem, pulls = two_kinds(0.8), {}
    for caution in (0.3, 1.0, 3.0):
        _, counted = drive(RatioImed(caution=caution), problem, 3000)
        pulls[caution] = np.min(np.where(problem.offered, counted, np.inf))
    assert pulls[0.3] < pulls[1.0] < pulls[3.0]
    with pytest.raises(BadParameter, match="caution = 0"):
        simulate(problem, ["ratio-imed,caution=0"], 10, 1)


@pytest.mark.parametrize("half_life", [1.0, 5.0, 200.0])
def test_evidence_fades_by_half_in_a_half_life(half_life: float) -> None:
    """Long enough for the weights to be scaled down on the way: 2⁴⁰⁰ is reached after 400 half-lives."""
    tasks, rng, policy = 2500, np.random.default_rng(0), RatioImed(half_life=half_life)
    state, rewards, costs = policy.init(1, 1), rng.normal(1.0, 1.0, tasks), rng.gamma(2.0, 1.0, tasks)
    for task in range(tasks):
        policy.learn(state, 0, Decision(0, 0.0, 0.0), rewards[task], costs[task], Rng(1, task + 1))
    step = 0.5 * math.log(2.0) / half_life
    fading = (1.0 - step) / (1.0 + step)
    assert fading**half_life == pytest.approx(0.5, rel=0.035)  # one task is a crude half-life; five are exact to 0.2 %
    weights = fading ** np.arange(tasks, 0, -1)
    arms, now = state.arms, state.weight[0]
    assert arms.pulls[0, 0] / now == pytest.approx(weights.sum())
    mean_reward, mean_cost = weights @ rewards / weights.sum(), weights @ costs / weights.sum()
    assert arms.mean_reward[0, 0] == pytest.approx(mean_reward)
    assert arms.mean_cost[0, 0] == pytest.approx(mean_cost)
    assert arms.reward_squares[0, 0] / now == pytest.approx(weights @ (rewards - mean_reward) ** 2)
    products = weights @ ((rewards - mean_reward) * (costs - mean_cost))
    assert arms.products[0, 0] / now == pytest.approx(products)
    assert state.plug_in.price[0] == pytest.approx(mean_reward / mean_cost)


def test_a_policy_that_forgets_finds_what_has_become_best() -> None:
    before = same_for_all({"a": (1.0, 1.0), "b": (2.0, 1.0)}, kinds=1)
    after = same_for_all({"a": (3.0, 1.0), "b": (2.0, 1.0)}, kinds=1)
    change = drifting([(0, before), (20_000, after)])
    marks = [20_000, 23_000]
    found = simulate(change, ["ratio-imed", "ratio-imed,half_life=1000"], 24_000, 10, marks=marks).measure("regret")
    late = (found[:, :, -1] - found[:, :, -2]).mean(axis=0) / 1000  # per task, three half-lives after the change
    assert late[1] < 0.2
    assert late[0] > 0.5


def test_a_half_life_is_a_number_of_tasks() -> None:
    for wrong in (-1, 0.5):
        with pytest.raises(BadParameter, match=r"half_life = .*at least 1, or 0 for no fading"):
            simulate(two_kinds(), [f"ratio-imed,half_life={wrong}"], 10, 1)


def test_the_default_learns_what_greedy_never_does() -> None:
    result = simulate(two_kinds(0.8), [DEFAULT, "kind-greedy"], tasks=20_000, runs=10, seed=8)
    regret = result.mean("regret")
    assert regret[DEFAULT] < 400
    assert regret["kind-greedy"] > 1000


def test_waiting_tasks_spread_the_default_over_the_options() -> None:
    policy: Any = make(DEFAULT, known(two_kinds(), 100))
    state, pending, options = policy.init(1, 4), np.zeros(4, np.uint32), np.arange(4, dtype=np.uint32)
    for task in range(1, 41):
        pending[policy.choose(state, 0, options, pending, Rng(5, task)).option] += 1
    assert pending.tolist() == [10, 10, 10, 10]


@pytest.mark.parametrize("engine", ["python", "compiled"])
def test_a_kind_that_was_away_for_a_thousand_half_lives_is_still_known(engine: str) -> None:
    """Its weight would be 0, which is what a new kind has."""
    with Scheduler(policy="ratio-imed,half_life=2", engine=engine, seed=1) as scheduler:
        for away in (0, 2100, 2600, 3300, 4000):
            for _ in range(away):
                scheduler.decide("often", ["a", "b"]).report(1.0, 1.0)
            for _ in range(20):
                scheduler.decide("rare", ["a", "b"]).report(9.0, 1.0)
        plug_in = scheduler._transactor.do(lambda batch: batch.replica.fold.state.learned.plug_in)
        assert plug_in.known_kinds[0] == 2
        assert scheduler.summary().set_aside == []
        assert scheduler.summary().price == pytest.approx(9.0, rel=0.01)
        assert scheduler.rebuild()
