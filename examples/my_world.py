"""A world of your own, complete: flaky jobs, where the option is how many attempts a job may have.

A job succeeds at each attempt with its kind's chance. It is worth 1 if an attempt succeeds; it costs a minute
per attempt made, and one minute of set-up whatever happens.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from worthwhile import Environment, Problem, simulate

CHANCES = {"unit tests": 0.9, "browser tests": 0.5, "hardware tests": 0.2}
SHARES = {"unit tests": 0.6, "browser tests": 0.3, "hardware tests": 0.1}
MOST_ATTEMPTS = 5
SET_UP = 1.0


class FlakyWorld(NamedTuple):
    """Chance of success per attempt, and the cumulative share of every kind."""

    chance: np.ndarray[Any, Any]  # (kinds,)
    shares: np.ndarray[Any, Any]  # (kinds,), ends at 1

    def draw(self, generator: np.random.Generator, count: int) -> tuple[Any, Any]:
        """All the luck of the next tasks, before anything is decided: so all policies meet the same jobs."""
        kinds = np.searchsorted(self.shares, generator.random(count), side="right").astype(np.uint32)
        return kinds, generator.random((count, MOST_ATTEMPTS))

    def feedback(self, kind: int, option: int, latent: Any) -> tuple[float, float]:
        """Option number k allows k + 1 attempts."""
        reward, cost = 0.0, SET_UP
        for attempt in range(option + 1):
            if reward == 0.0:
                cost += 1.0
                if latent[attempt] < self.chance[kind]:
                    reward = 1.0
        return reward, cost


def means(chance: float, attempts: int) -> tuple[float, float]:
    """The truth that regret is measured against: P(success), and set-up + expected attempts."""
    success = 1.0 - (1.0 - chance) ** attempts
    return success, SET_UP + success / chance


def flaky_jobs() -> Environment:
    """The world beside its means."""
    problem = Problem.of(
        {
            kind: (SHARES[kind], {f"{n} attempts": means(chance, n) for n in range(1, MOST_ATTEMPTS + 1)})
            for kind, chance in CHANCES.items()
        },
        name="flaky-jobs",
        reward_unit="passed job",
        cost_unit="minute",
    )
    shares = np.cumsum(problem.arrival)
    shares[-1] = 1.0
    return Environment(problem, FlakyWorld(np.array(list(CHANCES.values())), shares))


if __name__ == "__main__":
    results = simulate(flaky_jobs(), ["ratio-imed", "kind-greedy", "random-option"], tasks=20_000, runs=10)
    for policy, ratio in results.mean("ratio").items():
        print(f"{policy:15} {ratio:.4f} passed jobs per minute (best possible: {results.best.ratio:.4f})")
