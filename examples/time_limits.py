"""How long should a search be allowed to run? Tours of random cities, improved until the time is up.

Small instances are done in a moment; large ones go on gaining. The reward is how much shorter the tour has become; the
cost is the time, plus what every order takes. What a search had found at shorter limits teaches the scheduler about
those, too.

Prints:

    always 0.1 s: 2.33 of a tour saved per second
    learned on the way: 2.86, from 150 searches
    town: mostly 0.01 s (65% of 49)
    village: mostly 0.005 s (85% of 47)
    region: mostly 0.03 s (94% of 54)
"""

from __future__ import annotations

import math
import random
import time

from worthwhile import Arrival, LocalExecutor, Outcome, Scheduler, work

LIMITS = [0.005, 0.01, 0.03, 0.1]  # seconds
ORDER = 0.2  # seconds for every order, whatever limit its search has: taking it, checking it, sending the plan
SIZES = {"village": 15, "town": 60, "region": 250}


def search(kind: str, limit: float, seed: int) -> Outcome:
    """2-opt: turn stretches of the tour around wherever that makes it shorter, until the limit."""
    luck, began = random.Random(seed), time.perf_counter()
    cities = [complex(luck.random(), luck.random()) for _ in range(SIZES[kind])]
    tour, first, seen = list(cities), length(cities), {}
    while (spent := time.perf_counter() - began) < limit:
        for shorter in LIMITS:
            if shorter <= spent and shorter not in seen:
                seen[shorter] = 1 - length(tour) / first, spent
        start, end = sorted(luck.sample(range(1, len(tour)), 2))
        before, after = tour[start - 1], tour[end % len(tour)]
        if abs(before - tour[end - 1]) + abs(tour[start] - after) < abs(before - tour[start]) + abs(
            tour[end - 1] - after
        ):
            tour[start:end] = reversed(tour[start:end])
    return Outcome(1 - length(tour) / first, observed=seen)


def length(tour: list[complex]) -> float:
    return math.fsum(abs(city - following) for city, following in zip(tour, [*tour[1:], tour[0]], strict=True))


def main(tasks: int = 150) -> None:
    luck = random.Random(0)
    stream = [Arrival(luck.choice(list(SIZES)), LIMITS, seed, f"instance {seed}") for seed in range(tasks)]
    with Scheduler(overhead=ORDER) as scheduler, LocalExecutor(2) as executor:
        done = work(scheduler, stream, search, executor=executor, timeout=10)
        summary = scheduler.summary()
    print(f"always {LIMITS[-1]} s: {always_the_longest(stream[:40]):.2f} of a tour saved per second")
    print(f"learned on the way: {summary.ratio:.2f}, from {done.reported} searches")
    for kind in summary.kinds:
        best = max(kind.options, key=lambda option: option.pulls)
        print(f"{kind.kind}: mostly {best.option} s ({best.share:.0%} of {kind.reports})")


def always_the_longest(stream: list[Arrival]) -> float:
    """What the longest limit for every search saves per second."""
    with Scheduler(overhead=ORDER, policy="fixed-option") as scheduler, LocalExecutor(2) as executor:
        scheduler.announce(options=LIMITS[::-1])  # the first is taken
        work(scheduler, stream, search, executor=executor, timeout=10)
        return scheduler.summary().ratio or 0.0


if __name__ == "__main__":
    main()
