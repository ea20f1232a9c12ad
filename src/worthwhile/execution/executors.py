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
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import suppress
from multiprocessing import connection, current_process, get_context, parent_process
from typing import Any

from worthwhile.errors import BadParameter, TimedOut, WorkerLost

LOOK_AGAIN = 1.0  # seconds: a dead process whose children keep its pipe open sends no end of file; noticed by then
NO_START = "ended before it could start; does the program keep what it runs under `if __name__ == '__main__':`?"
NEW_PROCESSES = get_context("spawn")  # a fork would copy our threads' locks in whatever state they are, and hang


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
        job = Job(timeout, call, arguments, named)
        with self.lock:
            if self.closed:
                raise RuntimeError("this executor is shut down; make a new one")
            self.jobs.put(job)
        return job.future

    def serve(self, slot: int) -> None:
        """One slot: a process, and a new one whenever it is gone."""
        while (job := self.next_job(slot)) is not None:
            if job.future.set_running_or_notify_cancel():
                try:
                    answer = self.answer(slot, job)
                except BaseException as error:  # whoever waits for the future gets it; the slot goes on
                    job.future.set_exception(error)
                else:
                    job.future.set_result(answer)
                del job  # or its result would be kept until the next one comes
        self.process(slot).close()

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
                raise BrokenExecutor(f"process {process.process.pid} {NO_START}")
        try:
            good, answer = process.call(message, job.timeout)
        except (WorkerLost, TimedOut):
            self.replace(slot)
            raise
        if good:
            return answer
        raise answer

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

    def __init__(self, timeout: float | None, call: Any, arguments: Any, named: Any) -> None:
        self.timeout, self.call, self.arguments, self.named = timeout, call, arguments, named
        self.future: Future[Any] = Future()


class Process:
    """A process that makes one call after the other, seen from outside."""

    def __init__(self) -> None:
        self.pipe, theirs = NEW_PROCESSES.Pipe()
        self.process = NEW_PROCESSES.Process(target=make_calls, args=(theirs,))
        self.process.start()
        theirs.close()  # while we hold it too, the pipe has no end of file when the process dies
        self.started = False

    def ready(self) -> bool:
        """Whether it can be called; waits until it has started."""
        with suppress(EOFError, OSError):
            while not self.started and self.answers(None):
                self.pipe.recv_bytes()
                self.started = True
            # It says nothing unasked: what can be read now is the end of file of a process that died while idle.
            return self.started and not self.pipe.poll() and self.process.exitcode is None
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
        began = time.perf_counter()
        try:
            self.pipe.send_bytes(message)
            if self.answers(timeout):
                answer: tuple[bool, Any] = pickle.loads(self.pipe.recv_bytes())
                return answer
        except (EOFError, OSError):
            self.process.join(LOOK_AGAIN)
            seconds = time.perf_counter() - began
            ended = f"process {self.process.pid} ended with code {self.process.exitcode} while it ran the task"
            raise WorkerLost(f"{ended}; killed, crashed or out of memory?", seconds) from None
        seconds = time.perf_counter() - began
        raise TimedOut(f"the task ran for more than {timeout:g} s and was stopped; allow more, or do less", seconds)

    def kill(self) -> None:
        """At once, with whatever it has started: a training's own workers would keep the cores busy."""
        pid = self.process.pid
        with suppress(OSError):  # only if it leads its group: before its `setsid` the group is ours
            if pid is not None and self.process.exitcode is None and os.getpgid(pid) == pid:
                os.killpg(pid, signal.SIGKILL)
        self.process.kill()
        self.process.join()

    def close(self) -> None:
        """Let it end."""
        self.pipe.close()
        self.process.join()


def make_calls(pipe: connection.Connection) -> None:
    """What runs in a process of its own; Ctrl-C is the parent's business, and so is the end."""
    if os.name == "posix":
        os.setsid()  # a group of its own: Ctrl-C does not reach it, and `kill` reaches all that it starts
    threading.Thread(target=end_with_parent, daemon=True).start()
    pipe.send_bytes(b"ready")
    with suppress(EOFError, OSError):
        while True:
            pipe.send_bytes(called(pipe.recv_bytes()))


def called(message: bytes) -> bytes:
    """The answer to one call, as it is sent back."""
    try:
        call, arguments, named = pickle.loads(message)
        return pickle.dumps((True, call(*arguments, **named)), pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        return failure(error)


def failure(error: Exception) -> bytes:
    """An exception that can be sent, or its words if it cannot."""
    try:
        message = pickle.dumps((False, error), pickle.HIGHEST_PROTOCOL)
        pickle.loads(message)  # some can be written and not read: those whose __init__ wants other arguments
        return message
    except Exception:
        return pickle.dumps((False, RuntimeError(f"{type(error).__name__}: {error}")))


def end_with_parent() -> None:
    """A parent that is killed leaves nothing behind."""
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        if os.name == "posix":
            os.killpg(0, signal.SIGKILL)
        os._exit(1)  # not sys.exit, which ends this thread only
