"""The rules in words, what a check says when one is broken, and how it tries things that may raise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from worthwhile.errors import BrokenRule

PARAMETERS = "a policy is a NamedTuple of numbers (or arrays of means) with init, choose, judge, learn and observe"
STATE = "a state is a NamedTuple of arrays of numbers shaped (1,), (kinds,), (options,) or (kinds, options)"
TABLES = (
    "with room for features, init(kinds, options, features) gives the same arrays as without, and every side of each "
    "has a fixed length, or is as long as there are kinds, options or features"
)
DECISION = "choose returns a Decision for an option on offer, and judge one for the option it is asked about"
FINITE = "estimates and everything learned are finite numbers; NaN stands for missing features only"
NO_WRITING = "choose, choose_by_features and judge never write"
ANY_TASK = "every method takes any kind, any options in any order, any pending counts and any feedback"
SAME_DECISION = "the same state, task and rng give the same decision and the same learning"
PLAIN_NUMBERS = "plain Python numbers and lists mean the same as NumPy's"
IN_PLACE = "what learns or observes writes into the state's arrays, keeps their shapes and types, and returns nothing"
SIDE = "observe moves neither the price nor the counts of tasks and arrivals"
FURTHER = "observe_failure, take_back and forgive do not move the counts of tasks and arrivals"
MEMORY = "the state is all that a policy remembers"
GROWTH = "growing the state changes no decision"
COMPILES = "numba can compile it"
SAME_BITS = "interpreted and compiled runs are identical to the bit"

WORLD = "a world is a NamedTuple with draw and feedback"
DRAW = "draw gives one kind (uint32, below the number of kinds) and one row of latents (float64) per task"
SAME_DRAW = "all randomness of a world comes from the generator it is given"
ARRIVALS = "kinds arrive as often as the problem says"
FEEDBACK = "feedback is a finite reward and a finite cost, for every option of every kind; NaN is a failure's reward"
FAILURES = "tasks fail as often as the problem says"
FEATURES = "features gives a row of floats, finite or NaN for missing, as many for every task"
COSTS = "costs are not below 0, unless the problem's cost noise is Gaussian"
MEANS = "rewards and costs have the means that the problem says"

ONCE = "a scheduler is created once, and counts its settings, names, tasks and reports"
KEPT = "what was committed is read back, to the bit, by everyone who opens the store"
UNDONE = "a transaction that fails leaves nothing behind"
ASKED = "a query gives the rows that were asked for, in order, and no others"
RUNNING = "a task is running until it has reported, is cancelled, or its lease ends"
ALONE = "between opening a scheduler and the commit, nobody else can open it"

TASKS, KEY = 200, 20_240_506  # how many tasks are tried, and with whose random draws
WITH_FEATURES = 64  # tasks where these have features: what looks at them may take its time


def attempt(subject: Any, rule: str, method: Callable[..., Any], *arguments: Any) -> Any:
    """Call a method; an exception of any kind is a broken rule."""
    try:
        with np.errstate(all="raise", under="ignore"):
            return method(*arguments)
    except Exception as error:
        name = getattr(method, "__name__", "it")
        rule = NO_WRITING if isinstance(error, ValueError) and "read-only" in str(error) else rule
        shown = f"{name} raised {type(error).__name__}: {error}; called with {arguments[-5:]}"
        raise broken(subject, rule, shown) from error


def broken(subject: Any, rule: str, shown: str) -> BrokenRule:
    """The message: who breaks which rule, and how that shows."""
    name = subject.__name__ if isinstance(subject, type) else type(subject).__name__
    return BrokenRule(f"{name} breaks the rule “{rule}”: {shown}")
