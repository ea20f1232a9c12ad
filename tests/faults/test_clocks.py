"""Clocks that are set ahead, put back or stand still: no lease lasts for ever, and nothing else changes."""

from __future__ import annotations

import time

import pytest

from clocks import Clock
from waiting import wait_until
from worthwhile import Scheduler

OPTIONS = [1, 2, 3]
DAY = 86_400.0
FAR = 10 * 365 * DAY


@pytest.mark.parametrize("jump", [-DAY, -FAR, -120.0])
def test_a_clock_that_was_put_back_gives_running_tasks_one_lease_more(address: str, jump: float) -> None:
    with Scheduler(address, lease=3600.0) as scheduler:
        clock = Clock(scheduler)
        late = scheduler.decide("x", OPTIONS)
        early = [scheduler.decide("x", OPTIONS, lease=100.0) for _ in range(2)]
        clock.ahead = jump
        assert scheduler.summary().running == 3
        clock.ahead = jump + 101.0
        assert (scheduler.summary().running, scheduler.summary().expired) == (1, 2)
        clock.ahead = jump + 3601.0
        assert (scheduler.summary().running, scheduler.summary().expired) == (0, 3)
        for task in (late, *early):
            task.report(1.0, 1.0)
        lost_then_reported = [2, 3, 1, 1, 2, 3]
        assert [entry.task for entry in scheduler._transactor.entries(0, 10)] == lost_then_reported
        assert (scheduler.summary().reports, scheduler.summary().expired, scheduler.rebuild()) == (3, 0, True)


def test_a_process_that_starts_after_the_clock_was_put_back_notices_it(durable: str) -> None:
    with Scheduler(durable, lease=100.0) as scheduler:
        clock = Clock(scheduler)
        clock.ahead = FAR
        scheduler.decide("x", OPTIONS)
    with Scheduler(durable) as scheduler:
        assert scheduler.summary().running == 1
        Clock(scheduler).ahead = 101.0
        assert (scheduler.summary().running, scheduler.summary().expired) == (0, 1)
        assert scheduler.rebuild()


def test_a_lease_is_renewed_once_however_often_the_clock_is_noticed(durable: str) -> None:
    with Scheduler(durable, lease=100.0) as scheduler:
        clock = Clock(scheduler)
        clock.ahead = 3600.0
        scheduler.decide("x", OPTIONS)
        clock.ahead = 0.0
        assert scheduler.summary().running == 1
        for _ in range(2):
            with Scheduler(durable) as another:
                assert (another.summary().running, another.summary().expired) == (1, 0)


def test_a_clock_that_was_set_ahead_ends_leases_and_late_reports_count(address: str) -> None:
    with Scheduler(address, lease=3600.0) as scheduler:
        clock, task = Clock(scheduler), scheduler.decide("x", OPTIONS)
        clock.ahead = DAY
        assert (scheduler.summary().running, scheduler.summary().expired) == (0, 1)
        task.report(1.0, 1.0)
        other = scheduler.decide("x", OPTIONS)
        clock.ahead = 0.0  # it was a mistake
        assert scheduler.summary().running == 1
        clock.ahead = 3601.0
        assert (scheduler.summary().running, scheduler.summary().expired) == (0, 1)
        other.report(1.0, 1.0)
        assert (scheduler.summary().reports, scheduler.rebuild()) == (2, True)


def test_a_clock_that_stands_still_harms_nobody(address: str) -> None:
    with Scheduler(address, lease=60.0) as scheduler:
        clock = Clock(scheduler)
        clock.stopped = time.time()
        tasks = [scheduler.decide("x", OPTIONS) for _ in range(5)]
        assert scheduler.summary().running == 5
        for task in reversed(tasks):
            task.report(1.0, 1.0)
        assert [entry.task for entry in scheduler._transactor.entries(0, 10)] == [5, 4, 3, 2, 1]
        assert (scheduler.summary().running, scheduler.rebuild()) == (0, True)


def test_processes_whose_clocks_differ_keep_one_order_and_no_lease_for_ever(durable: str) -> None:
    schedulers = [Scheduler(durable, lease=100.0) for _ in range(3)]
    clocks = [Clock(scheduler) for scheduler in schedulers]
    for clock, ahead in zip(clocks, (0.0, DAY, -DAY), strict=True):
        clock.ahead = ahead
    tasks = [scheduler.decide("x", OPTIONS) for _ in range(4) for scheduler in schedulers]
    assert [task.id for task in tasks] == [str(number) for number in range(1, 13)]
    for task in tasks[::2]:
        task.report(1.0, 1.0)
    for clock in clocks:
        clock.ahead = 0.0
    assert {scheduler.summary().reports for scheduler in schedulers} == {6}
    for clock in clocks:
        clock.ahead = 101.0
    assert {scheduler.summary().running for scheduler in schedulers} == {0}
    assert all(scheduler.rebuild() for scheduler in schedulers)
    for scheduler in schedulers:
        scheduler.close()


def test_the_cost_of_a_block_is_measured_by_a_clock_that_cannot_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    with Scheduler() as scheduler:
        began = time.perf_counter()
        with scheduler.task("x", OPTIONS) as task:
            monkeypatch.setattr(time, "time", lambda: 1.0)
            wait_until(lambda: time.perf_counter() > began + 0.01, "some time to pass")
            task.reward = 1.0
        [line] = scheduler.latest(1)
        assert line.cost is not None
        assert 0.0 < line.cost <= time.perf_counter() - began
