"""Verdicts at their limits: how clear a difference must be, and what the drift lemma adds and takes away; by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from worthwhile.experiments.base import DEPENDS, NOT_REPRODUCED, REPRODUCED, outperforms, plus_minus, tidy, together
from worthwhile.experiments.comparison import Setting
from worthwhile.experiments.growth import Power
from worthwhile.experiments.proof_measures import (
    Term,
    bounds,
    integral,
    sample_of,
    statistics,
)
from worthwhile.experiments.proof_terms import COVERED, convergence, lemma, lemma_3
from worthwhile.optimum import solve
from worthwhile.policies.registry import DEFAULT
from worthwhile.problem import Problem
from worthwhile.simulation.loop import TOTALS
from worthwhile.simulation.results import Results
from worthwhile.theory import drift_constant, theorem_bound

# four runs in which a rival loses 1 more on average, with a standard deviation of s and so a standard error of s/2
DEVIATION = math.sqrt(4 / 3)  # of −1, −1, 1, 1


def losses(*errors: float) -> Any:
    """(runs, policies): ours loses 3 in every run, rivals 1 more on average, with these standard errors."""
    scatter = np.array([-1.0, -1.0, 1.0, 1.0]) / DEVIATION * 2.0
    return np.stack([np.full(4, 3.0), *(4.0 + error * scatter for error in errors)], axis=-1)


def gains(*errors: float) -> Any:
    """The same the other way round: more is better, and ours has 1 more on average."""
    return -losses(*errors)


@pytest.mark.parametrize(
    ("errors", "verdict"),
    [
        ((0.49, 0.49), REPRODUCED),
        ((0.49, 0.51), DEPENDS),
        ((0.51, 0.49), DEPENDS),
        ((0.51, 0.51), NOT_REPRODUCED),
        ((0.051, 0.049), REPRODUCED),
    ],
)
def test_a_policy_outperforms_rivals_that_are_behind_by_two_standard_errors(
    errors: tuple[float, float], verdict: str
) -> None:
    assert outperforms(gains(*errors), ("ours", "ucb", "ts"), "ours", ("ucb", "ts")) == verdict


@pytest.mark.parametrize(
    ("verdicts", "one"),
    [
        ([REPRODUCED, REPRODUCED], REPRODUCED),
        ([NOT_REPRODUCED, NOT_REPRODUCED], NOT_REPRODUCED),
        ([NOT_REPRODUCED, REPRODUCED], DEPENDS),
        ([DEPENDS, REPRODUCED], DEPENDS),
    ],
)
def test_readings_that_disagree_make_a_claim_depend_on_them(verdicts: list[str], one: str) -> None:
    assert together(verdicts) == one


def test_a_tie_is_no_win_and_who_is_ahead_is_not_outperformed() -> None:
    level = np.full((4, 2), 3.0)
    assert outperforms(level, ("ours", "ucb"), "ours", ("ucb",)) == NOT_REPRODUCED
    assert outperforms(gains(0.1)[:, ::-1], ("ours", "ucb"), "ours", ("ucb",)) == NOT_REPRODUCED


@pytest.mark.parametrize(("error", "standing"), [(0.49, "worse"), (0.51, "tie"), (0.051, "worse")])
def test_a_tie_with_the_default_is_two_standard_errors_wide(error: float, standing: str) -> None:
    assert Setting({}, (DEFAULT, "ucb"), losses(error)).standing("ucb") == standing


def test_a_fitted_power_may_exceed_its_order_by_two_standard_errors() -> None:
    assert Power(0.6, 0.05).at_most(0.5)
    assert not Power(0.61, 0.05).at_most(0.5)
    assert not Power(1.0, 0.05).at_most(0.5)
    settled, drifting = {"dol-rm": Power(-0.11, 0.05)}, {"dol-rm": Power(-0.09, 0.05)}
    assert convergence({}, settled).verdict == REPRODUCED
    assert convergence({}, drifting).verdict == NOT_REPRODUCED


@pytest.mark.parametrize(
    ("value", "error", "exponent", "verdict"),
    [
        (0.8, 0.09, -0.5, REPRODUCED),  # 0.8 + 2·0.09 is below the bound of 1
        (0.8, 0.11, -0.5, NOT_REPRODUCED),
        (0.8, 0.09, -0.39, NOT_REPRODUCED),  # above −½ by more than 2·0.05
        (0.8, 0.09, -0.41, REPRODUCED),
    ],
)
def test_a_lemma_holds_with_two_standard_errors_to_spare(
    value: float, error: float, exponent: float, verdict: str
) -> None:
    rows = [
        Term("x", "dol-rm", 100, 4, "learning_error", value, error, 1.0),
        Term("x", "oracle", 100, 4, "learning_error", 9, 9, 1),
        Term("y", "dol-rm", 100, 4, "learning_error", 0.1, 0.01, 1.0),
    ]
    powers = {("x", "learning_error"): Power(exponent, 0.05), ("y", "learning_error"): Power(-0.6, 0.05)}
    assert lemma("small", "learning_error", rows, powers).verdict == verdict


@pytest.mark.parametrize(("gap", "verdict"), [(0.49, REPRODUCED), (0.51, NOT_REPRODUCED)])
def test_lemma_3_compares_with_the_larger_of_two(gap: float, verdict: str) -> None:
    """c from 1 to 2: the mean distance counts (2 − 1)/1 times."""
    values = {"learning_error": 0.3, "distance_sum": 50.0, "robbins_monro_gap": gap}
    rows = [Term(COVERED, "dol-rm", 100, 4, name, value, 0.0, 9.0) for name, value in values.items()]
    assert lemma_3(rows).verdict == verdict


# r from 1 to 3, c from ½ to 1, θ from 1 to 6: b = ½ · max(3 − 1·½, 6·1 − 1)² = 12½
PROBLEM = Problem.of({"x": (1.0, {"a": (3.0, 1.0), "b": (1.0, 0.5)})})
MARKS = [2, 4]


def results(**measures: list[list[float]]) -> Results:
    """Two runs of dol-rm, with these measures at the two marks, and 0 for the rest."""
    curves = np.zeros((2, 1, 2, len(TOTALS) + 1))
    for name, rows in measures.items():
        curves[:, 0, :, (*TOTALS, "price").index(name)] = rows
    best = solve(PROBLEM)
    optimum = np.outer(MARKS, (best.reward, best.cost))
    return Results(PROBLEM, best, ("dol-rm",), np.array(MARKS), np.arange(2), curves, optimum)


RUNS = results(
    price=[[4.0, 3.5], [2.0, 3.0]],
    expected_reward=[[4.0, 8.0], [6.0, 10.0]],
    estimated_reward=[[5.0, 10.0], [6.0, 11.0]],
    expected_cost=[[2.0, 4.0], [2.0, 4.0]],
    estimated_cost=[[1.5, 3.0], [1.5, 3.5]],
    regret=[[0.0, 1.0], [0.0, 2.0]],
)


def test_the_drift_constant() -> None:
    assert drift_constant(PROBLEM) == 12.5
    flat = Problem.of({"x": (1.0, {"a": (9.0, 1.0), "b": (8.0, 1.0)})})  # 9 − 8·1 beside 9·1 − 8: both 1
    assert drift_constant(flat) == 0.5
    steep = Problem.of({"x": (1.0, {"a": (9.0, 1.0), "b": (-1.0, 2.0)})})  # θ from −1: 9 + 1 beside 9·2 + 1
    assert drift_constant(steep) == 0.5 * 19.0**2


def test_the_terms_of_the_proof_from_the_means_of_the_runs() -> None:
    sample = sample_of(RUNS, "dol-rm")
    mean = sample.mean(axis=0)
    assert mean.tolist() == [1.5, 0.75, 9.0, 4.0, 3.25, 1.5, 4.0, 1.0, 0.125]  # Σ(r̂−r) … regret, E(θ−θ*)²
    found = {name: float(statistic(mean)) for name, statistic in statistics(RUNS).items()}
    expected = {
        "gap": 1.5 / 4,
        "epsilon": 1.5 / 3.25,
        "kappa": 9 / 4 * 0.75 / 3.25,
        "learning_error": (1.5 + 9 / 4 * 0.75) / 3.25,
        "robbins_monro_gap": (1.5 + 3 * 0.75 - 1.5) / 3.25,
        "distance_sum": 2 * (2 + 1) / 2 + 2 * (1 + math.sqrt(0.125)) / 2,
        "lyapunov_sum": 2 * (2 + 0.5) / 2 + 2 * (0.5 + 0.0625) / 2,
        "last_distance": math.sqrt(0.125),
    }
    assert found == pytest.approx(expected, rel=1e-14)
    assert integral(np.array([0.0, 1.0, 5.0]), np.array([2.0, 4.0, 0.0])) == 3.0 + 8.0


def test_the_bound_of_the_longest_run_is_the_theorems() -> None:
    whole, limits = theorem_bound(PROBLEM, 16), bounds(PROBLEM, 16)
    assert limits["gap"] == whole.gap
    assert limits["epsilon"] + limits["kappa"] == pytest.approx(whole.learning_error)
    assert limits["kappa"] / limits["epsilon"] == pytest.approx(6.0)  # θ_max
    assert limits["lyapunov_sum"] == whole.ratio_error
    assert limits["distance_sum"] == pytest.approx(math.sqrt(2 * 16 * whole.ratio_error))


def test_a_table_has_the_mean_and_the_standard_error_over_runs() -> None:
    table = tidy(RUNS, ["regret"])
    assert table == {
        "policy": ["dol-rm", "dol-rm"],
        "tasks": [2, 4],
        "runs": [2, 2],
        "regret": [0.0, 1.5],
        "regret_error": [0.0, 0.5],
    }
    assert plus_minus(1234.567, 8.9123) == "1,230 ± 8.9"
