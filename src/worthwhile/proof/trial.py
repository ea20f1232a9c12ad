"""A randomised trial: what the scheduler earns beside what the baseline would have, from tasks that a coin held out.

Every task tells something of both sides. For task t, with h the share held out, Z = 1 if it was, and m the mean of its
kind so far on a side, the values

    m₁ + (1 − Z)/(1 − h) · (x − m₁)  on the scheduler's side
    m₀ + Z/h · (x − m₀)              on the baseline's

have the right expectation whatever m is, because the coin knows nothing of the task; a good m makes them scatter less.
Where the scheduler wants the baseline itself, both are what was seen. docs/proof.md has the rest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from worthwhile.proof.confidence import FIRST, Estimate, Interval, estimate

Values = tuple[float, float, float, float]  # reward and cost on the scheduler's side, then on the baseline's
Pair = tuple[float, float]  # reward and cost

EARLY = 20  # tasks of either side that fix θ₀, and count no more in the difference
BORROWED = 2.0  # tasks of a kind that its mean on all kinds is worth
MOST_OPEN = 10_000  # tasks that may be tried again, and are remembered for it
MEASURES = {  # of a gain: as which power each of the four means counts
    "ratio": (1.0, -1.0, -1.0, 1.0),  # reward per cost
    "reward": (1.0, 0.0, -1.0, 0.0),
    "cost": (0.0, -1.0, 0.0, 1.0),  # what the baseline costs, in costs of the scheduler
}
PAIRS = [(first, second) for first in range(4) for second in range(first, 4)]


class Gain(NamedTuple):
    """What the trial shows: the quotient of what is measured, less 1, and the difference Σ(R − θ₀C) per task."""

    gain: Estimate | None  # None while too little is known
    difference: Estimate | None
    price: float | None  # θ₀
    ratio: float | None  # of the scheduler
    baseline_ratio: float | None
    held_out: int  # tasks in which both sides differ
    decided: int  # the same, not held out
    agreed: int  # tasks in which the scheduler took the baseline of its own accord
    cost_quotient: float | None  # what a task costs with the scheduler, over what it costs with the baseline
    means: Values  # of a task


class Open(NamedTuple):
    """A task that failed, and may be tried again: its values so far, and where they are counted."""

    values: Values
    share: float
    held_out: bool | None
    counted_in: tuple[Moments, ...]


class Mean:
    """Reward and cost of tasks, on average."""

    def __init__(self) -> None:
        self.count, self.reward, self.cost = 0, 0.0, 0.0

    def add(self, reward: float, cost: float) -> None:
        self.count += 1
        self.reward += (reward - self.reward) / self.count
        self.cost += (cost - self.cost) / self.count


class Side:
    """What is known of the scheduler's side, or of the baseline's, where they differ."""

    def __init__(self) -> None:
        self.all, self.kinds = Mean(), {}  # type: Mean, dict[int, Mean]

    def expected(self, kind: int) -> Pair:
        """Of a task of this kind, by those before it."""
        mean, overall = self.kinds.get(kind), self.all
        if mean is None:
            return overall.reward, overall.cost
        own, whole = mean.count, mean.count + BORROWED
        return (
            (own * mean.reward + BORROWED * overall.reward) / whole,
            (own * mean.cost + BORROWED * overall.cost) / whole,
        )

    def add(self, kind: int, reward: float, cost: float) -> None:
        self.all.add(reward, cost)
        self.kinds.setdefault(kind, Mean()).add(reward, cost)


class Moments:
    """Means and products of four values (Welford), from which one can be taken out again."""

    def __init__(self) -> None:
        self.count, self.mean, self.products = 0, [0.0] * 4, [0.0] * len(PAIRS)

    def add(self, values: Values, sign: int = 1) -> None:
        self.count += sign
        if self.count == 0:
            self.__init__()  # type: ignore[misc]
            return
        before = [value - mean for value, mean in zip(values, self.mean, strict=True)]
        self.mean = [mean + sign * change / self.count for mean, change in zip(self.mean, before, strict=True)]
        after = [value - mean for value, mean in zip(values, self.mean, strict=True)]
        for place, (first, second) in enumerate(PAIRS):
            self.products[place] += sign * before[first] * after[second]

    def standard_error(self, weights: Sequence[float]) -> float:
        """Of the mean of Σ weight · value."""
        whole = sum(
            product * weights[first] * weights[second] * (1.0 if first == second else 2.0)
            for (first, second), product in zip(PAIRS, self.products, strict=True)
        )
        return math.sqrt(max(whole, 0.0) / (self.count - 1.0) / self.count) if self.count > 1 else math.inf


class Trial:
    """All tasks that could have been held out, in the order of their reports."""

    def __init__(self) -> None:
        self.scheduler, self.baseline = Side(), Side()
        self.all, self.later = Moments(), Moments()
        self.price: float | None = None  # θ₀
        self.agreed = 0
        self.open: dict[int, Open] = {}  # by task

    def add(
        self, task: int, kind: int, held_out: bool | None, share: float, reward: float, cost: float, may_go_on: bool
    ) -> None:
        """What came of a task; held_out is None if the scheduler wanted the baseline itself."""
        values = self.values(kind, held_out, share, reward, cost)
        if held_out is None:
            self.agreed += 1
        else:
            (self.baseline if held_out else self.scheduler).add(kind, reward, cost)
        counted_in = self.all, self.later
        for moments in counted_in:
            moments.add(values)
        self.fix_price()
        if may_go_on:
            if len(self.open) >= MOST_OPEN:
                self.open.pop(next(iter(self.open)))
            self.open[task] = Open(values, share, held_out, counted_in)

    def values(self, kind: int, held_out: bool | None, share: float, reward: float, cost: float) -> Values:
        """Reward and cost on both sides, right in expectation."""
        if held_out is None:
            return reward, cost, reward, cost
        (reward_1, cost_1), (reward_0, cost_0) = self.scheduler.expected(kind), self.baseline.expected(kind)
        if held_out:
            return reward_1, cost_1, reward_0 + (reward - reward_0) / share, cost_0 + (cost - cost_0) / share
        rest = 1.0 - share
        return reward_1 + (reward - reward_1) / rest, cost_1 + (cost - cost_1) / rest, reward_0, cost_0

    def fix_price(self) -> None:
        """θ₀ is what both sides have earned in the first tasks; the difference begins after them, and knows none."""
        sides = self.scheduler.all, self.baseline.all
        if self.price is None and min(side.count for side in sides) >= EARLY:
            self.price = sum(side.reward for side in sides) / sum(side.cost for side in sides)
            self.later = Moments()

    def go_on(self, task: int, reward: float, cost: float) -> None:
        """A further attempt at a task, or another outcome of it than was thought, adds to what came of it."""
        if task not in self.open:
            return
        values, share, held_out, counted_in = self.open[task]
        to_scheduler = 1.0 if held_out is None else 0.0 if held_out else 1.0 / (1.0 - share)
        to_baseline = 1.0 if held_out is None else 1.0 / share if held_out else 0.0
        added = to_scheduler * reward, to_scheduler * cost, to_baseline * reward, to_baseline * cost
        changed: Values = tuple(map(float.__add__, values, added))  # type: ignore[assignment]
        for moments in counted_in:
            moments.add(values, -1)
            moments.add(changed)
        self.open[task] = Open(changed, share, held_out, counted_in)

    @property
    def counted(self) -> int:
        """Observations that an estimate rests on: of the side that has fewer."""
        return min(self.scheduler.all.count, self.baseline.all.count)

    def result(self, measure: str = "ratio") -> Gain:
        """What all that shows so far, of the ratio, the reward, or the cost."""
        reward, cost, reward_0, cost_0 = self.all.mean
        return Gain(
            self.gain(measure), self.difference(), self.price, quotient(reward, cost), quotient(reward_0, cost_0),
            self.baseline.all.count, self.scheduler.all.count, self.agreed, quotient(cost, cost_0),
            (reward, cost, reward_0, cost_0),
        )  # fmt: skip

    def gain(self, measure: str = "ratio") -> Estimate | None:
        """The quotient of both sides, less 1; its logarithm is nearly linear in the four means (delta method).

        Of the cost it is the share that is saved, 1 less the quotient.
        """
        means, powers = self.all.mean, MEASURES[measure]
        if self.counted < FIRST or any(power and mean <= 0.0 for power, mean in zip(powers, means, strict=True)):
            return None
        log = math.fsum(power * math.log(mean) for power, mean in zip(powers, means, strict=True) if power)
        error = self.all.standard_error([power and power / mean for power, mean in zip(powers, means, strict=True)])
        found = estimate(log, error, self.counted)
        if measure == "cost":
            return Estimate(-math.expm1(-log), *(saved(interval) for interval in found[1:]))
        return Estimate(math.expm1(log), *map(grown, found[1:]))

    def difference(self) -> Estimate | None:
        """R − θ₀C of the scheduler less that of the baseline, per task; unbiased."""
        count = self.counted - EARLY
        if self.price is None or count < FIRST:
            return None
        weights = 1.0, -self.price, -1.0, self.price
        value = sum(weight * mean for weight, mean in zip(weights, self.later.mean, strict=True))
        return estimate(value, self.later.standard_error(weights), count)


def grown(interval: Interval) -> Interval:
    """An interval of logarithms as one of quotients, less 1."""
    return Interval(math.expm1(min(interval.low, 700.0)), math.expm1(min(interval.high, 700.0)))


def saved(interval: Interval) -> Interval:
    """An interval of logarithms of what the baseline costs, in costs of the scheduler, as one of shares saved."""
    return Interval(*(-math.expm1(min(-end, 700.0)) for end in interval))


def quotient(reward: float, cost: float) -> float | None:
    return reward / cost if cost > 0.0 else None
