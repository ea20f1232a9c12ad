"""Options that fail: what the optimum, regret and loss make of them, against brute force; worlds that remember."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from worthwhile.errors import BadProblem, BrokenRule
from worthwhile.optimum import bounds_of, solve
from worthwhile.problem import Noise, Problem, two_kinds
from worthwhile.problem_files import read_problem
from worthwhile.simulation.environments import Environment, drifting, synthetic
from worthwhile.simulation.simulator import simulate
from worthwhile.state import Floats, Indices
from worthwhile.testing import check_environment

numbers = st.tuples(st.floats(0.1, 5.0), st.floats(0.05, 10.0), st.floats(0.0, 0.95), st.floats(0.001, 10.0))
broken = st.tuples(st.floats(0.1, 5.0), st.floats(0.05, 10.0), st.just(1.0), st.floats(0.001, 10.0))
offers = st.dictionaries(st.sampled_from(["a", "b", "c"]), numbers, min_size=1)
FLAKY = {
    "x": (0.6, {"steady": (1.0, 1.0), "flaky": (1.2, 0.8, 0.5, 0.1)}),
    "y": (0.4, {"steady": (0.5, 2.0), "flaky": (0.9, 1.0, 0.3, 2.0), "broken": (3.0, 0.1, 1.0, 0.01)}),
}
LOGNORMAL = {"reward_noise": Noise(sd=0.1), "cost_noise": Noise("lognormal", cv=0.3)}


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Problems small enough to try every policy; in some, an option always fails."""
    kinds = draw(st.lists(st.tuples(st.floats(0.05, 1.0), offers, st.none() | broken), min_size=1, max_size=3))
    total = sum(weight for weight, _, _ in kinds)
    rows = [(weight / total, row | ({} if bad is None else {"d": bad})) for weight, row, bad in kinds]
    return Problem.of({str(number): row for number, row in enumerate(rows)})


def cost_until_done(cost: float, rate: float, failure_cost: float) -> float:
    """What it costs to try again and again until a task is completed: one attempt after another, added up."""
    total, chance_to_come_here = 0.0, 1.0
    while chance_to_come_here > 1e-18:
        total += chance_to_come_here * ((1.0 - rate) * cost + rate * failure_cost)
        chance_to_come_here *= rate
    return total


def brute_force(problem: Problem) -> float:
    """The best ratio of all ways to give each kind one option, every task tried until it is completed."""
    rate, failure_cost = problem.failures
    ratios = []
    for choice in itertools.product(*([*np.flatnonzero(row)] for row in problem.completing)):
        reward = sum(
            p * problem.reward[kind, a] for kind, (p, a) in enumerate(zip(problem.arrival, choice, strict=True))
        )
        cost = sum(
            p * cost_until_done(problem.cost[kind, a], rate[kind, a], failure_cost[kind, a])
            for kind, (p, a) in enumerate(zip(problem.arrival, choice, strict=True))
        )
        ratios.append(reward / cost)
    return float(max(ratios))


@given(problems())
def test_no_way_to_complete_tasks_beats_the_optimum_and_the_optimum_is_one_of_them(problem: Problem) -> None:
    best = solve(problem)
    assert best.ratio == pytest.approx(brute_force(problem), rel=1e-9)
    assert problem.completing[np.arange(len(problem.kinds)), best.best].all()
    bounds = bounds_of(problem)
    assert bounds.price_min <= best.ratio * (1 + 1e-9)
    assert best.ratio <= bounds.price_max * (1 + 1e-9)


@given(problems())
def test_regret_until_a_task_is_done_is_what_the_optimum_earns_for_the_same_cost(problem: Problem) -> None:
    best = solve(problem)
    rate, failure_cost = problem.failures
    rows = np.arange(len(problem.kinds))
    for choice in itertools.product(*([*np.flatnonzero(row)] for row in problem.completing)):
        at = rows, np.array(choice)
        per_task = best.gaps[at] / (1.0 - rate[at])  # 1/(1 − f) attempts for every task that is completed
        cost = [cost_until_done(*three) for three in zip(problem.cost[at], rate[at], failure_cost[at], strict=True)]
        lost = best.ratio * float(problem.arrival @ cost) - float(problem.arrival @ problem.reward[at])
        assert float(problem.arrival @ per_task) == pytest.approx(lost, rel=1e-9, abs=1e-9)
    always = problem.offered & ~problem.completing
    assert best.gaps[always] == pytest.approx(best.ratio * failure_cost[always])


def test_a_failing_world_is_what_its_problem_says() -> None:
    check_environment(Problem.of(FLAKY, **LOGNORMAL))
    check_environment(
        drifting([(0, Problem.of(FLAKY)), (100, replace(Problem.of(FLAKY), arrival=np.array([0.1, 0.9])))], 3)
    )
    world = synthetic(Problem.of(FLAKY, **LOGNORMAL))
    assert world.problem.failure_rate is not None
    other = replace(world.problem, failure_rate=0.9 * world.problem.failure_rate)
    with pytest.raises(BrokenRule, match="fail as often as the problem says"):
        check_environment(Environment(other, world.world))


@pytest.mark.parametrize("engine", ["python", "compiled"])
def test_totals_count_attempts_and_loss_counts_completed_tasks(engine: str) -> None:
    problem = Problem.of({"x": (1.0, FLAKY["x"][1])}, **LOGNORMAL)
    result = simulate(problem, ["fixed-option,option=flaky", "optimum"], 4_000, 4, engine=engine)
    flaky, steady = 1.2 / (0.8 + 0.1), 1.0  # flaky fails once for every success
    assert solve(problem).ratio == result.best.ratio == pytest.approx(flaky)
    assert result.measure("expected_ratio")[:, :, -1] == pytest.approx(flaky)
    assert result.mean("ratio")["optimum"] == pytest.approx(flaky, rel=0.05)
    assert result.measure("loss")[:, :, -1] == pytest.approx(0.0, abs=1e-12)
    worse = simulate(problem, ["fixed-option,option=steady"], 100, 1, engine=engine)
    assert worse.mean("loss")["fixed-option,option=steady"] == pytest.approx(1.0 - steady / flaky)
    assert worse.mean("regret")["fixed-option,option=steady"] == pytest.approx(100 * (flaky - steady))


@pytest.mark.slow
def test_interpreted_and_compiled_runs_of_failing_worlds_are_the_same_to_the_bit() -> None:
    asked = ["ratio-imed", "dol-rm", "oracle"]
    runs = [
        simulate(Problem.of(FLAKY), asked, 500, 2, delay=(0, 9), engine=engine) for engine in ("python", "compiled")
    ]
    assert runs[0].curves.tobytes() == runs[1].curves.tobytes()


def test_who_knows_the_truth_leaves_what_always_fails_alone() -> None:
    problem = Problem.of({"x": (1.0, {"broken": (9.0, 0.1, 1.0, 0.01), "works": (1.0, 1.0)})})
    result = simulate(problem, ["oracle", "optimum", "fixed-option,option=broken"], 200, 2, engine="python")
    assert result.mean("loss") == pytest.approx({"oracle": 0.0, "optimum": 0.0, "fixed-option,option=broken": 1.0})
    assert result.mean("reward")["fixed-option,option=broken"] == 0.0


def test_a_problem_without_failures_says_nothing_of_them() -> None:
    assert not two_kinds().can_fail
    never = Problem.of({"x": (1.0, {"a": (1.0, 2.0, 0.0, 1.0)})})
    assert not never.can_fail
    assert never == Problem.of({"x": (1.0, {"a": (1.0, 2.0)})})
    assert np.array_equal(two_kinds().cost_per_completion, two_kinds().cost, equal_nan=True)
    more = Problem.of(FLAKY).with_added_cost(1.0)
    assert more.failure_cost is not None
    assert more.failure_cost[0, 1] == pytest.approx(1.1)


@pytest.mark.parametrize(
    ("numbers", "complaint"),
    [
        ((1.0, 1.0, 1.5, 1.0), "failure rate 1.5; it is a probability"),
        ((1.0, 1.0, -0.5, 1.0), "failure rate -0.5; it is a probability"),
        ((1.0, 1.0, 0.5, 0.0), "mean failure cost 0; it must be above 0"),
        ((1.0, 1.0, 1.0, 1.0), "every option always fails"),
        ((1.0, 1.0, 0.5), "2 numbers, or 4"),
    ],
)
def test_failures_that_make_no_sense_are_refused(numbers: tuple[float, ...], complaint: str) -> None:
    with pytest.raises(BadProblem, match=complaint):
        Problem.of({"x": (1.0, {"a": numbers})})


def test_failure_rates_without_costs_are_refused() -> None:
    with pytest.raises(BadProblem, match="belong together"):
        replace(two_kinds(), failure_rate=np.full((2, 2), 0.5))


def test_failures_in_a_problem_file(tmp_path: Path) -> None:
    steady, flaky = "options.a = { reward = 1, cost = 2 }", "options.b = { reward = 1, cost = 4, %s }"
    text = f'[[kind]]\nname = "x"\narrival = 1.0\n{steady}\n{flaky}'
    path = tmp_path / "flaky.toml"
    path.write_text(text % "failure_rate = 0.5")
    assert read_problem(path).cost_per_completion.tolist() == [[2.0, 8.0]]
    path.write_text(text % "failure_rate = 0.5, failure_cost = 1")
    assert read_problem(path).cost_per_completion.tolist() == [[2.0, 5.0]]
    path.write_text(text % "failure_cost = 1")
    with pytest.raises(BadProblem, match="no failure_rate"):
        read_problem(path)


class Counting(NamedTuple):
    """Every task of an option costs one more than the last."""

    used: Floats

    def fresh(self) -> Counting:
        return Counting(np.zeros(len(self.used)))

    def draw(self, generator: np.random.Generator, count: int) -> tuple[Indices, Floats]:
        return np.zeros(count, np.uint32), generator.random((count, 1))

    def feedback(self, kind: int, option: int, latent: Floats) -> tuple[float, float]:
        self.used[option] += 1.0
        return 1.0, self.used[option]


@pytest.mark.parametrize("engine", ["python", "compiled"])
def test_a_world_that_remembers_begins_anew_for_every_policy_and_run(engine: str) -> None:
    world = Environment(two_kinds(1.0), Counting(np.zeros(2)))
    result = simulate(world, {"one": "fixed-option", "other": "fixed-option"}, 10, 3, marks=[4], engine=engine)
    assert result.measure("cost").tolist() == [[[10.0, 55.0]] * 2] * 3
    assert math.isclose(world.world.used.sum(), 0.0)
