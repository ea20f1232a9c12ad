"""The lemmas on single tasks, from two runs of two tasks, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from worthwhile.experiments.base import NOT_REPRODUCED, REPRODUCED
from worthwhile.experiments.proof_drift import (
    carried_on,
    drift_table,
    lemma_4,
    lemma_4_margin,
    neely,
    per_window,
    steps_of,
    windows,
)
from worthwhile.optimum import solve
from worthwhile.problem import Problem
from worthwhile.simulation.loop import TOTALS
from worthwhile.simulation.results import Results

# r from 1 to 3, c from ½ to 1, θ from 1 to 6, θ* = 3 with c* = 1
PROBLEM = Problem.of({"x": (1.0, {"a": (3.0, 1.0), "b": (1.0, 0.5)})})
STEP = 1 / (0.5 * np.sqrt(2))  # η = 1/(c_min √2)


def results(**measures: list[list[float]]) -> Results:
    """Two runs of dol-rm with a mark at each of two tasks."""
    curves, best = np.zeros((2, 1, 2, len(TOTALS) + 1)), solve(PROBLEM)
    for name, rows in measures.items():
        curves[:, 0, :, (*TOTALS, "price").index(name)] = rows
    return Results(PROBLEM, best, ("dol-rm",), np.array([1, 2]), np.arange(2), curves, np.zeros((2, 2)))


RUNS = results(
    price=[[4.0, 3.5], [2.0, 3.0]],
    expected_reward=[[3.0, 4.0], [3.0, 6.0]],
    estimated_reward=[[3.0, 5.0], [3.0, 6.0]],
    expected_cost=[[1.0, 1.5], [1.0, 2.0]],
    estimated_cost=[[0.5, 1.0], [0.75, 1.25]],
)


def test_what_is_measured_at_every_task() -> None:
    steps = steps_of(RUNS)
    assert steps.lyapunov.tolist() == [[2.0, 0.5], [2.0, 0.5]]  # ½(1 − 3)², then ½(4 − 3)² and ½(2 − 3)²
    assert steps.drift.tolist() == [[-1.5, -0.375], [-1.5, -0.5]]
    assert steps.squares.tolist() == [[0.5 * 2.5**2, 0.5 * 0.0], [0.5 * 2.25**2, 0.5 * 2.0**2]]  # r̂ − θč, θ from 1
    assert steps.optimism.tolist() == [[1.5, 1.0], [0.75, 1.5]]  # (r̂ − r) + 3(c − č)
    assert steps.neely.tolist() == [[1.5 - -2 * -0.5, 0.5 - 1 * -0.5], [0.75 - -2 * -0.25, 1.5 - -1 * -0.5]]


def test_the_margin_of_the_drift_lemma() -> None:
    margin, steps = lemma_4_margin(RUNS, steps_of(RUNS)), steps_of(RUNS)
    right = STEP**2 * steps.squares[0, 0] + 5.0 * STEP * 1.5 - 2.0 * 0.5 * STEP * 2.0
    assert margin[0, 0] == pytest.approx(right + 1.5, rel=1e-14)


def test_the_lemma_carried_on_from_task_to_task() -> None:
    lyapunov, limit = carried_on(RUNS)
    assert lyapunov.tolist() == [2.0, 0.5]
    pushed = STEP**2 * (0.5 * 2.5**2 + 0.5 * 2.25**2) / 2 + 5.0 * STEP * (1.5 + 0.75) / 2
    assert limit.tolist() == pytest.approx([2.0, (1.0 - 2.0 * 0.5 * STEP) * 2.0 + pushed], rel=1e-14)


def test_windows_cover_every_task_once() -> None:
    starts = windows(1000)
    assert starts[0] == 1
    assert starts == sorted(set(starts))
    values = np.arange(2000.0).reshape(2, 1000)
    means, errors = per_window(values, starts)
    lengths = np.diff([*starts, 1001])
    assert float(means @ lengths) == pytest.approx(values.mean(axis=0).sum())
    assert errors.tolist() == pytest.approx([500.0] * len(starts))  # the runs are 1000 apart: 707/√2


@pytest.mark.parametrize(("margin", "verdict"), [(-0.19, REPRODUCED), (-0.21, NOT_REPRODUCED)])
def test_a_lemma_fails_where_its_margin_is_below_0_by_two_standard_errors(margin: float, verdict: str) -> None:
    table = {name: [value, value] for name, value in (("problem", "x"), ("runs", 4), ("b", 1.0), ("b_at_worst", 4.0))}
    table |= {"tasks": [1, 2]}
    for name in ("lemma_4_margin", "neely_margin"):
        table |= {name: [1.0, margin], f"{name}_error": [0.1, 0.1]}
    assert lemma_4(table).verdict == verdict
    assert neely(table).verdict == verdict
    assert "0.25" in lemma_4(table).evidence


def test_the_table_has_a_row_per_problem_and_window() -> None:
    table = drift_table({"x": RUNS, "y": RUNS})
    assert table["problem"] == ["x", "y"]
    assert table["tasks"] == [1, 1]
    assert table["lyapunov"] == [1.25, 1.25]
    assert table["b_at_worst"] == [12.5, 12.5]
