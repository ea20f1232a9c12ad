"""Faces: on an event loop the scheduler is the same one, its tasks end as their coroutines do, and the loop goes on."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from waiting import NET
from worthwhile import AsyncScheduler, AsyncTask, Scheduler
from worthwhile.errors import AlreadyReported, BadFeedback, BadTask, StoreError
from worthwhile.live.async_scheduler import MOST_IN_BATCH
from worthwhile.live.group_commit import Request

OPTIONS = [1, 5, 10]


def in_memory(use: Callable[[AsyncScheduler], Awaitable[None]]) -> None:
    """Run it with a scheduler of its own."""

    async def run() -> None:
        async with AsyncScheduler(seed=3) as scheduler:
            await use(scheduler)

    asyncio.run(run())


async def states(scheduler: AsyncScheduler) -> dict[str, str]:
    """Of all tasks, by number; what was asked for without waiting is done by then."""
    await scheduler._ask(Request(lambda batch: None))
    return {line.task: line.state for line in await scheduler.latest(1000)}


def test_it_decides_and_learns_as_a_scheduler_does() -> None:
    with Scheduler(seed=3) as scheduler:
        wanted = [scheduler.decide(f"kind {n % 2}", OPTIONS, key=str(n)) for n in range(50)]
        for task in wanted:
            task.report(task.option / 10, 1.0 + task.option)
        wanted += [scheduler.decide("kind 0", OPTIONS) for _ in range(20)]
        summary = scheduler.summary()

    async def use(scheduler: AsyncScheduler) -> None:
        found = [await scheduler.decide(f"kind {n % 2}", OPTIONS, key=str(n)) for n in range(50)]
        for task in found:
            await task.report(task.option / 10, 1.0 + task.option)
        found += [await scheduler.decide("kind 0", OPTIONS) for _ in range(20)]
        assert [(task.id, task.kind, task.option) for task in found] == [
            (task.id, task.kind, task.option) for task in wanted
        ]
        assert await scheduler.summary() == summary
        assert (await scheduler.explain(found[60].id)).repeated

    in_memory(use)


def test_it_has_every_method_of_a_scheduler_with_the_same_arguments() -> None:
    names = {name for name, one in vars(Scheduler).items() if inspect.isfunction(one) and not name.startswith("_")}
    for name in names - {"close"}:
        assert inspect.signature(getattr(AsyncScheduler, name)) == inspect.signature(getattr(Scheduler, name))
    assert names <= {name for name in dir(AsyncScheduler) if not name.startswith("_")}
    with pytest.raises(TypeError, match="leas"):
        AsyncScheduler(leas=3.0)  # type: ignore[call-arg]


def test_a_task_ends_as_its_block_does() -> None:
    async def use(scheduler: AsyncScheduler) -> None:
        async with scheduler.task("a", OPTIONS) as task:
            task.reward, task.cost = 0.5, 2.0
        with pytest.raises(ZeroDivisionError):
            async with scheduler.task("a", OPTIONS):
                raise ZeroDivisionError
        with pytest.raises(BadFeedback, match=r"task\.reward"):
            async with scheduler.task("a", OPTIONS):
                pass
        with pytest.raises(ValueError, match="own") as found:
            await report_and_raise(scheduler)
        assert not hasattr(found.value, "__notes__")
        async with await scheduler.decide("a", OPTIONS) as task:
            await task.fail(3.0, "broken")
        second = await task.again()
        assert (second.id, second.attempt) == (task.id, 1)
        assert second.option != task.option
        await second.observe(task.option, 0.5, 1.0)
        await second.report(1.0, 1.0)
        assert await states(scheduler) == {
            "1": "reported", "2": "failed", "3": "cancelled", "4": "reported", "5": "reported",
        }  # fmt: skip

    in_memory(use)


async def report_and_raise(scheduler: AsyncScheduler) -> None:
    async with scheduler.task("a", OPTIONS) as task:
        await task.report(0.5, 2.0)
        raise ValueError("own")


def test_a_cancelled_coroutine_cancels_its_task() -> None:
    async def use(scheduler: AsyncScheduler) -> None:
        began = asyncio.Event()

        async def forever() -> None:
            async with scheduler.task("a", OPTIONS):
                began.set()
                await asyncio.Event().wait()

        running = asyncio.create_task(forever())
        await began.wait()
        running.cancel()
        await asyncio.wait([running])
        assert running.cancelled()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.0), scheduler.task("a", OPTIONS):
                await asyncio.Event().wait()
        assert set((await states(scheduler)).values()) == {"cancelled"}

    in_memory(use)


@pytest.mark.parametrize(("key", "state"), [(None, "cancelled"), ("job", "running")])
def test_a_decision_that_nobody_waits_for_leaves_no_task_behind_unless_it_has_a_key(
    key: str | None, state: str
) -> None:
    async def use(scheduler: AsyncScheduler) -> None:
        with Held(scheduler):
            asked = asyncio.create_task(scheduler.decide("a", OPTIONS, key=key))
            await asyncio.sleep(0)
            asked.cancel()
            await asyncio.wait([asked])
            assert asked.cancelled()
        assert await states(scheduler) == {"1": state}

    in_memory(use)


def test_who_is_cancelled_twice_still_has_his_task_cancelled() -> None:
    async def use(scheduler: AsyncScheduler) -> None:
        began = asyncio.Event()

        async def forever() -> None:
            async with scheduler.task("a", OPTIONS):
                began.set()
                await asyncio.Event().wait()

        running = asyncio.create_task(forever())
        await began.wait()
        with Held(scheduler):
            running.cancel()
            await asyncio.sleep(0)
            running.cancel()
            await asyncio.wait([running])
        assert await states(scheduler) == {"1": "cancelled"}

    in_memory(use)


class Held:
    """Somebody else is in a transaction of the scheduler for as long as the block lasts."""

    def __init__(self, scheduler: AsyncScheduler) -> None:
        assert scheduler._open is not None
        self.inside, self.over = threading.Event(), threading.Event()

        def hold(_: object) -> None:
            self.inside.set()
            assert self.over.wait(NET)

        self.thread = threading.Thread(target=scheduler._open._transactor.do, args=[hold])

    def __enter__(self) -> None:
        self.thread.start()
        assert self.inside.wait(NET)

    def __exit__(self, *error: object) -> None:
        self.over.set()
        self.thread.join(NET)


def test_the_loop_goes_on_while_the_store_is_busy(sqlite: str) -> None:
    """While one transaction lasts, the loop takes a thousand turns; then all that was asked is stored together."""

    async def use() -> None:
        async with AsyncScheduler(sqlite) as scheduler:
            with Held(scheduler):
                asked = [asyncio.create_task(scheduler.decide("a", OPTIONS)) for _ in range(100)]
                summary = asyncio.create_task(scheduler.summary())
                for _ in range(1000):
                    await asyncio.sleep(0)
                assert not any(task.done() for task in [*asked, summary])
            decided: list[AsyncTask] = await asyncio.gather(*asked)
            assert len({task.id for task in decided}) == 100
            await summary

    asyncio.run(use())


def test_a_thousand_tasks_on_one_loop_are_stored_in_few_transactions(sqlite: str) -> None:
    sizes: list[int] = []

    async def use() -> None:
        async with AsyncScheduler(sqlite) as scheduler:
            commit = scheduler._requests.scheduler.commit
            scheduler._requests.scheduler.commit = lambda batch: (sizes.append(len(batch)), commit(batch))[1]  # type: ignore[method-assign, func-returns-value]

            async def one(number: int) -> None:
                async with scheduler.task(f"kind {number % 3}", OPTIONS) as task:
                    task.reward, task.cost = 0.5, 1.0

            await asyncio.gather(*map(one, range(1000)))
            found = await scheduler.summary()
            assert (found.tasks, found.reports) == (1000, 1000)

    asyncio.run(use())
    assert max(sizes) <= MOST_IN_BATCH
    assert len(sizes) < 500
    with Scheduler(sqlite) as scheduler:
        assert Counter(line.state for line in scheduler.latest(1000)) == {"reported": 1000}


def test_errors_are_those_of_the_scheduler(tmp_path: Path) -> None:
    async def use(scheduler: AsyncScheduler) -> None:
        task = await scheduler.decide("a", OPTIONS)
        await scheduler.report(task.id, 1.0, 1.0)
        with pytest.raises(AlreadyReported):
            await scheduler.report(task.id, 2.0, 1.0)
        with pytest.raises(BadTask, match="offered twice"):
            await scheduler.decide("a", [1, 1])
        with pytest.raises(BadTask):
            await scheduler.restore(7)
        with pytest.raises(TypeError, match="rewards"):
            await scheduler.report(task.id, rewards=1.0)  # type: ignore[call-arg]
        assert await scheduler.export(tmp_path / "log.csv") == 1

    in_memory(use)


def test_a_scheduler_that_cannot_be_opened_says_so_each_time(tmp_path: Path) -> None:
    async def use() -> None:
        scheduler = AsyncScheduler(f"sqlite:///{tmp_path}/none.db", create=False)
        for _ in range(2):
            with pytest.raises(StoreError, match="none"):
                await scheduler.decide("a", OPTIONS)
        await scheduler.close()

    asyncio.run(use())


def test_closing_finishes_what_was_asked_and_refuses_what_comes_later(sqlite: str) -> None:
    async def use() -> None:
        scheduler = AsyncScheduler(sqlite)
        first = await scheduler.decide("a", OPTIONS)
        with Held(scheduler):
            reports = [asyncio.create_task(scheduler.decide("a", OPTIONS)) for _ in range(5)]
            await asyncio.sleep(0)
            closing = asyncio.create_task(scheduler.close())
            await asyncio.sleep(0)
        await closing
        assert [(await report).id for report in reports] == ["2", "3", "4", "5", "6"]
        for late in (first.report, scheduler.summary):
            with pytest.raises(StoreError, match="closed"):
                await late()
        await scheduler.close()

    asyncio.run(use())


def test_coroutines_and_threads_share_a_store(sqlite: str) -> None:
    """A scheduler in the same file, used by threads at the same time: everything counts once."""

    def work() -> None:
        with Scheduler(sqlite) as scheduler:
            for _ in range(25):
                with scheduler.task("a", OPTIONS) as task:
                    task.reward = 0.5

    async def use() -> None:
        threads = [threading.Thread(target=work) for _ in range(2)]
        async with AsyncScheduler(sqlite) as scheduler:
            for thread in threads:
                thread.start()

            async def one() -> None:
                async with scheduler.task("a", OPTIONS) as task:
                    task.reward = 0.5

            await asyncio.gather(*(one() for _ in range(50)))
            for thread in threads:
                await asyncio.to_thread(thread.join, NET)
            found = await scheduler.summary()
            assert (found.tasks, found.reports) == (100, 100)

    asyncio.run(use())


def test_two_loops_that_open_it_at_once_are_told_to_have_one_each(tmp_path: Path) -> None:
    first, second = asyncio.new_event_loop(), asyncio.new_event_loop()
    scheduler = AsyncScheduler(f"sqlite:///{tmp_path}/tasks.db")

    async def begin() -> asyncio.Task[Any]:
        deciding = asyncio.create_task(scheduler.decide("a", OPTIONS))
        await asyncio.sleep(0.0)
        return deciding

    deciding = first.run_until_complete(begin())
    with pytest.raises(StoreError, match="is being opened by another event loop; give each its own"):
        second.run_until_complete(scheduler.decide("a", OPTIONS))
    task = first.run_until_complete(deciding)
    first.run_until_complete(task.report(1.0, 1.0))
    first.run_until_complete(scheduler.close())
    first.close()
    second.close()
