"""What a scheduler's log tells beyond its sums: how options scatter, how the ratio went, what has changed lately.

It follows the log in portions, in memory that does not grow with it.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np

from worthwhile import state as states
from worthwhile.errors import Overloaded, StoreError
from worthwhile.learning import Moments, new_moments, record_moments
from worthwhile.live.batch import Batch
from worthwhile.live.engines import views
from worthwhile.live.fold import ROOM, doubled, fault
from worthwhile.live.group_commit import IN_THE_MIDDLE
from worthwhile.live.replica import PORTION
from worthwhile.live.stores.base import OWN, LogRow, TaskRow
from worthwhile.state import Floats, Size

MOST_MARKS = 512
LATELY = 1 / 32  # weight of the newest report in what an option did lately
ENOUGH = 100  # reports of an option before a change is suspected
SURPRISING = 5.0  # standard errors

Seen = TypeVar("Seen")


class Evidence(NamedTuple):
    """Reports and observations of every (kind, option): moments all along, and means lately."""

    moments: Moments
    reward_lately: Floats
    cost_lately: Floats


@dataclass(frozen=True)
class Point:
    """After so many reports: the ratio up to there, θ as it was then, and when (seconds since 1970)."""

    reports: int
    ratio: float | None
    price: float | None
    decided: float | None


@dataclass(slots=True)
class Mark:
    """The sums after so many reports, and the task that reported then; its row is read when somebody asks."""

    reports: int
    reward: float
    cost: float
    task: int
    row: TaskRow | None = None

    def point(self) -> Point:
        ratio = self.reward / self.cost if self.cost > 0.0 else None
        return Point(self.reports, ratio, self.row and self.row.price, self.row and self.row.decided)


class LogStatistics:
    """One scheduler's log, read as far as it goes; any number of threads may ask."""

    patience = -1.0  # seconds to wait for another thread that reads the log; -1: as long as that takes

    def __init__(self, ask: Callable[[Callable[[Batch], Any]], Any]) -> None:
        self.ask, self.lock, self.busy = ask, threading.RLock(), False
        self.forget()

    def forget(self) -> None:
        """Begin with the first entry of the log."""
        self.position = self.reports = self.latest = 0  # `latest`: the task of the latest report
        self.reward = self.cost = 0.0
        self.size = ROOM
        self.evidence = self.init(*ROOM)
        self.stride, self.marks = 1, []  # type: int, list[Mark]

    def init(self, kinds: int, options: int) -> Evidence:
        """No reports yet."""
        return Evidence(new_moments(kinds, options), *np.zeros((2, kinds, options)))

    @contextmanager
    def followed(self, look: Callable[[Batch], Seen]) -> Iterator[Seen]:
        """Read what has come since the last time, and hold still there; with what `look` sees at that moment."""
        if not self.lock.acquire(blocking=False):
            self.ask(lambda batch: None)  # refuses whoever is in the middle of a batch that the lock's owner waits for
            if not self.lock.acquire(timeout=self.patience):
                raise Overloaded(f"the log is still being read, {self.reports:,} reports so far; try again")
        try:
            if self.busy:  # a signal handler has interrupted this very thread
                raise StoreError(IN_THE_MIDDLE)
            self.busy = True
            try:
                yield self.follow(look)
            finally:
                self.busy = False
        finally:
            self.lock.release()

    def follow(self, look: Callable[[Batch], Seen]) -> Seen:
        def portion(batch: Batch) -> tuple[int, Sequence[LogRow], Size, Seen | None]:
            replica = batch.replica
            rows = batch.tx.reports(replica.id, self.position, PORTION)
            size = Size(len(replica.kinds.texts), len(replica.options.texts))
            return batch.header.reports, rows, size, look(batch) if len(rows) < PORTION else None

        while True:
            reports, rows, size, seen = self.ask(portion)
            if reports < self.position:  # the store was put back to an earlier state
                self.forget()
                continue
            self.take(rows, size)
            if len(rows) < PORTION:
                up_to_date: Seen = seen
                return up_to_date

    def take(self, rows: Sequence[LogRow], size: Size) -> None:
        """The next entries of the log; all of them, or after an interruption the log from its start."""
        try:
            self.fit(size)
            moments, reward_lately, cost_lately = views(self.evidence)
            for row in rows:
                if fault(row, *size):
                    continue
                arm, reward, cost = (row.kind, row.option), row.reward, row.cost + row.overhead
                record_moments(moments, *arm, reward, cost)
                weight = max(LATELY, 1.0 / moments.pulls[arm])
                reward_lately[arm] += weight * (reward - reward_lately[arm])
                cost_lately[arm] += weight * (cost - cost_lately[arm])
                if row.observed == OWN:
                    self.reports, self.reward, self.cost = self.reports + 1, self.reward + reward, self.cost + cost
                    self.mark(row.task)
            if rows:
                self.position = rows[-1].number
        except BaseException:
            self.forget()
            raise

    def fit(self, size: Size) -> None:
        """Room for so many kinds and options."""
        if size.kinds > self.size.kinds or size.options > self.size.options:
            self.size = Size(doubled(self.size.kinds, size.kinds), doubled(self.size.options, size.options))
            self.evidence = states.grow(self, self.evidence, *self.size)

    def mark(self, task: int) -> None:
        """Remember every so many reports where the sums stood; fewer of them when they become too many."""
        self.latest = task
        if self.reports % self.stride == 0:
            self.marks.append(Mark(self.reports, self.reward, self.cost, task))
            if len(self.marks) > MOST_MARKS:
                self.stride *= 2
                self.marks = [mark for mark in self.marks if mark.reports % self.stride == 0]

    def series(self, points: int) -> list[Point]:
        """The ratio over time, in so many points at most."""
        with self.followed(lambda batch: None):
            every = max(1, math.ceil(len(self.marks) / max(1, points - 1)))
            marks = self.marks[every - 1 :: every]
            if self.reports > (marks[-1].reports if marks else 0):
                marks = [*marks, Mark(self.reports, self.reward, self.cost, self.latest)]
            unknown = [mark.task for mark in marks if mark.row is None]
            if unknown:
                rows = self.ask(lambda batch: batch.tx.tasks(batch.replica.id, unknown))
                by_number = {row.task: row for row in rows}
                for mark in marks:
                    mark.row = mark.row or by_number.get(mark.task)
            return [mark.point() for mark in marks]


def score_errors(moments: Moments, kind: int, price: float) -> Floats:
    """The standard error of the mean of reward − θ·cost for every option of a kind, NaN where nobody knows.

    That of a single report is borrowed, as if the options of a kind scattered alike: in reward, and in cost/mean cost.
    """
    pulls, _, mean_cost, reward_squares, cost_squares, products = (array[kind] for array in moments)
    several, freedom = pulls > 1.0, np.maximum(pulls - 1.0, 0.0).sum()
    with np.errstate(all="ignore"):
        squares = reward_squares - 2.0 * price * products + price * price * cost_squares
        own = np.sqrt(np.maximum(squares, 0.0) / (pulls - 1.0) / pulls)
        reward_scatter = reward_squares[several].sum() / freedom
        cost_scatter = (cost_squares[several] / mean_cost[several] ** 2).sum() / freedom
        borrowed = np.sqrt(reward_scatter + price * price * cost_scatter * mean_cost**2)
    errors: Floats = np.where(several, own, np.where((pulls == 1.0) & (freedom > 0.0), borrowed, np.nan))
    return errors


def changes(evidence: Evidence) -> list[tuple[int, int, str]]:
    """(kind, option, reward or cost) of what lately is not what it was all along."""
    arms = np.nonzero(evidence.moments.pulls >= ENOUGH)
    pulls, mean_reward, mean_cost, reward_squares, cost_squares, _ = (array[arms] for array in evidence.moments)

    def surprising(mean: Floats, lately: Floats, squares: Floats) -> list[bool]:
        error = np.sqrt(squares / (pulls - 1.0) * LATELY / (2.0 - LATELY))
        by_far: list[bool] = ((error > 0.0) & (np.abs(lately - mean) > SURPRISING * error)).tolist()
        return by_far

    reward = surprising(mean_reward, evidence.reward_lately[arms], reward_squares)
    cost = surprising(mean_cost, evidence.cost_lately[arms], cost_squares)
    numbers = np.transpose(arms).tolist()
    changed = zip(numbers, reward, cost, strict=True)
    return [(*arm, "reward" if by_reward else "cost") for arm, by_reward, by_cost in changed if by_reward or by_cost]
