"""The curve of the ratio: exact sums at its points, in bounded memory, for any part of the log."""

from __future__ import annotations

from typing import Any

import pytest

from worthwhile.live.ratio_curve import FEWEST, MARKS, PART, RatioCurve
from worthwhile.live.stores.base import TaskRow


def row(task: int) -> TaskRow:
    """Decided in the second of its number."""
    return TaskRow.running(
        task=task, kind=0, option=0, options="0", pending="0", reward_estimate=0.0, cost_estimate=0.0, price=task / 10,
        seen=0, policy=0, key=None, decided=float(task), lease_end=task + 1.0, overhead=0.0,
    )  # fmt: skip


def rows(tasks: list[int]) -> list[TaskRow]:
    return [row(task) for task in tasks]


def reward(report: int) -> float:
    return float(report * 7919 % 101)


def drawn(reports: int) -> RatioCurve:
    """Rewards that jump about, at cost 1 each."""
    curve, total = RatioCurve(), 0.0
    for report in range(1, reports + 1):
        total += reward(report)
        curve.add(report, total, float(report), report)
    return curve


@pytest.mark.parametrize("reports", [1, 19, 100, 3000, 9000])
@pytest.mark.parametrize("last", [None, 100, 1000])
def test_points_have_the_ratio_overall_and_lately(reports: int, last: int | None) -> None:
    points = drawn(reports).points(50, rows, last=last)
    span = min(last or reports, reports)
    window = max(FEWEST, span // PART)
    assert len(points) <= 50
    assert points[-1].reports == reports
    assert all(point.reports > reports - span for point in points)
    for point in points:
        assert point.ratio == sum(map(reward, range(1, point.reports + 1))) / point.reports
        assert (point.price, point.decided) == (point.reports / 10, point.reports)
        assert (point.recent is None) == (point.reports < window)
    if last == 100 and reports >= 100 + window:  # marks after every report
        end = points[-1].reports
        assert points[-1].recent == sum(map(reward, range(end - window + 1, end + 1))) / window


@pytest.mark.parametrize("since", [0.0, 1.0, 8700.5, 8999.5, 9999.0])
def test_the_part_since_a_moment_has_the_tasks_decided_since(since: float) -> None:
    points = drawn(9000).points(1000, rows, since=since)
    assert all(point.decided is not None and point.decided >= since for point in points)
    assert [point.reports for point in points[-1:]] == ([9000] if since < 9000 else [])
    if 8000 < since < 9000:
        assert points[0].reports == int(since) + 1


def test_memory_does_not_grow_with_the_log() -> None:
    short, long = drawn(20_000), drawn(80_000)
    assert len(long.levels) == len(short.levels) + 1
    assert all(len(level) <= MARKS for level in long.levels)


def test_rows_are_read_once() -> None:
    curve, read = drawn(2000), []

    def counted(tasks: list[int]) -> Any:
        read.extend(tasks)
        return rows(tasks)

    first = curve.points(100, counted)
    assert curve.points(100, counted) == first
    assert len(read) == len(set(read)) == len(first)
