"""Sums over the reports, kept whatever the policy keeps."""

from __future__ import annotations

from math import nextafter
from typing import Any, NamedTuple

import numpy as np

from worthwhile.live.stores.base import FAILED, LOST, LogRow
from worthwhile.state import Floats

# The cost of a failure if nothing is known of any cost: next to nothing, and a number that nobody has measured.
NOBODY_KNOWS = nextafter(1e-9, 1.0)


class Totals(NamedTuple):
    """By kind and option; side observations are counted apart."""

    pulls: Floats  # attempts that have ended, failed ones too
    reward: Floats
    cost: Floats  # with overhead
    observed: Floats
    failed: Floats  # attempts without a reward: failed or lost, unless failures are worth a number
    failed_cost: Floats  # of these, with overhead
    unmeasured: Floats  # attempts whose cost nobody has measured: lost, or failed when nothing was known
    unmeasured_cost: Floats  # of these, with overhead


class Folded(NamedTuple):
    """The totals, and what the policy has learned."""

    totals: Totals
    learned: Any


def new_totals(kinds: int, options: int) -> Totals:
    """No reports yet."""
    return Totals(*np.zeros((len(Totals._fields), kinds, options)))


def count_report(totals: Totals, kind: int, option: int, reward: float, cost: float) -> None:
    pulls, rewards, costs, _, _, _, _, _ = totals
    arm = kind, option
    pulls[arm] += 1.0
    rewards[arm] += reward
    costs[arm] += cost


def count_observation(totals: Totals, kind: int, option: int) -> None:
    totals.observed[kind, option] += 1.0


def count_failure(totals: Totals, kind: int, option: int, cost: float, sign: float = 1.0) -> None:
    """A failure that is worth no number; with sign −1, one that was none after all."""
    arm = kind, option
    for counts in (totals.pulls, totals.failed):
        counts[arm] += sign
    for costs in (totals.cost, totals.failed_cost):
        costs[arm] += sign * cost


def count_unmeasured(totals: Totals, row: LogRow, sign: float = 1.0) -> None:
    """A failure, if its cost is somebody's guess; with sign −1, the loss that an entry takes the place of."""
    guessed = row.outcome == LOST or (row.outcome == FAILED and row.cost == NOBODY_KNOWS)
    if guessed or sign < 0.0:
        arm, cost = (row.kind, row.option), row.cost + row.overhead if sign > 0.0 else row.cost_estimate
        totals.unmeasured[arm] += sign
        totals.unmeasured_cost[arm] += sign * cost


def discount_report(totals: Totals, kind: int, option: int, reward: float, cost: float) -> None:
    """Undo `count_report`."""
    arm = kind, option
    totals.pulls[arm] -= 1.0
    totals.reward[arm] -= reward
    totals.cost[arm] -= cost


def average_cost(totals: Totals, kind: int, option: int) -> float | None:
    """With overhead: of this option's measured attempts, else of the kind's, else of all; None if there are none."""
    for cells in ((kind, option), kind, ...):
        measured = float((totals.pulls[cells] - totals.unmeasured[cells]).sum())
        cost = float((totals.cost[cells] - totals.unmeasured_cost[cells]).sum())
        if measured > 0.0 and cost > 0.0:
            return cost / measured
    return None
