"""A task that fails is tried again with another option: one task, one reward, and every attempt is paid for once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from test_claims import stop_between_transactions

import work_tasks
from waiting import NET, later_once, wait_until
from worthwhile import Arrival, LocalExecutor, Outcome, Scheduler, work
from worthwhile.errors import AlreadyFailed, BadParameter
from worthwhile.execution import running
from worthwhile.execution.claims import Claims
from worthwhile.execution.endings import Ending, Limits
from worthwhile.execution.metering import Failure
from worthwhile.execution.results import Finished
from worthwhile.live.claims import Claiming

TASKS = 20


def first(options: list[str], url: str | None = None, **settings: Any) -> Scheduler:
    """A scheduler that takes the first of these options that is on offer."""
    scheduler = Scheduler(url, policy="fixed-option", **settings)
    scheduler.announce(options=options)
    return scheduler


def stream(options: list[str], file: Path, count: int) -> list[Arrival]:
    return [Arrival("x", options, [str(file), str(number)], str(number)) for number in range(count)]


def ran(file: Path) -> Counter[tuple[str, str]]:
    """How often every task was run with every option."""
    return Counter((line.split()[0], line.split()[1]) for line in file.read_text().splitlines())


def test_what_fails_is_tried_again_and_costs_add_up(tmp_path: Path) -> None:
    options, file, seen = ["bad", "die", "good"], tmp_path / "ran", list[Finished]()
    settings: dict[str, Any] = {"after": seen.append, "lost_cost": 3.0}
    with first(options, overhead=10.0) as scheduler, LocalExecutor(2) as executor:
        # each of a kind of its own: where something has worked before, that is tried next
        tasks = [task._replace(kind=f"kind {task.key}") for task in stream(options, file, 4)]
        done = work(scheduler, tasks, work_tasks.good_or_bad, executor=executor, attempts=3, **settings)
        assert (done.reported, done.failed, done.tried_again, done.reward) == (4, 0, 8, 4.0)
        assert done.cost == sum(finished.cost for finished in seen)
        assert all(5.0 < finished.cost < 10.0 for finished in seen)
        assert {len(finished.earlier) for finished in seen} == {2}
        assert {finished.task.option for finished in seen} == {"good"}
        summary, lines = scheduler.summary(), scheduler.latest(10)
        assert (summary.tasks, summary.running, summary.reward) == (4, 0, 4.0)
        assert summary.cost == pytest.approx(done.cost + 4 * 3 * 10.0)  # overhead once per attempt
        assert {(line.state, line.option) for line in lines} == {("reported", "good")}
        assert scheduler.rebuild()
        assert work(scheduler, tasks, work_tasks.good_or_bad, executor=executor, attempts=3).skipped == 4
    assert set(ran(file).values()) == {1}
    assert len(ran(file)) == 12


@pytest.mark.parametrize(("attempts", "tried"), [(1, 1), (2, 2), (9, 3)])
def test_a_task_fails_after_so_many_attempts_or_when_no_option_is_left(attempts: int, tried: int) -> None:
    options, taken, seen = ["a", "b", "c"], list[str](), list[Finished]()

    def run(kind: str, option: Any, payload: Any) -> Outcome:
        taken.append(option)
        return Outcome(failed=True, cost=2.0, reason=f"not with {option}")

    with first(options) as scheduler, ThreadPoolExecutor(1) as executor:
        done = work(scheduler, [("x", options)], run, executor=executor, attempts=attempts, after=seen.append)
        assert (done.reported, done.failed, done.tried_again, done.cost) == (0, 1, tried - 1, 2.0 * tried)
        assert taken == options[:tried]
        assert (*seen[0].earlier, seen[0].failure) == tuple(f"not with {option}" for option in taken)
        assert [line.state for line in scheduler.latest(9)] == ["failed"]
        assert scheduler.summary().running == 0
        assert scheduler.rebuild()


def test_what_was_given_up_and_comes_late_is_not_taken_for_the_next_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, second, answered = threading.Event(), threading.Event(), threading.Event()

    def run(kind: str, option: Any, payload: Any) -> Outcome:
        if option == "late":
            begun.set()
            second.wait(NET)
            return Outcome(5.0, 1.0)
        second.set()
        answered.wait(NET)
        return Outcome(1.0, 1.0)

    class Answers(ThreadPoolExecutor):
        """Tells when the first answer is there."""

        def submit(self, *call: Any) -> Any:  # type: ignore[override]
            future = super().submit(*call)
            future.add_done_callback(lambda _: answered.set())
            return future

    def tasks() -> Iterator[Any]:
        yield "x", options
        while not second.is_set():
            yield None  # and look at the clock

    monkeypatch.setattr(running, "time", later_once(lambda: begun.is_set() and not second.is_set()))
    options = ["late", "soon"]
    with first(options) as scheduler, Answers(2) as executor:
        done = work(scheduler, tasks(), run, executor=executor, attempts=2, timeout=1000.0, lost_cost=1.0)
        assert (done.reported, done.reward, done.cost) == (1, 1.0, 2.0)
        assert list(done.reasons) == ["TimedOut: no answer within 1000 s"]


def test_reports_in_order_wait_for_the_last_attempt() -> None:
    options, seen = ["bad", "good"], list[str]()

    def run(kind: str, option: Any, payload: Any) -> Outcome:
        return Outcome(1.0, 1.0) if option == "good" or payload else Outcome(failed=True, cost=1.0)

    with first(options) as scheduler, ThreadPoolExecutor(4) as executor:
        tasks = [Arrival("x", options, number % 2) for number in range(12)]
        settings: dict[str, Any] = {"in_order": True, "after": lambda finished: seen.append(finished.task.id)}
        work(scheduler, tasks, run, executor=executor, attempts=2, **settings)
    assert seen == sorted(seen, key=int)


def test_attempts_are_a_whole_number() -> None:
    for attempts in (0, 1.5, True):
        with Scheduler() as scheduler, pytest.raises(BadParameter, match=f"attempts = {attempts}; it must be a whole"):
            work(scheduler, [], work_tasks.double, attempts=attempts)  # type: ignore[arg-type]


def test_whoever_lost_a_task_neither_fails_it_nor_reports_another_option() -> None:
    with first(["bad", "good"]) as scheduler:
        ours, theirs = (Claims(scheduler, lease, lambda: None) for lease in (0.0, 1000.0))

        def claim(claims: Claims) -> Any:
            request = Claiming(scheduler, "x", ["bad", "good"], "a", claims.lease, claims.holder)
            return scheduler._transactor.ask(request).task

        def end(claims: Claims, task: Any, outcome: Outcome | Failure) -> Any:
            return scheduler._transactor.ask(Ending(claims, task, outcome, Limits(attempts=3)))

        before, taken_over = claim(ours), claim(theirs)
        assert (before.option, taken_over.option) == ("bad", "bad")
        with pytest.raises(AlreadyFailed, match="run elsewhere"):
            end(ours, before, Failure("too late", 1.0))
        again = end(theirs, taken_over, Failure("not with bad", 1.0)).again
        assert (taken_over.attempt, again.option, again.attempt) == (1, "good", 2)  # the first one was lost
        with pytest.raises(AlreadyFailed, match="run elsewhere"):
            end(ours, before, Outcome(1.0, 1.0))
        assert end(theirs, again, Outcome(1.0, 1.0)).reward == 1.0
        summary = scheduler.summary()
        assert (summary.reports, summary.failed, summary.expired, summary.reward) == (1, 1, 1, 1.0)
        assert scheduler.rebuild()


def test_a_takeover_uses_up_no_attempt() -> None:
    taken = list[str]()

    def run(kind: str, option: Any, payload: Any) -> Outcome:
        taken.append(option)
        return Outcome(failed=True, cost=1.0)

    options = ["a", "b", "c"]
    with first(options) as scheduler, ThreadPoolExecutor(1) as executor:
        scheduler._transactor.ask(Claiming(scheduler, "x", options, "key", 0.0, "theirs"))  # lost at once
        settings: dict[str, Any] = {"executor": executor, "attempts": 2}
        done = work(scheduler, [("x", options, None, "key")], run, **settings)
        assert (taken, done.failed, done.tried_again) == (["a", "b"], 1, 1)
        [line] = scheduler.latest(1)
        assert (line.state, line.attempts) == ("failed", 3)
        assert scheduler.rebuild()


def test_a_task_that_was_taken_over_and_failed_is_tried_again_with_another_option() -> None:
    with first(["a", "b"]) as scheduler:
        for lease in (0.0, 1000.0):
            task = scheduler._transactor.ask(Claiming(scheduler, "x", ["a", "b"], "key", lease, "ours")).task
        task.fail(1.0)
        assert task.again().option == "b"


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[str]]]:
    processes: list[subprocess.Popen[str]] = []
    yield processes
    for process in processes:
        process.kill()
        process.communicate()


def start(store: str, tasks: Path, *more: str) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", "worthwhile", "work", "work_tasks:good_or_bad", "--store", store]
    options = ["--tasks", str(tasks), "--slots", "1", "--json", "--attempts", "2", *more]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen(
        [*words, *options], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    )


def answer(process: subprocess.Popen[str]) -> dict[str, Any]:
    done: dict[str, Any] = json.loads(process.communicate(timeout=NET)[0])
    return done


def list_of(folder: Path, options: list[str], count: int) -> Path:
    file = folder / "tasks.jsonl"
    tasks = ({"kind": "x", "options": options, "payload": [str(folder / "ran"), str(n)]} for n in range(count))
    file.write_text("".join(json.dumps(task) + "\n" for task in tasks))
    return file


@pytest.mark.slow
def test_the_second_attempt_of_a_killed_process_is_made_by_another_one(
    durable: str, tmp_path: Path, started: list[subprocess.Popen[str]]
) -> None:
    file, tasks = tmp_path / "ran", list_of(tmp_path, ["bad", "wait"], 1)
    with first(["bad", "wait"], durable):
        pass
    started.append(start(durable, tasks))
    wait_until(lambda: file.exists() and ran(file)["0", "wait"], "the second attempt")
    started.append(start(durable, tasks))
    started[0].kill()
    wait_until(lambda: ran(file)["0", "wait"] == 2, "the same attempt elsewhere")
    Path(f"{file}.go").touch()
    done = answer(started[1])
    assert (done["reported"], done["failed"], done["reward"], done["cost"]) == (1, 0, 1.0, 2.0)
    assert ran(file)["0", "bad"] == 1
    with Scheduler(durable) as scheduler:
        assert (scheduler.summary().tasks, scheduler.summary().running, scheduler.summary().reward) == (1, 0, 1.0)
        assert scheduler.rebuild()


@pytest.mark.slow
def test_the_second_attempt_of_a_process_that_was_stopped_for_too_long_is_counted_once(
    durable: str, tmp_path: Path, started: list[subprocess.Popen[str]]
) -> None:
    file, tasks = tmp_path / "ran", list_of(tmp_path, ["bad", "wait"], 1)
    with first(["bad", "wait"], durable):
        pass
    started.append(start(durable, tasks, "--lease", "1"))
    wait_until(lambda: file.exists() and ran(file)["0", "wait"], "the second attempt")
    stop_between_transactions(started[0], durable)
    started.append(start(durable, tasks))
    wait_until(lambda: ran(file)["0", "wait"] == 2, "the same attempt elsewhere")
    started[0].send_signal(signal.SIGCONT)
    Path(f"{file}.go").touch()  # whoever comes first
    late, done = map(answer, started)
    assert done["reported"] + late["reported"] == 1
    assert (done["failed"], late["failed"], ran(file)["0", "bad"]) == (0, 0, 1)
    with Scheduler(durable) as scheduler:
        summary = scheduler.summary()
        assert (summary.tasks, summary.reports, summary.failed, summary.reward) == (1, 1, 1, 1.0)
        assert scheduler.rebuild()


@pytest.mark.slow
def test_two_on_one_list_make_every_attempt_once(
    durable: str, tmp_path: Path, started: list[subprocess.Popen[str]]
) -> None:
    tasks = list_of(tmp_path, ["bad", "good"], TASKS)
    with first(["bad", "good"], durable):
        pass
    started += [start(durable, tasks) for _ in range(2)]
    one, two = map(answer, started)
    assert one["reported"] + two["reported"] == one["tried_again"] + two["tried_again"] == TASKS
    assert ran(tmp_path / "ran") == {(str(n), option): 1 for n in range(TASKS) for option in ("bad", "good")}
    with Scheduler(durable) as scheduler:
        assert (scheduler.summary().tasks, scheduler.summary().reward) == (TASKS, float(TASKS))
        assert scheduler.rebuild()
