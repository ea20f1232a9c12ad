"""Work: take every task that arrives, decide, submit, meter what it costs, report what came of it."""

from __future__ import annotations

import logging
import math
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager, nullcontext
from typing import Any

from worthwhile.errors import AlreadyCancelled, AlreadyFailed, AlreadyReported, BadFeedback, BadParameter
from worthwhile.execution.arrivals import Arrival, Stream
from worthwhile.execution.claims import LEASE, Claims, is_gone
from worthwhile.execution.elsewhere import Elsewhere, Wanted
from worthwhile.execution.endings import Ending, Limits
from worthwhile.execution.executors import LocalExecutor
from worthwhile.execution.metering import LEAST_COST, Failure, Meter, Outcome
from worthwhile.execution.results import Finished, Worked
from worthwhile.execution.running import AT_ONCE, RunningTask, RunningTasks
from worthwhile.execution.warm_up import warm_up_of
from worthwhile.live.claims import Claim
from worthwhile.live.group_commit import Request
from worthwhile.live.scheduler import Scheduler
from worthwhile.live.task import Task
from worthwhile.live.validation import feedback

log = logging.getLogger(__name__)

TOO_LATE = AlreadyReported, AlreadyFailed, AlreadyCancelled  # somebody else has said it
PATIENCE = 0.05  # seconds until a stream that had nothing is asked again


def work(
    scheduler: Scheduler,
    tasks: Iterable[Arrival | tuple[Any, ...] | None],
    run: Callable[[str, Any, Any], Any],
    *,
    executor: Executor | None = None,
    timeout: float | None = None,
    meter: Meter = time.perf_counter,
    failed_reward: float | None = None,
    lost_cost: float | None = None,
    in_flight: int | None = None,
    in_order: bool = False,
    after: Callable[[Finished], None] | None = None,
    lease: float = LEASE,
    warm_up: Callable[[], Any] | None = None,
    attempts: int = 1,
) -> Worked:
    """Do tasks as they arrive, as many at once as the executor has room for; each is decided, run and reported.

    `run(kind, option, payload)` returns a reward or an `Outcome`. A task that raises, takes longer than `timeout` or
    loses its process has failed, at what it cost; with `failed_reward`, that is a result worth so much. Ctrl-C lets
    running tasks end; a second one does not. A stream that yields None has nothing at the moment. What runs is claimed:
    another `work` on the same stream leaves it alone, and takes it over if it has not heard of this one for `lease`
    seconds. `warm_up()` is called once in every process before its first task, and neither measured nor timed. A task
    that fails is tried again with another option until so many `attempts` were made: one task, whose costs add up.

    >>> stream = [("sums", [10, 1000], None, f"job {number}") for number in range(3)]
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> work(Scheduler(), stream, lambda kind, option, payload: option / 1000, executor=ThreadPoolExecutor(1)).reported
    3
    """
    worth = None if failed_reward is None else feedback("failed_reward", failed_reward)
    check(scheduler, in_flight, attempts, timeout=timeout, lost_cost=lost_cost, lease=lease)
    stream, warm = Stream(tasks), warm_up_of(warm_up)
    with LocalExecutor() if executor is None else nullcontext(executor) as chosen:
        running = RunningTasks(chosen, run, meter, timeout, lost_cost, in_order, warm, stream.end)
        with Claims(scheduler, lease, running.wake) as claims:
            return Worker(claims, stream, running, in_flight or room_of(chosen), Limits(attempts, worth), after).work()


def check(scheduler: Any, in_flight: int | None, attempts: int, **limits: float | None) -> None:
    """Refuse what would fail with every task."""
    if not isinstance(scheduler, Scheduler):
        remedy = "give a Scheduler on the store itself; a Client cannot claim what it runs"
        raise BadParameter(f"scheduler = {scheduler!r}; {remedy}")
    for name, value in limits.items():
        if value is not None and not (isinstance(value, int | float) and 0.0 < value < math.inf):
            raise BadParameter(f"{name} = {value!r}; it must be a number above 0")
    for name, count in (("in_flight", in_flight), ("attempts", attempts)):
        if count is not None and (isinstance(count, bool) or not isinstance(count, int) or count < 1):
            raise BadParameter(f"{name} = {count!r}; it must be a whole number, at least 1")


def room_of(executor: Executor) -> int:
    """How many tasks an executor runs at once."""
    for name in ("room", "slots", "_max_workers"):
        if isinstance(getattr(executor, name, None), int):
            return int(getattr(executor, name))
    raise BadParameter(f"how much room has {type(executor).__name__}? Give in_flight=, the tasks it runs at once")


class Worker:
    """Goes round: take, claim and submit what arrives, collect and report what has ended."""

    def __init__(
        self,
        claims: Claims,
        stream: Stream,
        running: RunningTasks,
        room: int,
        limits: Limits,
        after: Callable[[Finished], None] | None,
    ) -> None:
        self.claims, self.stream, self.running, self.room = claims, stream, running, room
        self.limits, self.after, self.done = limits, after, Worked()
        self.elsewhere = Elsewhere()
        self.began = math.inf  # by the store's clock

    def work(self) -> Worked:
        """Until every task of the stream has reported, here or elsewhere."""
        with interrupts(self.interrupt):
            while True:
                self.drop_lost()
                wanted, ended = self.take(), self.running.ended()
                if wanted or ended:
                    self.report_and_claim(ended, wanted)
                elif self.stream.ended and not self.running.tasks and not self.waits_for_others():
                    break
                self.collect()
        if self.stream.error is not None:
            raise self.stream.error
        return self.done

    def take(self) -> list[Wanted]:
        """What to claim: new tasks, and if there are few, those that were held elsewhere."""
        room = self.free()
        wanted = [Wanted(arrival) for arrival in self.stream.take(0 if self.elsewhere.full() else room)]
        return wanted + (self.elsewhere.take(room - len(wanted)) if self.waits_for_others() else [])

    def free(self) -> int:
        """Tasks that can be taken now."""
        return min(AT_ONCE, self.room - len(self.running.tasks))

    def waits_for_others(self) -> bool:
        """Not when it has to end: after Ctrl-C, or with a broken stream."""
        return bool(self.elsewhere.tasks) and not self.done.interrupted and self.stream.error is None

    def interrupt(self) -> None:
        """The first Ctrl-C: take no more tasks. The second is Python's usual one."""
        self.done.interrupted = True
        self.running.wake()
        self.stream.interrupt()

    def collect(self) -> None:
        """Look for what has ended; wait for it if there is nothing else to do."""
        limits = [PATIENCE] if self.stream.paused else []
        if self.free() > 0 and self.waits_for_others():
            limits.append(self.elsewhere.left())
        if self.running.tasks or limits:
            takes_more = self.stream.open and self.free() > 0 and not self.elsewhere.full()
            self.running.collect(not takes_more and not self.running.ended(), min(limits, default=None))

    def drop_lost(self) -> None:
        """Stop tasks that others have taken over, or have reported or cancelled."""
        for id in self.claims.take_lost():
            for running in [running for running in self.running.tasks if running.task.id == id]:
                if running.outcome is None:  # else it is reported: perhaps it comes first
                    log.warning("task %s is run elsewhere by now, its lease had ended; it is stopped here", id)
                    self.running.drop(running)
                    self.let_go(running.task, dropped=True)
                    if running.arrival.key is not None:
                        self.elsewhere.add(running.arrival, None)

    def let_go(self, task: Task, dropped: bool = False) -> None:
        """A task that does not run here any more."""
        self.claims.tasks.pop(task.id, None)
        self.done.dropped += dropped

    def report_and_claim(self, ended: list[RunningTask], wanted: list[Wanted]) -> None:
        """In one transaction; reports come first, so that the decisions know them."""
        reports = [Ending(self.claims, running.task, running.result(), self.limits) for running in ended]
        claims = self.claims_of(wanted)
        self.claims.scheduler._transactor.ask_all([*reports, *(claim for _, claim in claims)])
        for running, report in zip(ended, reports, strict=True):
            self.close(running, report)
        for task, request in claims:
            self.start(task, request)

    def claims_of(self, wanted: list[Wanted]) -> list[tuple[Wanted, Request]]:
        """What to ask for; a task that makes no sense ends the stream, and what runs is still reported."""
        claims: list[tuple[Wanted, Request]] = []
        for task in wanted:
            try:
                claims.append((task, self.claims.request(task.arrival, task.instead_of)))
            except Exception as error:  # options or features of the user's own may raise anything
                self.stream.end(error)
        return claims

    def close(self, running: RunningTask, report: Ending) -> None:
        """A report that was stored, or one that cannot be."""
        if isinstance(report.error, BadFeedback):  # an observation of something that was not on offer
            running.outcome = refused(running.result(), report.error)  # reported in the next round
            return
        if report.error is None and report.answer.again is not None:
            running.try_again(report.answer.again)
            self.running.submit(running)
            return
        del self.running.tasks[running]
        self.let_go(running.task, dropped=isinstance(report.error, TOO_LATE))
        if isinstance(report.error, TOO_LATE):
            log.warning("%s; what came of it here is dropped", report.error)
            return
        if report.error is not None:
            raise report.error
        finished = running.finished(report.answer.reward)
        self.done.count(finished)
        if self.after is not None:
            self.after(finished)

    def start(self, wanted: Wanted, request: Request) -> None:
        """Submit a claimed task; one that others hold is asked for again, unless it has reported."""
        if request.error is not None:
            error = request.error
            self.stream.end(error if isinstance(error, Exception) else RuntimeError(str(error)))
            return
        claim: Claim = request.answer
        task, ours = claim.task, claim.holder == self.claims.holder
        self.began = min(self.began, claim.now)
        if task.state in ("reported", "failed", "cancelled"):
            meanwhile = not ours and (wanted.seen_elsewhere or claim.decided >= self.began)
            self.done.elsewhere += meanwhile
            self.done.skipped += not meanwhile
            self.elsewhere.changed()
        elif not ours or task.id in self.claims.tasks:  # or its key is in the stream twice
            self.elsewhere.add(wanted.arrival, claim.holder if is_gone(claim.holder or "") else None)
        else:
            self.claims.tasks[task.id] = None
            self.running.submit(RunningTask(task, wanted.arrival))
            self.elsewhere.changed()


def refused(outcome: Outcome | Failure, error: BadFeedback) -> Failure:
    """What is left of an outcome whose observations cannot be stored."""
    why = outcome.why if isinstance(outcome, Failure) else f"BadFeedback: {error}"
    return Failure(why, outcome.cost or LEAST_COST)


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
