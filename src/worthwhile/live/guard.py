"""The guard: the policy decides only as long as it cannot have lost more than allowed against the baseline.

With θ what the baseline earns per cost, everything together is at most a share g below that as long as

    Σ D + g·θ·ΣC ≥ 0,    D = (R − θC) − (R₀ − θC₀)

where D is summed over the tasks that took something else than the baseline, C over all. What the baseline would have
brought for such a task, R₀ and C₀, is its mean for the kind. The sum is taken at its lower confidence bound (an
asymptotic sequence, so that looking at it before every task is no harm), less the largest loss seen so far for the next
task and for each that is running, of whatever kind: conservative exploration (Wu, Shariff, Lattimore and Szepesvári,
2016).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from worthwhile.learning import UNKNOWN, Sums, one_more
from worthwhile.live.fold import fault
from worthwhile.live.stores.base import (
    AGREED,
    CHOSEN,
    EXPLORED,
    GUARDED,
    HELD_OUT,
    NO_POLICY,
    OWN,
    REPLACES,
    RESTORED,
    RESULT,
    LogRow,
)
from worthwhile.proof.confidence import FIRST, HANDFUL, sequence

USUAL = (HELD_OUT, AGREED, GUARDED)  # modes of tasks that took the baseline
OTHER = (CHOSEN, EXPLORED)
DEAREST = 5.0  # times the baseline's cost: what an option may cost that was never tried
MOST_OPEN = 10_000  # tasks that may be tried again, and are remembered for it


class Open(NamedTuple):
    """A task that failed, and may be tried again: all that has come of it so far."""

    kind: int
    mode: int
    reward: float
    cost: float


class Guard:
    """What the log says of both sides, kind by kind, up to an entry of it."""

    def __init__(self, since: int) -> None:
        self.since, self.position = since, 0  # the first task that counts; entries read
        self.usual: dict[int, Sums] = {}  # of tasks that took the baseline, by kind
        self.other: dict[int, Sums] = {}
        self.cost, self.worst = 0.0, 0.0  # of all tasks; the largest loss of one against the baseline's mean
        self.whole = UNKNOWN  # of all tasks that took the baseline
        self.open: dict[int, Open] = {}  # by task

    def take(self, rows: Sequence[LogRow], kinds: int, options: int) -> None:
        """The next entries of the log."""
        for row in rows:
            of_task = row.observed <= OWN and row.outcome != RESTORED and row.task >= self.since
            if of_task and not fault(row, kinds, options):
                self.count(row, row.reward or 0.0, row.cost + row.overhead)
            self.position = row.number

    def count(self, row: LogRow, reward: float, cost: float) -> None:
        """What came of a task, or of a further attempt at it."""
        if row.observed <= REPLACES:
            self.go_on(row.task, reward - row.reward_estimate, cost - row.cost_estimate)
        elif row.observed < OWN:
            self.go_on(row.task, reward, cost)
        elif row.policy != NO_POLICY:
            self.add(row.kind, row.mode, reward, cost)
            if row.outcome != RESULT:
                if len(self.open) >= MOST_OPEN:
                    self.open.pop(next(iter(self.open)))
                self.open[row.task] = Open(row.kind, row.mode, reward, cost)

    def go_on(self, task: int, reward: float, cost: float) -> None:
        """A further attempt at a task, or another outcome of it than was thought, adds to what came of it."""
        if task in self.open:
            kind, mode, reward_before, cost_before = self.open[task]
            self.add(kind, mode, reward_before, cost_before, sign=-1.0)
            self.open[task] = Open(kind, mode, reward_before + reward, cost_before + cost)
            self.add(*self.open[task])

    def add(self, kind: int, mode: int, reward: float, cost: float, sign: float = 1.0) -> None:
        """What came of a task; with sign −1 it was something else."""
        if mode in USUAL:
            self.usual[kind] = with_one(self.usual.get(kind, UNKNOWN), reward, cost, sign)
            self.whole = with_one(self.whole, reward, cost, sign)
            self.cost += sign * cost
        elif mode in OTHER:
            self.other[kind] = with_one(self.other.get(kind, UNKNOWN), reward, cost, sign)
            self.cost += sign * cost
            if sign > 0.0:
                self.worst = max(self.worst, -self.beyond(kind, reward, cost))

    @property
    def price(self) -> float:
        """θ: what the baseline earns per cost."""
        return self.whole[1] / self.whole[2] if self.whole[2] > 0.0 else 0.0

    def beyond(self, kind: int, reward: float, cost: float) -> float:
        """D of a task."""
        _, usual_reward, usual_cost, *_ = self.usual.get(kind, UNKNOWN)
        return (reward - usual_reward) - self.price * (cost - usual_cost)

    def allows(self, kind: int, allowed: float, error: float, running: Mapping[int, float]) -> bool:
        """Whether the policy may decide the next task of a kind; `running` counts those of every kind that are."""
        if self.whole[0] < FIRST or self.usual.get(kind, UNKNOWN)[0] < HANDFUL:
            return False
        at_risk = sum(tasks * self.step(each) for each, tasks in running.items() if each in self.usual)
        left = self.bound(error) + allowed * self.least_price(error) * self.cost
        return left >= self.step(kind) + at_risk

    def least_price(self, error: float) -> float:
        """θ at its lower confidence bound."""
        count, _, cost, *_ = self.whole
        half = sequence(count, min(2.0 * error, 0.5)) * math.sqrt(scatter(self.whole, self.price) / count) / cost
        return max(self.price - half, 0.0)

    def step(self, kind: int) -> float:
        """What one more task may lose: the worst so far, or all of the reward at several times the cost."""
        return max(self.worst, self.usual[kind][1] + self.price * (DEAREST - 1.0) * self.usual[kind][2])

    def bound(self, error: float) -> float:
        """Σ D at its lower confidence bound; the means of the baseline are estimates, too."""
        price, total, variance = self.price, 0.0, 0.0
        pooled = self.pooled()
        for kind, other in self.other.items():
            usual = self.usual.get(kind, UNKNOWN)
            total += other[0] * self.beyond(kind, other[1], other[2])
            variance += other[0] * max(scatter(other, price), pooled)
            variance += other[0] ** 2 * max(scatter(usual, price), pooled / 2.0) / max(usual[0], 1.0)
        return total - sequence(self.whole[0], min(2.0 * error, 0.5)) * math.sqrt(variance)

    def pooled(self) -> float:
        """The variance of R − θC of a task with the baseline, within kinds: few tasks of a kind may agree by chance."""
        freedom = sum(max(usual[0] - 1.0, 0.0) for usual in self.usual.values())
        squares = sum(scatter(usual, self.price) * (usual[0] - 1.0) for usual in self.usual.values() if usual[0] > 1.0)
        return squares / freedom if freedom > 0.0 else 0.0


def with_one(sums: Sums, reward: float, cost: float, sign: float) -> Sums:
    """The sums with one more task, or with one less."""
    return UNKNOWN if sums[0] + sign <= 0.0 else one_more(sums, reward, cost, sign)


def scatter(sums: Sums, price: float) -> float:
    """The variance of R − θC."""
    count, _, _, reward_squares, cost_squares, products = sums
    squares = reward_squares - 2.0 * price * products + price * price * cost_squares
    return max(squares, 0.0) / (count - 1.0) if count > 1.0 else 0.0
