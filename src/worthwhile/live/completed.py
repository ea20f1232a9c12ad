"""What a completed task brings and costs: failures are paid by the tasks that succeed.

An option that fails with probability f must be tried 1/(1 − f) times on average until a task is done. If its successes
cost c and its failures c_f, a completed task costs c + c_f·f/(1 − f): in a log, the mean cost of its results, plus what
all its failures have cost, divided by the number of its results.
"""

from __future__ import annotations

import math

import numpy as np

from worthwhile.live.totals import Totals
from worthwhile.state import Floats


def failure_cost(failed_cost: float, results: float) -> float:
    """What failures add to the cost of a completed task."""
    return failed_cost / results if results > 0.0 else math.inf


def failure_error(failed: float, failed_cost: float, results: float) -> float:
    """The standard error of that, from how uncertain the share of failures is."""
    attempts = failed + results
    if failed <= 0.0 or results <= 0.0:
        return 0.0
    share = failed / attempts
    return failed_cost / failed * math.sqrt(share / (1.0 - share) ** 3 / attempts)


def completed_ratio(totals: Totals, retried: Floats) -> float | None:
    """Reward per cost, had every task been done: each failure that was not tried again, by the same option.

    `retried` says, for every kind, how many failures were tried again: they are paid, and count as no task. What was
    given to an option that never succeeded would have been done as the kind's other tasks were; a kind in which nothing
    has succeeded is left out.
    """
    results, failed = totals.pulls - totals.failed, totals.failed
    with np.errstate(invalid="ignore", divide="ignore"):
        reward = np.where(results > 0.0, totals.reward / results, 0.0)
        cost = np.where(results > 0.0, totals.cost / results, 0.0)  # of a completed task
        left = np.clip(1.0 - retried / failed.sum(axis=1), 0.0, 1.0)  # share of a kind's failures not tried again
    left = np.where(failed.sum(axis=1) > 0.0, left, 0.0)[:, None] * failed
    succeeded = results > 0.0
    tasks = np.where(succeeded, results + left, 0.0).sum(axis=1)
    rewards, costs = ((np.where(succeeded, (results + left) * each, 0.0)).sum(axis=1) for each in (reward, cost))
    stranded = np.where(succeeded, 0.0, left).sum(axis=1)  # tasks of options that never succeeded
    wasted = np.where(succeeded, 0.0, totals.failed_cost).sum(axis=1)
    works = tasks > 0.0
    share = 1.0 + stranded[works] / tasks[works]
    above, below = math.fsum(rewards[works] * share), math.fsum(costs[works] * share + wasted[works])
    return above / below if below > 0.0 else None
