"""Work: for every task that arrives decide, run it somewhere, measure what it costs, report what came of it."""

from __future__ import annotations

import logging
import math
import pickle
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

from worthwhile.errors import (
    AlreadyCancelled,
    AlreadyReported,
    BadFeedback,
    BadParameter,
    TimedOut,
    WorkerLost,
)
from worthwhile.execution.executors import LocalExecutor
from worthwhile.execution.metering import LEAST_COST, Meter, Outcome, attempt
from worthwhile.live.group_commit import Request
from worthwhile.live.requests import Deciding, outcome
from worthwhile.live.scheduler import Scheduler
from worthwhile.live.task import Task
from worthwhile.live.validation import Option, feedback

log = logging.getLogger(__name__)

AT_ONCE = 16  # tasks per transaction: the first need not wait for the last
PATIENCE = 0.05  # seconds until a stream that had nothing is asked again


class Arrival(NamedTuple):
    """A task to do. One with a key is done once, however often the stream is worked through."""

    kind: str
    options: Iterable[Option]
    payload: Any = None
    key: str | None = None


class Finished(NamedTuple):
    """A task that has been reported; `failure` says why it failed, if it did."""

    task: Task
    reward: float
    cost: float
    failure: str | None


@dataclass
class Worked:
    """What `work` did; `skipped` were reported already, `dropped` came after someone else's report."""

    reported: int = 0
    failed: int = 0
    skipped: int = 0
    dropped: int = 0
    reward: float = 0.0
    cost: float = 0.0
    interrupted: bool = False


def work(
    scheduler: Scheduler,
    tasks: Iterable[Arrival | tuple[Any, ...] | None],
    run: Callable[[str, Any, Any], Any],
    *,
    executor: Executor | None = None,
    timeout: float | None = None,
    meter: Meter = time.perf_counter,
    failed_reward: float = 0.0,
    lost_cost: float | None = None,
    in_flight: int | None = None,
    in_order: bool = False,
    after: Callable[[Finished], None] | None = None,
) -> Worked:
    """Do tasks as they arrive, as many at once as the executor has room for; each is decided, run and reported.

    `run(kind, option, payload)` returns a reward or an `Outcome`. A task that raises, takes longer than `timeout` or
    loses its process is reported with `failed_reward` and what it cost. Ctrl-C lets running tasks end; a second one
    does not. A stream that yields None has nothing at the moment.

    >>> stream = [("sums", [10, 1000], None, f"job {number}") for number in range(3)]
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> work(Scheduler(), stream, lambda kind, option, payload: option / 1000, executor=ThreadPoolExecutor(1)).reported
    3
    """
    settings = Settings(run, timeout, meter, feedback("reward", failed_reward), lost_cost, in_order, after)
    check(settings, in_flight)
    if executor is not None:
        return Loop(scheduler, iter(tasks), executor, in_flight or room_of(executor), settings).run()
    with LocalExecutor() as own:
        return Loop(scheduler, iter(tasks), own, in_flight or own.room, settings).run()


class Settings(NamedTuple):
    """How tasks are run and judged."""

    run: Callable[..., Any]
    timeout: float | None
    meter: Meter
    failed_reward: float
    lost_cost: float | None
    in_order: bool
    after: Callable[[Finished], None] | None


def check(settings: Settings, in_flight: int | None) -> None:
    """Refuse what would fail with every task."""
    for name, value in (("timeout", settings.timeout), ("lost_cost", settings.lost_cost)):
        if value is not None and not (isinstance(value, int | float) and 0.0 < value < math.inf):
            raise BadParameter(f"{name} = {value!r}; it must be a number above 0")
    if in_flight is not None and (not isinstance(in_flight, int) or in_flight < 1):
        raise BadParameter(f"in_flight = {in_flight!r}; it must be a whole number, at least 1")


def room_of(executor: Executor) -> int:
    """How many tasks an executor runs at once."""
    for name in ("room", "slots", "_max_workers"):
        if isinstance(getattr(executor, name, None), int):
            return int(getattr(executor, name))
    raise BadParameter(f"how much room has {type(executor).__name__}? Give in_flight=, the tasks it runs at once")


class Flight:
    """A task under way."""

    def __init__(self, task: Task, arrival: Arrival) -> None:
        self.task, self.arrival, self.began = task, arrival, time.perf_counter()
        self.found: Outcome | tuple[str, float] | None = None  # once it has ended


class Loop:
    """The tasks under way, and what has become of the others."""

    def __init__(
        self, scheduler: Scheduler, tasks: Iterator[Any], executor: Executor, room: int, settings: Settings
    ) -> None:
        self.scheduler, self.tasks, self.executor, self.room = scheduler, tasks, executor, room
        self.settings, self.done = settings, Worked()
        self.flights: dict[Flight, None] = {}  # in the order in which they arrived
        self.ended: queue.SimpleQueue[tuple[Flight, Future[Any]] | None] = queue.SimpleQueue()
        self.exhausted = self.nothing_now = self.asking = False
        self.trouble: Exception | None = None
        if isinstance(executor, LocalExecutor):
            check_travels(settings)

    def run(self) -> Worked:
        with interrupts(self.interrupt):
            while True:
                arrivals, ended = self.arrivals(), self.to_report()
                if arrivals or ended:
                    self.settle(arrivals, ended)
                elif self.exhausted and not self.flights:
                    break
                self.wait()
        if self.trouble is not None:
            raise self.trouble
        return self.done

    def interrupt(self) -> None:
        """The first Ctrl-C: take no more tasks. The second is Python's usual one."""
        self.done.interrupted = self.exhausted = True
        self.ended.put(None)
        if self.asking:
            raise KeyboardInterrupt

    def arrivals(self) -> list[Arrival]:
        """As many tasks as there is room for, if the stream has them now."""
        found: list[Arrival] = []
        self.nothing_now = False
        while self.takes_more(len(found)):
            one = self.next_arrival()
            if one is not None:
                found.append(one)
        return found

    def takes_more(self, found: int) -> bool:
        free = found < AT_ONCE and len(self.flights) + found < self.room
        return free and not self.exhausted and not self.nothing_now

    def next_arrival(self) -> Arrival | None:
        try:
            self.asking = True
            try:
                one = None if self.exhausted else next(self.tasks)
            finally:
                self.asking = False
            self.nothing_now = one is None
            return one if one is None or isinstance(one, Arrival) else Arrival(*one)
        except (StopIteration, KeyboardInterrupt):
            self.exhausted = True
        except Exception as reason:  # the stream is broken; what is under way is still worth something
            self.exhausted, self.trouble = True, reason
        return None

    def to_report(self) -> list[Flight]:
        """What has ended; in the order of arrival if that is asked for."""
        if not self.settings.in_order:
            ended = (flight for flight in self.flights if flight.found is not None)
            return list(islice(ended, AT_ONCE))
        ready = []
        for flight in self.flights:
            if flight.found is None:
                break
            ready.append(flight)
        return ready

    def settle(self, arrivals: list[Arrival], ended: list[Flight]) -> None:
        """Reports first, so that the decisions know them; all in one transaction."""
        results = [self.result(flight) for flight in ended]
        reports = [self.report(one, flight) for one, flight in zip(results, ended, strict=True)]
        decisions = [Deciding(self.scheduler, one.kind, one.options, one.key) for one in arrivals]  # type: ignore[arg-type]
        self.scheduler._transactor.ask_all([*reports, *decisions])
        for result, flight, request in zip(results, ended, reports, strict=True):
            self.close(flight, result, request)
        for arrival, request in zip(arrivals, decisions, strict=True):
            self.start(arrival, request)

    def result(self, flight: Flight) -> Finished:
        found = flight.found
        if isinstance(found, Outcome):
            assert found.cost is not None
            return Finished(flight.task, found.reward, found.cost, None)
        assert found is not None
        return Finished(flight.task, self.settings.failed_reward, found[1], found[0])

    def report(self, result: Finished, flight: Flight) -> Request:
        observed = flight.found.observed if isinstance(flight.found, Outcome) else {}
        others = {option: values for option, values in observed.items() if option != flight.task.option}
        return outcome(result.task.id, result.reward, result.cost, others)

    def close(self, flight: Flight, result: Finished, request: Request) -> None:
        """A report that was stored, or one that cannot be."""
        if isinstance(request.reason, BadFeedback):  # an observation of something that was not on offer
            flight.found = f"BadFeedback: {request.reason}", result.cost
            self.ended.put(None)
            return
        del self.flights[flight]
        if isinstance(request.reason, AlreadyReported | AlreadyCancelled):
            self.done.dropped += 1
            log.warning("%s; what came of it here is dropped", request.reason)
            return
        if request.reason is not None:
            raise request.reason
        self.done.reported += 1
        self.done.failed += result.failure is not None
        self.done.reward += result.reward
        self.done.cost += result.cost
        if self.settings.after is not None:
            self.settings.after(result)

    def start(self, arrival: Arrival, request: Request) -> None:
        """Have a decided task run, unless it has reported already."""
        if request.reason is not None:
            self.exhausted, self.trouble = True, self.trouble or as_exception(request.reason)
            return
        task: Task = request.answer
        if task.state in ("reported", "cancelled"):
            self.done.skipped += 1
            return
        flight = Flight(task, arrival)
        self.flights[flight] = None
        call = attempt, self.settings.run, self.settings.meter, (task.kind, task.option, arrival.payload)
        try:
            future = self.submit(*call)
        except RuntimeError as reason:  # shut down, or broken: with a key, the task is done when work goes on
            del self.flights[flight]
            self.exhausted, self.trouble = True, self.trouble or reason
            return
        future.add_done_callback(lambda future: self.ended.put((flight, future)))

    def submit(self, *call: Any) -> Future[Any]:
        if isinstance(self.executor, LocalExecutor):
            return self.executor.submit_within(self.settings.timeout, *call)
        return self.executor.submit(*call)

    def wait(self) -> None:
        """Until something ends, as long as there is nothing else to do."""
        if not self.flights and not self.nothing_now:
            return
        block = not self.takes_more(0) and not self.to_report()
        try:
            self.note(self.ended.get(block, self.patience()))
            while True:
                self.note(self.ended.get_nowait())
        except queue.Empty:
            self.give_up_late_ones()

    def patience(self) -> float | None:
        """Seconds to wait at most."""
        limits = [PATIENCE] if self.nothing_now else []
        if self.gives_up():
            limits += [max(0.0, flight.began + (self.settings.timeout or 0.0) - time.perf_counter())
                       for flight in self.flights if flight.found is None]  # fmt: skip
        return min(limits, default=None)

    def gives_up(self) -> bool:
        """Whether this loop has to look at the clock, because the executor cannot stop a task."""
        return self.settings.timeout is not None and not isinstance(self.executor, LocalExecutor)

    def give_up_late_ones(self) -> None:
        """Tasks that cannot be stopped are reported as failed; what they bring later is dropped."""
        if not self.gives_up():
            return
        for flight in self.flights:
            seconds = time.perf_counter() - flight.began
            if flight.found is None and seconds >= (self.settings.timeout or 0.0):
                flight.found = self.lost(f"TimedOut: no answer within {self.settings.timeout:g} s", seconds)

    def note(self, event: tuple[Flight, Future[Any]] | None) -> None:
        """What has become of a task; the first word counts."""
        if event is None:
            return
        flight, future = event
        if flight.found is None and flight in self.flights:
            try:
                flight.found = self.found(flight, future)
            except BrokenExecutor as reason:
                del self.flights[flight]
                self.exhausted, self.trouble = True, self.trouble or reason

    def found(self, flight: Flight, future: Future[Any]) -> Outcome | tuple[str, float]:
        try:
            found: Outcome | tuple[str, float] = future.result()
            return found
        except (WorkerLost, TimedOut) as reason:
            return self.lost(f"{type(reason).__name__}: {reason}", reason.seconds)
        except (Exception, CancelledError) as reason:
            if isinstance(reason, BrokenExecutor) and isinstance(self.executor, LocalExecutor):
                raise  # no process can be started at all
            return self.lost(f"{type(reason).__name__}: {reason}", time.perf_counter() - flight.began)

    def lost(self, words: str, seconds: float) -> tuple[str, float]:
        """Nobody was there to read the meter."""
        cost = seconds if self.settings.lost_cost is None else self.settings.lost_cost
        return words, max(cost, LEAST_COST)


def as_exception(reason: BaseException) -> Exception:
    return reason if isinstance(reason, Exception) else RuntimeError(str(reason))


def check_travels(settings: Settings) -> None:
    """Refuse a function that another process could not import."""
    for name, value in (("run", settings.run), ("meter", settings.meter)):
        try:
            pickle.dumps(value)
        except Exception as reason:
            why = f"{name} = {value!r} cannot be sent to another process ({reason})"
            raise BadParameter(f"{why}; define it at the top of a module, or give a ThreadPoolExecutor") from None


@contextmanager
def interrupts(interrupt: Callable[[], None]) -> Iterator[None]:
    """Ctrl-C calls `interrupt` once; the next one is Python's usual one."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)

    def heard(*_: object) -> None:
        signal.signal(signal.SIGINT, before)
        interrupt()

    signal.signal(signal.SIGINT, heard)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
