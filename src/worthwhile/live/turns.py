"""Group commit: what threads ask for at the same time is done in one transaction, by one of them.

Whoever finds nobody at work does the work, for itself and for all that are waiting by then. A lone caller pays for no
change of threads.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from worthwhile.errors import StoreError

UNKNOWN = StoreError("interrupted; whether it was stored is not known: ask again")


class Request:
    """Something asked of the scheduler, and later its answer or the reason why there is none."""

    __slots__ = ("action", "answer", "key", "kind", "leads", "reason", "signal", "task")

    def __init__(
        self, action: Callable[[Any], Any], task: int | None = None, key: str | None = None, kind: str | None = None
    ) -> None:
        self.action, self.task, self.key, self.kind = action, task, key, kind
        self.answer: Any = None
        self.reason: BaseException | None = UNKNOWN
        self.leads = False
        self.signal: threading.Lock | None = None  # of those that wait


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
        request.signal = threading.Lock()
        request.signal.acquire()
        self.waiting.append(request)
        if self.turn.acquire(False):  # whoever had the turn was gone before it saw this request
            self.lead([])
            return
        try:
            request.signal.acquire()
        except BaseException:
            request.signal.acquire()
            raise
        finally:
            if request.leads:
                self.lead([])

    def lead(self, batch: list[Request]) -> None:
        """Do that and what is waiting, pass the turn on, wake the others."""
        while True:
            if self.waiting:
                batch += [self.waiting.popleft() for _ in range(len(self.waiting))]  # others may add to it meanwhile
            try:
                if batch:
                    self.work(batch)
            finally:
                passed = self.pass_on()
                for request in batch:
                    if request.signal is not None and not request.leads:
                        request.signal.release()
            if passed or not self.waiting or not self.turn.acquire(False):
                return
            batch = []

    def pass_on(self) -> bool:
        """The turn to the first who waits, if anyone does."""
        if not self.waiting:
            self.turn.release()
            return False
        first = self.waiting[0]
        first.leads = True
        assert first.signal is not None
        first.signal.release()
        return True
