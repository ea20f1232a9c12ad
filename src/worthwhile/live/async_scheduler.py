"""`AsyncScheduler`: a scheduler for programs with an event loop. What a loop asks meanwhile is stored together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from worthwhile.live.asynchronous import Asynchronous, AsyncTask, in_block, in_thread, opening
from worthwhile.live.group_commit import Request
from worthwhile.live.request_thread import RequestThread
from worthwhile.live.requests import Deciding, Reporting, Retrying, Withdrawing, cancelling, failing, observing
from worthwhile.live.scheduler import Scheduler
from worthwhile.live.task import Task

MOST_IN_BATCH = 200  # requests; their callers all go on in one turn of the loop, which others wait for

P = ParamSpec("P")


def telling(
    method: Callable[Concatenate[Scheduler, P], None], request: Callable[..., Request]
) -> Callable[Concatenate[AsyncScheduler, P], Coroutine[Any, Any, None]]:
    """The same, as a request for the scheduler's thread."""

    @wraps(method)
    async def tell(self: AsyncScheduler, /, *args: P.args, **kwargs: P.kwargs) -> None:
        await self._ask(request(*args, **kwargs))

    return tell


def asking(
    method: Callable[Concatenate[Scheduler, P], Task], request: Callable[..., Request]
) -> Callable[Concatenate[AsyncScheduler, P], Coroutine[Any, Any, AsyncTask]]:
    """The same, as a request for the scheduler's thread. If nobody waits for the task any more, it is cancelled."""

    @wraps(method)
    async def ask(self: AsyncScheduler, /, *args: P.args, **kwargs: P.kwargs) -> AsyncTask:
        asked = request(self._open or await self._opened(), *args, **kwargs)
        try:
            return AsyncTask(self, await self._ask(asked))
        except asyncio.CancelledError:
            if asked.key is None:  # otherwise whoever has the key can ask again
                self._requests.put([Withdrawing(asked)])
            raise

    return ask


class AsyncScheduler(Asynchronous[Scheduler]):
    """A `Scheduler` for programs with an event loop: the same arguments and methods, to be awaited.

    >>> import asyncio
    >>> async def main():
    ...     async with AsyncScheduler() as scheduler:
    ...         async with scheduler.task("weather", options=[1, 5, 10]) as task:
    ...             task.reward, task.cost = 0.9, 3.2
    ...         return (await scheduler.summary()).ratio
    >>> asyncio.run(main())
    0.28125
    """

    _requests: RequestThread

    @opening(Scheduler)
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._begin(Scheduler, *args, **kwargs)

    async def _use(self, opened: Scheduler) -> None:
        loop = asyncio.get_running_loop()
        self._requests = RequestThread(opened._transactor, opened.name, loop, MOST_IN_BATCH)

    async def _stop(self) -> None:
        await self._run(self._requests.close)

    async def _ask(self, request: Request) -> Any:
        """The answer, once whatever it tells is stored."""
        if self._open is None:
            await self._opened()
        await self._requests.put([request])
        if request.error is not None:
            raise request.error
        return request.answer

    decide = asking(Scheduler.decide, Deciding)
    task = in_block(decide)
    report = telling(Scheduler.report, Reporting)
    fail = telling(Scheduler.fail, failing)
    observe = telling(Scheduler.observe, observing)
    cancel = telling(Scheduler.cancel, cancelling)
    again = asking(Scheduler.again, Retrying)
    announce = in_thread(Scheduler.announce)
    declare = in_thread(Scheduler.declare)
    retire = in_thread(Scheduler.retire)
    restore = in_thread(Scheduler.restore)
    change = in_thread(Scheduler.change)
    forget = in_thread(Scheduler.forget)
    summary = in_thread(Scheduler.summary)
    plot = in_thread(Scheduler.plot)
    evaluate = in_thread(Scheduler.evaluate)
    promote = in_thread(Scheduler.promote)
    explain = in_thread(Scheduler.explain)
    tasks = in_thread(Scheduler.tasks)
    latest = in_thread(Scheduler.latest)
    rebuild = in_thread(Scheduler.rebuild)
    export = in_thread(Scheduler.export)
    load = in_thread(Scheduler.load)
