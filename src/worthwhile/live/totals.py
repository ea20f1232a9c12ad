"""Sums over the reports, kept whatever the policy keeps."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from worthwhile.state import Floats


class Totals(NamedTuple):
    """By kind and option; side observations are counted apart."""

    pulls: Floats  # attempts that have ended, failed ones too
    reward: Floats
    cost: Floats  # with overhead
    observed: Floats
    failed: Floats  # attempts without a reward: failed or lost, unless failures are worth a number
    failed_cost: Floats  # of these, with overhead


class Folded(NamedTuple):
    """The totals, and what the policy has learned."""

    totals: Totals
    learned: Any


def new_totals(kinds: int, options: int) -> Totals:
    """No reports yet."""
    return Totals(*np.zeros((len(Totals._fields), kinds, options)))


def count_report(totals: Totals, kind: int, option: int, reward: float, cost: float) -> None:
    pulls, rewards, costs, _, _, _ = totals
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


def discount_report(totals: Totals, kind: int, option: int, reward: float, cost: float) -> None:
    """Undo `count_report`."""
    arm = kind, option
    totals.pulls[arm] -= 1.0
    totals.reward[arm] -= reward
    totals.cost[arm] -= cost


def average_cost(totals: Totals, kind: int, option: int) -> float | None:
    """With overhead: of this option's attempts, else of the kind's, else of all; None if there are none."""
    for cells in ((kind, option), kind, ...):
        pulls = float(totals.pulls[cells].sum())
        if pulls > 0.0:
            return float(totals.cost[cells].sum()) / pulls
    return None
