"""What a scheduler's log tells beyond its sums: how options scatter, how the ratio went, what has changed lately.

It follows the log in portions, in memory that does not grow with it.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence

from worthwhile.errors import Overloaded
from worthwhile.live.fold import fault
from worthwhile.live.replica import PORTION
from worthwhile.live.scheduler import Scheduler
from worthwhile.live.stores.base import OWN, LogRow, TaskRow
from worthwhile.service.schemas import Point, Series

MOST_MARKS = 512
LATELY = 1 / 32  # weight of the newest report in what an option did lately
ENOUGH = 100  # reports of an option before a change is suspected
SURPRISING = 5.0  # standard errors
ANY = 1 << 62
FOR_LONG = 1.0  # seconds


class Arm:
    """One option of one kind: means and scatter of reward and cost, all along and lately."""

    __slots__ = ("cost", "cost_lately", "costs", "pulls", "reward", "reward_lately", "rewards", "together")

    def __init__(self) -> None:
        self.pulls = 0
        self.reward = self.cost = 0.0  # means
        self.rewards = self.costs = self.together = 0.0  # sums of squared distances, and of their products
        self.reward_lately = self.cost_lately = 0.0

    def take(self, reward: float, cost: float) -> None:
        """One more report or observation (Welford's update)."""
        self.pulls += 1
        off_reward, off_cost = reward - self.reward, cost - self.cost
        self.reward += off_reward / self.pulls
        self.cost += off_cost / self.pulls
        self.rewards += off_reward * (reward - self.reward)
        self.costs += off_cost * (cost - self.cost)
        self.together += off_reward * (cost - self.cost)
        weight = max(LATELY, 1.0 / self.pulls)
        self.reward_lately += weight * (reward - self.reward_lately)
        self.cost_lately += weight * (cost - self.cost_lately)

    def score_error(self, price: float) -> float | None:
        """The standard error of the mean of reward − θ·cost."""
        if self.pulls < 2:
            return None
        squares = self.rewards - 2.0 * price * self.together + price * price * self.costs
        return math.sqrt(max(0.0, squares) / (self.pulls - 1) / self.pulls)

    def borrowed_error(self, price: float, others: list[Arm]) -> float | None:
        """The same for a single report, if the options of a kind scatter alike: in reward, and in cost/mean cost."""
        freedom = sum(one.pulls - 1 for one in others if one.pulls > 1)
        if freedom == 0:
            return None
        rewards = sum(one.rewards for one in others if one.pulls > 1) / freedom
        costs = sum(one.costs / (one.cost * one.cost) for one in others if one.pulls > 1) / freedom
        return math.sqrt(rewards + price * price * costs * self.cost * self.cost)

    def changed(self) -> str:
        """reward or cost, if lately it is not what it was all along; else nothing."""
        if self.pulls < ENOUGH:
            return ""
        for what, mean, lately, squares in (
            ("reward", self.reward, self.reward_lately, self.rewards),
            ("cost", self.cost, self.cost_lately, self.costs),
        ):
            error = math.sqrt(squares / (self.pulls - 1) * LATELY / (2.0 - LATELY))
            if abs(lately - mean) > SURPRISING * error > 0.0:
                return what
        return ""


class Mark:
    """The sums after so many reports, and the task that reported then."""

    __slots__ = ("cost", "reports", "reward", "row", "task")

    def __init__(self, reports: int, reward: float, cost: float, task: int) -> None:
        self.reports, self.reward, self.cost, self.task = reports, reward, cost, task
        self.row: TaskRow | None = None

    def point(self) -> Point:
        ratio = self.reward / self.cost if self.cost > 0.0 else None
        row = self.row
        return Point(self.reports, ratio, row.price if row else None, row.decided if row else None)


class Chronicle:
    """One scheduler's log, read as far as it goes."""

    def __init__(self) -> None:
        self.position = self.reports = 0
        self.reward = self.cost = 0.0
        self.arms: dict[tuple[int, int], Arm] = {}
        self.stride, self.marks = 1, []  # type: int, list[Mark]
        self.last: Mark | None = None
        self.lock = threading.Lock()

    def follow(self, scheduler: Scheduler) -> None:
        """Read what has come since the last time; for long, that holds up only who asked first."""
        if not self.lock.acquire(timeout=FOR_LONG):
            raise Overloaded(f"the log is still being read, {self.reports:,} reports so far; try again")
        try:
            while rows := scheduler._transactor.entries(self.position, PORTION):
                self.take(rows)
            unknown = [mark for mark in (*self.marks, self.last) if mark is not None and mark.row is None]
            if unknown:
                numbers = [mark.task for mark in unknown]
                found = scheduler._transactor.do(lambda batch: batch.tx.tasks(batch.replica.id, numbers))
                by_number = {row.task: row for row in found}
                for mark in unknown:
                    mark.row = by_number.get(mark.task)
        finally:
            self.lock.release()

    def take(self, rows: Sequence[LogRow]) -> None:
        for row in rows:
            if fault(row, ANY, ANY):
                continue
            cost = row.cost + row.overhead
            arm = self.arms.get((row.kind, row.option))
            if arm is None:
                arm = self.arms[row.kind, row.option] = Arm()
            arm.take(row.reward, cost)
            if row.observed == OWN:
                self.reports += 1
                self.reward += row.reward
                self.cost += cost
                self.mark(row.task)
        self.position = rows[-1].number

    def mark(self, task: int) -> None:
        """Remember every so many reports where the sums stood; fewer of them when they become too many."""
        if self.reports % self.stride == 0:
            self.marks.append(Mark(self.reports, self.reward, self.cost, task))
            if len(self.marks) > MOST_MARKS:
                self.stride *= 2
                self.marks = [mark for mark in self.marks if mark.reports % self.stride == 0]
        if self.last is None or self.last.reports != self.reports:
            self.last = Mark(self.reports, self.reward, self.cost, task)

    def series(self, scheduler: Scheduler, points: int) -> Series:
        """The ratio over time."""
        self.follow(scheduler)
        with self.lock:
            every = max(1, math.ceil(len(self.marks) / max(1, points - 1)))
            shown = self.marks[every - 1 :: every]
            if self.last is not None and (not shown or shown[-1].reports < self.last.reports):
                shown = [*shown, self.last]
            return Series([mark.point() for mark in shown])
