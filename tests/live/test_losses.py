"""Leases that end: a numbered loss in the log, written once by whoever notices, replaced by whatever comes late."""

from __future__ import annotations

import csv
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import apsw
import pytest
from test_failures import OPTIONS, log_of, taken, totals_of

from clocks import Clock
from worthwhile import Scheduler
from worthwhile.errors import AlreadyFailed, AlreadyReported
from worthwhile.live.checking import find_damage
from worthwhile.live.claims import Claiming, Releasing, Renewing
from worthwhile.live.outcomes import MOST_LOST
from worthwhile.live.stores.base import FAILED, LOST, OWN, REPLACES, RESULT
from worthwhile.live.stores.sql import READ_LOST

NOBODY = 65534


def claim(scheduler: Scheduler, holder: str, key: str = "k", lease: float = 10.0) -> Any:
    return scheduler._transactor.ask(Claiming(scheduler, "x", ["a", "b"], key, lease, holder))


def lose(scheduler: Scheduler, clock: Clock, option: str = "a") -> Any:
    """A task of which nothing was heard by the end of its lease."""
    task = taken(scheduler, option, lease=10.0)
    clock.ahead += 11.0
    return task


def test_a_lease_that_ends_is_one_loss_at_the_average_cost(address: str) -> None:
    with Scheduler(address, overhead=1.0) as scheduler:
        clock = Clock(scheduler)
        taken(scheduler, "a").report(5.0, 3.0)
        lose(scheduler, clock)
        for _ in range(3):
            [line] = scheduler.latest(1)
            assert (line.state, line.reward, line.cost) == ("expired", None, None)
            assert line.reason == "no report by the end of its lease"
            clock.ahead += 100.0
        _, loss = log_of(scheduler)
        assert (loss.task, loss.observed, loss.reward, loss.outcome) == (2, OWN, None, LOST)
        assert (loss.cost, loss.overhead) == (3.0, 1.0)
        assert (totals_of(scheduler)["failed"], totals_of(scheduler)["cost"]) == (1.0, 8.0)
        assert (scheduler.summary().running, scheduler.summary().expired) == (0, 1)
        assert scheduler.rebuild()


def test_nothing_is_lost_before_its_lease_ends_or_after_it_has_ended(address: str) -> None:
    with Scheduler(address) as scheduler:
        clock = Clock(scheduler)
        running = taken(scheduler, "a", lease=1e6)
        for end, values in (("report", (1.0, 1.0)), ("fail", (1.0,)), ("cancel", ())):
            task = taken(scheduler, "a", lease=10.0)
            getattr(task, end)(*values)
        clock.ahead = 100.0
        scheduler.summary()
        assert [entry.outcome for entry in log_of(scheduler)] == [RESULT, FAILED]
        running.report(1.0, 1.0)


def test_whoever_reports_or_renews_in_time_of_noticing_loses_nothing(address: str) -> None:
    with Scheduler(address) as scheduler:
        clock = Clock(scheduler)
        lose(scheduler, clock).report(1.0, 2.0)
        claim(scheduler, "me")
        clock.ahead += 11.0
        assert scheduler._transactor.ask(Renewing("me", ["2"], 10.0)) == []
        assert [entry.outcome for entry in log_of(scheduler)] == [RESULT]
        assert scheduler.latest(1)[0].state == "running"


@pytest.mark.parametrize("failed_reward", [None, -1.0])
def test_a_late_report_replaces_the_loss(address: str, failed_reward: float | None) -> None:
    with Scheduler(address, overhead=1.0, failed_reward=failed_reward) as scheduler:
        clock = Clock(scheduler)
        taken(scheduler, "a").report(5.0, 3.0)
        task = lose(scheduler, clock)
        assert scheduler.latest(1)[0].state == "expired"
        for _ in range(2):
            task.report(2.0, 7.0)
        assert scheduler.latest(1)[0].state == "reported"
        assert scheduler.latest(1)[0].reason is None
        _, loss, late = log_of(scheduler)
        assert (late.observed, late.outcome, late.reward, late.cost) == (REPLACES, RESULT, 2.0, 7.0)
        assert (loss.reward, late.cost_estimate, late.reward_estimate) == (failed_reward, 4.0, failed_reward or 0.0)
        assert totals_of(scheduler) == {
            "pulls": 2.0, "reward": 7.0, "cost": 12.0, "observed": 0.0, "failed": 0.0, "failed_cost": 0.0,
            "unmeasured": 0.0, "unmeasured_cost": 0.0,
        }  # fmt: skip
        found = scheduler.summary()
        assert (found.reports, found.expired, found.reward, found.cost) == (2, 0, 7.0, 12.0)
        assert scheduler._transactor.statistics.series(10)[-1].ratio == 7.0 / 12.0
        with pytest.raises(AlreadyReported):
            task.report(2.0, 8.0)
        assert scheduler.rebuild()


def test_a_late_failure_replaces_the_loss(address: str) -> None:
    with Scheduler(address) as scheduler:
        clock = Clock(scheduler)
        taken(scheduler, "a").report(5.0, 3.0)
        first, second = lose(scheduler, clock), lose(scheduler, clock)
        scheduler.summary()
        first.fail(cost=9.0, reason="out of memory")
        second.fail(reason="too late")  # at what the loss has cost
        assert [(entry.observed, entry.cost) for entry in log_of(scheduler)[3:]] == [(REPLACES, 9.0), (REPLACES, 3.0)]
        assert [(line.state, line.cost) for line in scheduler.latest(2)] == [("failed", 3.0), ("failed", 9.0)]
        with pytest.raises(AlreadyFailed):
            first.report(1.0, 1.0)
        assert (totals_of(scheduler)["failed"], totals_of(scheduler)["failed_cost"]) == (2.0, 12.0)
        assert scheduler.rebuild()


def test_a_report_in_two_parts_survives_the_loss(address: str) -> None:
    with Scheduler(address) as scheduler:
        clock = Clock(scheduler)
        task = taken(scheduler, "a", lease=10.0)
        task.report(reward=2.0)
        clock.ahead += 11.0
        assert scheduler.latest(1)[0].state == "expired"
        task.report(cost=4.0)
        assert (scheduler.summary().reward, scheduler.summary().cost) == (2.0, 4.0)
        other = lose(scheduler, clock)
        scheduler.summary()
        other.report(cost=4.0)
        assert scheduler.latest(1)[0].state == "expired"
        other.report(reward=2.0)
        assert (scheduler.summary().ratio, scheduler.summary().expired, scheduler.rebuild()) == (0.5, 0, True)


def test_to_cancel_what_is_lost_changes_nothing(address: str) -> None:
    with Scheduler(address) as scheduler:
        clock = Clock(scheduler)
        task = lose(scheduler, clock)
        scheduler.summary()
        task.cancel()
        assert (scheduler.latest(1)[0].state, len(log_of(scheduler))) == ("expired", 1)


def test_many_losses_are_noted_a_few_at_a_time(address: str) -> None:
    with Scheduler(address) as scheduler:
        clock = Clock(scheduler)
        for _ in range(MOST_LOST + 5):
            taken(scheduler, "a", lease=10.0)
        clock.ahead = 11.0
        scheduler.latest(1)
        first = len(log_of(scheduler))
        scheduler.latest(1)
        assert (first >= MOST_LOST, len(log_of(scheduler))) == (True, MOST_LOST + 5)
        assert (scheduler.summary().expired, scheduler.rebuild()) == (MOST_LOST + 5, True)


def test_the_store_is_asked_once_a_second_at_most(address: str) -> None:
    with Scheduler(address) as scheduler:
        clock = Clock(scheduler)
        clock.stopped = 2e9
        store: Any = scheduler._transactor.store
        asked, lost = [], store.lost
        store.lost = lambda *values: asked.append(values) or lost(*values)
        for _ in range(10):
            taken(scheduler, "a").report(1.0, 1.0)
        clock.stopped += 0.5
        taken(scheduler, "a").report(1.0, 1.0)
        assert len(asked) <= 1
        clock.stopped += 1.0
        taken(scheduler, "a", lease=0.1).report(1.0, 1.0)
        assert len(asked) <= 2


def test_the_search_for_losses_leaves_out_what_has_ended(sqlite: str) -> None:
    """A long history would keep everybody waiting, once a second."""
    with Scheduler(sqlite) as scheduler:
        scheduler.decide("x", ["a"])
        plan = apsw.Connection(sqlite.removeprefix("sqlite:///")).execute(f"explain query plan {READ_LOST}", (1, 0, 9))
        assert "USING INDEX tasks_running" in next(plan)[3]


def test_others_notice_what_a_process_that_is_gone_has_left(durable: str) -> None:
    with Scheduler(durable) as scheduler:
        taken(scheduler, "a", lease=10.0)
    with Scheduler(durable) as first, Scheduler(durable) as second:
        for clock in (Clock(first), Clock(second)):
            clock.ahead = 11.0
        assert (first.summary().expired, second.summary().expired) == (1, 1)
        assert (len(log_of(second)), first.rebuild(), second.rebuild()) == (1, True, True)
    assert not find_damage(durable).damage


@contextmanager
def nobody_may_write(folder: Path, path: Path) -> Iterator[None]:
    """Root may write anything, and therefore is somebody else for a while."""
    root, everybody_reads = os.geteuid() == 0, stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH
    path.chmod(everybody_reads)
    folder.chmod(everybody_reads | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    if root:
        os.setresuid(NOBODY, NOBODY, 0)
    try:
        yield
    finally:
        if root:
            os.setresuid(0, 0, 0)
        folder.chmod(stat.S_IRWXU)


def test_a_file_that_cannot_be_written_shows_what_has_expired() -> None:
    with TemporaryDirectory() as name:  # pytest's folders are root's alone
        path = Path(name) / "tasks.db"
        with Scheduler(path, lease=0.0) as scheduler:
            taken(scheduler, "a")
        with nobody_may_write(Path(name), path):
            assert not os.access(path, os.W_OK)
            with Scheduler(path, create=False) as scheduler:
                assert (scheduler.summary().expired, scheduler.latest(1)[0].state) == (1, "expired")


def test_a_task_that_is_taken_over_is_another_attempt(address: str) -> None:
    with Scheduler(address) as scheduler:
        clock = Clock(scheduler)
        taken(scheduler, "a").report(1.0, 2.0)
        first = claim(scheduler, "me")
        clock.ahead = 11.0
        second = claim(scheduler, "you")
        assert (second.task.id, second.holder, second.task.state) == (first.task.id, "you", "running")
        assert second.task.option == first.task.option
        assert scheduler._transactor.ask(Renewing("me", [first.task.id], 10.0)) == [first.task.id]
        assert (scheduler.summary().running, scheduler.latest(1)[0].attempts) == (1, 2)
        clock.ahead = 22.0
        scheduler.summary()
        clock.ahead = 23.0
        claim(scheduler, "me").task.report(1.0, 2.0)
        assert [entry.observed for entry in log_of(scheduler)[1:]] == [OWN, OWN - 1, OWN - 2]
        assert [entry.outcome for entry in log_of(scheduler)[1:]] == [LOST, LOST, RESULT]
        assert scheduler.rebuild()


def test_a_holder_that_was_away_may_still_report_and_what_is_released_is_not_lost(address: str) -> None:
    with Scheduler(address) as scheduler:
        clock = Clock(scheduler)
        mine = claim(scheduler, "me")
        clock.ahead = 11.0
        scheduler.summary()
        assert scheduler._transactor.ask(Renewing("me", [mine.task.id], 10.0)) == []
        mine.task.report(1.0, 2.0)
        assert [entry.observed for entry in log_of(scheduler)] == [OWN, REPLACES]
        other = claim(scheduler, "me", "other")
        scheduler._transactor.ask(Releasing("me", [other.task.id]))
        clock.ahead = 1e5
        assert (scheduler.summary().expired, len(log_of(scheduler))) == (1, 2)
        assert claim(scheduler, "you", "other").holder == "you"
        assert (scheduler.summary().running, scheduler.rebuild()) == (1, True)


def test_an_option_whose_tasks_never_report_is_hardly_tried(address: str) -> None:
    with Scheduler(address, seed=1, lease=10.0) as scheduler:
        clock, silent = Clock(scheduler), 0
        for _ in range(300):
            task = scheduler.decide("x", OPTIONS)
            silent += task.option == "broken"
            clock.ahead += 11.0
            if task.option == "good":
                task.report(1.0, 1.0)
        assert silent <= 15
        assert scheduler.rebuild()


def test_an_option_that_raises_is_hardly_tried(address: str) -> None:
    with Scheduler(address, seed=1) as scheduler:
        raised = 0
        for _ in range(300):
            try:
                with scheduler.task("x", OPTIONS) as task:
                    if task.option == "broken":
                        raise KeyError("no such column")
                    task.reward, task.cost = 1.0, 1.0
            except KeyError:
                raised += 1
        assert raised <= 15
        assert (scheduler.summary().kinds[0].winner, scheduler.rebuild()) == ("good", True)


def test_a_task_that_was_taken_over_is_explained_as_it_was_chosen(address: str) -> None:
    with Scheduler(address, seed=1) as scheduler:
        clock = Clock(scheduler)
        for _ in range(4):
            scheduler.decide("x", ["a", "b"]).report(1.0, 2.0)
        first = claim(scheduler, "me")
        chosen = scheduler.explain(first.task)
        clock.ahead = 11.0
        second = claim(scheduler, "you")
        why = scheduler.explain(first.task)
        assert (why.option, why.options, why.repeated, why.seen) == (chosen.option, chosen.options, True, chosen.seen)
        assert why.why == f"whoever takes a task over keeps its option. It was chosen because {chosen.why}"
        second.task.fail(cost=1.0)
        second.task.again()
        clock.ahead = 22.0
        claim(scheduler, "me")
        assert scheduler.explain(first.task).repeated


def test_a_cost_that_was_reported_is_what_the_loss_costs(address: str) -> None:
    with Scheduler(address, overhead=0.5) as scheduler:
        clock = Clock(scheduler)
        taken(scheduler, "a").report(5.0, 100.0)
        lost, failed = taken(scheduler, "a", lease=10.0), taken(scheduler, "a")
        lost.report(cost=3.0)
        failed.report(cost=4.0)
        clock.ahead = 11.0
        failed.fail(reason="no reward")
        assert [entry.cost for entry in log_of(scheduler)] == [100.0, 3.0, 4.0]
        lost.report(reward=1.0)
        assert (log_of(scheduler)[-1].cost, scheduler.summary().cost, scheduler.rebuild()) == (3.0, 108.5, True)


def test_a_loss_that_was_worth_a_number_leaves_no_trace_in_the_summary(address: str) -> None:
    with Scheduler(address, failed_reward=-5.0) as scheduler:
        clock = Clock(scheduler)
        rewards = [1.0, 2.0, 4.0]
        for reward in rewards:
            taken(scheduler, "a").report(reward, 3.0)
        late, other = lose(scheduler, clock), lose(scheduler, clock, "b")
        assert scheduler.summary().kinds[0].options[0].reason == "no report by the end of its lease"
        late.report(8.0, 7.0)
        other.report(1.0, 1.0)
        found = {option.option: option for option in scheduler.summary().kinds[0].options}
        a, b = found["a"], found["b"]
        assert (a.mean_reward, a.mean_cost, a.reason) == (pytest.approx(15.0 / 4), pytest.approx(4.0), None)
        assert (b.mean_reward, b.mean_cost, b.reason) == (1.0, 1.0, None)
        moments = scheduler._transactor.statistics.moments[0, 0]
        assert moments[3] == pytest.approx(sum((reward - 15.0 / 4) ** 2 for reward in [*rewards, 8.0]))
        failed = taken(scheduler, "a")
        failed.fail(cost=1.0, reason="out of memory")
        late = lose(scheduler, clock)
        scheduler.summary()
        late.report(1.0, 1.0)
        [reason] = [one.reason for one in scheduler.summary().kinds[0].options if one.option == "a"]
        assert reason == "out of memory"


@pytest.mark.parametrize("failed_reward", [None, -1.0])
def test_the_sums_of_an_export_are_those_of_the_summary(
    address: str, tmp_path: Path, failed_reward: float | None
) -> None:
    with Scheduler(address, overhead=0.5, failed_reward=failed_reward) as scheduler:
        clock = Clock(scheduler)
        taken(scheduler, "a").report(5.0, 3.0)
        late, failed, _ = lose(scheduler, clock), lose(scheduler, clock), lose(scheduler, clock)
        scheduler.summary()
        late.report(2.0, 7.0)
        failed.fail(cost=1.0)
        assert scheduler.export(tmp_path / "log.csv") == 4
        with open(tmp_path / "log.csv", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        assert [row["outcome"] for row in rows] == ["result", "lost", "result", "failed"]
        found = scheduler.summary()
        assert sum(float(row["reward"] or 0.0) for row in rows) == found.reward
        assert sum(float(row["cost"]) + float(row["overhead"]) for row in rows) == found.cost
        with Scheduler() as other:
            other.load(tmp_path / "log.csv")
            assert (other.summary().reward, other.summary().cost) == (found.reward, found.cost)
