"""Tasks in processes of this machine, each of which can be stopped alone.

Why not `ProcessPoolExecutor`: it cannot stop a call that hangs, and when one of its processes dies it breaks as a whole
and every other call is lost. `pebble` stops a call alone, but does not kill what the call has itself started, and says
nothing of the seconds it took, which are the cost to report.
"""

from __future__ import annotations

import atexit
import os
import pickle
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import suppress
from multiprocessing import current_process
from typing import Any

from worthwhile.errors import BadParameter, TimedOut, WarmUpFailed, WorkerLost
from worthwhile.execution.calls import LABEL
from worthwhile.execution.processes import SPAWN, start_worker
from worthwhile.execution.warm_up import WarmUp, failed, warm
from worthwhile.live.task import in_words

LOOK_AGAIN = 1.0  # seconds: a dead process whose children keep its pipe open sends no end of file; noticed by then
GRACE = 2.0  # seconds for a process to end by itself, and again for it to be killed
NO_START = "ended before it could start; does the program keep what it runs under `if __name__ == '__main__':`?"


class LocalExecutor(Executor):
    """One process per slot. A task that hangs is killed and a process that dies is replaced; the others go on.

    >>> with LocalExecutor(slots=1) as executor:
    ...     executor.submit(pow, 2, 10).result()
    1024
    """

    def __init__(self, slots: int | None = None) -> None:
        self.slots = os.cpu_count() or 1 if slots is None else slots
        if isinstance(self.slots, bool) or not isinstance(self.slots, int) or self.slots < 1:
            raise BadParameter(f"slots = {slots!r}; it must be a whole number, at least 1")
        # Set while a new process imports the main module: one that makes an executor there would start more for ever.
        if getattr(current_process(), "_inheriting", False):
            raise BrokenExecutor(f"process {os.getpid()} {NO_START}")
        self.jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self.lock, self.closed, self.killed = threading.Lock(), False, False
        self.processes: list[Process | None] = [None] * self.slots
        self.running: dict[Future[Any], int] = {}  # slots by the calls that they make
        self.threads = [threading.Thread(target=self.serve, args=(slot,), daemon=True) for slot in range(self.slots)]
        for thread in self.threads:
            thread.start()
        atexit.register(self.kill)  # or multiprocessing would wait at exit for processes that never end by themselves

    @property
    def room(self) -> int:
        """Calls to submit at once: more than slots, so that a free slot need not wait for the next decision."""
        return self.slots + self.slots // 4

    def submit(self, call: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        """Have it called in a free process."""
        return self.submit_within(None, call, *arguments, **named)

    def submit_within(
        self, timeout: float | None, call: Callable[..., Any], /, *arguments: Any, **named: Any
    ) -> Future[Any]:
        """The same, killed and `TimedOut` if it runs for longer than so many seconds."""
        return self.submit_job(Job(timeout, call, arguments, named))

    def submit_job(self, job: Job) -> Future[Any]:
        """The same, in a process that has warmed up."""
        with self.lock:
            if self.closed:
                raise RuntimeError("this executor is shut down; make a new one")
            self.jobs.put(job)
        return job.future

    def serve(self, slot: int) -> None:
        """One slot: a process, and a new one whenever it is gone."""
        while (job := self.next_job(slot)) is not None:
            if job.future.set_running_or_notify_cancel():
                with self.lock:
                    self.running[job.future] = slot
                try:
                    answer = self.answer(slot, job)
                except BaseException as error:  # whoever waits for the future gets it; the slot goes on
                    self.end(job.future).set_exception(error)
                else:
                    self.end(job.future).set_result(answer)
                del job  # or its result would be kept until the next one comes
        self.process(slot).close()

    def end(self, future: Future[Any]) -> Future[Any]:
        """A call that can be stopped no more."""
        with self.lock:
            del self.running[future]
        return future

    def stop(self, future: Future[Any]) -> None:
        """Kill the process that makes a call; it is `WorkerLost`. One that has ended or waits is left alone."""
        with self.lock:
            process = self.processes[self.running[future]] if future in self.running else None
            if process is not None:
                process.doom()

    def next_job(self, slot: int) -> Job | None:
        """Taken when the slot's process has started, so that no call waits for it while others are free."""
        self.process(slot).ready()
        return self.jobs.get()

    def process(self, slot: int) -> Process:
        """The slot's process, a new one if there is none."""
        process = self.processes[slot]
        if process is None:
            process = self.processes[slot] = Process()
            if self.killed:  # `kill` went through the list before this one was in it
                process.kill()
        return process

    def replace(self, slot: int) -> Process:
        """A new process instead of one that is gone."""
        self.process(slot).kill()
        if not self.killed:
            self.processes[slot] = None
        return self.process(slot)

    def answer(self, slot: int, job: Job) -> Any:
        """What the call returns or raises; `WorkerLost` and `TimedOut` leave a new process in the slot."""
        message = pickle.dumps((job.call, job.arguments, job.named), pickle.HIGHEST_PROTOCOL)
        process = self.process(slot)
        if not process.ready():
            process = self.replace(slot)
            if not process.ready() and not self.killed:
                raise BrokenExecutor(f"a process {NO_START}")
        if job.warm_up is not None and job.warm_up.mark != process.warm:
            self.warm(slot, process, job.warm_up)
        try:
            good, answer = process.call(message, job.timeout)
        except (WorkerLost, TimedOut):
            self.replace(slot)
            raise
        if good:
            return answer
        raise answer

    def warm(self, slot: int, process: Process, warm_up: WarmUp) -> None:
        """Before a process runs its first task, and apart from it: neither its timeout nor its cost begins yet."""
        try:
            good, answer = process.call(pickle.dumps((warm, (warm_up,), {}), pickle.HIGHEST_PROTOCOL), None)
        except WorkerLost as error:
            doomed = process.doomed  # its task was stopped, or everything was: nothing is wrong with the warm-up
            self.replace(slot)
            raise error if doomed else failed(warm_up, str(error)) from None
        if not good:
            raise answer if isinstance(answer, WarmUpFailed) else failed(warm_up, in_words(answer))
        process.warm = warm_up.mark

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more; running calls end first, and those that wait too unless they are cancelled."""
        with self.lock:
            first, self.closed = not self.closed, True
        if cancel_futures:
            self.cancel_waiting()
        for _ in self.threads if first else ():
            self.jobs.put(None)
        for thread in self.threads if wait else ():
            thread.join()
        if wait:
            atexit.unregister(self.kill)

    def cancel_waiting(self) -> None:
        ends = 0  # the marks that end the threads; they must stay in the queue
        with suppress(queue.Empty):
            while True:
                job = self.jobs.get_nowait()
                ends += job is None
                if job is not None:
                    job.future.cancel()
        for _ in range(ends):
            self.jobs.put(None)

    def kill(self) -> None:
        """Stop everything at once; what was running is `WorkerLost`."""
        self.killed = True
        self.shutdown(wait=False, cancel_futures=True)
        for process in self.processes:
            if process is not None:
                process.kill()
        for thread in self.threads:
            thread.join()
        atexit.unregister(self.kill)

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if error is None:  # else nobody is left to read the answers
            self.shutdown()
        else:
            self.kill()


class Job:
    """A call and the future of its answer."""

    def __init__(
        self, timeout: float | None, call: Any, arguments: Any, named: Any, warm_up: WarmUp | None = None
    ) -> None:
        self.timeout, self.call, self.arguments, self.named, self.warm_up = timeout, call, arguments, named, warm_up
        self.future: Future[Any] = Future()


class Process:
    """A process that makes one call after the other, seen from outside."""

    def __init__(self) -> None:
        self.pipe, theirs = SPAWN.Pipe()
        self.process = start_worker(self.pipe, theirs)
        theirs.close()  # while we hold it too, the pipe has no end of file when the process dies
        self.pid = 0  # once it has started
        self.calls = 0
        self.warm = ""  # the mark of its last warm-up
        self.doomed = False

    def ready(self) -> bool:
        """Whether it can be called; waits until it has started."""
        with suppress(EOFError, OSError):
            while not self.pid and self.answers(None):
                self.pid = LABEL.unpack(self.pipe.recv_bytes())[1]
            while self.pipe.poll():
                self.pipe.recv_bytes()  # a late answer; or EOFError, of a process that died while idle
            return self.process.exitcode is None and not self.doomed
        return False

    def answers(self, seconds: float | None) -> bool:
        """Whether it says something within so many seconds; `EOFError` if it ends instead."""
        end = None if seconds is None else time.perf_counter() + seconds
        while True:
            left = LOOK_AGAIN if end is None else min(LOOK_AGAIN, end - time.perf_counter())
            if self.pipe.poll(max(0.0, left)):
                return True
            if self.process.exitcode is not None:
                raise EOFError
            if end is not None and time.perf_counter() >= end:
                return False

    def call(self, message: bytes, timeout: float | None) -> tuple[bool, Any]:
        """Whether the call went well, and what it returned or raised."""
        began, self.calls = time.perf_counter(), self.calls + 1
        try:
            self.pipe.send_bytes(LABEL.pack(self.calls, self.pid) + message)
            while self.answers(None if timeout is None else began + timeout - time.perf_counter()):
                answer = self.pipe.recv_bytes()
                if LABEL.unpack_from(answer) == (self.calls, self.pid):
                    return pickle.loads(answer[LABEL.size :])  # type: ignore[no-any-return]
        except (EOFError, OSError):
            seconds = time.perf_counter() - began
            self.process.join(GRACE)
            ended = f"its process ended with code {self.process.exitcode}; killed, crashed or out of memory?"
            raise WorkerLost(ended, seconds) from None  # without its number: the same reason in the same words
        seconds = time.perf_counter() - began
        raise TimedOut(f"the task ran for more than {timeout:g} s and was stopped; allow more, or do less", seconds)

    def kill(self) -> None:
        """At once, with whatever it has started: a training's own workers would keep the cores busy."""
        self.doom()
        self.process.join(GRACE)

    def doom(self) -> None:
        """Have it killed, without waiting for its end."""
        self.doomed = True
        self.process.kill()

    def close(self) -> None:
        """Let it end; if its threads or what it has started do not let it, kill it."""
        self.pipe.close()
        self.process.join(GRACE)
        self.kill()
