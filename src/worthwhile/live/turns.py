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

    __slots__ = ("action", "answer", "key", "kind", "leads", "next", "reason", "signal", "task")

    signal: threading.Lock  # these three are set if it has to wait
    leads: bool
    next: Request | None

    def __init__(
        self, action: Callable[[Any], Any], task: int | None = None, key: str | None = None, kind: str | None = None
    ) -> None:
        self.action, self.task, self.key, self.kind = action, task, key, kind
        self.answer: Any = None
        self.reason: BaseException | None = UNKNOWN


class Turns:
    """One at a time works, the others wait; `work` answers a batch of requests."""

    def __init__(self, work: Callable[[Sequence[Request]], None]) -> None:
        self.work = work
        self.waiting: deque[Request] = deque()
        self.turn = threading.Lock()

    def ask(self, request: Request) -> Any:
        """The answer, once whatever it tells is stored."""
        if self.turn.acquire(False):
            self.lead([request])
        else:
            self.wait(request)
        if request.reason is not None:
            raise request.reason
        return request.answer

    def ask_all(self, requests: Sequence[Request]) -> None:
        """Several from one thread, in one transaction; each gets its own answer or reason."""
        self.turn.acquire()
        self.lead(list(requests))

    def wait(self, request: Request) -> None:
        """Until it is done, or this thread's turn to do it; Ctrl-C has to wait too, or the turn would be lost."""
        request.leads, request.next, interrupt = False, None, None
        request.signal = threading.Lock()
        request.signal.acquire()
        self.waiting.append(request)
        if self.turn.acquire(False):  # whoever had the turn was gone before it saw this request
            request.leads = True
        else:
            interrupt = acquire(request.signal)
        if request.next is not None:
            request.next.signal.release()
        if request.leads:
            self.lead([])
        if interrupt is not None:
            raise interrupt

    def lead(self, batch: list[Request]) -> None:
        """Do that and what is waiting, wake the others, pass the turn on."""
        while True:
            own = len(batch)
            if self.waiting:
                batch += [self.waiting.popleft() for _ in range(len(self.waiting))]  # others may add to it meanwhile
            try:
                if batch:
                    self.work(batch)
            finally:
                if len(batch) > own:
                    wake([one for one in batch[own:] if not one.leads])
                first = self.waiting[0] if self.waiting else None
                if first is not None:
                    first.leads = True
                    first.signal.release()
                else:
                    self.turn.release()
            if first is not None or not self.waiting or not self.turn.acquire(False):
                return
            batch = []


def acquire(lock: threading.Lock) -> BaseException | None:
    """Get a lock, however often that is interrupted; what it was interrupted by."""
    interrupt = None
    while True:
        try:
            lock.acquire()
            return interrupt
        except BaseException as reason:
            interrupt = reason


def wake(requests: list[Request]) -> None:
    """One wakes the next: all at once, they would only wait for the interpreter's lock."""
    for one, after in pairwise(requests):
        one.next = after
    if requests:
        requests[0].signal.release()
