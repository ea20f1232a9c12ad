"""The price at which the choices keep a floor or a budget, looked for step by step; docs/policies.md derives it.

What the choices bring on average falls as the price rises. So the price is lowered as long as they bring less than is
wanted, and raised as long as they bring more, by steps that grow in one direction and shrink when it turns. In the end
it goes back and forth over the kink at which two options tie. On which side of it a task is decided depends on the
balance: how far what has really come is behind what was wanted. So the wanted mean is kept along the way, and whatever
the estimates get wrong is made up for.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from worthwhile.state import Floats

FLOOR, BUDGET = 1.0, -1.0  # what is to be kept: at least so much reward, or at most so much cost
FIRST_STEP, LARGEST_STEP, SMALLEST_STEP = 0.5, 1.0, 1.0 / 256.0
GROWTH = 1.5  # of a step in one direction; doubled, it could go round for ever: two there, two back
FREE, PRICELESS = 2.0**-20, 2.0**20  # times what a unit of cost brings: the least and the highest price
SOONEST, LATEST = 300.0, 3000.0  # tasks over which a balance is evened out: as many as have been, within these
TOLERATED_SHORT, TOLERATED_OVER = 20.0, 10.0  # tasks' worth: where chance does more in that time, it is sooner
MOST_SAVED, MOST_BEHIND = 30.0, 500.0  # tasks' worth of what is wanted that a balance keeps in mind
MOST_PLANNED = 10.0  # … and of what is only expected, to either side
RECENT = 500.0  # tasks


class Pursuit(NamedTuple):
    """One price for each mean that is to be kept: of every kind, or of all tasks together."""

    price: Floats
    below: Floats  # the last price that brought more than was wanted: the kink is above it,
    above: Floats  # … and below the last that brought less
    step: Floats
    raised: Floats  # 1 if the price was raised last, −1 if it was lowered
    behind: Floats  # by how much the tasks that have reported miss what was wanted of them all; below 0: saved
    tasks: Floats  # that have reported
    squares: Floats  # of what each of them missed
    planned: Floats  # by how much what was expected of them misses what was wanted at the time
    came: Floats  # what they have brought, or cost, in all
    recent: Floats  # … on average lately, weighed by how recent it is


def new_pursuit(means: int) -> Pursuit:
    """No price yet, and no task."""
    (price, below, above), balance = np.zeros((3, means)), np.zeros((7, means))
    return Pursuit(price, below, above, np.full(means, FIRST_STEP), *balance)


def wanted_now(pursuit: Pursuit, at: int, sign: float, wanted: float) -> float:
    """The mean that the next tasks should have, so that the balance is evened out in good time.

    Not at once: chance alone puts it out of balance, and to fight that is dear.
    """
    tasks, tolerated = pursuit.tasks[at], (TOLERATED_SHORT if sign == FLOOR else TOLERATED_OVER) * wanted
    soon = min(max(tasks, SOONEST), LATEST)
    if pursuit.squares[at] * soon > tolerated * tolerated * tasks:
        soon = max(tolerated * tolerated * tasks / pursuit.squares[at], SOONEST)
    return wanted + sign * pursuit.behind[at] / soon  # type: ignore[no-any-return]


def move(pursuit: Pursuit, at: int, more: bool, unit: float) -> None:
    """Raise the price, because its choices bring more than is wanted, or lower it; `unit` says what is usual."""
    raised, step, before = (1.0 if more else -1.0), pursuit.step[at], pursuit.price[at]
    step = min(GROWTH * step, LARGEST_STEP) if raised == pursuit.raised[at] else max(0.5 * step, SMALLEST_STEP)
    price = unit if before == 0.0 else before * (1.0 + step) if more else before / (1.0 + step)
    price = min(max(price, FREE * unit), PRICELESS * unit)
    if before == 0.0:
        pursuit.below[at] = pursuit.above[at] = price
    elif more:
        pursuit.below[at], pursuit.above[at] = before, max(price, pursuit.above[at])
    else:
        pursuit.below[at], pursuit.above[at] = min(price, pursuit.below[at]), before
    pursuit.price[at], pursuit.step[at], pursuit.raised[at] = price, step, raised


def side(pursuit: Pursuit, at: int, sign: float, wanted: float, tasks: float, expected: float) -> float:
    """The price for the next task, above the kink or below it: so that what is expected of all is what is wanted."""
    missing = pursuit.planned[at] + tasks * wanted_now(pursuit, at, sign, wanted) - expected
    return lower(pursuit, at) if missing > 0.0 else higher(pursuit, at)


def at_its_end(pursuit: Pursuit, at: int, unit: float) -> int:
    """1 if the price is as high as it gets, −1 if it is as low, else 0."""
    price = pursuit.price[at]
    return int(price >= 0.5 * PRICELESS * unit) - int(price <= 2.0 * FREE * unit)


def lower(pursuit: Pursuit, at: int) -> float:
    """The price below the kink."""
    return pursuit.below[at]  # type: ignore[no-any-return]


def higher(pursuit: Pursuit, at: int) -> float:
    """The price above the kink."""
    return pursuit.above[at]  # type: ignore[no-any-return]


def enter(
    pursuit: Pursuit, at: int, sign: float, wanted: float, tasks: float, came: float, expected: float, scale: float
) -> None:
    """So many more tasks have brought so much, or cost it, and so much was expected; `scale` is what one is worth."""
    planned = pursuit.planned[at] + (tasks * wanted_now(pursuit, at, sign, wanted) - expected)
    pursuit.planned[at] = min(max(planned, -MOST_PLANNED * scale), MOST_PLANNED * scale)
    missing = sign * (tasks * wanted - came)
    pursuit.behind[at] = min(max(pursuit.behind[at] + missing, -MOST_SAVED * scale), MOST_BEHIND * scale)
    pursuit.tasks[at] += tasks
    pursuit.squares[at] += missing * missing
    pursuit.came[at] += came
    if pursuit.tasks[at] > 0.0:
        pursuit.recent[at] += (came - tasks * pursuit.recent[at]) / min(pursuit.tasks[at], RECENT)
