"""Group commit: what threads ask for at the same time is done in one transaction, by one of them.

Whoever finds nobody at work does the work, for itself and for all that are waiting by then. A lone caller pays for no
change of threads.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from itertools import pairwise
from threading import get_ident
from typing import Any

from worthwhile.errors import StoreError

UNKNOWN = StoreError("interrupted; whether it was stored is not known: ask again")
IN_THE_MIDDLE = (
    "this thread is in the middle of using the scheduler; neither a policy nor a signal handler can use it as well: "
    "set a flag, and do it later"
)


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
        self.requests, self.leads, self.woken = requests, False, False
        self.interruptible = get_ident() == threading.main_thread().ident
        self.next: Waiting | None = None  # to be woken
        self.signal = threading.Lock()
        self.signal.acquire()

    def wake(self) -> None:
        self.woken = True
        self.signal.release()


class Turns:
    """One at a time works, the others wait; `work` answers a batch of requests.

    Who has been answered wakes the next one, and the last of them passes the turn on. By then most have asked for
    something again, so that the next batch is as large. All woken at once would only wait for the interpreter's lock.
    Signals interrupt the main thread wherever it is: nobody depends on it.
    """

    def __init__(self, work: Callable[[Sequence[Request]], None]) -> None:
        self.work = work
        self.waiting: deque[Waiting] = deque()
        self.turn = threading.Lock()
        self.leader = 0  # the thread that is at work

    def ask(self, request: Request) -> Any:
        """The answer, once whatever it tells is stored."""
        if not self.turn.acquire(False):
            self.wait(Waiting([request]))
        elif self.waiting:
            self.lead([request])
        else:  # as `lead` does, for one alone
            try:
                self.leader = get_ident()
                self.work([request])
            finally:
                self.leader = 0
                self.turn.release()
                if self.waiting and self.turn.acquire(False):
                    self.pass_on()
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
        """Until it is done, or this thread's turn to do it."""
        if self.leader == get_ident():
            raise StoreError(IN_THE_MIDDLE)
        interrupt = None
        self.waiting.append(one)
        if self.turn.acquire(False):  # whoever had the turn was gone before it saw this one
            one.leads = self.took_out(one)
        else:
            interrupt = self.sleep(one)
        if one.leads:
            self.lead(one.requests)
        elif one.next is not None:
            one.next.wake()
        elif not one.interruptible:
            self.pass_on()
        if interrupt is not None:
            raise interrupt

    def sleep(self, one: Waiting) -> BaseException | None:
        """Until woken. An interrupt takes it out of the queue or, if somebody is at work on it, has to wait."""
        interrupt = None
        while True:
            try:
                while not one.woken:
                    one.signal.acquire()
                return interrupt
            except BaseException as reason:
                if self.took_out(one):
                    raise
                interrupt = reason

    def took_out(self, one: Waiting) -> bool:
        """Take somebody out of the queue, unless somebody else has done so."""
        try:
            self.waiting.remove(one)
        except ValueError:
            return False
        return True

    def lead(self, requests: Sequence[Request]) -> None:
        """Do that and what is waiting; then the others go on."""
        answered: list[Waiting] = []
        try:
            self.leader = get_ident()
            answered += [self.waiting.popleft() for _ in range(len(self.waiting))]  # others may add to it meanwhile
            self.work([*requests, *(request for one in answered for request in one.requests)])
        finally:
            self.leader = 0
            if answered:
                self.wake(answered)
            else:
                self.pass_on()

    def wake(self, answered: Sequence[Waiting]) -> None:
        """One wakes the next, and the last passes the turn on; the main thread goes its own way."""
        chain = [one for one in answered if not one.interruptible]
        for one, after in pairwise(chain):
            one.next = after
        for one in answered:
            if one.interruptible:
                one.wake()
        if chain:
            chain[0].wake()
        else:
            self.pass_on()

    def pass_on(self) -> None:
        """The turn goes to who has waited longest, the main thread last; if nobody waits, it is free."""
        while True:
            if not self.waiting:
                self.turn.release()
                if not self.waiting or not self.turn.acquire(False):
                    return
            queue = self.waiting.copy()
            first = next((one for one in queue if not one.interruptible), queue[-1] if queue else None)
            if first is not None and self.took_out(first):
                first.leads = True
                first.wake()
                return
