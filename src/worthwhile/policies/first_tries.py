"""Which option a kind must try now: a new one, a benched one that is due, or any as long as nothing has reported."""

from __future__ import annotations

import math

from worthwhile.learning import Moments
from worthwhile.policies.failures import Failures, waits_everywhere
from worthwhile.policies.sharing import Sharing, forecast
from worthwhile.rng import Rng, uniform
from worthwhile.state import Indices


def next_forced(
    failures: Failures, arms: Moments, sharing: Sharing, shared: bool,
    kind: int, options: Indices, pending: Indices, enough: float,
) -> int:  # fmt: skip
    """The position of the first option to be tried now that does not run: a new one, or a benched one that is due.

    New is what has no more pulls than `enough`, which are 0 as a rule. Where other kinds tell what a new option may be
    worth, it is new only if it has never worked in any, and not failed in one lately.
    """
    position = -1
    for at, option in enumerate(options):
        if position < 0 and pending[option] == 0:
            pulls, next_try = arms.pulls[kind, option], failures.next_try[kind, option]
            works = sharing.option_cells[option] > 0.0  # in some kind
            if next_try > 0.0:
                wanted = next_try <= failures.reports[kind] and (works or not waits_everywhere(failures, option, 2.0))
            elif shared and pulls == 0.0:
                wanted = not works and not waits_everywhere(failures, option, 1.0)
            else:
                wanted = pulls <= enough
            if wanted:
                position = at
    return position


def best_forecast(
    failures: Failures, sharing: Sharing, price: float, kind: int, options: Indices, pending: Indices
) -> int:
    """The position of the option that other kinds speak for, if nothing has reported here; −1 if they know none."""
    position, best = -1, -math.inf
    for at, option in enumerate(options):
        known = sharing.option_cells[option] > 0.0 and failures.next_try[kind, option] == 0.0
        if known and pending[option] == 0:
            foreseen = forecast(sharing, kind, option)
            score = foreseen.reward - price * foreseen.cost
            if score > best:
                position, best = at, score
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
