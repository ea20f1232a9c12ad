"""What goes wrong with one caller's request is that caller's: the others of the same batch never notice."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from waiting import NET, wait_until
from worthwhile import Scheduler
from worthwhile.errors import Error, StoreError
from worthwhile.live.batch import Batch
from worthwhile.live.group_commit import Request
from worthwhile.live.requests import Deciding, Reporting

CALLS = int(os.environ.get("POISONED_CALLS", "400"))  # of each of eight threads; every tenth is poisoned
THREADS = 8


class Hash(str):
    __slots__ = ()

    def __hash__(self) -> int:
        raise ZeroDivisionError("hash")


class Equal(str):
    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        raise ZeroDivisionError("eq")

    __hash__ = str.__hash__


class Shown:
    def __repr__(self) -> str:
        raise ZeroDivisionError("repr")


class Deep:
    def __repr__(self) -> str:
        return repr([self])


class Failing(Mapping[Any, Any]):
    """Observations that cannot be read."""

    def __getitem__(self, key: Any) -> Any:
        raise MemoryError

    def __iter__(self) -> Iterator[Any]:
        raise MemoryError

    def __len__(self) -> int:
        return 1


POISON: list[Callable[[Scheduler], Any]] = [
    lambda scheduler: scheduler.decide("x", [10**5000]),
    lambda scheduler: scheduler.decide("x", [Hash("a"), "b"]),
    lambda scheduler: scheduler.decide("x", [Equal("1"), "2"]),
    lambda scheduler: scheduler.decide("x", [Shown()]),
    lambda scheduler: scheduler.decide("x", [Deep()]),
    lambda scheduler: scheduler.decide("x", [1, 2], key=Hash("key")),
    lambda scheduler: scheduler.decide(Hash("x"), [1, 2]),
    lambda scheduler: scheduler.report("1", 10**5000, 1.0),
    lambda scheduler: scheduler.report("1", Shown(), 1.0),  # type: ignore[arg-type]
    lambda scheduler: scheduler.observe("1", Deep(), 1.0, 1.0),  # type: ignore[arg-type]
    lambda scheduler: scheduler._transactor.do(lambda batch: batch.report_all(1, 1.0, 1.0, Failing())),
    lambda scheduler: scheduler._transactor.do(lambda batch: 1 / 0),
    lambda scheduler: scheduler._transactor.do(lambda batch: scheduler.summary()),
]


def in_threads(work: Callable[[int], None], count: int = THREADS) -> None:
    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(NET)
        assert not thread.is_alive()


@pytest.mark.parametrize("store", ["memory", "sqlite"])
def test_poisoned_requests_fail_alone(store: str, request: pytest.FixtureRequest) -> None:
    url = "memory://" if store == "memory" else f"{request.getfixturevalue('sqlite')}?synchronous=normal"
    with Scheduler(url, seed=1) as scheduler:
        first, failed = scheduler.decide("x", [1, 2]), []

        def work(thread: int) -> None:
            for call in range(CALLS):
                if call % 10 == thread:
                    try:
                        POISON[(call // 10 + thread) % len(POISON)](scheduler)
                    except (Error, ZeroDivisionError, MemoryError):
                        continue
                try:
                    key = f"{thread}.{call}" if call % 4 == 0 else None
                    scheduler.decide("x", ["1", "2"] if call % 3 else [1, 2], key=key).report(1.0, 2.0)
                except Exception as error:
                    failed.append(error)

        in_threads(work)
        assert failed == []
        assert first.state == "running"
        assert scheduler.summary().ratio == 0.5
        assert scheduler.rebuild()


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_request_that_fails_when_it_has_changed_something_changes_nothing(address: str, when: str) -> None:
    def poisoned(batch: Batch) -> None:
        if when == "after":
            batch.decide("a new kind", ("a new option",), "key", 60.0)
            batch.report(2, 5.0, 5.0)
        raise RecursionError("mine")

    with Scheduler(address, seed=1) as scheduler, Scheduler(seed=1) as alone:
        for each in (scheduler, alone):
            each.decide("x", [1, 2])
            each.decide("x", [1, 2])
        for round in range(3):
            for each in (scheduler, alone):
                good = [Deciding(each, "x", [1, 2, 3], f"good {round}"), Reporting(1, 1.0, 2.0)]
                good += [Deciding(each, "y", [round]), Deciding(each, "x", [1, 2, 3], f"good {round}")]
                bad = Request(poisoned, 2)
                each._transactor.ask_all([*good[:2], bad, *good[2:]] if each is scheduler else good)
                assert [request.error for request in good] == [None] * 4
                assert good[0].answer.id == good[3].answer.id
                assert each is alone or isinstance(bad.error, RecursionError)
        assert scheduler.summary() == alone.summary()
        assert [line.task for line in scheduler.latest(99)] == [line.task for line in alone.latest(99)]
        assert scheduler.rebuild()


def test_who_is_deep_in_calls_works_for_itself_alone() -> None:
    with Scheduler() as scheduler:
        begun, go, answers = threading.Event(), threading.Event(), []

        def slow(batch: Batch) -> None:
            begun.set()
            assert go.wait(NET)

        def deep(frames: int) -> None:
            if frames > 0:
                deep(frames - 1)
            else:
                scheduler.decide("x", [1, 2])

        def work(number: int) -> None:
            if number == 0:
                scheduler._transactor.do(slow)
                return
            assert begun.wait(NET)
            try:
                if number == 1:
                    deep(sys.getrecursionlimit() - 40)
                else:
                    wait_until(lambda: len(scheduler._transactor.queue) >= 1, "the deep one in the queue")
                    answers.append(scheduler.decide("x", [1, 2]).id)
            except RecursionError:
                answers.append("no stack left")

        threading.Thread(
            target=lambda: wait_until(lambda: len(scheduler._transactor.queue) >= 4, "all") or go.set(), daemon=True
        ).start()
        in_threads(work, 5)
        assert len([answer for answer in answers if answer != "no stack left"]) == 3
        assert scheduler.rebuild()


def test_an_entry_that_this_process_has_no_stack_for_is_not_set_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    with Scheduler() as scheduler:
        task = scheduler.decide("x", [1, 2])
        engine = scheduler._transactor.do(lambda batch: batch.replica.fold.engine)

        def learn(*values: object) -> None:
            raise RecursionError("no stack left")

        monkeypatch.setattr(engine, "learn", learn)
        with pytest.raises(RecursionError, match="no stack left"):
            task.report(1.0, 1.0)
        assert (scheduler.summary().bad_entries, scheduler.summary().reports) == (0, 0)
        task.report(1.0, 1.0)
        assert (scheduler.summary().bad_entries, scheduler.summary().reports) == (0, 1)


def test_a_request_that_calls_the_scheduler_is_told_off_alone() -> None:
    with Scheduler() as scheduler:
        requests = [Deciding(scheduler, "x", [1]), Request(lambda _: scheduler.latest()), Deciding(scheduler, "x", [1])]
        scheduler._transactor.ask_all(requests)
        assert [type(request.error) for request in requests] == [type(None), StoreError, type(None)]


class Leaving(float):
    """A number that ends whoever looks at it."""

    def __float__(self) -> float:
        raise SystemExit


def test_an_observation_is_looked_at_by_its_own_thread(address: str) -> None:
    with Scheduler(address) as scheduler:
        task = scheduler.decide("x", [1, 2])
        other, good = 3 - task.option, []

        def work(number: int) -> None:
            for _ in range(30):
                if number == 0:
                    with pytest.raises(SystemExit):
                        scheduler.observe(task.id, other, Leaving(1.0), 1.0)
                else:
                    scheduler.decide("y", [1, 2]).report(1.0, 1.0)
                    good.append(number)

        in_threads(work)
        assert len(good) == 30 * (THREADS - 1)
