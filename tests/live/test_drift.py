"""What has changed is noticed, all of it and nothing else, with since when."""

from __future__ import annotations

import random

import pytest

from worthwhile import Scheduler
from worthwhile.live.drift import FEWEST, MOST_BLOCKS, SHORTEST, Change, Drift, half_life


def warnings(scheduler: Scheduler) -> list[str]:
    return [warning for warning in scheduler.summary().warnings if "changed" in warning]


@pytest.mark.parametrize("seed", range(5))
def test_two_options_that_change_are_both_named_with_since_when_and_a_remedy(seed: int) -> None:
    generator = random.Random(seed)
    with Scheduler(seed=seed) as scheduler:
        for number in range(900):
            task, late = scheduler.decide(f"kind {number % 3}", ["a", "b"]), number >= 500
            reward = (1.0 if task.option == "a" else 0.8) * generator.uniform(0.5, 1.5)
            cost = generator.uniform(0.8, 1.2)
            if late and task.option == "a":
                reward, cost = reward * (0.5, 1.0, 1.0)[number % 3], cost * (1.0, 2.0, 1.0)[number % 3]
            task.report(reward, cost)
        [said] = warnings(scheduler)
        found = {(change.kind, change.what): change for change in scheduler._transactor.statistics.drift.changes()}
        assert set(found) == {(0, "reward"), (1, "cost")}
        assert all(470 <= change.since <= 530 for change in found.values())
        assert "kind 0 / a (reward " in said
        assert "kind 1 / a (cost " in said
        assert said.endswith("let old evidence fade: policy='ratio-imed,half_life=450'.")
        scheduler.change(policy="ratio-imed,half_life=450")
        assert "let old evidence fade" not in warnings(scheduler)[0]


def test_nothing_is_noticed_where_nothing_has_changed() -> None:
    alarms = 0
    for seed in range(40):
        drift, generator = Drift(), random.Random(seed)
        for number in range(2000):
            drift.add((number % 2, 0), generator.expovariate(1.0), generator.lognormvariate(0.0, 0.8), number)
        alarms += bool(drift.changes())
    assert alarms <= 1


def test_what_never_scatters_has_changed_at_the_first_difference_but_not_by_rounding() -> None:
    drift = Drift()
    for number in range(100):
        drift.add((0, 0), 0.1 + 0.2 if number % 2 else 0.3, 1e100 if number < 60 else 2e100, number)
    [change] = drift.changes()
    assert change == Change(0, 0, "cost", 60, pytest.approx(1e100), pytest.approx(2e100))


def test_memory_does_not_grow_with_the_log() -> None:
    drift = Drift()
    for number in range(5000):
        drift.add((0, 0), float(number >= 4000) + number % 3 / 10, 1.0, number)
    assert len(drift.blocks[0, 0]) <= MOST_BLOCKS
    assert sum(block.results for block in drift.blocks[0, 0]) == 5000
    [change] = drift.changes()
    assert change.since == pytest.approx(4000, abs=200)


def test_a_few_results_on_a_side_tell_nothing() -> None:
    drift = Drift()
    for number in range(2 * FEWEST - 1):
        drift.add((0, 0), 1.0 + (number % 2) / 10 + 5.0 * (number >= FEWEST), 1.0, number)
    assert drift.changes() == []
    drift.add((0, 0), 6.0, 1.0, 2 * FEWEST)
    assert len(drift.changes()) == 1


def test_a_half_life_is_how_long_things_stay_as_they_are() -> None:
    changes = [Change(0, 0, "cost", since, 1.0, 2.0) for since in (1000, 1020, 2030)]
    assert half_life(changes, 3000) == 1000
    assert half_life(changes[:1], 3333) == 1700
    assert half_life(changes, 30) == SHORTEST
