"""What fails: what that costs a completed task, and which options are benched for it; docs/policies.md derives it.

Nothing here is read or written for kinds in which nothing has ever failed.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from worthwhile.learning import Moments
from worthwhile.state import Floats

UNLIKELY = 0.05  # a run of failures that had less than this chance is no chance
WAIT = 10.0  # reports of the kind until a benched option is tried again; after k such tries, k√k times as many


class Anywhere(NamedTuple):
    """What has failed of every option, in any kind: who fails in some may well fail in the others."""

    kinds: Floats  # (options,): in how many it has failed, and never worked
    tries: Floats  # (options,): how often, of an option that has never worked in any
    next_try: Floats  # (options,): after which report of all kinds such an option is tried again
    reports: Floats  # (1,): of all kinds


class Failures(NamedTuple):
    """What has failed of every (kind, option)."""

    failed: Floats  # how often; weighed as reports are. Those in a row are not counted yet
    in_a_row: Floats  # since the last success or, of a benched option, since it was benched
    paid: Floats  # what failures have cost that a success has paid for; weighed, too
    unpaid: Floats  # what those since the last success have cost; weighed
    next_try: Floats  # after which report of the kind a benched option is tried again; 0 if it is not benched
    reports: Floats  # (kinds,): of the kind since its first failure, which is the first of them; 0 without any
    anywhere: Anywhere


def new_failures(kinds: int, options: int) -> Failures:
    """Nothing has failed yet."""
    failed, in_a_row, paid, unpaid, next_try = np.zeros((5, kinds, options))
    tried, tries, next_anywhere = np.zeros((3, options))
    anywhere = Anywhere(tried, tries, next_anywhere, np.zeros(1))
    return Failures(failed, in_a_row, paid, unpaid, next_try, np.zeros(kinds), anywhere)


def count_report(failures: Failures, kind: int) -> None:
    """A task has reported, or failed."""
    failures.anywhere.reports[0] += 1.0
    if failures.reports[kind] > 0.0:
        failures.reports[kind] += 1.0


def record_failure(
    failures: Failures, arms: Moments, kind: int, option: int, cost: float, weight: float, tasks: float
) -> None:
    """One more failure; an option that keeps failing is benched."""
    arm, reliability = (kind, option), reliability_of_others(failures, arms, kind, option, weight)
    failures.reports[kind] = max(failures.reports[kind], 1.0)
    failures.unpaid[arm] += weight * cost
    next_try = failures.next_try[arm]
    if reliability > 0.0 and next_try > failures.reports[kind]:  # it was running already when it was benched
        failures.failed[arm] += weight
        return
    failures.in_a_row[arm] += 1.0
    if next_try > 0.0 or keeps_failing(failures, kind, option, arms.pulls[arm] / weight, weight, tasks):
        if next_try == 0.0 or reliability == 0.0:
            failures.failed[arm] += weight * (failures.in_a_row[arm] - 1.0)
            failures.in_a_row[arm] = 1.0
        tries, rarer = failures.in_a_row[arm], reliability * reliability if reliability > 0.0 else 1.0
        failures.next_try[arm] = failures.reports[kind] + WAIT * rarer * tries * math.sqrt(tries)


def record_anywhere(failures: Failures, arms: Moments, kind: int, option: int, never_worked: bool) -> None:
    """One more failure, which other kinds may learn from; to be called before `record_failure`."""
    anywhere = failures.anywhere
    if arms.pulls[kind, option] == 0.0 and not has_failed(failures, kind, option):
        anywhere.kinds[option] += 1.0
    if never_worked and anywhere.next_try[option] <= anywhere.reports[0]:  # or it was running already
        anywhere.tries[option] += 1.0
        anywhere.next_try[option] = anywhere.reports[0] + WAIT * anywhere.tries[option] * anywhere.tries[option]


def reliability_of_others(failures: Failures, arms: Moments, kind: int, option: int, weight: float) -> float:
    """How often the other options of the kind succeed, benched ones left out; 0 if none of them works."""
    works, failed = 0.0, 0.0
    for other in range(arms.pulls.shape[1]):
        if other != option and arms.pulls[kind, other] > 0.0 and failures.next_try[kind, other] == 0.0:
            works += arms.pulls[kind, other]
            failed += failures.failed[kind, other]
    share: float = (works + weight) / (works + failed + weight) if works > 0.0 else 0.0
    return share


def keeps_failing(failures: Failures, kind: int, option: int, works: float, weight: float, tasks: float) -> bool:
    """Whether an option has never worked, or has failed more often in a row than its rate of failures before explains.

    A run like this would be unlikely to come up even once in as many tasks as its kind has had.
    """
    before = failures.failed[kind, option] / weight
    rate = (before + 1.0) / (works + before + 2.0)  # as Laplace puts it
    return works == 0.0 or power(rate, int(failures.in_a_row[kind, option])) * tasks < UNLIKELY


def power(base: float, exponent: int) -> float:
    """By multiplication alone: other machines must come to the same bits."""
    product = 1.0
    while exponent > 0:
        if exponent % 2 == 1:
            product *= base
        base *= base
        exponent //= 2
    return product


def record_success(failures: Failures, kind: int, option: int, weight: float, is_new: bool) -> float:
    """It works: it is not benched any more. Returns what its failures since the last success have cost."""
    if is_new and has_failed(failures, kind, option):
        failures.anywhere.kinds[option] = max(failures.anywhere.kinds[option] - 1.0, 0.0)
    unpaid: float = failures.unpaid[kind, option]
    failures.paid[kind, option] += unpaid
    failures.unpaid[kind, option] = 0.0
    failures.failed[kind, option] += weight * failures.in_a_row[kind, option]
    failures.in_a_row[kind, option] = failures.next_try[kind, option] = 0.0
    return unpaid / weight


def has_failed(failures: Failures, kind: int, option: int) -> bool:
    """Whether any failure of it counts in this kind."""
    return bool(failures.failed[kind, option] + failures.in_a_row[kind, option] > 0.0)


def forgive_failures(failures: Failures, kind: int, option: int) -> None:
    """Those in a row are forgotten, here and elsewhere; what they have cost is not."""
    failures.in_a_row[kind, option] = failures.next_try[kind, option] = 0.0
    anywhere = failures.anywhere
    anywhere.kinds[option] = anywhere.tries[option] = anywhere.next_try[option] = 0.0


def waits_everywhere(failures: Failures, option: int, kinds: float) -> bool:
    """Whether an option that has never worked has failed in so many kinds, and was tried in one not long ago."""
    anywhere = failures.anywhere
    return bool(anywhere.kinds[option] >= kinds and anywhere.next_try[option] > anywhere.reports[0])


def take_failure_back(failures: Failures, arms: Moments, kind: int, option: int, cost: float, weight: float) -> None:
    """What counted as a failure of this cost was none, whether a success has paid for it or not."""
    arm, cost = (kind, option), weight * cost
    if failures.unpaid[arm] >= cost or failures.paid[arm] == 0.0:
        failures.unpaid[arm] = max(failures.unpaid[arm] - cost, 0.0)
    else:
        cost = min(cost, failures.paid[arm])  # more was never charged: what has faded may not be worth as much any more
        failures.paid[arm] -= cost
        arms.mean_cost[arm] -= cost / arms.pulls[arm]
    if failures.in_a_row[arm] > 0.0:
        failures.in_a_row[arm] -= 1.0
    else:
        failures.failed[arm] = max(failures.failed[arm] - weight, 0.0)
    if failures.in_a_row[arm] == 0.0:
        failures.next_try[arm] = 0.0
    if arms.pulls[arm] == 0.0 and not has_failed(failures, kind, option):
        failures.anywhere.kinds[option] = max(failures.anywhere.kinds[option] - 1.0, 0.0)


def scale_failures(failures: Failures, scale: float) -> None:
    """Everything that is weighed weighs `scale` times as much."""
    for kind in range(failures.failed.shape[0]):
        for option in range(failures.failed.shape[1]):
            failures.failed[kind, option] *= scale
            failures.paid[kind, option] *= scale
            failures.unpaid[kind, option] *= scale


def success_share(failures: Failures, arm: tuple[int, int], works: float, weight: float) -> float:
    """How many of an option's tasks have worked, of which there have been so many."""
    return works / (works + failures.failed[arm] + weight * failures.in_a_row[arm])  # type: ignore[no-any-return]


def failure_variance(failures: Failures, arms: Moments, arm: tuple[int, int], weight: float) -> float:
    """How much the cost of failures varies from one completed task to the next: they come in geometric numbers."""
    number = failures.failed[arm] + weight * failures.in_a_row[arm]
    if number == 0.0:
        return 0.0
    total = failures.paid[arm] + failures.unpaid[arm]
    mean = total / arms.pulls[arm]  # g = c_f·f/(1 − f)
    return mean * (mean + total / number)  # type: ignore[no-any-return]  # g² + g·c_f
