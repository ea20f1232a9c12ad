"""Sums over the reports, kept whatever the policy keeps."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from worthwhile.state import Floats


class Totals(NamedTuple):
    """By kind and option; side observations are counted apart."""

    pulls: Floats
    reward: Floats
    cost: Floats  # with overhead
    observed: Floats


class Folded(NamedTuple):
    """The totals, and what the policy has learned."""

    totals: Totals
    learned: Any


def new_totals(kinds: int, options: int) -> Totals:
    """No reports yet."""
    return Totals(*np.zeros((4, kinds, options)))


def count_report(totals: Totals, kind: int, option: int, reward: float, cost: float) -> None:
    pulls, rewards, costs, _ = totals
    arm = kind, option
    pulls[arm] += 1.0
    rewards[arm] += reward
    costs[arm] += cost


def count_observation(totals: Totals, kind: int, option: int) -> None:
    totals.observed[kind, option] += 1.0
