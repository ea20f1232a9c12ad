"""benchmarks/steps.py: its worlds are what it says, and where nothing can be told, stopping does no harm."""

from __future__ import annotations

import numpy as np
import pytest

import steps


def test_shuffling_keeps_what_every_step_brings_and_nothing_else() -> None:
    world = steps.trainings(1, 1.0, runs=50)
    for kind, (rewards, costs) in steps.shuffled(world).items():
        assert np.array_equal(np.sort(rewards, axis=0), np.sort(world[kind][0], axis=0))
        assert np.array_equal(costs, world[kind][1])
    assert steps.best(steps.shuffled(world), per_run=False) == pytest.approx(steps.best(world, per_run=False))


def test_hindsight_is_at_least_the_best_length() -> None:
    world = steps.trainings(7, 1.0, runs=50)
    assert steps.best(world, per_run=True) > steps.best(world, per_run=False)


@pytest.mark.slow
@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_steps_earn_at_least_nearly_what_lengths_chosen_in_advance_do(spread: float) -> None:
    for world in (known := steps.trainings(5, spread, kinds=2, steps=8), steps.shuffled(known)):
        earned = {name: steps.RULES[name](world, steps.arrivals(world, 300, 1), 1) for name in ("in advance", "steps")}
        assert earned["steps"] > steps.LIMIT * earned["in advance"]
