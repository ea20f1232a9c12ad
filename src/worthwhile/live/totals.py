"""Sums over the reports, kept whatever the policy keeps."""

from __future__ import annotations

from collections.abc import Sequence
from math import nextafter
from typing import Any, NamedTuple

import numpy as np

from worthwhile.live.stores.base import FAILED, LOST, LogRow
from worthwhile.state import Floats

# The cost of a failure if nothing is known of any cost: next to nothing, and a number that nobody has measured.
NOBODY_KNOWS = nextafter(1e-9, 1.0)
SAMPLED = 16  # one of so many reports with features tells what was expected: to ask takes as long as to decide


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


class FeatureTotals(NamedTuple):
    """Of tasks with features that this policy decided: what was expected of them, before each was learned from.

    R − θC, beyond the option that was best overall then; of every SAMPLED-th report.
    """

    reports: Floats  # (1,)
    worth: Floats  # (1,): θC, of what was expected of
    taken: Floats  # (kinds,): of the options that were taken
    options: Floats  # (kinds, options): had always this one been taken


class Folded(NamedTuple):
    """The totals, and what the policy has learned."""

    totals: Totals
    learned: Any
    features: FeatureTotals


def new_totals(kinds: int, options: int) -> Totals:
    """No reports yet."""
    return Totals(*np.zeros((len(Totals._fields), kinds, options)))


def no_features(kinds: int, options: int) -> FeatureTotals:
    """No report with features yet."""
    return FeatureTotals(np.zeros(1), np.zeros(1), np.zeros(kinds), np.zeros((kinds, options)))


def count_expected(totals: FeatureTotals, kind: int, option: int, worth: float, beyond: Sequence[float]) -> None:
    """A report of a task: what its cost is worth, and what was expected of every option, if anything was."""
    totals.worth[0] += worth
    for other, expected in enumerate(beyond):
        totals.options[kind, other] += expected
    totals.taken[kind] += beyond[option] if beyond else 0.0


def expected_gain(totals: Folded) -> float | None:
    """The part by which reward per cost is expected to be above that of the best option of every kind, taken always."""
    taken, known = totals.features.taken, totals.totals.pulls > 0.0
    always = np.where(known, totals.features.options, -np.inf).max(axis=1, initial=-np.inf)
    gain, worth = float((taken - always)[known.any(axis=1)].sum()), float(totals.features.worth[0])
    return max(0.0, gain) / (worth - gain) if worth > max(0.0, gain) else None


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
