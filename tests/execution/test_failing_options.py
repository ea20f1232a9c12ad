"""Tasks that really run, with an option that never works: the default policy soon leaves it alone."""

from __future__ import annotations

import math
import os
import random
import signal
import time
from collections import Counter
from typing import Any

import pytest

from worthwhile import Arrival, LocalExecutor, Outcome, Scheduler, work

TASKS = 120  # per kind
KINDS = ["near", "far"]
OPTIONS = ["logreg", "knn"]
TIMEOUT = 3.0  # seconds, where an option hangs: the others take milliseconds


def points(seed: int, distance: float) -> list[tuple[float, float, int]]:
    """Two clouds."""
    generator = random.Random(seed)
    centres = ((generator.random() < 0.5) for _ in range(60))
    return [(generator.gauss(distance * one, 1.0), generator.gauss(-distance * one, 1.0), int(one)) for one in centres]


def logreg(train: list[tuple[float, float, int]], x: float, y: float) -> float:
    """How likely it is of the second cloud: logistic regression by a few steps down the slope."""
    a = b = c = 0.0
    for _ in range(20):
        for u, v, label in train:
            off = label - 1.0 / (1.0 + math.exp(-(a * u + b * v + c)))
            a, b, c = a + 0.1 * off * u, b + 0.1 * off * v, c + 0.1 * off
    return a * x + b * y + c


def knn(train: list[tuple[float, float, int]], x: float, y: float) -> float:
    """The vote of the five nearest."""
    nearest = sorted(train, key=lambda point: (point[0] - x) ** 2 + (point[1] - y) ** 2)[:5]
    return sum(label for _, _, label in nearest) - 2.5


def classify(kind: str, option: str, seed: int) -> float:
    """The share of points of which it knows the cloud; options that never work do what they are called."""
    if option == "raise":
        return float({}[kind])
    if option == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if option == "hang":
        time.sleep(3600)
    data = points(seed, 1.0 if kind == "near" else 3.0)
    rule = {"logreg": logreg, "knn": knn}[option]
    return sum((rule(data[:50], x, y) > 0) == bool(label) for x, y, label in data[50:]) / 10


def say_so(kind: str, option: str, seed: int) -> Outcome | float:
    return Outcome(failed=True, reason="not my day") if option == "say" else classify(kind, option, seed)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("broken", "reason"),
    [("raise", "KeyError: "), ("die", "WorkerLost: "), ("hang", "TimedOut: "), ("say", "not my day")],
)
@pytest.mark.parametrize("attempts", [1, 2])
def test_an_option_that_never_works_is_soon_left_alone(broken: str, reason: str, attempts: int) -> None:
    stream = [Arrival(KINDS[number % 2], [broken, *OPTIONS], number) for number in range(2 * TASKS)]
    taken: Counter[tuple[str, Any]] = Counter()
    settings: dict[str, Any] = {"timeout": TIMEOUT if broken == "hang" else None, "attempts": attempts}
    with Scheduler() as scheduler, LocalExecutor(2) as executor:
        done = work(scheduler, stream, say_so, executor=executor, **settings)
        summary = scheduler.summary()
        assert scheduler.rebuild()
    for kind in summary.kinds:
        taken.update({(kind.kind, option.option): option.pulls for option in kind.options})
    alone = broken != "hang"  # where options may hang, others may take too long, too, on a machine that is busy
    assert done.reported + done.failed == 2 * TASKS
    assert done.failed == 0 or attempts == 1 or not alone
    assert all(taken[kind, broken] <= max(3, 0.05 * TASKS) for kind in KINDS), taken
    failed = sum(taken[kind, broken] for kind in KINDS)
    assert sum(done.reasons.values()) == failed if alone else sum(done.reasons.values()) >= failed
    assert all(why.startswith(reason) for why in done.reasons)
    assert all(kind.winner in OPTIONS for kind in summary.kinds)
