"""What fails: what that costs a completed task, and which options are benched for it; docs/policies.md derives it.

Nothing here is read or written for kinds in which nothing has ever failed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from worthwhile.rng import Rng, uniform
from worthwhile.state import Floats, Indices

UNLIKELY = 0.05  # a run of failures that had less than this chance is no chance
FIRST_WAIT = 16.0  # reports of the kind until a benched option is tried again, and twice as many after each failure


class Failures(NamedTuple):
    """What has failed of every (kind, option)."""

    failed: Floats  # how often, up to the last success; weighed as reports are
    in_a_row: Floats  # since then
    unpaid: Floats  # what these have cost: the next success pays for them
    wait: Floats  # reports of the kind from one try of a benched option to the next; 0 if it is not benched
    next_try: Floats  # the report of the kind after which it is tried again
    reports: Floats  # (kinds,): of the kind since its first failure, which is the first of them; 0 without any


def new_failures(kinds: int, options: int) -> Failures:
    """Nothing has failed yet."""
    failed, in_a_row, unpaid, wait, next_try = np.zeros((5, kinds, options))
    return Failures(failed, in_a_row, unpaid, wait, next_try, np.zeros(kinds))


def record_failure(failures: Failures, kind: int, option: int, cost: float) -> None:
    """One more failure in a row."""
    failures.in_a_row[kind, option] += 1.0
    failures.unpaid[kind, option] += cost


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


def bench(failures: Failures, pulls: Floats, kind: int, option: int) -> None:
    """Have it wait, twice as long as before unless nothing else of its kind works, either."""
    elsewhere = False
    for other in range(pulls.shape[1]):
        if other != option and pulls[kind, other] > 0.0 and failures.wait[kind, other] == 0.0:
            elsewhere = True
    before = failures.wait[kind, option]
    failures.wait[kind, option] = 2.0 * before if elsewhere and before > 0.0 else FIRST_WAIT
    failures.next_try[kind, option] = failures.reports[kind] + failures.wait[kind, option]


def record_success(failures: Failures, kind: int, option: int, weight: float) -> float:
    """It works: it is not benched any more. Returns what its failures since the last success have cost."""
    unpaid: float = failures.unpaid[kind, option]
    failures.failed[kind, option] += weight * failures.in_a_row[kind, option]
    failures.unpaid[kind, option] = 0.0
    forgive_failures(failures, kind, option)
    return unpaid


def forgive_failures(failures: Failures, kind: int, option: int) -> None:
    """Those in a row are forgotten; what they have cost is not."""
    failures.in_a_row[kind, option] = 0.0
    failures.wait[kind, option] = 0.0
    failures.next_try[kind, option] = 0.0


def take_failure_back(failures: Failures, kind: int, option: int, cost: float) -> None:
    """One of those in a row was none."""
    failures.in_a_row[kind, option] -= 1.0
    failures.unpaid[kind, option] = max(failures.unpaid[kind, option] - cost, 0.0)
    if failures.in_a_row[kind, option] == 0.0:
        forgive_failures(failures, kind, option)


def scale_failures(failures: Failures, scale: float) -> None:
    """Every failure weighs `scale` times as much; those in a row are counted, not weighed."""
    for kind in range(failures.failed.shape[0]):
        for option in range(failures.failed.shape[1]):
            failures.failed[kind, option] *= scale


def next_forced(failures: Failures, pulls: Floats, kind: int, options: Indices, pending: Indices) -> int:
    """The position of the first option to be tried now that does not run: a new one, or a benched one that is due."""
    position = -1
    for at, option in enumerate(options):
        if position < 0 and pending[option] == 0:
            benched = failures.wait[kind, option] > 0.0
            due = benched and failures.next_try[kind, option] <= failures.reports[kind]
            if due or (pulls[kind, option] == 0.0 and not benched):
                position = at
    return position


def least_busy(failures: Failures, kind: int, options: Indices, pending: Indices, rng: Rng) -> int:
    """The position of the option with the fewest tasks running: nothing works, or all run and none has reported.

    Of equals, the one whose next try is due first; then at random.
    """
    position, ties, fewest, soonest = 0, 1.0, pending[options[0]], failures.next_try[kind, options[0]]
    for at in range(1, len(options)):
        running, due = pending[options[at]], failures.next_try[kind, options[at]]
        if running < fewest or (running == fewest and due < soonest):
            position, ties, fewest, soonest = at, 1.0, running, due
        elif running == fewest and due == soonest:
            ties += 1.0
            if uniform(rng, at) * ties < 1.0:
                position = at
    return position
