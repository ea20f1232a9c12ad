"""Sums over the reports, kept whatever the policy keeps."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from worthwhile.state import Floats


class Tally(NamedTuple):
    """By kind and option; side observations are counted apart."""

    pulls: Floats
    reward: Floats
    cost: Floats  # with overhead
    observed: Floats


class Folded(NamedTuple):
    """The tally, and what the policy has learned."""

    tally: Tally
    learned: Any


def new_tally(kinds: int, options: int) -> Tally:
    """No reports yet."""
    return Tally(*np.zeros((4, kinds, options)))


def count_report(tally: Tally, kind: int, option: int, reward: float, cost: float) -> None:
    pulls, rewards, costs, _ = tally
    arm = kind, option
    pulls[arm] += 1.0
    rewards[arm] += reward
    costs[arm] += cost


def count_observation(tally: Tally, kind: int, option: int) -> None:
    tally.observed[kind, option] += 1.0
