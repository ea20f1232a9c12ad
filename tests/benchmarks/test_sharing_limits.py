"""The limits for sharing: problems without anything in common are just that, and limits are judged as they read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from measuring import Measured
from sharing import (
    DEFAULT,
    THEN,
    Found,
    judge,
    measured,
    print_tables,
    ratio_of_losses,
    table_rows,
    unlike_rows,
    unnamed,
)
from suites import Row
from worthwhile import random_problem, two_kinds
from worthwhile.simulation.environments import synthetic


def lost(row: str, tasks: int, then: float, now: float) -> Measured:
    """A row in which both defaults lost so much, in either of two samples."""
    values = np.array([[then, now]] * 2)
    return Measured(row, False, tasks, (THEN, DEFAULT), 2, values, values, values[0], values[0])


def missed(*tables: Measured, unlike: tuple[Measured, ...] = (), alike: tuple[Measured, ...] = ()) -> list[str]:
    return [verdict.limit for verdict in judge(Found(tables, unlike, alike)) if not verdict.kept]


def test_every_limit_is_judged_where_it_was_measured() -> None:
    assert missed(lost("a", 1_000, 60.0, 43.9)) == []  # 56.1 is 1.4025 × 40
    assert missed(lost("a", 1_000, 60.0, 44.1)) == ["1 tables, T = 1,000: at least 1.4 × as much earned"]
    assert missed(lost("a", 1_000, 90.0, 60.0), lost("b", 1_000, 60.0, 61.9)) == []  # 4 × and nearly 1 ×
    assert len(missed(lost("a", 1_000, 90.0, 60.0), lost("b", 1_000, 60.0, 62.1))) == 1
    assert missed(lost("a", 10_000, 10.0, 11.9)) == []
    assert missed(lost("a", 10_000, 10.0, 12.1)) == ["1 tables, T = 10,000: none earns less by more than 2 points"]
    assert missed(lost("a", 100_000, 2.0, 1.0), lost("b", 100_000, 1.0, 2.0)) == []  # their geometric mean is 1
    assert len(missed(lost("a", 100_000, 1.0, 1.06))) == 1
    assert missed(lost("a", 100, 10.0, 90.0), lost("a", 300, 10.0, 90.0)) == []  # shown, not judged
    assert missed(unlike=(lost("unit", 1_000, 10.0, 10.4),)) == []
    assert missed(unlike=(lost("unit", 1_000, 10.0, 10.6),)) == ["unit, T = 1,000: at most 1.05 × the loss"]
    assert missed(alike=(lost("zipf", 1_000, 10.0, 4.9),)) == []
    assert missed(alike=(lost("zipf", 1_000, 10.0, 5.1),)) == ["zipf, T = 1,000: at most 0.5 × the loss"]


def test_the_error_of_a_ratio_is_that_of_pairs() -> None:
    """Problems that are twice as hard for both change nothing; others do."""
    one = lost("a", 1_000, 1.0, 1.0)
    ratio, error = ratio_of_losses(one._replace(loss=np.array([[1.0, 1.1], [2.0, 2.2], [4.0, 4.4]])))
    assert (ratio, error) == pytest.approx((1.1, 0.0))
    luck = np.random.default_rng(0)
    then = luck.uniform(1.0, 3.0, (400, 100))
    now = 1.2 * then + luck.normal(0.0, 0.5, then.shape)
    found = [ratio_of_losses(one._replace(loss=np.stack(pair, axis=1))) for pair in zip(then, now, strict=True)]
    ratios, errors = np.array(found).T
    assert errors.mean() == pytest.approx(ratios.std(), rel=0.1)


def test_shuffled_names_leave_every_kind_as_it_was_and_nothing_in_common() -> None:
    problem = random_problem("train", 3)
    other = unnamed(problem, 3)
    assert np.array_equal(problem.offered, other.offered)
    for kind in range(len(problem.kinds)):
        pairs = [sorted(zip(one.reward[kind], one.cost[kind], strict=True), key=str) for one in (problem, other)]
        assert np.array_equal(*pairs, equal_nan=True)
    assert not np.array_equal(problem.cost, other.cost, equal_nan=True)
    assert [len(row.worlds) for row in unlike_rows(0)] == [120, 120]


@pytest.mark.slow
def test_both_defaults_meet_the_same_worlds_and_what_they_earned_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    row = Row("paper", (synthetic(two_kinds()),))
    found = measured([row], [20, 50], "ratio-imed", 3, 0)
    assert [one.tasks for one in found] == [20, 50]
    assert all(ratio_of_losses(one) == (1.0, 0.0) for one in found)
    print_tables(found)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert lines[1].startswith("paper")
    assert lines[1].count("→") == 2
    assert table_rows(None) == table_rows(Path("nowhere")) == []
