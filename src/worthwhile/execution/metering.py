"""What a task returns and what it cost: measured by the clock, or by any other meter."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from worthwhile.errors import BadFeedback, WarmUpFailed
from worthwhile.execution.warm_up import WarmUp, warm
from worthwhile.live.task import in_words
from worthwhile.live.validation import Option, feedback

LEAST_COST = 1e-9  # of a task that no meter saw
NO_REASON = "the task did not say why"
Meter = Callable[[], float]  # a number that grows: seconds, joules
METERS: dict[str, Meter] = {"wall": time.perf_counter, "cpu": time.process_time}


@dataclass(frozen=True)
class Outcome:
    """What a task may return instead of its reward: a cost of its own, what it saw of other options, that it failed."""

    reward: float | None = None
    cost: float | None = None  # as the meter says
    observed: Mapping[Any, tuple[float, float]] = field(default_factory=dict)  # option: (reward, cost)
    failed: bool = False  # then it has no reward
    reason: str = ""  # why it failed


class Failure(NamedTuple):
    """Why a task brought no outcome, and what it cost all the same."""

    why: str
    cost: float
    observed: Mapping[Any, tuple[float, float]] = {}


class Measure:
    """A stopwatch for a `with` block; as a decorator it turns a function's reward into an `Outcome` with its cost."""

    def __init__(self, meter: Meter = time.perf_counter) -> None:
        self.meter = meter
        self.began: float = meter()
        self.cost: float = LEAST_COST

    def so_far(self) -> float:
        """The cost up to now."""
        return max(self.meter() - self.began, LEAST_COST)

    def __enter__(self) -> Measure:
        self.began = self.meter()
        return self

    def __exit__(self, *_: object) -> None:
        self.cost = self.so_far()

    def __call__(self, run: Callable[..., Any]) -> Callable[..., Outcome]:
        @functools.wraps(run)
        def measured(*arguments: Any, **named: Any) -> Outcome:
            with Measure(self.meter) as spent:
                returned = run(*arguments, **named)
            return with_cost(returned, spent.cost)

        return measured


def measure(meter: Meter = time.perf_counter) -> Measure:
    """Only the measuring: `with measure() as spent: …`, then spent.cost; or @measure() above a function.

    >>> with measure() as spent:
    ...     _ = sum(range(1000))
    >>> spent.cost > 0
    True
    """
    return Measure(meter)


def with_cost(returned: Any, cost: float) -> Outcome:
    """What a task returned, checked, with the measured cost where it has none of its own."""
    given = returned if isinstance(returned, Outcome) else Outcome(returned)
    own = cost if given.cost is None else given.cost
    observed = {
        option: (feedback("reward", reward), feedback("cost", spent))
        for option, (reward, spent) in given.observed.items()
    }
    if given.failed:
        if given.reward is not None:
            raise BadFeedback(f"reward = {given.reward!r} of a task that failed; leave out the one or the other")
        return replace(given, cost=feedback("cost", own), observed=observed, reason=str(given.reason))
    return Outcome(feedback("reward", given.reward), feedback("cost", own), observed)


def attempt(
    run: Callable[..., Any], meter: Meter, warm_up: WarmUp | None, task: tuple[str, Option, Any]
) -> Outcome | Failure | WarmUpFailed:
    """Meter: called where the task runs, which alone can read its clock.

    It raises nothing: some clusters hide what is raised behind an error of their own, others try it again.
    """
    try:
        if warm_up is not None:
            warm(warm_up)
    except WarmUpFailed as error:
        return error
    spent = Measure(meter)
    try:
        returned = run(*task)
        outcome = with_cost(returned, spent.so_far())
        assert outcome.cost is not None
        return Failure(outcome.reason or NO_REASON, outcome.cost, outcome.observed) if outcome.failed else outcome
    except Exception as error:
        return Failure(in_words(error), spent.so_far())
