"""Between the event loop and the schedulers, which block: a queue and a thread for each scheduler.

The thread hands over whatever has come in meanwhile as one batch, so that one transaction stores all of it. The queue
is bounded: beyond it, clients are told to come back.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, TypeVar

from worthwhile.errors import BadParameter, Error, Overloaded, UnknownScheduler
from worthwhile.live.group_commit import Request
from worthwhile.live.scheduler import Scheduler
from worthwhile.live.stores import open_store
from worthwhile.live.stores.base import TokenRow
from worthwhile.live.summary import Summary, counted
from worthwhile.live.validation import check_text

log = logging.getLogger(__name__)

MOST_WAITING = 20_000  # decisions and reports of one scheduler
MOST_READERS = 4  # threads that summarise
MOST_WORKERS = 2  # threads that go through the log
MOST_READS = 64  # waiting for either
KEPT = 60.0  # seconds for which an answer waits for who asked
FOR_LONG = 1.0  # seconds to wait for another reader of the same log
MOST_SCHEDULERS = 1000
MOST_IN_BATCH = 2000

Found = TypeVar("Found")


class Job(NamedTuple):
    """Requests of one caller, and whom to tell when they are done."""

    requests: Sequence[Request]
    done: asyncio.Future[None]


class Wanted(NamedTuple):
    """The settings of a scheduler that is to be made; with one that exists, they have to agree with it."""

    policy: str | None = None
    overhead: float | None = None
    seed: int | None = None


class Desk:
    """One scheduler, its queue, its thread, and what can be told about its past."""

    def __init__(self, scheduler: Scheduler, loop: asyncio.AbstractEventLoop) -> None:
        self.scheduler, self.loop = scheduler, loop
        scheduler._transactor.statistics.patience = FOR_LONG
        self.jobs: SimpleQueue[Job | None] = SimpleQueue()
        self.waiting = 0
        self.refused = 0  # reports, by this process
        self.thread = threading.Thread(target=self.work, name=f"desk {scheduler.name}", daemon=True)
        self.thread.start()

    async def ask(self, requests: Sequence[Request], patience: float) -> None:
        """Have them done together; returns when all are stored or refused."""
        if self.waiting + len(requests) > MOST_WAITING:
            raise Overloaded(f"{self.waiting} requests are waiting for scheduler {self.scheduler.name!r}; try again")
        done: asyncio.Future[None] = self.loop.create_future()
        self.waiting += len(requests)
        self.jobs.put(Job(requests, done))
        try:
            async with asyncio.timeout(patience):
                await done
        except TimeoutError:
            raise Overloaded(
                f"no answer from the store within {patience:g} s; it may still be stored: "
                "repeat it (a key or a report counts once)"
            ) from None

    def work(self) -> None:
        """The thread: batch after batch, until a None comes."""
        while (job := self.jobs.get()) is not None:
            batch, last = [job], False
            count = len(job.requests)
            try:
                while count < MOST_IN_BATCH:
                    more = self.jobs.get_nowait()
                    if more is None:
                        last = True
                        break
                    batch.append(more)
                    count += len(more.requests)
            except Empty:
                pass
            try:
                self.scheduler._transactor.ask_all([request for one in batch for request in one.requests])
            except BaseException as reason:  # the requests have it; whoever comes next must be served
                log.error("scheduler %r: %r", self.scheduler.name, reason)
            self.loop.call_soon_threadsafe(self.tell, batch)
            if last:
                return

    def tell(self, batch: Sequence[Job]) -> None:
        """Back in the event loop: wake those who wait."""
        for requests, done in batch:
            self.waiting -= len(requests)
            if not done.done():
                done.set_result(None)

    def summary(self) -> Summary:
        """How the scheduler stands, and what this process refused."""
        summary, refused = self.scheduler.summary(), self.refused
        if not refused:
            return summary
        words = f"Refused since this service started, its log says why: {counted(refused, 'report')}."
        return replace(summary, warnings=[*summary.warnings, words])

    def close(self) -> None:
        """Do what is waiting, then let go of the store."""
        self.jobs.put(None)
        self.thread.join()
        try:
            self.scheduler.close()
        except Error as reason:
            log.warning(
                "scheduler %r: no last snapshot, which only the next start minds: %s", self.scheduler.name, reason
            )


class Desks:
    """All schedulers of a store; each is opened when it is first asked for."""

    def __init__(self, url: str, engine: str, patience: float) -> None:
        self.url, self.engine, self.patience = url, engine, patience
        self.store = open_store(url)
        self.using_store = threading.Lock()
        self.open: dict[str, Desk] = {}
        self.opening: dict[str, asyncio.Task[Desk]] = {}
        self.readers = ThreadPoolExecutor(MOST_READERS, "reader")
        self.looker = ThreadPoolExecutor(1, "looker")  # what is vital must not wait for what takes long
        self.workers = ThreadPoolExecutor(MOST_WORKERS, "worker")
        self.working: dict[Hashable, asyncio.Future[Any]] = {}
        self.reading = 0

    async def read(self, work: Callable[..., Found], *given: Any) -> Found:
        """Something that takes its time, in a thread."""
        if self.reading >= MOST_READS:
            raise Overloaded(f"{self.reading} others are reading; try again")
        self.reading += 1
        try:
            return await self.in_thread(self.readers, work, *given)
        finally:
            self.reading -= 1

    async def look(self, work: Callable[[], Found]) -> Found:
        """Something short about the store as a whole."""
        return await self.in_thread(self.looker, work)

    async def join(self, what: Hashable, work: Callable[..., Found], *given: Any) -> Found:
        """Something that may take longer than anyone waits: who asks for it again gets what was found meanwhile."""
        if what not in self.working:
            if len(self.working) >= MOST_READS:
                raise Overloaded(f"{len(self.working)} others are waiting for such answers; try again")
            loop = asyncio.get_running_loop()
            self.working[what] = loop.run_in_executor(self.workers, work, *given)
            self.working[what].add_done_callback(lambda done: loop.call_later(KEPT, self.forget, what, done))
        task = self.working[what]
        try:
            return await self.soon(asyncio.shield(task), "still going through the log")
        finally:
            if task.done():
                self.forget(what, task)

    def forget(self, what: Hashable, task: asyncio.Future[Any]) -> None:
        """An answer that nobody will come back for, unless somebody is working on another one."""
        if self.working.get(what) is task:
            del self.working[what]

    async def in_thread(self, pool: ThreadPoolExecutor, work: Callable[..., Found], *given: Any) -> Found:
        return await self.soon(asyncio.get_running_loop().run_in_executor(pool, work, *given))

    async def soon(self, found: Awaitable[Found], late: str = "no answer from the store") -> Found:
        """What somebody is working on, unless that takes too long."""
        try:
            async with asyncio.timeout(self.patience):
                return await found
        except TimeoutError:
            raise Overloaded(f"{late} after {self.patience:g} s; try again") from None

    async def find(self, name: str) -> Desk:
        """The desk of a scheduler that exists."""
        return self.open.get(name) or await self.make(name)

    async def make(self, name: str, wanted: Wanted | None = None) -> Desk:
        """Open a scheduler; make it if that is wanted."""
        check_text("scheduler", name, BadParameter)
        while name not in self.open:
            mine = name not in self.opening
            if mine:
                self.opening[name] = asyncio.create_task(self.start(name, wanted))
            try:
                desk = await self.soon(asyncio.shield(self.opening[name]), f"scheduler {name!r} is still being opened")
            except UnknownScheduler:
                if mine or wanted is None:
                    raise
                continue  # somebody asked for it before it was made
            if mine:
                return desk
        desk = self.open[name]
        if wanted is not None:
            agree = desk.scheduler._transactor.agree
            await self.do(desk, Request(lambda batch: agree(batch, wanted.policy, wanted.overhead)))
        return desk

    async def start(self, name: str, wanted: Wanted | None) -> Desk:
        """Open a scheduler, whether or not anyone still waits for it."""
        loop = asyncio.get_running_loop()
        try:
            scheduler = await loop.run_in_executor(self.readers, self.opened, name, wanted)
            self.open[name] = Desk(scheduler, loop)
            return self.open[name]
        finally:
            del self.opening[name]

    def opened(self, name: str, wanted: Wanted | None) -> Scheduler:
        if self.url == "memory://" and wanted is None:
            raise UnknownScheduler(f"no scheduler {name!r}; there are: {', '.join(self.open) or 'none'}")
        if wanted is not None and len(self.names()) >= MOST_SCHEDULERS and name not in self.names():
            raise BadParameter(f"there are {MOST_SCHEDULERS} schedulers, as many as a service keeps; use one of them")
        settings = Wanted() if wanted is None else wanted
        return Scheduler(self.url, name, engine=self.engine, create=wanted is not None, **settings._asdict())

    async def do(self, desk: Desk, request: Request) -> Any:
        """One request; its answer, or its reason raised."""
        await desk.ask([request], self.patience)
        if request.reason is not None:
            raise request.reason
        return request.answer

    def names(self) -> list[str]:
        """All schedulers of the store."""
        if self.url == "memory://":
            return sorted(self.open)
        with self.using_store:
            return self.store.transact(lambda tx: tx.schedulers())

    def tokens(self) -> list[TokenRow]:
        """Who may use the service."""
        with self.using_store:
            return self.store.transact(lambda tx: tx.tokens())

    def close(self) -> None:
        """Finish what is waiting, close everything; a store that is away keeps nobody from that."""
        for task in self.opening.values():
            task.cancel()
        with ThreadPoolExecutor(max(1, len(self.open)), "closer") as closers:  # one may have to wait for its store
            list(closers.map(Desk.close, self.open.values()))
        for pool in (self.readers, self.looker, self.workers):
            pool.shutdown(wait=True, cancel_futures=True)
        self.store.close()
