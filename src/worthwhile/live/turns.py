"""Group commit: what threads ask for at the same time is done in one transaction, by one of them.

Whoever finds nobody at work does the work, for itself and for all that are waiting by then. A lone caller pays for no
change of threads.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from worthwhile.errors import StoreError

UNKNOWN = StoreError("interrupted; whether it was stored is not known: ask again")


class Request:
    """Something asked of the scheduler, and later its answer or the reason why there is none."""

    answer: Any = None
    reason: BaseException | None = UNKNOWN

    def __init__(
        self, action: Callable[[Any], Any], task: int | None = None, key: str | None = None, kind: str | None = None
    ) -> None:
        self.action, self.task, self.key, self.kind = action, task, key, kind


class Waiting:
    """A thread that waits for its requests to be answered, or for its turn to answer them."""

    def __init__(self, requests: Sequence[Request]) -> None:
        self.requests, self.leads = requests, False
        self.next: Waiting | None = None  # to be woken
        self.signal = threading.Lock()
        self.signal.acquire()


class Turns:
    """One at a time works, the others wait; `work` answers a batch of requests.

    Who has been answered wakes the next one, and the last of them passes the turn on. By then most have asked for
    something again, so that the next batch is as large. All woken at once would only wait for the interpreter's lock.
    """

    def __init__(self, work: Callable[[Sequence[Request]], None]) -> None:
        self.work = work
        self.waiting: deque[Waiting] = deque()
        self.turn = threading.Lock()

    def ask(self, request: Request) -> Any:
        """The answer, once whatever it tells is stored."""
        if self.turn.acquire(False):
            self.lead([request])
        else:
            self.wait(Waiting([request]))
        if request.reason is not None:
            raise request.reason
        return request.answer

    def ask_all(self, requests: Sequence[Request]) -> None:
        """Several from one thread, in one transaction; each gets its own answer or reason."""
        if self.turn.acquire(False):
            self.lead(requests)
        else:
            self.wait(Waiting(requests))

    def wait(self, one: Waiting) -> None:
        """Until it is done, or this thread's turn to do it; Ctrl-C has to wait too, or the turn would be lost."""
        interrupt = None
        self.waiting.append(one)
        if self.turn.acquire(False):  # whoever had the turn was gone before it saw this one
            one.leads = True
        else:
            interrupt = acquire(one.signal)
        if one.leads:
            self.lead(())
        elif one.next is not None:
            one.next.signal.release()
        else:
            self.pass_on()
        if interrupt is not None:
            raise interrupt

    def lead(self, requests: Sequence[Request]) -> None:
        """Do that and what is waiting; then the others go on, one after the other."""
        others = None
        if self.waiting:
            queued = [self.waiting.popleft() for _ in range(len(self.waiting))]  # others may add to it meanwhile
            others = [one for one in queued if not one.leads]
            requests = [*requests, *(request for one in queued for request in one.requests)]
        try:
            self.work(requests)
        finally:
            if others:
                for one, after in pairwise(others):
                    one.next = after
                others[0].signal.release()
            else:
                self.pass_on()

    def pass_on(self) -> None:
        """The turn goes to who has waited longest; if nobody waits, it is free."""
        while not self.waiting:
            self.turn.release()
            if not self.waiting or not self.turn.acquire(False):
                return
        self.waiting[0].leads = True
        self.waiting[0].signal.release()


def acquire(lock: threading.Lock) -> BaseException | None:
    """Get a lock, however often that is interrupted; what it was interrupted by."""
    interrupt = None
    while True:
        try:
            lock.acquire()
            return interrupt
        except BaseException as reason:
            interrupt = reason
