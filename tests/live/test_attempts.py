"""Attempts: a task that has failed, tried again with another option; one arrival, and each attempt counts once."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from test_failures import log_of, totals_of

from clocks import Clock
from worthwhile import Scheduler, Task
from worthwhile.errors import AlreadyCancelled, AlreadyFailed, AlreadyReported, BadFeedback, BadTask
from worthwhile.live import history
from worthwhile.live.checking import find_damage
from worthwhile.live.history import attempt_of
from worthwhile.live.outcomes import instead_of
from worthwhile.live.stores.base import FAILED, LOST, OWN, REPLACES, RESTORES, RESULT, TaskRow

OPTIONS = ["a", "b", "c"]


def failed(scheduler: Scheduler, options: Any = OPTIONS, **settings: Any) -> Task:
    task = scheduler.decide("x", options, **settings)
    task.fail(cost=1.0, reason=f"{task.option} is broken")
    return task


def arrivals(scheduler: Scheduler) -> float:
    """As the policy counts them."""
    fold = scheduler._transactor.do(lambda batch: batch.replica.fold)
    return float(fold.state.learned.arrivals[0]) if hasattr(fold.state.learned, "arrivals") else 1.0


def test_a_task_is_tried_again_with_another_option(address: str) -> None:
    with Scheduler(address, overhead=0.5) as scheduler:
        first = failed(scheduler)
        second = first.again()
        assert (second.id, second.kind, second.state, second.attempt) == (first.id, "x", "running", 1)
        assert second.option != first.option
        assert (scheduler.summary().tasks, scheduler.summary().running) == (1, 1)
        second.fail(cost=2.0)
        third = second.again()
        assert {first.option, second.option, third.option} == set(OPTIONS)
        third.report(5.0, 3.0)
        entries = log_of(scheduler)
        assert [entry.observed for entry in entries] == [OWN, OWN - 1, OWN - 2]
        assert [entry.outcome for entry in entries] == [FAILED, FAILED, RESULT]
        assert [entry.overhead for entry in entries] == [0.5] * 3
        found = scheduler.summary()
        assert (found.tasks, found.reports, found.failed, found.running) == (1, 1, 2, 0)
        assert (found.reward, found.cost) == (5.0, 7.5)
        [line] = scheduler.latest(1)
        assert (line.state, line.attempts, line.option, line.reward) == ("reported", 3, third.option, 5.0)
        assert arrivals(scheduler) == 1.0
        assert scheduler.rebuild()


def test_an_explanation_is_that_of_the_latest_attempt_and_lists_the_others(address: str) -> None:
    with Scheduler(address, seed=3) as scheduler:
        for _ in range(5):
            scheduler.decide("x", OPTIONS).report(1.0, 1.0)
        first = failed(scheduler)
        second = first.again()
        why = scheduler.explain(first)
        assert (why.option, why.repeated, why.state) == (second.option, True, "running")
        assert {judged.option for judged in why.options} == set(OPTIONS) - {first.option}
        [earlier] = why.attempts
        assert (earlier.option, earlier.state, earlier.cost) == (first.option, "failed", 1.0)
        assert earlier.reason == f"{first.option} is broken"
        second.fail(cost=1.0)
        second.again()
        assert scheduler.explain(first).why == "it was the only option left"


def test_asked_twice_there_is_one_attempt_more(address: str) -> None:
    with Scheduler(address) as scheduler:
        first = failed(scheduler)
        second = first.again()
        for again in (first.again(), scheduler.again(first.id, 0), scheduler.again(first.id)):
            assert (again.id, again.option, again.attempt) == (second.id, second.option, 1)
        with pytest.raises(BadTask, match="task 1 has not failed; only what has failed can be tried again"):
            second.again()
        second.fail(cost=1.0)
        assert first.again().state == "failed"
        third = second.again()
        assert first.again().attempt == 2  # the latest: its caller has not heard of the second
        third.report(1.0, 1.0)
        with pytest.raises(AlreadyReported):
            third.again()
        assert len(log_of(scheduler)) == 3


def test_what_cannot_be_tried_again_is_refused(address: str) -> None:
    with Scheduler(address) as scheduler:
        task: Any = failed(scheduler, ["a"])
        with pytest.raises(BadTask, match="task 1: every option on offer has failed on it, or is retired"):
            task.again()
        task = failed(scheduler, ["a", "b"])
        scheduler.retire({"a": "b", "b": "a"}[str(task.option)])
        with pytest.raises(BadTask, match="task 2: every option on offer has failed on it, or is retired"):
            task.again()
        task = scheduler.decide("x", ["a", "b", "c"])
        with pytest.raises(BadTask, match="task 3 has not failed"):
            task.again()
        task.cancel()
        with pytest.raises(AlreadyCancelled, match="task 3 was cancelled; it cannot be tried again"):
            task.again()
        for after in (-1, True, "0", 10**9):
            with pytest.raises(BadFeedback, match="attempt = "):
                scheduler.again(1, after)  # type: ignore[arg-type]
        with pytest.raises(BadFeedback, match="task 2: attempt 5 was never made, the latest is 0"):
            scheduler.again(2, after=5)


def test_a_task_whose_lease_has_ended_is_tried_again_at_once(address: str) -> None:
    with Scheduler(address) as scheduler:
        first = scheduler.decide("x", OPTIONS, lease=0.0)
        second = first.again()
        assert (second.attempt, second.option != first.option) == (1, True)
        assert [entry.outcome for entry in log_of(scheduler)] == [LOST]
        clock = Clock(scheduler)
        clock.ahead = 1e6
        third = scheduler.again(first.id)
        assert (third.attempt, third.state) == (2, "running")
        assert scheduler.again(first.id).attempt == 2
        clock.ahead = 2e6
        for _ in range(2):
            with pytest.raises(BadTask, match="every option on offer has failed on it"):
                third.again()
        third.report(1.0, 1.0)
        assert [entry.outcome for entry in log_of(scheduler)][:2] == [LOST, LOST]
        assert (scheduler.latest(1)[0].state, scheduler.rebuild()) == ("reported", True)


def test_an_attempt_is_counted_as_running_until_it_ends(address: str) -> None:
    with Scheduler(address) as scheduler:
        task = failed(scheduler).again()
        [kind] = scheduler.summary().kinds
        assert [option.option for option in kind.options if option.running] == [task.option]
        with pytest.raises(AlreadyFailed):
            failed(scheduler).report(1.0, 1.0)
        task.report(reward=1.0)
        task.report(cost=2.0)
        assert scheduler.summary().running == 0
        task.report(1.0, 2.0)
        with pytest.raises(AlreadyReported):
            task.report(1.0, 3.0)
        assert scheduler.rebuild()


def test_an_attempt_may_be_lost_and_come_back(address: str) -> None:
    with Scheduler(address, lease=10.0) as scheduler:
        clock = Clock(scheduler)
        first = failed(scheduler)
        second = first.again()
        clock.ahead += 11.0
        assert scheduler.latest(1)[0].state == "expired"
        second.report(1.0, 4.0)
        assert [entry.observed for entry in log_of(scheduler)] == [OWN, OWN - 1, REPLACES - 1]
        lost = scheduler.decide("x", OPTIONS)
        clock.ahead += 11.0
        scheduler.summary()
        again = lost.again()
        assert again.option != lost.option
        assert [attempt.state for attempt in scheduler.explain(lost).attempts] == ["expired"]
        again.report(1.0, 1.0)
        assert [entry.outcome for entry in log_of(scheduler)[3:]] == [LOST, RESULT]
        assert scheduler.rebuild()


def test_attempts_survive_a_restart_an_export_and_an_import(durable: str, tmp_path: Path) -> None:
    with Scheduler(durable, seed=1, lease=10.0) as scheduler:
        clock = Clock(scheduler)
        for number in range(12):
            task = failed(scheduler)
            task = task.again()
            if number % 3 == 0:
                task.fail(cost=0.5, reason="again")
                task = task.again()
            if number % 4 == 0:
                clock.ahead += 11.0
                scheduler.summary()
            task.report(1.0, 2.0)
    assert not find_damage(durable).damage
    with Scheduler(durable) as scheduler:
        assert scheduler.rebuild()
        assert {line.attempts for line in scheduler.latest(12)} == {2, 3}
        scheduler.export(tmp_path / "log.csv")
        with Scheduler() as other:
            kept = [entry for entry in log_of(scheduler) if entry.outcome != LOST]  # all of them have reported
            assert len(kept) < len(log_of(scheduler))
            assert (other.load(tmp_path / "log.csv"), other.load(tmp_path / "log.csv")) == (len(kept), 0)
            for field in ("outcome", "reward", "cost", "reason"):
                assert [getattr(row, field) for row in log_of(other)] == [getattr(row, field) for row in kept]
            assert (other.rebuild(), other.summary().cost) == (True, scheduler.summary().cost)
            assert totals_of(other)["failed"] > 0.0


def test_a_block_can_be_tried_again(address: str) -> None:
    with Scheduler(address) as scheduler:
        tried = []
        task = scheduler.task("x", OPTIONS)
        while True:
            try:
                with task:
                    tried.append(task.option)
                    if len(tried) < 3:
                        raise KeyError(task.option)
                    task.reward = 1.0
                break
            except KeyError:
                task = task.again()
        assert sorted(map(str, tried)) == OPTIONS
        assert (scheduler.latest(1)[0].state, scheduler.summary().failed) == ("reported", 2)


def worked(scheduler: Scheduler, results: dict[str, float], times: int = 6) -> None:
    """Results of these rewards, so many of each."""
    for _ in range(times):
        for option, reward in results.items():
            scheduler.decide("x", [option]).report(reward, 1.0)


def test_a_further_attempt_takes_what_works(address: str) -> None:
    """Two broken options fall due together: the retry of one must not go to the other."""
    options, rewards = ["good", "ok", "crash", "hang"], {"good": 2.0, "ok": 1.0}
    with Scheduler(address, seed=5) as scheduler:
        retried = []
        for _ in range(150):
            task = scheduler.decide("x", options)
            while task.option not in rewards:
                task.fail(cost=0.1, reason="broken")
                task = task.again()
                retried.append(task.option)
                why = scheduler.explain(task)
                assert (why.repeated, {judged.option for judged in why.options} & {"crash", "hang"}) == (True, set())
            task.report(rewards[str(task.option)], 1.0)
        assert len(retried) > 4
        assert set(retried) <= set(rewards)
        assert scheduler.rebuild()


def test_where_nothing_works_a_further_attempt_takes_what_is_new(address: str) -> None:
    with Scheduler(address) as scheduler:
        scheduler.decide("x", ["a"]).fail(cost=1.0)
        task = failed(scheduler, ["b", "a", "c"])
        assert task.again().option in {"b", "c"} - {task.option}


def test_what_was_retired_meanwhile_leaves_the_explanation_true(address: str) -> None:
    with Scheduler(address, seed=2) as scheduler:
        worked(scheduler, {"a": 1.0, "b": 1.0, "c": 3.0, "d": 1.0})
        first = failed(scheduler, ["a", "b", "c", "d"])
        scheduler.retire("c" if first.option != "c" else "d")
        second = first.again()
        why = scheduler.explain(first)
        assert why.repeated
        assert len(why.options) == 2
        scheduler.restore("c" if first.option != "c" else "d")
        second.fail(cost=1.0)
        second.again()
        assert scheduler.explain(first).repeated


def test_attempts_draw_random_numbers_of_their_own() -> None:
    """The second takes each of the other three options equally often, whatever the first has drawn."""
    with Scheduler(policy="random-option", seed=1) as scheduler:
        options = ["a", "b", "c", "d"]
        for option in options:
            scheduler.decide("x", [option]).report(1.0, 1.0)
        pairs = set()
        for _ in range(100):
            task = failed(scheduler, options)
            pairs.add((task.option, task.again().option))
            assert scheduler.explain(task).repeated
        assert len(pairs) == 12


def test_the_thousandth_attempt_is_one_like_others() -> None:
    """A task may be taken over often; whoever reports late must not be taken for another attempt."""
    row = TaskRow(1, 0, 0, "0", "0", 0.0, 1.0, None, 0, 1, None, 0.0, 0.0, 0.0, attempts=json.dumps([{}] * 1000))
    entry = row.log_row(1, 1.0, 1.0)._replace(observed=OWN - row.attempt)
    assert entry.observed > REPLACES
    assert attempt_of(entry) == 1000
    late = instead_of(entry._replace(outcome=LOST), entry)
    assert RESTORES < late.observed <= REPLACES
    assert attempt_of(late) == 1000


def test_an_earlier_attempt_that_was_lost_takes_no_report_any_more(address: str) -> None:
    with Scheduler(address, lease=10.0) as scheduler:
        clock = Clock(scheduler)
        first = scheduler.decide("x", OPTIONS)
        clock.ahead += 11.0
        scheduler.summary()
        second = first.again()
        too_late = "attempt 0 of task 1 has been followed by another; its result cannot count any more"
        for values in ((1.0, 100.0), (1.0, None), (None, 100.0)):
            with pytest.raises(AlreadyFailed, match=too_late):
                first.report(*values)
        with pytest.raises(AlreadyFailed, match=too_late):
            first.fail(100.0)
        first.fail()  # what is known of it
        first.cancel()
        second.report(reward=3.0)
        with pytest.raises(AlreadyFailed, match=too_late):
            first.report(cost=100.0)
        second.report(cost=2.0)
        [line] = scheduler.latest(1)
        assert (line.option, line.state, line.reward, line.cost) == (second.option, "reported", 3.0, 2.0)
        assert [entry.outcome for entry in log_of(scheduler)] == [LOST, RESULT]
        assert scheduler.rebuild()


def test_a_failure_that_is_told_again_fails_no_other_attempt(address: str) -> None:
    with Scheduler(address) as scheduler:
        first = failed(scheduler)
        second = first.again()
        first.fail(1.0, "again")
        first.fail()
        with pytest.raises(AlreadyFailed, match="attempt 0 of task 1 has been followed by another"):
            first.fail(2.0)
        with pytest.raises(AlreadyFailed, match="task 1 has failed already; it cannot be cancelled"):
            first.cancel()
        assert scheduler.latest(1)[0].state == "running"
        second.report(1.0, 1.0)
        first.fail(1.0)
        assert [entry.outcome for entry in log_of(scheduler)] == [FAILED, RESULT]


def test_what_names_no_attempt_tells_of_the_latest(address: str) -> None:
    with Scheduler(address) as scheduler:
        id = failed(scheduler).again().id
        scheduler.fail(id, 2.0)
        scheduler.again(id)
        scheduler.report(id, 1.0, 1.0)
        scheduler.report(id, 1.0, 1.0, attempt=2)
        assert [entry.observed for entry in log_of(scheduler)] == [OWN, OWN - 1, OWN - 2]
        tell: Any
        for tell in (scheduler.report, scheduler.fail):
            with pytest.raises(BadFeedback, match="task 1: attempt 3 was never made, the latest is 2"):
                tell(id, cost=1.0, attempt=3)
            for attempt in (-1, True, "0", 1.5):
                with pytest.raises(BadFeedback, match="attempt = "):
                    tell(id, cost=1.0, attempt=attempt)
        with pytest.raises(BadFeedback, match="task 2: attempt 1 was never made, the latest is 0"):
            scheduler.cancel(scheduler.decide("x", OPTIONS).id, attempt=1)
        with pytest.raises(BadFeedback, match="task 2: attempt 1 was never made, the latest is 0"):
            scheduler.report(2, 1.0, 1.0, attempt=1)


def write_rows(path: Path, rows: Any) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_the_same_row_of_history_counts_once_whatever_its_attempt(durable: str, tmp_path: Path) -> None:
    with Scheduler() as scheduler:
        for _ in range(3):
            task = failed(scheduler).again()
            task.fail(cost=1.0)
            task.again().report(1.0, 2.0)
        scheduler.export(tmp_path / "log.jsonl")
        rows = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    with Scheduler(durable) as other:
        results = write_rows(tmp_path / "results" / "log.jsonl", [row for row in rows if row["outcome"] == "result"])
        assert [other.load(results) for _ in range(5)] == [3, 0, 0, 0, 0]
        assert [line.attempts for line in other.latest(3)] == [3, 3, 3]
        assert other.explain(1).attempts == []
        assert [other.load(tmp_path / "log.jsonl") for _ in range(3)] == [6, 0, 0]
        found = other.summary()
        assert (found.tasks, found.reports, found.failed, found.reward, found.cost) == (3, 3, 6, 3.0, 12.0)
        assert [attempt.state for attempt in other.explain(1).attempts] == ["failed", "failed"]
        assert {line.state for line in other.latest(3)} == {"reported"}
        assert other.rebuild()
        assert other.decide("x", OPTIONS).option in OPTIONS
    assert not find_damage(durable).damage


def test_rows_of_history_may_come_in_any_order(durable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row: dict[str, Any] = {"task_type": "x", "item_id": "1", "overhead": 0.5, "observed": False}
    lost: dict[str, Any] = {
        "option": "a",
        "reward": None,
        "cost": 1.0,
        "outcome": "lost",
        "reason": "late",
        "attempt": 0,
    }
    late: dict[str, Any] = {
        "option": "a",
        "reward": None,
        "cost": 3.0,
        "outcome": "failed",
        "reason": "very late",
        "attempt": 0,
    }
    end: dict[str, Any] = {"option": "b", "reward": 5.0, "cost": 2.0, "outcome": "result", "reason": "", "attempt": 4}
    for number, order in enumerate(permutations([lost, late, end])):
        path = write_rows(tmp_path / str(number) / "log.jsonl", [row | rest for rest in order])
        with Scheduler(durable, str(number)) as scheduler:
            before = order.index(lost) < order.index(late)  # otherwise it is known that it was not lost
            assert [scheduler.load(path) for _ in range(3)] == [2 + before, 0, 0]
            found, [line] = scheduler.summary(), scheduler.latest(1)
            assert (found.reports, found.failed, found.expired, found.cost) == (1, 1, 0, 6.0)
            assert (line.state, line.option, line.attempts, line.reward) == ("reported", "b", 5, 5.0)
            [earlier] = scheduler.explain(1).attempts
            assert (earlier.state, earlier.cost, earlier.reason) == ("failed", 3.0, "very late")
            assert scheduler.rebuild()
    assert not find_damage(durable).damage
    far = write_rows(tmp_path / "far.jsonl", [row | end | {"attempt": 99}, row | end | {"attempt": 0}])
    with Scheduler() as scheduler:
        assert (scheduler.load(far), scheduler.load(far)) == (2, 0)
    monkeypatch.setattr(history, "MOST_UNTOLD", 50)
    with Scheduler() as scheduler, pytest.raises(BadFeedback, match="attempt = 99 of a task of which 0 are known"):
        scheduler.load(far)
