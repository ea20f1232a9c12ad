"""For programs with an event loop: what asynchronous schedulers and clients share.

Each stands on the synchronous one, which is opened in a thread and does there whatever is asked seldom. What is asked
for every task goes its own way: `AsyncScheduler` and `AsyncClient` say which. Methods are made from those of the
synchronous one, so that arguments, defaults and documentation are written once.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from abc import abstractmethod
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import ThreadPoolExecutor
from functools import partial, wraps
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar

from worthwhile.errors import Error, StoreError
from worthwhile.live.task import AnyTask, Task
from worthwhile.live.validation import Option

MOST_THREADS = 4  # for what is asked seldom

P = ParamSpec("P")
Answer = TypeVar("Answer")
Synchronous = TypeVar("Synchronous", bound="Closable")
Self = TypeVar("Self", bound="Asynchronous[Any]")


class Closable(Protocol):
    """A scheduler or a client."""

    def close(self) -> None: ...


class AsyncFeedback(Protocol):
    """Where a task's reports go."""

    async def report(
        self, id: str | int, reward: float | None = None, cost: float | None = None, attempt: int | None = None
    ) -> None: ...

    async def fail(
        self, id: str | int, cost: float | None = None, reason: str = "", attempt: int | None = None
    ) -> None: ...

    async def observe(self, id: str | int, option: Option, reward: float, cost: float) -> None: ...

    async def cancel(self, id: str | int, attempt: int | None = None) -> None: ...

    async def again(self, id: str | int, after: int | None = None) -> AsyncTask: ...

    async def _carry_through(self, work: Coroutine[Any, Any, None]) -> None: ...


class AsyncTask(AnyTask):
    """A task and the option chosen for it, in a program with an event loop.

    As an asynchronous context manager it reports by itself, with the time as its cost; a block that raises has failed,
    and one that is cancelled cancels its task.
    """

    def __init__(self, scheduler: AsyncFeedback, task: Task) -> None:
        self.scheduler, self.id, self.kind, self.option = scheduler, task.id, task.kind, task.option
        self.state, self.attempt = task.state, task.attempt

    async def report(self, reward: float | None = None, cost: float | None = None) -> None:
        """What came of it: both at once, or one now and the other later."""
        await self.scheduler.report(self.id, reward, cost, self.attempt)

    async def fail(self, cost: float | None = None, reason: str = "") -> None:
        """It has failed: at this cost or, if nobody knows, at what such tasks cost on average."""
        await self.scheduler.fail(self.id, cost, reason, self.attempt)
        self.over = True

    async def observe(self, option: Option, reward: float, cost: float) -> None:
        """What another option on offer would have brought, if this task showed it on the side."""
        await self.scheduler.observe(self.id, option, reward, cost)

    async def cancel(self) -> None:
        """It will not report."""
        await self.scheduler.cancel(self.id, self.attempt)
        self.over = True

    async def again(self) -> AsyncTask:
        """The same task with another option, after it has failed; `BadTask` if none is left that has not."""
        return await self.scheduler.again(self.id, self.attempt)

    async def __aenter__(self) -> AsyncTask:
        self.began = time.perf_counter()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if (ending := self.ending(error)) is None:
            return
        method, arguments = ending
        saying = getattr(self, method)(*arguments)
        try:
            await (saying if error is None else self.scheduler._carry_through(saying))
        except Error as trouble:
            self.note(trouble, error)
        self.check_reward(error)


class Block:
    """A task for `async with`: decided when the block begins."""

    def __init__(self, decision: Coroutine[Any, Any, AsyncTask]) -> None:
        self.decision = decision
        self.task: AsyncTask

    def __await__(self) -> Generator[Any, Any, AsyncTask]:
        return self.decision.__await__()

    async def __aenter__(self) -> AsyncTask:
        self.task = await self.decision
        return await self.task.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.task.__aexit__(kind, error, trace)


class Asynchronous(Generic[Synchronous]):
    """A synchronous scheduler or client, opened when it is first needed, and what is done on its behalf."""

    _open: Synchronous | None = None
    _closed = False

    def _begin(self, make: Callable[..., Synchronous], *args: Any, **kwargs: Any) -> None:
        """Take the arguments that the synchronous one is to have."""
        inspect.signature(make).bind(*args, **kwargs)  # wrong ones are refused here, and not when it is first used
        self._make = partial(make, *args, **kwargs)
        self._threads = ThreadPoolExecutor(MOST_THREADS, type(self).__name__)
        self._opening: asyncio.Task[Synchronous] | None = None
        self._unattended: set[asyncio.Task[Any]] = set()  # somebody may have stopped waiting for them

    async def _opened(self) -> Synchronous:
        """The synchronous one; whoever comes while it is being opened waits for the same."""
        if self._open is not None:
            return self._open
        if self._closed:
            raise StoreError(f"this {type(self).__name__} was closed; make another one")
        if self._opening is None:
            self._opening = asyncio.create_task(self._start())
        elif self._opening.get_loop() is not asyncio.get_running_loop():
            raise StoreError(f"this {type(self).__name__} is being opened by another event loop; give each its own")
        return await asyncio.shield(self._opening)

    async def _start(self) -> Synchronous:
        try:
            opened = await self._run(self._make)
            await self._use(opened)
            self._open = opened
            return opened
        finally:
            self._opening = None

    @abstractmethod
    async def _use(self, opened: Synchronous) -> None:
        """It was opened: prepare what is needed for every task."""

    @abstractmethod
    async def _stop(self) -> None:
        """Finish what was asked for every task."""

    async def _run(self, work: Callable[..., Answer], *args: Any) -> Answer:
        """In a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, *args)

    async def _carry_through(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        """Go on with it even if whoever waits for it is cancelled."""
        return await asyncio.shield(self._leave(work))

    def _leave(self, work: Coroutine[Any, Any, Answer]) -> asyncio.Task[Answer]:
        """Have it done, though nobody may wait for it; `close` does."""
        task = asyncio.create_task(work)
        self._unattended.add(task)
        task.add_done_callback(self._unattended.discard)
        return task

    async def close(self) -> None:
        """Finish what was begun, and let go of the store or the connections."""
        if not self._closed:
            self._closed = True
            await self._carry_through(self._end())

    async def _end(self) -> None:
        if self._opening is not None:
            await asyncio.wait([self._opening])
        while left := self._unattended - {asyncio.current_task()}:
            await asyncio.wait(left)
        opened, self._open = self._open, None  # from here on, whoever asks is refused
        if opened is not None:
            await self._stop()
            await self._run(opened.close)
        self._threads.shutdown(wait=False)

    async def __aenter__(self: Self) -> Self:
        await self._opened()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()


def opening(
    make: Callable[P, Synchronous],
) -> Callable[[Callable[..., None]], Callable[Concatenate[Any, P], None]]:
    """Let a method take the arguments with which the synchronous one is made."""

    def taking(method: Callable[..., None]) -> Callable[Concatenate[Any, P], None]:
        method.__signature__ = signature_with_self(make)  # type: ignore[attr-defined]
        return method

    return taking


def signature_with_self(make: Callable[..., Any]) -> inspect.Signature:
    signature = inspect.signature(make)
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    return signature.replace(parameters=[own, *signature.parameters.values()], return_annotation=None)


def in_thread(
    method: Callable[Concatenate[Synchronous, P], Answer],
) -> Callable[Concatenate[Asynchronous[Synchronous], P], Coroutine[Any, Any, Answer]]:
    """The same, done in a thread."""

    @wraps(method)
    async def call(self: Asynchronous[Synchronous], /, *args: P.args, **kwargs: P.kwargs) -> Answer:
        return await self._run(partial(method, await self._opened(), *args, **kwargs))

    return call


def in_block(
    decide: Callable[Concatenate[Self, P], Coroutine[Any, Any, AsyncTask]],
) -> Callable[Concatenate[Self, P], Block]:
    """The same, for `async with`."""

    @wraps(decide)
    def block(self: Self, /, *args: P.args, **kwargs: P.kwargs) -> Block:
        return Block(decide(self, *args, **kwargs))

    return block
