"""Figure 4: judged by ΣR/ΣC, for every T by itself; the panel without chance has none above the optimum."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_experiments import PAPER, SEED, outcome_in

from worthwhile.experiments import Outcome, figure_4
from worthwhile.experiments.base import DEPENDS, NOT_REPRODUCED, REPRODUCED
from worthwhile.experiments.figures import without_chance
from worthwhile.optimum import ratio_of
from worthwhile.problem import seven_kinds, two_kinds
from worthwhile.simulation.simulator import simulate

LENGTHS = PAPER[figure_4]["QUICK_TASKS"]


@pytest.fixture(scope="module")
def seven(everything: Path) -> Outcome:
    return outcome_in(everything, "figure-4c")


@pytest.mark.slow
def test_one_verdict_over_all_lengths_by_the_ratio(seven: Outcome) -> None:
    claim = seven.claims[0]
    verdicts = []
    for tasks in LENGTHS:
        results = simulate(
            seven_kinds(), figure_4.POLICIES, tasks=tasks, runs=20, seed=SEED, marks=[], progress=False
        )  # every T for itself: a policy is told the T at which it is judged
        ratio = results.measure("reward")[:, :, -1] / results.measure("cost")[:, :, -1]
        ours = ratio[:, results.policies.index("dol-rm-anytime")]
        gaps = [ours - ratio[:, results.policies.index(rival)] for rival in figure_4.RIVALS]
        wins = [gap.mean() > 2.0 * gap.std(ddof=1) / np.sqrt(len(gap)) for gap in gaps]
        verdicts.append(REPRODUCED if all(wins) else DEPENDS if any(wins) else NOT_REPRODUCED)
        assert f"T = {tasks:,}: " in claim.evidence
        assert f"ΣR/ΣC {ours.mean():.4g}" in claim.evidence
    assert claim.verdict == (verdicts[0] if len(set(verdicts)) == 1 else DEPENDS)


@pytest.mark.slow
def test_every_length_is_in_the_data(seven: Outcome) -> None:
    rows: Any = seven.data["figure-4c"]
    ends = dict(zip(rows["T"], rows["tasks"], strict=True))  # the last mark stays
    assert ends == {tasks: tasks for tasks in LENGTHS}


def test_without_chance_nobody_is_above_the_optimum() -> None:
    results = simulate(seven_kinds(), ["oracle", "dol-rm"], tasks=300, runs=30, seed=4, progress=False)
    assert results.measure("expected_ratio")[:, 0, -1].max() > results.best.ratio  # arrivals were kind to the oracle
    assert without_chance(results).max() <= results.best.ratio


@pytest.mark.parametrize(("problem", "reached"), [(two_kinds(0.8), 2.5), (two_kinds(0.6), 3.0 / 1.4)])
def test_the_largest_reward_minus_cost_takes_the_dear_option(problem: Any, reached: float) -> None:
    """3 − 2 is more than 1 − 1, whatever the arrivals."""
    choice = figure_4.best_gap(problem)
    assert choice.tolist() == [0, 0]
    p = float(problem.arrival[0])
    assert ratio_of(problem, choice) == pytest.approx(3.0 / (p + 2.0 * (1.0 - p)))
    assert ratio_of(problem, choice) == pytest.approx(reached)
