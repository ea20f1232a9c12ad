"""What a scheduler's log tells beyond its sums: how options scatter, how the ratio went, what has changed lately.

It follows the log in portions, in memory that does not grow with it.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from worthwhile.errors import Overloaded, StoreError
from worthwhile.learning import UNKNOWN, Sums, one_more
from worthwhile.live.batch import Batch
from worthwhile.live.drift import Drift
from worthwhile.live.fold import fault
from worthwhile.live.group_commit import IN_THE_MIDDLE
from worthwhile.live.ratio_curve import Point, RatioCurve
from worthwhile.live.replica import PORTION
from worthwhile.live.stores.base import (
    AGREED,
    FAILED,
    GUARDED,
    HELD_OUT,
    LOST,
    NO_BASELINE,
    NO_POLICY,
    OWN,
    REPLACES,
    RESTORED,
    RESULT,
    WORTH_A_NUMBER,
    LogRow,
    TaskRow,
)
from worthwhile.live.trials import NO_TRIAL, share_at
from worthwhile.proof.trial import Trial
from worthwhile.state import Floats

A_FEW = 5.0  # reports of an option that tell how it scatters; fewer do not

Seen = TypeVar("Seen")


@dataclass(slots=True)
class Failures:
    """How often an option has failed with a kind, or was lost, and why it did so last."""

    failed: int = 0
    lost: int = 0
    in_a_row: int = 0  # since it last had a result, or was restored
    latest: int = FAILED  # or LOST
    reasons: dict[int, str | None] = field(default_factory=dict)  # the latest of each

    @property
    def reason(self) -> str | None:
        counts = {FAILED: self.failed, LOST: self.lost}
        told = self.latest if counts[self.latest] else FAILED + LOST - self.latest
        return self.reasons.get(told) if counts[told] else None

    def count(self, row: LogRow) -> None:
        self.failed, self.lost = self.failed + (row.outcome == FAILED), self.lost + (row.outcome != FAILED)
        self.in_a_row, self.latest, self.reasons[row.outcome] = self.in_a_row + 1, row.outcome, row.reason

    def take_back(self) -> None:
        """A loss was none."""
        self.lost, self.in_a_row = self.lost - 1, max(self.in_a_row - 1, 0)


@dataclass(slots=True)
class History:
    """What was imported of an option with a kind, as the totals count it."""

    reports: int = 0
    pulls: int = 0
    reward: float = 0.0
    cost: float = 0.0
    failed: int = 0  # without a reward
    failed_cost: float = 0.0

    def count(self, row: LogRow, cost: float) -> None:
        self.reports += row.outcome == RESULT
        self.add(row.reward, cost)

    def add(self, reward: float | None, cost: float, sign: int = 1) -> None:
        """One more attempt, or with sign −1 one that was none."""
        self.pulls, self.reward, self.cost = (
            self.pulls + sign,
            self.reward + sign * (reward or 0.0),
            self.cost + sign * cost,
        )
        if reward is None:
            self.failed, self.failed_cost = self.failed + sign, self.failed_cost + sign * cost


class LogStatistics:
    """One scheduler's log, read as far as it goes; any number of threads may ask."""

    patience = -1.0  # seconds to wait for another thread that reads the log; -1: as long as that takes

    def __init__(self, ask: Callable[[Callable[[Batch], Any]], Any]) -> None:
        self.ask, self.lock, self.busy = ask, threading.RLock(), False
        self.forgotten = 0  # how often something was taken out of the log that was read
        self.held_out = NO_TRIAL
        self.forget()

    def forget(self) -> None:
        """Begin with the first entry of the log."""
        self.outdated = False  # whether the store is another one by now
        self.position = self.reports = 0
        self.reward = self.cost = 0.0
        self.moments: dict[tuple[int, int], Sums] = {}  # of results by kind and option, side observations included
        self.drift = Drift()
        self.failures: dict[tuple[int, int], Failures] = {}
        self.retried: Counter[int] = Counter()  # failures that were tried again, by kind
        self.history: dict[tuple[int, int], History] = {}  # what was imported, by kind and option
        self.history_retried: Counter[int] = Counter()  # of the failures that were tried again
        self.history_lost: set[tuple[int, int]] = set()  # imported tasks, and the attempts at them that were lost
        self.curve = RatioCurve()
        self.trial, self.guarded = Trial(), 0  # tasks that were guarded
        self.with_baseline = self.no_baseline = 0  # tasks that could be held out or guarded, and those that could not

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
        def portion(batch: Batch) -> tuple[int, int, Sequence[LogRow], tuple[int, int], Seen | None]:
            replica = batch.replica
            rows = batch.tx.reports(replica.id, self.position, PORTION)
            known = len(replica.kinds.texts), len(replica.options.texts)
            seen = look(batch) if len(rows) < PORTION else None
            self.held_out, since = replica.settings.trial, self.held_out.since
            self.outdated = self.outdated or self.held_out.since != since
            return batch.header.reports, replica.forgotten, rows, known, seen

        while True:
            reports, forgotten, rows, known, seen = self.ask(portion)
            # the store was put back to an earlier state, or the log lost something
            if reports < self.position or self.outdated or forgotten != self.forgotten:
                self.forget()
                self.forgotten = forgotten
                continue
            self.take(rows, *known)
            if len(rows) < PORTION:
                up_to_date: Seen = seen
                return up_to_date

    def take(self, rows: Sequence[LogRow], kinds: int, options: int) -> None:
        """The next entries of the log; all of them, or after an interruption the log from its start."""
        try:
            for row in rows:
                if not fault(row, kinds, options):
                    self.count(row, row.cost + row.overhead)
            if rows:
                self.position = rows[-1].number
        except BaseException:
            self.forget()
            raise

    def count(self, row: LogRow, cost: float) -> None:
        arm = row.kind, row.option
        if arm in self.failures and row.outcome in (RESULT, RESTORED):
            self.failures[arm].in_a_row = 0
        if row.outcome == RESTORED:
            return
        if row.observed == OWN and row.task >= self.held_out.since:
            self.guarded += row.mode == GUARDED
            self.no_baseline += row.mode == NO_BASELINE
            self.with_baseline += row.mode in (HELD_OUT, AGREED, GUARDED)
        if self.held_out.ever_held_out and row.observed <= OWN:
            self.count_in_trial(row, cost)
        if row.observed <= REPLACES:
            self.replace_loss(row, cost)
        if row.outcome:
            self.failures.setdefault(arm, Failures()).count(row)
        if row.reward is not None:
            self.count_result(arm, row.reward, cost)
        if row.observed <= REPLACES:
            return
        if row.observed <= OWN:
            if row.observed < OWN:
                self.retried[row.kind] += 1
            self.reports, self.reward, self.cost = self.reports + 1, self.reward + (row.reward or 0.0), self.cost + cost
            self.curve.add(self.reports, self.reward, self.cost, row.task)
            if row.policy == NO_POLICY:
                self.count_history(row, cost)

    def count_in_trial(self, row: LogRow, cost: float) -> None:
        """What came of a task counts for the side that its coin has put it on, whatever is tried after that."""
        reward, share = row.reward or 0.0, share_at(self.held_out, row.task)
        if row.observed <= REPLACES:
            self.trial.go_on(row.task, reward - row.reward_estimate, cost - row.cost_estimate)
        elif row.observed < OWN:
            self.trial.go_on(row.task, reward, cost)
        elif 0.0 < share < 1.0 and row.mode != NO_BASELINE and row.policy != NO_POLICY:
            held_out = None if row.mode in (AGREED, GUARDED) else row.mode == HELD_OUT
            self.trial.add(row.task, row.kind, held_out, share, reward, cost, may_go_on=row.outcome != RESULT)

    def count_history(self, row: LogRow, cost: float) -> None:
        """What was recorded elsewhere, and imported."""
        self.history.setdefault((row.kind, row.option), History()).count(row, cost)
        if row.observed < OWN:
            self.history_retried[row.kind] += 1
        if row.outcome == LOST:
            self.history_lost.add((row.task, OWN - row.observed))

    def replace_loss(self, row: LogRow, cost: float) -> None:
        """What came of a task after it was taken for lost: it is still one report."""
        arm = row.kind, row.option
        self.failures.setdefault(arm, Failures()).take_back()
        if row.policy == WORTH_A_NUMBER and arm in self.moments:
            self.discount_result(arm, row.reward_estimate, row.cost_estimate)
        self.reward += (row.reward or 0.0) - row.reward_estimate
        self.cost += cost - row.cost_estimate
        if (row.task, REPLACES - row.observed) in self.history_lost:
            self.history[arm].add(None if row.policy == NO_POLICY else row.reward_estimate, row.cost_estimate, -1)
            self.history[arm].count(row, cost)
        self.curve.correct(self.reward, self.cost)

    def count_result(self, arm: tuple[int, int], reward: float, cost: float) -> None:
        self.moments[arm] = one_more(self.moments.get(arm, UNKNOWN), reward, cost, weight=1.0)
        self.drift.add(arm, reward, cost, self.reports)

    def discount_result(self, arm: tuple[int, int], reward: float, cost: float) -> None:
        """A result that was none."""
        moments = self.moments.pop(arm)
        if moments[0] > 1.0:
            left = one_more(moments, reward, cost, weight=-1.0)
            self.moments[arm] = *left[:3], max(left[3], 0.0), max(left[4], 0.0), left[5]

    def series(self, points: int, last: int | None = None, seconds: float | None = None) -> list[Point]:
        """The ratio over time, in so many points at most: of the last reports, of the last seconds, or all of it."""
        with self.followed(lambda batch: batch.header.now) as now:
            since = None if seconds is None else now - seconds
            return self.curve.points(points, self.rows, last, since)

    def rows(self, tasks: list[int]) -> Sequence[TaskRow]:
        rows: Sequence[TaskRow] = self.ask(lambda batch: batch.tx.tasks(batch.replica.id, tasks))
        return rows


def score_errors(moments: Sequence[Sums], price: float) -> list[float]:
    """The standard error of the mean of reward − θ·cost for every option of a kind, NaN where nobody knows.

    A few reports may agree by chance. Theirs is at least what is borrowed, as if the options of a kind scattered alike:
    in reward, and in cost/mean cost.
    """
    pulls = np.array([sums[0] for sums in moments])
    own, borrowed = errors_of(moments, price)
    known: list[float] = np.where(pulls < A_FEW, np.fmax(own, borrowed), own).tolist()
    return known


def cautious_errors(moments: Sequence[Sums], price: float) -> list[float]:
    """The same with a few reports borrowed for every option: also ten that are all alike leave room for others."""
    pulls = np.array([sums[0] for sums in moments])
    own, borrowed = errors_of(moments, price)
    freedom = np.maximum(pulls - 1.0, 0.0)
    with np.errstate(all="ignore"):
        squares = np.where(freedom > 0.0, freedom * own**2, 0.0) + A_FEW * borrowed**2
    known: list[float] = np.sqrt(squares / (freedom + A_FEW)).tolist()
    return known


def errors_of(moments: Sequence[Sums], price: float) -> tuple[Floats, Floats]:
    """Each option's standard error by its own scatter, and by that of all options of the kind."""
    pulls, _, mean_cost, reward_squares, cost_squares, products = np.reshape(moments, (-1, 6)).T
    several, freedom = pulls > 1.0, np.maximum(pulls - 1.0, 0.0).sum()
    with np.errstate(all="ignore"):
        squares = reward_squares - 2.0 * price * products + price * price * cost_squares
        own = np.sqrt(np.maximum(squares, 0.0) / (pulls - 1.0) / pulls)
        reward_scatter = reward_squares[several].sum() / freedom
        cost_scatter = (cost_squares[several] / mean_cost[several] ** 2).sum() / freedom
        borrowed = np.sqrt((reward_scatter + price * price * cost_scatter * mean_cost**2) / pulls)
    return own, borrowed
