"""Between the event loop and the schedulers, which block: a queue and a thread for each scheduler.

The queue is bounded: beyond it, clients are told to come back.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

from worthwhile.errors import BadParameter, Error, Overloaded, UnknownScheduler
from worthwhile.formatting import counted, printable
from worthwhile.goals.goal import Floor
from worthwhile.live.group_commit import Request
from worthwhile.live.request_thread import RequestThread
from worthwhile.live.scheduler import Scheduler
from worthwhile.live.settings import SettingsChange, settings_change
from worthwhile.live.stores import open_store
from worthwhile.live.stores.base import SessionRow, TokenRow, Transaction
from worthwhile.live.summary import Summary
from worthwhile.live.validation import Option, check_text
from worthwhile.service.look_up import LookUp, Turnstile

log = logging.getLogger(__name__)

MOST_QUEUED = 20_000  # decisions and reports of one scheduler
MOST_READERS = 4  # threads that summarise
MOST_WORKERS = 2  # threads that go through the log
MOST_READS = 64  # waiting for either
KEPT = 60.0  # seconds for which an answer waits for who asked
LOG_PATIENCE = 1.0  # seconds to wait for another reader of the same log
MOST_SCHEDULERS = 1000
MOST_IN_BATCH = 2000
MOST_LOGGED = 20  # refused reports of a scheduler per minute

Answer = TypeVar("Answer")


class InitialSettings(NamedTuple):
    """The settings of a scheduler that is to be made; with one that exists, they have to agree with it."""

    policy: str | None = None
    overhead: float | None = None
    seed: int | None = None
    failed_reward: float | None = None
    store_reasons: bool | None = None
    goal: str | None = None
    floor: Floor | None = None
    budget: float | None = None
    baseline: Option | dict[str, Option] = None
    holdout: float | None = None
    explore: float | None = None
    guard: float | None = None
    guard_error: float | None = None
    reward_unit: str | None = None
    cost_unit: str | None = None

    def checked(self) -> SettingsChange:
        """All of them but the seed."""
        return settings_change(**{name: value for name, value in self._asdict().items() if name != "seed"})


class Dispatcher:
    """One scheduler, with its queue and its thread."""

    def __init__(self, scheduler: Scheduler, loop: asyncio.AbstractEventLoop) -> None:
        self.scheduler, self.loop = scheduler, loop
        scheduler._transactor.statistics.patience = LOG_PATIENCE
        self.thread = RequestThread(scheduler._transactor, scheduler.name, loop, MOST_IN_BATCH)
        self.refused = 0  # reports, by this process
        self.minute, self.logged = 0.0, 0  # since when, and how many of them were logged

    async def ask(self, requests: Sequence[Request], patience: float) -> None:
        """Have them done together; returns when all are stored or refused."""
        if self.thread.queued + len(requests) > MOST_QUEUED:
            waiting = f"{self.thread.queued} requests are waiting"
            raise Overloaded(f"{waiting} for scheduler {self.scheduler.name!r}; try again")
        done = self.thread.put(requests)
        timer = self.loop.call_later(patience, give_up, done, patience)  # a third of what asyncio.timeout takes
        try:
            await done
        finally:
            timer.cancel()

    async def do(self, request: Request, patience: float) -> Any:
        """One request; its answer, or its error raised."""
        await self.ask([request], patience)
        if request.error is not None:
            raise request.error
        return request.answer

    def refuse(self, task: str | int, error: Error) -> None:
        """A report that cannot be taken: counted, and said in the log, unless that has been said too often just now."""
        self.refused += 1
        if self.loop.time() - self.minute > 60.0:
            self.minute, self.logged = self.loop.time(), 0
        self.logged += 1
        if self.logged <= MOST_LOGGED:
            last = "; more of them are not logged within this minute" * (self.logged == MOST_LOGGED)
            words = printable(f"{str(task)[:50]}: {' '.join(str(error).split())}")
            log.warning("scheduler %r refused a report of task %s%s", self.scheduler.name, words, last)

    def summary(self) -> Summary:
        """How the scheduler stands, and what this process refused."""
        summary, refused = self.scheduler.summary(), self.refused
        if not refused:
            return summary
        words = f"Refused since this service started, its log says why: {counted(refused, 'report')}."
        return replace(summary, warnings=[*summary.warnings, words])

    def close(self) -> None:
        """Do what is queued, then let go of the store."""
        self.thread.close()
        try:
            self.scheduler.close()
        except Error as error:
            log.warning(
                "scheduler %r: no last snapshot, which only the next start minds: %s", self.scheduler.name, error
            )


def give_up(done: asyncio.Future[None], patience: float) -> None:
    """Nobody waits any longer, though it may still be done."""
    if not done.done():
        words = f"no answer from the store within {patience:g} s; it may still be stored"
        done.set_exception(Overloaded(f"{words}: repeat it (a key or a report counts once)"))


class Dispatchers:
    """All schedulers of a store; each is opened when it is first asked for."""

    def __init__(self, url: str, engine: str, patience: float) -> None:
        self.url, self.engine, self.patience = url, engine, patience
        self.store = open_store(url)
        self.using_store = threading.Lock()
        self.open: dict[str, Dispatcher] = {}
        self.opening: dict[str, asyncio.Task[Dispatcher]] = {}
        self.readers = ThreadPoolExecutor(MOST_READERS, "reader")
        self.store_thread = ThreadPoolExecutor(1, "store")  # what is vital must not wait for what takes long
        self.workers = ThreadPoolExecutor(MOST_WORKERS, "worker")
        self.shared: dict[tuple[str, ...], asyncio.Future[Any]] = {}
        self.all_names = LookUp(lambda: self.ask_store(self.names))
        self.strangers = Turnstile()
        self.reading = 0

    async def read(self, work: Callable[..., Answer], *arguments: Any) -> Answer:
        """Something that takes its time, in a thread."""
        if self.reading >= MOST_READS:
            raise Overloaded(f"{self.reading} others are reading; try again")
        self.reading += 1
        try:
            return await self.in_thread(self.readers, work, *arguments)
        finally:
            self.reading -= 1

    async def ask_store(self, work: Callable[..., Answer], *arguments: Any) -> Answer:
        """Something short about the store as a whole."""
        return await self.in_thread(self.store_thread, work, *arguments)

    async def share(self, name: tuple[str, ...], work: Callable[..., Answer], *arguments: Any) -> Answer:
        """Something that may take longer than anyone waits: who asks for it again gets the answer of meanwhile."""
        if name not in self.shared:
            if len(self.shared) >= MOST_READS:
                raise Overloaded(f"{len(self.shared)} others are waiting for such answers; try again")
            loop = asyncio.get_running_loop()
            self.shared[name] = loop.run_in_executor(self.workers, work, *arguments)
            self.shared[name].add_done_callback(lambda done: loop.call_later(KEPT, self.forget, name, done))
        future = self.shared[name]
        try:
            return await self.in_time(asyncio.shield(future), "still going through the log")
        finally:
            if future.done():
                self.forget(name, future)

    def forget(self, name: tuple[str, ...], future: asyncio.Future[Any]) -> None:
        """An answer that nobody will come back for, unless somebody is working on another one."""
        if self.shared.get(name) is future:
            del self.shared[name]

    def forget_explanations(self, scheduler: str) -> None:
        """Those that still wait for who asked: what was just forgotten may be in them."""
        for name in [name for name in self.shared if name[:2] == ("explain", scheduler)]:
            del self.shared[name]

    async def in_thread(self, pool: ThreadPoolExecutor, work: Callable[..., Answer], *arguments: Any) -> Answer:
        return await self.in_time(asyncio.get_running_loop().run_in_executor(pool, work, *arguments))

    async def in_time(self, answer: Awaitable[Answer], late: str = "no answer from the store") -> Answer:
        """What somebody is working on, unless that takes too long."""
        try:
            async with asyncio.timeout(self.patience):
                return await answer
        except TimeoutError:
            raise Overloaded(f"{late} after {self.patience:g} s; try again") from None

    async def find(self, name: str) -> Dispatcher:
        """The dispatcher of a scheduler that exists."""
        return self.open.get(name) or await self.find_or_create(name)

    async def find_or_create(self, name: str, settings: InitialSettings | None = None) -> Dispatcher:
        """Open a scheduler; with settings, make it if there is none."""
        check_text("scheduler", name, BadParameter)
        known = name in self.open or name in self.opening
        if settings is None and not known and name not in await self.all_names():
            await self.strangers.pass_through()
            raise unknown(name)
        if name not in self.open:
            mine = name not in self.opening
            if mine:
                self.opening[name] = asyncio.create_task(self.start(name, settings))
            late = f"scheduler {name!r} is still being opened"
            dispatcher = await self.in_time(asyncio.shield(self.opening[name]), late)
            if mine:
                return dispatcher
        dispatcher = self.open[name]
        if settings is not None:
            agree = partial(dispatcher.scheduler._transactor.agree, settings.checked())
            await dispatcher.do(Request(agree), self.patience)
        return dispatcher

    async def start(self, name: str, settings: InitialSettings | None) -> Dispatcher:
        """Open a scheduler, whether or not anyone still waits for it."""
        loop = asyncio.get_running_loop()
        try:
            scheduler = await loop.run_in_executor(self.readers, self.opened, name, settings)
            self.open[name] = Dispatcher(scheduler, loop)
            return self.open[name]
        finally:
            del self.opening[name]

    def opened(self, name: str, settings: InitialSettings | None) -> Scheduler:
        create, settings = settings is not None, settings or InitialSettings()
        if self.url == "memory://" and not create:
            raise unknown(name)
        if create and len(self.names()) >= MOST_SCHEDULERS and name not in self.names():
            raise BadParameter(f"there are {MOST_SCHEDULERS} schedulers, as many as a service keeps; use one of them")
        try:
            return Scheduler(self.url, name, engine=self.engine, create=create, **settings._asdict())
        except UnknownScheduler:
            raise unknown(name) from None

    def names(self) -> list[str]:
        """All schedulers of the store."""
        if self.url == "memory://":
            return sorted(self.open)
        return self.look(lambda tx: tx.schedulers())

    def access(self) -> tuple[list[TokenRow], list[SessionRow]]:
        """Who may use the service."""
        return self.look(lambda tx: (tx.tokens(), tx.sessions()))

    def look(self, work: Callable[[Transaction], Answer]) -> Answer:
        """Something short in the store that keeps no scheduler waiting, however often it is asked."""
        with self.using_store:
            return self.store.read(work)

    def transact(self, work: Callable[[Transaction], Answer]) -> Answer:
        """Something short in the store, apart from any scheduler."""
        with self.using_store:
            return self.store.transact(work)

    def close(self) -> None:
        """Finish what is queued, close everything; a store that is away keeps nobody from that."""
        for task in self.opening.values():
            task.cancel()
        with ThreadPoolExecutor(max(1, len(self.open)), "closer") as closers:  # one may have to wait for its store
            list(closers.map(Dispatcher.close, self.open.values()))
        for pool in (self.readers, self.store_thread, self.workers):
            pool.shutdown(wait=True, cancel_futures=True)
        self.store.close()


def unknown(name: str) -> UnknownScheduler:
    """The scheduler's own error says where the store is and what else is in it, which is not for strangers."""
    return UnknownScheduler(f"no scheduler {name!r} here; `worthwhile create` or PUT /v1/schedulers/NAME makes one")
