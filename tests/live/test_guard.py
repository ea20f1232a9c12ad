"""The guard: never much below the baseline, and no longer in the way than it must be."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from worthwhile import Scheduler
from worthwhile.errors import BadParameter
from worthwhile.live.guard import Guard
from worthwhile.live.stores.base import AGREED, CHOSEN, GUARDED, NO_BASELINE, TaskRow
from worthwhile.live.trials import TrialSettings, assign
from worthwhile.proof.confidence import FIRST, HANDFUL
from worthwhile.rng import Rng

OPTIONS = ["good", "usual", "bad"]
WORTH = {"good": 1.3, "usual": 1.0, "bad": 0.2}


def work(scheduler: Scheduler, tasks: int, options: list[str], seed: int = 0) -> None:
    generator = random.Random(seed)
    for number in range(tasks):
        task = scheduler.decide(f"kind {number % 2}", options)
        task.report(WORTH[str(task.option)] * generator.uniform(0.8, 1.2), 1.0)


def rows_of(scheduler: Scheduler) -> list[TaskRow]:
    tasks = scheduler.summary().tasks
    return scheduler._transactor.do(lambda batch: batch.tx.tasks(batch.replica.id, list(range(1, tasks + 1))))


def test_it_waits_for_what_the_baseline_brings_and_then_lets_the_policy_decide(address: str) -> None:
    with Scheduler(address, seed=1, baseline="usual", guard=0.05) as scheduler:
        work(scheduler, 500, OPTIONS)
        rows = rows_of(scheduler)
        assert {row.mode for row in rows[:FIRST]} <= {GUARDED, AGREED}
        assert {row.option for row in rows[:FIRST]} == {rows[0].option}
        assert [row.mode for row in rows[-20:]] == [CHOSEN] * 20  # good is found
        assert all(row.probability == 1.0 for row in rows)
        guarded = sum(row.mode == GUARDED for row in rows)
        assert f"the guard took the baseline for {guarded} tasks" in str(scheduler.summary())
        assert scheduler.rebuild()
        why = scheduler.explain(1)
        assert why.mode == "guarded"
        assert why.why.startswith(
            "the guard took the baseline, because too much may have been lost already; the policy"
        )
        assert why.repeated


def test_where_the_baseline_is_best_the_loss_stays_within_what_is_allowed() -> None:
    for seed in range(10):
        with Scheduler(seed=seed, baseline="usual", guard=0.05) as scheduler:
            work(scheduler, 300, ["usual", "bad"], seed)
            rows = rows_of(scheduler)
        earned = [WORTH[OPTIONS[1] if row.option == 0 else "bad"] for row in rows]
        for tasks in range(FIRST, len(earned)):
            assert sum(earned[:tasks]) / tasks >= 0.95
        assert 0 < sum(row.option == 1 for row in rows) < 25


def test_a_process_that_has_just_started_reads_the_log_before_it_lets_the_policy_decide(durable: str) -> None:
    with Scheduler(durable, seed=1, baseline="usual", guard=0.05) as scheduler:
        work(scheduler, 500, OPTIONS)
        known = scheduler._transactor.do(lambda batch: vars(batch.replica.guard))
    with Scheduler(durable) as scheduler:
        task = scheduler.decide("kind 0", OPTIONS)
        assert task.option == "good"
        found = scheduler._transactor.do(lambda batch: vars(batch.replica.guard))
        assert found["position"] == 500
        assert found["usual"] == known["usual"]  # the last report came after the last decision
    with Scheduler(durable) as scheduler:
        scheduler.change(guard="none")
        assert scheduler.decide("kind 0", OPTIONS).option == "good"


def test_a_task_without_its_baseline_is_not_guarded() -> None:
    with Scheduler(seed=1, baseline="usual", guard=0.05) as scheduler:
        work(scheduler, 20, ["good", "bad"])
        assert {row.mode for row in rows_of(scheduler)} == {NO_BASELINE}


def test_other_settings_begin_with_another_baseline() -> None:
    with Scheduler(seed=1, baseline="usual", guard=0.05) as scheduler:
        work(scheduler, 100, OPTIONS)
        scheduler.change(baseline="bad")
        work(scheduler, FIRST, OPTIONS)
        assert {row.mode for row in rows_of(scheduler)[100:]} <= {GUARDED, AGREED}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"guard": 0.05}, "name a baseline"),
        ({"baseline": "a", "guard": 0}, "guard = 0; it must be above 0"),
        ({"baseline": "a", "guard": 1}, "guard = 1; it must be above 0 and below 1"),
        ({"baseline": "a", "guard": 0.1, "guard_error": 2}, "guard_error = 2"),
        ({"baseline": "a", "guard": "much"}, "guard = 'much'"),
    ],
)
def test_guards_that_make_no_sense_are_refused(given: dict[str, Any], says: str) -> None:
    with pytest.raises(BadParameter, match=says):
        Scheduler(**given)
    with Scheduler() as scheduler, pytest.raises(BadParameter, match=says):
        scheduler.change(**given)


def test_what_is_running_counts_as_if_it_lost_as_much_as_it_can() -> None:
    guard = Guard(1)
    for _ in range(100):
        guard.add(0, AGREED, 1.0, 1.0)
    assert guard.allows(0, 0.06, 0.05, {})
    assert not guard.allows(0, 0.06, 0.05, {0: 1.0})
    guard.add(0, CHOSEN, -7.0, 1.0)
    assert guard.worst == 8.0
    assert not guard.allows(0, 0.06, 0.05, {})


def test_a_kind_needs_a_handful_of_tasks_with_the_baseline() -> None:
    guard = Guard(1)
    for _ in range(200):
        guard.add(0, GUARDED, 1.0, 1.0)
    for _ in range(HANDFUL):
        assert not guard.allows(1, 0.05, 0.05, {})
        guard.add(1, GUARDED, 1.0, 1.0)
    assert guard.allows(1, 0.05, 0.05, {})


def test_what_runs_in_other_kinds_is_at_risk_too() -> None:
    guard = Guard(1)
    for kind in (0, 1):
        for _ in range(100):
            guard.add(kind, AGREED, 1.0, 1.0)
    assert guard.allows(0, 0.03, 0.05, {2: 5.0})  # nothing else than the baseline runs where it is not known yet
    assert not guard.allows(0, 0.03, 0.05, {1: 1.0})


def test_tasks_of_many_kinds_that_run_at_the_same_time_are_held_back() -> None:
    with Scheduler(seed=1, baseline="usual", guard=0.05) as scheduler:
        for number in range(60):
            scheduler.decide(f"kind {number % 6}", ["bad", "usual"]).report(1.0, 1.0)
        running = [scheduler.decide(f"kind {number % 6}", ["bad", "usual"]) for number in range(30)]
        assert sum(task.option == "bad" for task in running) <= 1


def test_further_attempts_and_late_reports_count_for_the_guard() -> None:
    with Scheduler(seed=1, baseline="usual", guard=0.05) as scheduler:
        work(scheduler, 40, OPTIONS)
        failed = scheduler.decide("kind 0", OPTIONS)
        failed.fail(3.0)
        failed.again().report(0.5, 4.0)
        lost = scheduler.decide("kind 0", OPTIONS, lease=0.0)
        work(scheduler, 2, OPTIONS)
        lost.report(1.0, 9.0)
        work(scheduler, 2, OPTIONS)
        guard = scheduler._transactor.do(lambda batch: batch.replica.guard)
        read = [row.task for row in rows_of(scheduler)[:-1] if row.mode != NO_BASELINE]  # the last came after that
        assert {int(failed.id), int(lost.id)} <= set(read)
        assert guard is not None
        assert guard.cost == pytest.approx(sum(line.total_cost or 0.0 for line in scheduler.tasks(read)))
        assert guard.whole[0] == len(read)


def test_a_guard_that_forbids_leaves_nothing_to_chance() -> None:
    """Explored or not, the baseline is certain then; a smaller probability would give it too much weight."""
    settings = TrialSettings(((None, '"usual"'),), explore=0.5, guard=0.05)
    modes = Counter()
    for task in range(200):
        for own in (0, 1):
            made = assign(settings, Rng(3, task), [0, 1], own, 1, allowed=lambda: False)
            assert (made.option, made.probability) == (1, 1.0)
            modes[own, made.mode, made.own] += 1
    assert modes == {(0, GUARDED, 0): 200, (1, AGREED, None): 200}


def test_tasks_that_nobody_could_guard_are_counted() -> None:
    with Scheduler(seed=1, baseline="usual", guard=0.05) as scheduler:
        work(scheduler, 20, ["good", "bad"])
        said = str(scheduler.summary())
        assert "20 tasks could not be held out or guarded: the baseline was not on offer, retired or benched" in said
        assert "not known against always usual: no task could take that" in said
