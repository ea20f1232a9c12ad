"""docs/theory.md, checked: every inequality along simulated runs, every constant against a sum or a search by hand."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest

from worthwhile import (
    Noise,
    Problem,
    lower_bound,
    random_problem,
    seven_kinds,
    simulate,
    solve,
    theorem_bound,
    two_kinds,
)
from worthwhile.errors import BadParameter
from worthwhile.learning import new_moments, record_moments
from worthwhile.optimum import bounds_of
from worthwhile.policies.base import known
from worthwhile.policies.evidence import evidence, pool
from worthwhile.policies.imed import RatioImed
from worthwhile.policies.registry import make
from worthwhile.rng import Rng
from worthwhile.theory import (
    drift_constant,
    largest_error,
    optimism_sum,
    regret_bounds,
    squared_optimism_sum,
    sub_gaussian,
)

HALF = Noise(sd=0.5)
QUIET = Noise(sd=0.05)  # at these lengths no mean leaves its width: the good event
NOTHING_PENDING = np.zeros(2, np.uint32)


def quiet(problem: Problem, noise: Noise = HALF) -> Problem:
    return replace(problem, reward_noise=noise, cost_noise=noise)


class Step(NamedTuple):
    """One task of a run: the price before it, what was thought of the option taken, and the truth."""

    task: int
    kind: int
    price: float
    gap: float
    optimism: float  # w
    first: bool  # the pair's first pull
    arrivals: tuple[int, ...]  # of the tasks before
    open_share: float  # of arrivals before, of kinds with untried options
    optimism_of_kinds: float  # Σ p̂ w of every kind's best tried option


def run(name: str, problem: Problem, tasks: int, seed: int) -> Iterator[Step]:
    """A policy in plain Python on Gaussian feedback, task by task."""
    policy: Any = make(name, known(problem, tasks))
    state, draw, best = policy.init(*problem.reward.shape), random.Random(seed), solve(problem)
    arrivals = [0] * len(problem.kinds)
    for task in range(1, tasks + 1):
        kind = draw.choices(range(len(problem.kinds)), problem.arrival.tolist())[0]
        options = np.flatnonzero(problem.offered[kind]).astype(np.uint32)
        price = float(state.price[0])
        made = policy.choose(state, kind, options, NOTHING_PENDING, Rng(0, task))
        option = int(made.option)
        reward, cost = float(problem.reward[kind, option]), float(problem.cost[kind, option])
        optimism = (made.reward_estimate - reward) + best.ratio * (cost - made.cost_estimate)
        first = state.arms.pulls[kind, option] == 0.0
        shares, opened = kinds_so_far(policy, state, problem, arrivals, best.ratio)
        yield Step(task, kind, price, float(best.gaps[kind, option]), optimism, first, tuple(arrivals), opened, shares)
        arrivals[kind] += 1
        noise = problem.reward_noise.sd or 0.0
        policy.learn(state, kind, made, reward + draw.gauss(0, noise), cost + draw.gauss(0, noise), Rng(0, task))


def kinds_so_far(policy: Any, state: Any, problem: Problem, arrivals: list[int], best: float) -> tuple[float, float]:
    """Σ p̂ w over kinds of the best tried option at the price, and the share of kinds with untried options."""
    total, weighted, opened = max(1, sum(arrivals)), 0.0, 0.0
    for kind, count in enumerate(arrivals):
        options = np.flatnonzero(problem.offered[kind]).tolist()
        tried = [option for option in options if state.arms.pulls[kind, option] > 0]
        judged = {option: policy.judge(state, kind, option) for option in tried}
        if tried:
            price = float(state.price[0])
            top = max(tried, key=lambda option: judged[option].reward_estimate - price * judged[option].cost_estimate)
            reward, cost = float(problem.reward[kind, top]), float(problem.cost[kind, top])
            excess = (judged[top].reward_estimate - reward) + best * (cost - judged[top].cost_estimate)
            weighted += count / total * excess
        opened += count / total if len(tried) < len(options) else 0.0
    return weighted, opened


@pytest.mark.parametrize("name", ["dol-rm", "dol-rm-anytime", "solved-dol"])
@pytest.mark.parametrize("problem", [two_kinds(0.8), two_kinds(0.6), seven_kinds()], ids=lambda problem: problem.name)
def test_a_gap_is_at_most_the_optimism_and_what_the_price_is_off_by(name: str, problem: Problem) -> None:
    """Inequality (2); of solved-dol where no option of the kind is untried."""
    best, bounds = solve(problem).ratio, bounds_of(problem)
    spread, error = bounds.cost_max - bounds.cost_min, largest_error(problem)
    for step in run(name, quiet(problem, QUIET), 600, seed=1):
        assert -1e-9 <= step.optimism <= error + 1e-9 or (name == "solved-dol" and step.first)
        if not (name == "solved-dol" and step.first):
            assert step.gap <= step.optimism + spread * abs(step.price - best) + 1e-9


@pytest.mark.parametrize("problem", [two_kinds(0.8), two_kinds(0.6), seven_kinds()], ids=lambda problem: problem.name)
def test_the_solved_price_is_off_by_no_more_than_arrivals_optimism_and_untried_options(problem: Problem) -> None:
    """Inequality (8)."""
    best, c_min = solve(problem), bounds_of(problem).cost_min
    tops = (problem.reward - best.ratio * problem.cost)[np.arange(len(problem.kinds)), best.best]
    for step in run("solved-dol", quiet(problem, QUIET), 600, seed=2):
        if step.task > 1:
            chance = abs(float(np.dot(step.arrivals, tops))) / (step.task - 1)
            limit = chance + step.optimism_of_kinds + largest_error(problem) * step.open_share
            assert c_min * abs(step.price - best.ratio) <= limit + 1e-9
            assert step.open_share <= problem.offered.sum() / (step.task - 1)


@pytest.mark.parametrize("name", ["dol-rm", "solved-dol"])
def test_optimism_adds_up_to_no_more_than_its_bounds(name: str) -> None:
    """B in step 2, and W in (4): the sums over one run on the good event."""
    problem, tasks = quiet(seven_kinds(), QUIET), 800
    bounds, best = bounds_of(problem), solve(problem).ratio
    optimism = [
        step.optimism for step in run(name, problem, tasks, seed=3) if not (name == "solved-dol" and step.first)
    ]
    most = optimism_sum(problem, tasks, 1.0, bounds.reward_max - bounds.reward_min)
    most += best * optimism_sum(problem, tasks, 1.0, bounds.cost_max - bounds.cost_min)
    assert 0.0 < math.fsum(optimism) < most
    assert 0.0 < math.fsum(w * w for w in optimism) < squared_optimism_sum(problem, tasks, 1.0)


def test_the_price_with_the_falling_step_comes_as_near_as_the_theorem_says() -> None:
    """E V_t ≤ K/t, inequality (6), at every task."""
    problem, tasks, runs = quiet(two_kinds(0.8)), 400, 60
    best, bounds = solve(problem).ratio, bounds_of(problem)
    squares = np.array(
        [
            [0.5 * (step.price - best) ** 2 for step in run("dol-rm-anytime", problem, tasks, seed)]
            for seed in range(runs)
        ]
    ).mean(axis=0)
    start = 0.5 * (best - bounds.price_min) ** 2
    k = start + drift_constant(problem) / bounds.cost_min**2 * math.log(tasks)
    k += squared_optimism_sum(problem, tasks, 1.0) / (2.0 * bounds.cost_min**2)
    assert (squares <= k / np.arange(1, tasks + 1)).all()
    assert squares[0] == pytest.approx(start)


@pytest.mark.slow
@pytest.mark.parametrize("tasks", [100, 3_000, 100_000])
def test_the_three_bounds_are_above_what_is_measured(tasks: int) -> None:
    for problem in (quiet(two_kinds(0.8)), quiet(two_kinds(0.6)), quiet(seven_kinds())):
        policies = ["dol-rm", "dol-rm-anytime", "solved-dol"]
        results = simulate(problem, policies, tasks=tasks, runs=20, seed=4, marks=[], progress=False)
        mean, error, cost = results.mean("regret"), results.error("regret"), results.mean("expected_cost")
        bounds = regret_bounds(problem, tasks)
        assert bounds.failure == pytest.approx(min(1.0, 4.0 * problem.offered.sum() / tasks))
        for policy, bound in zip(policies, bounds, strict=False):
            assert (mean[policy] + 3.0 * error[policy]) * tasks / cost[policy] < bound


def test_the_bounds_have_the_orders_that_are_claimed() -> None:
    """A hundred times the tasks: T^¾, √T log T and √(T log T), where the leading term outweighs the others."""
    few, many = (regret_bounds(quiet(two_kinds(0.8)), tasks) for tasks in (10**16, 10**18))
    log = math.log(10**18) / math.log(10**16)
    assert many.dol_rm / few.dol_rm == pytest.approx(100**0.75, rel=0.02)
    assert many.dol_rm_anytime / few.dol_rm_anytime == pytest.approx(10 * log, rel=0.02)
    assert many.solved_dol / few.solved_dol == pytest.approx(10 * math.sqrt(log), rel=0.02)
    printed = [theorem_bound(quiet(two_kinds(0.8)), tasks).regret for tasks in (10**16, 10**18)]
    assert printed[1] / printed[0] == pytest.approx(100**0.75 * log**0.25, rel=0.02)
    assert many.solved_dol < many.dol_rm_anytime < many.dol_rm < printed[1]


def test_with_the_theorems_step_the_root_of_t_is_lost_before_the_price_arrives() -> None:
    """The end of Theorem 4: the dear option is ahead by 1 up to θ' = 1, and takes nearly all tasks till then."""
    problem, horizon = quiet(two_kinds(0.8), QUIET), 10**8
    best, bounds = solve(problem), bounds_of(problem)
    ahead, limit = 1.0, 1.0
    tau = int(
        (limit - bounds.price_min) * bounds.cost_min * math.sqrt(horizon) / (bounds.reward_max - bounds.price_min)
    )
    others = 1 + 4 * (1 + limit) ** 2 * math.log(horizon) / ahead**2
    results = simulate(
        problem, {"dol-rm": f"dol-rm,horizon={horizon}"}, tasks=tau, runs=20, seed=5, marks=[], progress=False
    )
    assert results.measure("price")[:, 0, -1].max() <= limit
    lost = best.gaps[1, 0] * (0.2 * tau - others)  # the one other option of the kind
    assert lost > 0.0
    assert results.mean("regret")["dol-rm"] + 3.0 * results.error("regret")["dol-rm"] > lost


def least_information(problem: Problem, kind: int, option: int) -> float:
    """KL by trying two million changes of the cost, the covariance written out."""
    best, rho = solve(problem), problem.correlation
    sds = [1.0 if noise.sd is None else noise.sd for noise in (problem.reward_noise, problem.cost_noise)]
    covariance = np.array([[sds[0] ** 2, rho * sds[0] * sds[1]], [rho * sds[0] * sds[1], sds[1] ** 2]])
    inverse, gap, cost = np.linalg.inv(covariance), best.gaps[kind, option], problem.cost[kind, option]
    x = np.linspace(-cost, 2.0 * (cost + gap), 2_000_001)  # of the cost; the reward makes up the rest
    d = np.stack([gap + best.ratio * x, x])
    return float(np.min(0.5 * np.einsum("in,ij,jn->n", d, inverse, d)))


CHEAP = Problem.of({"x": (0.5, {"a": (9.0, 1.0), "b": (0.5, 0.1)}), "y": (0.5, {"c": (1.0, 1.0), "d": (4.0, 4.0)})})


@pytest.mark.parametrize(
    "problem",
    [
        two_kinds(0.8),
        two_kinds(0.6),
        seven_kinds(),
        replace(seven_kinds(), correlation=0.6),
        replace(two_kinds(0.8), reward_noise=Noise(sd=0.2), cost_noise=Noise(sd=2.0), correlation=-0.4),
        CHEAP,  # where the cost cannot fall far enough
    ],
)
def test_the_lower_bound_is_the_sum_of_gap_over_least_information(problem: Problem) -> None:
    gaps = solve(problem).gaps
    pairs = [(kind, option) for kind, option in np.argwhere(problem.offered).tolist() if gaps[kind, option] > 1e-9]
    by_search = math.fsum(gaps[pair] / least_information(problem, *pair) for pair in pairs)
    assert lower_bound(problem) == pytest.approx(by_search, rel=1e-5)


def test_where_the_cost_limits_it_the_lower_bound_is_less_than_without() -> None:
    best = solve(CHEAP)
    free = math.fsum(2.0 * (1.0 + best.ratio**2) / gap for gap in best.gaps[CHEAP.offered].tolist() if gap > 0.0)
    assert lower_bound(CHEAP) < free


@pytest.mark.parametrize("shift", [1e-3, 0.5, 3.0])
def test_an_option_moved_just_past_the_boundary_is_the_only_optimal_one(shift: float) -> None:
    """The first step in the proof of Theorem 5, on every option that is not optimal."""
    problem = seven_kinds()
    best = solve(problem)
    for kind, option in np.argwhere(problem.offered & (best.gaps > 1e-9)).tolist():
        reward = problem.reward.copy()
        reward[kind, option] += best.gaps[kind, option] + shift
        moved = solve(replace(problem, reward=reward))
        assert moved.ratio > best.ratio
        assert moved.best[kind] == option
        others = [other for other in np.flatnonzero(problem.offered[kind]).tolist() if other != option]
        assert all(moved.gaps[kind, other] > 0.0 for other in others)


@pytest.mark.parametrize(
    ("problem", "complaint"),
    [
        (replace(two_kinds(), reward_noise=Noise("gamma", cv=0.2)), "gamma noise, sd None, cv 0.2; the lower bound"),
        (replace(two_kinds(), cost_noise=Noise(cv=0.2)), "Gaussian noise with a positive sd"),
        (replace(two_kinds(), cost_noise=Noise(sd=0.0)), "Gaussian noise with a positive sd"),
        (replace(two_kinds(), correlation=1.0), "correlation = 1; the lower bound needs one between"),
        (Problem.of({"x": (1.0, {"a": (1.0, 1.0, 0.5, 1.0), "b": (2.0, 1.0, 0.0, 1.0)})}), "options that fail"),
    ],
)
def test_the_lower_bound_refuses_what_it_is_not_worked_out_for(problem: Problem, complaint: str) -> None:
    with pytest.raises(BadParameter, match=complaint):
        lower_bound(problem)


def test_a_problem_without_a_choice_has_a_lower_bound_of_0() -> None:
    assert lower_bound(Problem.of({"x": (1.0, {"a": (1.0, 1.0)})})) == 0.0


@pytest.mark.parametrize(
    ("problem", "noise", "sigma", "failure"),
    [
        (two_kinds(0.8), 1.0, 1.0, 1.0),
        (two_kinds(0.8), 2.0, 1.0, 12 / 10_000),
        (quiet(two_kinds(0.8)), 1.0, 0.5, 12 / 10_000),
        (quiet(two_kinds(0.8), Noise(sd=0.0)), 1.0, 0.0, 0.0),
        (random_problem("unit", 0), 1.0, 0.3, None),
        (quiet(Problem.of({"x": (1.0, {"a": (0.2, 0.5), "b": (0.9, 0.4)})}), Noise("beta", sd=0.1)), 1.0, 0.5, None),
    ],
)
def test_how_likely_the_widths_fail(problem: Problem, noise: float, sigma: float, failure: float | None) -> None:
    assert sub_gaussian(problem) == sigma
    if failure is not None:
        assert theorem_bound(problem, 10_000, noise).failure == pytest.approx(failure, rel=1e-12)


def test_a_wide_range_adds_its_excess_once_per_pair() -> None:
    """r from 0 to 100, far beyond two widths of a first pull; c from 1 to 2."""
    problem = quiet(Problem.of({"x": (1.0, {"a": (0.0, 1.0), "b": (100.0, 2.0)})}))
    width, first = 4.0 * math.sqrt(2 * 100 * math.log(100)), 100.0 - 2.0 * math.sqrt(math.log(100))
    bound = theorem_bound(problem, 100)
    assert bound.learning_error == pytest.approx((width + 2 * first + 100.0 * width) / 100, rel=1e-12)


@pytest.mark.parametrize(
    ("problem", "horizon", "noise", "complaint"),
    [
        (random_problem("big", 0), 100, 1.0, "lognormal costs are not sub-Gaussian"),
        (two_kinds(), 10**400, 1.0, "the bound needs at least 2 tasks, a whole number up to"),
        (two_kinds(), 2.5, 1.0, "horizon = 2.5; the bound needs"),
        (two_kinds(), True, 1.0, "horizon = True; the bound needs"),
        (two_kinds(), 100, 0.0, "noise = 0.0; it multiplies the widths"),
        (two_kinds(), 100, math.nan, "noise = nan; it multiplies the widths"),
    ],
)
def test_the_bounds_refuse_what_no_proof_covers(problem: Problem, horizon: Any, noise: float, complaint: str) -> None:
    for bound in (theorem_bound, regret_bounds):
        with pytest.raises(BadParameter, match=complaint):
            bound(problem, horizon, noise)


@pytest.mark.slow
def test_no_run_of_the_default_is_stuck_and_its_price_comes_home() -> None:
    """Theorem 6 in small: the spread of θ around θ* shrinks from T to 30 T in every one of many runs taken together."""
    problem = replace(seven_kinds(), reward_noise=Noise(sd=0.5), cost_noise=Noise("gamma", cv=0.4))
    results = simulate(problem, ["ratio-imed"], tasks=30_000, runs=40, seed=6, marks=[1_000], progress=False)
    far = np.abs(results.measure("price")[:, 0] - results.best.ratio)
    assert far[:, -1].max() < 0.05
    assert far[:, -1].mean() < 0.5 * far[:, 0].mean()


@pytest.mark.parametrize(("price", "certain"), [(-1.0, True), (1.0, False)])
def test_evidence_is_finite_above_a_price_of_0_and_may_be_infinite_below(price: float, certain: bool) -> None:
    """Where Theorem 6 ends: R ≈ −C, the one option a thousand times as dear as the other."""
    arms, draw = new_moments(1, 2), random.Random(7)
    for option, dear, pulls in ((0, 1.0, 3), (1, 1_000.0, 500)):
        for _ in range(pulls):
            cost = dear * draw.uniform(0.5, 1.5)
            record_moments(arms, 0, option, draw.gauss(0.0, 0.3) - cost, cost)
    pooled = pool(arms, 0, np.arange(2, dtype=np.uint32), price, 1.0, True)
    assert math.isinf(evidence(arms, (0, 0), 0.1, pooled)) == certain


@pytest.mark.parametrize(
    ("costs", "times"), [((9.0, 1.0), 1), ((9.0, 1.0, 9.0, 1.0), 2), ((9.0, 1.0, 1.1, 1.2, 1e-9), 1)]
)
def test_after_two_costs_in_rising_order_no_more_is_forgotten(costs: tuple[float, ...], times: int) -> None:
    """Of the first option; the other shows what noise is usual. Even a cost of next to nothing changes that no more."""
    policy = RatioImed()
    state = policy.init(1, 2)
    for option, seen in ((1, (1.0, 1.01, 0.99, 1.0, 1.02)), (0, costs)):
        for cost in seen:
            policy.observe(state, 0, option, 1.0, cost, Rng(0, 1))
    assert state.one_offs[0] == times
