"""How the ratio went: sums after chosen reports, close together lately and further apart before, in bounded memory."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from worthwhile.live.stores.base import TaskRow

MARKS = 512  # that a level keeps
FACTOR = 4  # how much further apart the marks of the next level are
PART = 10  # the recent ratio is that of the last tenth of the reports shown …
FEWEST = 20  # … but of so many at least

ReadRows = Callable[[list[int]], Iterable[TaskRow]]


@dataclass(frozen=True)
class Point:
    """After so many reports: the ratio up to there, θ as it was then, and when (seconds since 1970)."""

    reports: int
    ratio: float | None
    price: float | None
    decided: float | None
    recent: float | None = None  # the ratio of the latest reports then: a tenth of those asked for, at least 20


@dataclass(slots=True)
class Mark:
    """The sums after so many reports, and the task that reported then; its row is read when somebody asks."""

    reports: int
    reward: float
    cost: float
    task: int
    row: TaskRow | None = None

    def ratio_since(self, earlier: Mark | None) -> float | None:
        """Reward per cost from there to here."""
        if earlier is None:
            return None
        cost = self.cost - earlier.cost
        return (self.reward - earlier.reward) / cost if cost > 0.0 else None


START = Mark(0, 0.0, 0.0, 0)


class RatioCurve:
    """The first level has a mark after every report, the next after every fourth, and so on; each keeps its latest."""

    def __init__(self) -> None:
        self.levels: list[deque[Mark]] = []

    def add(self, reports: int, reward: float, cost: float, task: int) -> None:
        mark, stride = Mark(reports, reward, cost, task), 1
        for level in self.levels:
            if reports % stride:
                return
            level.append(mark)
            stride *= FACTOR
        if reports % stride == 0:
            self.levels.append(deque([mark], MARKS))

    def correct(self, reward: float, cost: float) -> None:
        """The sums have changed since the latest report: what was taken for lost has come after all."""
        if self.levels:
            newest = self.levels[0][-1]  # which is the same mark on every level
            newest.reward, newest.cost = reward, cost

    def points(self, most: int, read: ReadRows, last: int | None = None, since: float | None = None) -> list[Point]:
        """The curve in at most so many points: all of it, of the last reports, or since a moment."""
        if not self.levels:
            return []
        if since is not None:
            last = self.reports_since(since, read)
        newest = self.levels[0][-1]
        shown = newest.reports if last is None else min(last, newest.reports)
        window = max(FEWEST, shown // PART)
        marks = self.reaching(newest.reports - shown - window)
        if marks[-1] is not newest:
            marks.append(newest)
        drawn = thinned([mark for mark in marks if mark.reports > newest.reports - shown], most)
        fill(drawn, read)
        reports = [mark.reports for mark in marks]
        return [point(mark, before(marks, reports, mark.reports - window)) for mark in drawn]

    def reaching(self, reports: int) -> list[Mark]:
        """The marks of the finest level that goes back so far, or to the start."""
        for level, stride in zip(self.levels, strides(), strict=False):
            if level[0].reports <= max(reports, stride):
                break
        complete = level[0].reports == stride
        return [*([START] if complete else []), *level]

    def reports_since(self, moment: float, read: ReadRows) -> int:
        """How many reports there are of tasks decided since."""
        newest = self.levels[0][-1].reports
        for level, stride in zip(self.levels, strides(), strict=False):
            fill([level[0]], read)
            if decided(level[0]) < moment or level[0].reports == stride:
                break
        fill(level, read)
        before = [mark.reports for mark in level if decided(mark) < moment]
        return newest - before[-1] if before else newest


def strides() -> Iterable[int]:
    stride = 1
    while True:
        yield stride
        stride *= FACTOR


def decided(mark: Mark) -> float:
    return mark.row.decided if mark.row is not None else 0.0


def before(marks: Sequence[Mark], reports: Sequence[int], count: int) -> Mark | None:
    """The mark after so many reports, or the last one before that; None if there is none."""
    at = bisect_right(reports, count) - 1
    return marks[at] if at >= 0 else None


def thinned(marks: list[Mark], most: int) -> list[Mark]:
    """At most so many of them, evenly, with the last one."""
    every = max(1, -(-len(marks) // max(1, most - 1)))
    kept = marks[every - 1 :: every]
    return kept if not marks or kept[-1] is marks[-1] else [*kept, marks[-1]]


def fill(marks: Iterable[Mark], read: ReadRows) -> None:
    """Read the rows of their tasks."""
    unknown = [mark for mark in marks if mark.row is None and mark.task]
    if unknown:
        by_number = {row.task: row for row in read([mark.task for mark in unknown])}
        for mark in unknown:
            mark.row = by_number.get(mark.task)


def point(mark: Mark, earlier: Mark | None) -> Point:
    price, when = (None, None) if mark.row is None else (mark.row.price, mark.row.decided)
    return Point(mark.reports, mark.ratio_since(START), price, when, mark.ratio_since(earlier))
