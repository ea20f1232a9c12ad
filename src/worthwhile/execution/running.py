"""Submit and collect: the tasks that an executor runs, and what each of them came to."""

from __future__ import annotations

import pickle
import queue
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from itertools import islice, takewhile
from typing import Any

from worthwhile.errors import BadParameter, TimedOut, WarmUpFailed, WorkerLost
from worthwhile.execution.arrivals import Arrival
from worthwhile.execution.executors import Job, LocalExecutor
from worthwhile.execution.metering import LEAST_COST, Failure, Meter, Outcome, attempt
from worthwhile.execution.results import Finished
from worthwhile.execution.warm_up import WarmUp
from worthwhile.live.task import Task, in_words
from worthwhile.live.validation import Option

AT_ONCE = 16  # tasks per transaction: the first need not wait for the last


class RunningTask:
    """A task that runs, or has ended and is not reported yet."""

    def __init__(self, task: Task, arrival: Arrival) -> None:
        self.arrival = arrival
        self.earlier: tuple[str, ...] = ()  # why earlier attempts failed
        self.tried: tuple[Option, ...] = ()  # by them
        self.spent = 0.0
        self.begin(task)

    def begin(self, task: Task) -> None:
        """An attempt."""
        self.task, self.began = task, time.perf_counter()
        self.future: Future[Any] | None = None
        self.outcome: Outcome | Failure | None = None  # once it has ended

    def try_again(self, task: Task) -> None:
        """The next attempt, after one that has failed."""
        finished = self.finished(None)
        self.earlier, self.spent = (*self.earlier, finished.failure or ""), finished.cost
        self.tried = (*self.tried, self.task.option)
        self.begin(task)

    def result(self) -> Outcome | Failure:
        """The outcome of a task that has ended."""
        assert self.outcome is not None
        return self.outcome

    def finished(self, reward: float | None) -> Finished:
        """As its user is told; the reward is what was stored."""
        outcome = self.result()
        failure = outcome.why if isinstance(outcome, Failure) else None
        cost = self.spent + (outcome.cost or LEAST_COST)
        return Finished(self.task, reward, cost, failure, self.earlier, self.tried)


class RunningTasks:
    """The tasks of one executor, from submission to report."""

    def __init__(
        self,
        executor: Executor,
        run: Callable[..., Any],
        meter: Meter,
        timeout: float | None,
        lost_cost: float | None,
        in_order: bool,
        warm_up: WarmUp | None,
        stop: Callable[[Exception], None],
    ) -> None:
        self.executor, self.run, self.meter = executor, run, meter
        self.timeout, self.lost_cost, self.in_order, self.warm_up = timeout, lost_cost, in_order, warm_up
        self.stop = stop  # called when the executor can run no more tasks
        self.local = executor if isinstance(executor, LocalExecutor) else None
        self.tasks: dict[RunningTask, None] = {}  # a set in the order of arrival
        self.events: queue.SimpleQueue[tuple[RunningTask, Future[Any]] | None] = queue.SimpleQueue()
        if self.local is not None:
            check_picklable(run=run, meter=meter, warm_up=warm_up and warm_up.call)

    def submit(self, running: RunningTask) -> None:
        """Have a decided task run; one that is tried again keeps its place."""
        task = running.task
        try:
            future = self.submitted((task.kind, task.option, running.arrival.payload))
        except RuntimeError as error:  # shut down, or broken: with a key, the task is done when work goes on
            self.tasks.pop(running, None)
            self.stop(error)
            return
        self.tasks[running], running.future = None, future
        future.add_done_callback(lambda future: self.events.put((running, future)))

    def submitted(self, task: tuple[str, Option, Any]) -> Future[Any]:
        """Where processes can be told apart, each warms up by itself; elsewhere its first task sees to it."""
        if self.local is None:
            return self.executor.submit(attempt, self.run, self.meter, self.warm_up, task)
        return self.local.submit_job(Job(self.timeout, attempt, (self.run, self.meter, None, task), {}, self.warm_up))

    def drop(self, running: RunningTask) -> None:
        """Stop it where that is possible; whatever comes of it does not count."""
        del self.tasks[running]
        if running.future is not None and not running.future.cancel() and self.local is not None:
            self.local.stop(running.future)

    def ended(self) -> list[RunningTask]:
        """What can be reported; in the order of arrival if that is asked for, until one may be tried again."""
        if self.in_order:
            ended = list(takewhile(lambda running: running.outcome is not None, self.tasks))
            results = takewhile(lambda running: isinstance(running.outcome, Outcome), ended)
            return ended[: sum(1 for _ in results) + 1]
        return list(islice((running for running in self.tasks if running.outcome is not None), AT_ONCE))

    def collect(self, wait: bool, at_most: float | None) -> None:
        """Note what has ended; wait until something does, but not for more than so many seconds."""
        limits = [self.left(running) for running in self.watched()]
        if at_most is not None:
            limits.append(at_most)
        try:
            self.note(self.events.get(wait, min(limits, default=None)))
            while True:
                self.note(self.events.get_nowait())
        except queue.Empty:
            self.give_up_late_ones()

    def wake(self) -> None:
        """End the wait of `collect`; a signal handler may call this."""
        self.events.put(None)

    def watched(self) -> list[RunningTask]:
        """The tasks whose timeout is watched here: those of an executor that cannot stop one."""
        if self.timeout is None or self.local is not None:
            return []
        return [running for running in self.tasks if running.outcome is None]

    def left(self, running: RunningTask) -> float:
        """Seconds until it has run for too long."""
        return max(0.0, running.began + (self.timeout or 0.0) - time.perf_counter())

    def give_up_late_ones(self) -> None:
        """A watched task that has run for too long counts as failed; what it brings later is dropped."""
        for running in self.watched():
            if self.left(running) == 0.0:
                seconds = time.perf_counter() - running.began
                running.outcome = self.lost(f"TimedOut: no answer within {self.timeout:g} s", seconds)

    def note(self, event: tuple[RunningTask, Future[Any]] | None) -> None:
        """What an attempt came to; one that was given up or reported meanwhile stays as it was."""
        if event is None:
            return
        running, future = event
        if running.future is future and running.outcome is None and running in self.tasks:
            try:
                running.outcome = self.outcome_of(running, future)
            except (BrokenExecutor, WarmUpFailed) as error:
                del self.tasks[running]
                self.stop(error)

    def outcome_of(self, running: RunningTask, future: Future[Any]) -> Outcome | Failure:
        try:
            outcome: Outcome | Failure | WarmUpFailed = future.result()
            if isinstance(outcome, WarmUpFailed):
                raise outcome
            return outcome
        except WarmUpFailed:
            raise
        except (WorkerLost, TimedOut) as error:
            return self.lost(in_words(error), error.seconds)
        except (Exception, CancelledError) as error:
            if isinstance(error, BrokenExecutor) and self.local is not None:
                raise  # no process can be started at all
            return self.lost(in_words(error), time.perf_counter() - running.began)

    def lost(self, why: str, seconds: float) -> Failure:
        """Nobody was there to read the meter."""
        cost = seconds if self.lost_cost is None else self.lost_cost
        return Failure(why, max(cost, LEAST_COST))


def check_picklable(**functions: Callable[..., Any] | None) -> None:
    """Refuse a function that another process could not import."""
    for name, function in functions.items():
        try:
            pickle.dumps(function)
        except Exception as error:
            why = f"{name} = {function!r} cannot be sent to another process ({error})"
            raise BadParameter(f"{why}; define it at the top of a module, or give a ThreadPoolExecutor") from None
