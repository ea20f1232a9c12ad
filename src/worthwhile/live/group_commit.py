"""Group commit: what threads ask for at the same time is done in one transaction, by one of them.

Whoever finds nobody at work does the work, for itself and for all that are waiting by then. A lone caller pays for no
change of threads.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise
from queue import Empty, SimpleQueue
from threading import get_ident
from typing import Any

from worthwhile.errors import StoreError

UNKNOWN = StoreError("interrupted; whether it was stored is not known: ask again")
IN_THE_MIDDLE = (
    "this thread is in the middle of using the scheduler; neither a policy nor a signal handler can use it as well: "
    "set a flag, and do it later"
)
LONGEST_SLEEP = 1.0  # seconds
Turn = tuple[int]  # of a thread; each time it asks, another object
THEIRS: Turn = (0,)  # of those who have been answered, one after the other


class Request:
    """Something asked of the scheduler, and later its answer or the reason why there is none."""

    answer: Any = None
    reason: BaseException | None = UNKNOWN
    task: int | None = None
    key: str | None = None
    kind: str | None = None

    def __init__(
        self, action: Callable[[Any], Any], task: int | None = None, key: str | None = None, kind: str | None = None
    ) -> None:
        self.action, self.task, self.key, self.kind = action, task, key, kind


class Waiting:
    """A thread that waits for its requests to be answered, or for nobody to be at work."""

    queued = answered = False
    next: Waiting | None = None  # to be woken

    def __init__(self, requests: Sequence[Request], turn: Turn) -> None:
        self.requests, self.turn = requests, turn
        self.interruptible = is_main_thread(turn)
        self.news: SimpleQueue[None] = SimpleQueue()

    def sleep(self) -> None:
        """Until there is news; not for ever, in case that whoever had some was interrupted twice."""
        try:  # noqa: SIM105 (which would take as long as the rest)
            self.news.get(True, LONGEST_SLEEP)
        except Empty:
            pass

    def go_on(self) -> None:
        """It is answered."""
        self.answered = True
        self.news.put(None)


class GroupCommit:
    """One at a time works, the others wait; `work` answers a batch of requests.

    Who has been answered wakes the next one, and the last of them ends the turn. By then most have asked for something
    again, so that the next batch is as large. All woken at once would only wait for the interpreter's lock.

    Signals may interrupt the main thread anywhere. So nobody depends on it: it works for itself alone, and only if
    nobody else could. What it has taken is known from what is stored, not from where it is.
    """

    def __init__(self, work: Callable[[Sequence[Request]], None]) -> None:
        self.work = work
        self.waiting: deque[Waiting] = deque()
        self.held: dict[str, Turn] = {}  # "turn": whose it is; whoever puts it there first has it

    def ask(self, request: Request) -> Any:
        """The answer, once whatever it tells is stored."""
        mine, held, waiting = (get_ident(),), self.held, self.waiting
        try:
            if held.setdefault("turn", mine) is not mine:
                self.wait(mine, [request])
            elif waiting:
                self.lead(mine, [request])
            else:  # as `lead` does, for one alone
                self.work([request])
                if waiting:
                    self.end()
                else:
                    del held["turn"]
                    if waiting:
                        self.call()
        except BaseException:
            if "turn" in self.held and self.held["turn"] is mine:  # no calls here: the next signal may come after one
                del self.held["turn"]
            self.call()
            raise
        if request.reason is not None:
            raise request.reason
        return request.answer

    def ask_all(self, requests: Sequence[Request]) -> None:
        """Several from one thread, in one transaction; each gets its own answer or reason."""
        mine = (get_ident(),)
        try:
            if self.held.setdefault("turn", mine) is mine:
                self.lead(mine, requests)
            else:
                self.wait(mine, requests)
        except BaseException:
            if "turn" in self.held and self.held["turn"] is mine:
                del self.held["turn"]
            self.call()
            raise

    def end(self) -> None:
        """The turn goes to who has waited longest, or it is free; the main thread may leave before it gets it."""
        for one in self.waiting.copy():
            if not one.interruptible:
                self.held["turn"] = one.turn
                one.news.put(None)
                return
        del self.held["turn"]
        if self.waiting:
            self.call()

    def call(self) -> None:
        """All who wait: see whose turn it is."""
        for one in self.waiting.copy():
            one.news.put(None)

    def lead(self, mine: Turn, requests: Sequence[Request]) -> None:
        """Do that and what is waiting; then the others go on."""
        if is_main_thread(mine):
            if self.others_wait():
                self.end()
                self.wait(mine, requests)
            else:
                self.work(requests)
                self.end()
            return
        answered: list[Waiting] = []
        try:
            with suppress(IndexError):  # the main thread may leave
                for _ in range(len(self.waiting)):  # others may come
                    answered.append(self.waiting.popleft())
            self.work([*requests, *(request for one in answered for request in one.requests)])
        finally:
            self.wake(answered)

    def others_wait(self) -> bool:
        """Anybody but the main thread."""
        return False in [one.interruptible for one in self.waiting.copy()]

    def wake(self, answered: Sequence[Waiting]) -> None:
        """One wakes the next, and the last ends the turn; the main thread goes its own way."""
        chain = [one for one in answered if not one.interruptible]
        for one, after in pairwise(chain):
            one.next = after
        for one in answered:
            if one.interruptible:
                one.go_on()
        if chain:
            self.held["turn"] = THEIRS
            chain[0].go_on()
        else:
            self.end()

    def wait(self, mine: Turn, requests: Sequence[Request]) -> None:
        """Until it is done, or this thread's turn to do it."""
        if self.held.get("turn") == mine:
            raise StoreError(IN_THE_MIDDLE)
        one, leads = Waiting(requests, mine), False
        try:
            one.queued = True
            self.waiting.append(one)
            while not one.answered and not leads:
                if (one.interruptible and self.others_wait()) or self.held.setdefault("turn", mine) is not mine:
                    one.sleep()
                elif self.took_out(one):
                    leads = True
                else:  # done meanwhile
                    self.end()
                    if not one.answered:  # or not: whoever took it out had no room left on its stack
                        return
        except BaseException:
            try:
                self.waiting.remove(one)
            except ValueError:
                while one.queued and not one.answered and self.held.get("turn", mine) is not mine:
                    one.sleep()  # somebody is at work on it
            raise
        if leads:
            self.lead(mine, requests)
        elif one.next is not None:
            one.next.go_on()
        elif not one.interruptible:
            self.end()

    def took_out(self, one: Waiting) -> bool:
        """Take somebody out of the queue, unless somebody else has done so."""
        try:
            self.waiting.remove(one)
        except ValueError:
            return False
        return True


def is_main_thread(mine: Turn) -> bool:
    return mine[0] == threading.main_thread().ident
