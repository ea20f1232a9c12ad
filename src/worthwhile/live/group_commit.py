"""Group commit: what threads ask for at the same time is done in one transaction, by one of them, the leader.

Whoever finds nobody leading leads, for itself and for all that are queued by then: a lone caller pays for no change of
threads. Only the main thread is interrupted by signals (Ctrl-C); any thread may run out of stack.

| state of       | next               | moved on by                            | an interrupt there leaves          |
|----------------|--------------------|----------------------------------------|------------------------------------|
| the lead: free | a call's           | any call; the first one wins           | nothing                            |
| … a call's     | WAKING             | that call, if its batch had followers  | the lead free, the queue woken     |
|                | another's, or free | that call, if it had none              | the same                           |
| … WAKING       | another's, or free | the last follower to be woken          | nothing: none is the main thread   |
| a call: queued | taken out          | a leader                               | nothing of it: it leaves the queue |
|                | leading            | itself, once the lead is its own       | the same                           |
| … taken out    | answered           | the leader, then one follower the next | it waiting for the commit          |
| … leading      | done               | itself                                 | “not known” to its followers       |
"""

from __future__ import annotations

import sys
import threading
from abc import ABC, abstractmethod
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
ENOUGH_STACK = 200  # frames
Token = tuple[int]  # the thread of a call; a new object for each call, compared by `is`
WAKING: Token = (0,)


class Request:
    """Something asked of the scheduler, and later its answer or the error why there is none."""

    answer: Any = None
    error: BaseException | None = UNKNOWN
    task: int | None = None
    tasks: Sequence[int] = ()  # several that still run
    key: str | None = None
    kind: str | None = None

    def __init__(self, action: Callable[[Any], Any], task: int | None = None) -> None:
        self.action, self.task = action, task


class Follower:
    """A call in the queue: some leader answers its requests, unless it is to lead itself."""

    queued = answered = False
    next: Follower | None = None  # to be woken by this one

    def __init__(self, requests: Sequence[Request], token: Token) -> None:
        self.requests, self.token = requests, token
        self.interruptible = is_main_thread(token)
        # put and get are single C calls. In an Event or a Condition, written in Python, an interrupt may come while
        # it holds its lock, and a signal handler that asks would then wait for its own thread.
        self.wakeups: SimpleQueue[None] = SimpleQueue()

    def sleep(self) -> None:
        """Until it is woken; for a second at most, as an interrupted thread may have woken nobody."""
        try:  # noqa: SIM105 (which would take as long as the rest)
            self.wakeups.get(True, LONGEST_SLEEP)
        except Empty:
            pass

    def wake_answered(self) -> None:
        self.answered = True
        self.wakeups.put(None)


class GroupCommit(ABC):
    """One call at a time leads, the others follow."""

    def __init__(self) -> None:
        self.begin_anew()

    @abstractmethod
    def commit(self, requests: Sequence[Request]) -> None:
        """Answer a batch of requests in one transaction; called by one thread at a time."""

    def begin_anew(self) -> None:
        """Nobody leads, nobody is queued: at first, and in a forked child, whose other threads are gone."""
        self.queue: deque[Follower] = deque()
        # A dict, because `setdefault` is one C call: it takes the lead and says whether it has, in a step that no
        # interrupt divides. After a lock's acquire, an interrupt may come before anyone has noted who holds it.
        self.leading: dict[str, Token] = {}
        self.gave_up: Exception | None = None  # why the latest batch failed, if it has waited for too long

    def ask(self, request: Request) -> Any:
        """The answer, once whatever it tells is stored."""
        self.ask_all([request])
        if request.error is not None:
            raise request.error
        return request.answer

    def ask_all(self, requests: Sequence[Request]) -> None:
        """Several from one thread, in one transaction; each gets its own answer or error."""
        token, leading, queue = (get_ident(),), self.leading, self.queue
        try:
            if leading.setdefault("leader", token) is not token:
                self.follow(token, requests)
            elif queue:
                self.lead(token, requests)
            else:  # as `lead` does, for one caller alone
                self.commit(requests)
                if queue:
                    self.hand_over()
                else:
                    del leading["leader"]
                    if queue:  # somebody has queued between these two lines
                        self.wake_all()
        except BaseException:
            # No calls before the `del`: Python lets signals in after a call, and a second Ctrl-C would keep the lead.
            if "leader" in leading and leading["leader"] is token:
                del leading["leader"]
            self.wake_all()
            raise

    def lead(self, token: Token, requests: Sequence[Request]) -> None:
        """Commit these requests and what is queued; then wake the followers."""
        interruptible = is_main_thread(token)
        if interruptible and self.other_threads_wait():
            # Signals interrupt the main thread, anywhere. If it led a batch, Ctrl-C would take the others' answers
            # along; so it works for itself alone, and only if nobody else could lead.
            self.hand_over()
            self.follow(token, requests)
            return
        if interruptible or stack_is_short():  # which would fail the others' requests, too
            self.commit(requests)
            self.hand_over()
            return
        followers: list[Follower] = []
        try:
            with suppress(IndexError):  # the main thread may leave
                for _ in range(len(self.queue)):  # others may come
                    followers.append(self.queue.popleft())
            self.commit([*requests, *(request for follower in followers for request in follower.requests)])
        finally:
            if self.leading.get("leader") is token:  # not in a child that a policy has forked: no followers are there
                self.wake_in_turn(followers)

    def wake_in_turn(self, followers: Sequence[Follower]) -> None:
        """Each follower wakes the next one, and the last hands over; the main thread goes its own way.

        All woken at once would only wait for the interpreter's lock. And by the time the last one runs, most have
        asked for something again, so that the next batch is as large.
        """
        chain = [follower for follower in followers if not follower.interruptible]
        for follower, after in pairwise(chain):
            follower.next = after
        for follower in followers:
            if follower.interruptible:
                follower.wake_answered()
        if chain:
            self.leading["leader"] = WAKING
            chain[0].wake_answered()
        else:
            self.hand_over()

    def hand_over(self) -> None:
        """The longest waiting thread leads, or nobody; not the main thread, which may leave before it is woken."""
        if self.gave_up is not None:
            self.refuse(self.gave_up)
            return
        for follower in self.queue.copy():
            if not follower.interruptible:
                self.leading["leader"] = follower.token
                follower.wakeups.put(None)
                return
        self.leading.pop("leader", None)  # there is none in such a child
        if self.queue:
            self.wake_all()

    def refuse(self, error: Exception) -> None:
        """Everybody queued has waited about as long as the batch that was given up: they are told the same."""
        self.gave_up, followers = None, []
        for follower in self.queue.copy():
            if self.left_queue(follower):
                followers.append(follower)
                for request in follower.requests:
                    request.error = error
        self.wake_in_turn(followers)

    def wake_all(self) -> None:
        """Everybody queued looks again who leads."""
        for follower in self.queue.copy():
            follower.wakeups.put(None)

    def other_threads_wait(self) -> bool:
        """Anybody but the main thread."""
        return False in [follower.interruptible for follower in self.queue.copy()]

    def follow(self, token: Token, requests: Sequence[Request]) -> None:
        """Queue until the requests are answered, or until it is this call's turn to lead."""
        if self.leading.get("leader") == token:  # another call of this very thread
            raise StoreError(IN_THE_MIDDLE)
        follower, leads = Follower(requests, token), False
        try:
            follower.queued = True
            self.queue.append(follower)
            while not follower.answered and not leads:
                if (follower.interruptible and self.other_threads_wait()) or self.leading.setdefault(
                    "leader", token
                ) is not token:
                    follower.sleep()
                elif self.left_queue(follower):
                    leads = True
                else:  # answered meanwhile
                    self.hand_over()
                    if not follower.answered:  # or not: whoever took it out had no room left on its stack
                        return
        except BaseException:
            try:
                self.queue.remove(follower)
            except ValueError:  # a leader has taken it out: wait, so that the caller knows what is stored
                while follower.queued and not follower.answered and self.leading.get("leader", token) is not token:
                    follower.sleep()
            raise
        if leads:
            self.lead(token, requests)
        elif follower.next is not None:
            follower.next.wake_answered()
        elif not follower.interruptible:
            self.hand_over()

    def left_queue(self, follower: Follower) -> bool:
        """Take it out of the queue, unless a leader has done so."""
        try:
            self.queue.remove(follower)
        except ValueError:
            return False
        return True


def stack_is_short() -> bool:
    """Whether this thread is so deep in calls that others' requests may not get through."""
    try:
        sys._getframe(sys.getrecursionlimit() - ENOUGH_STACK)
    except ValueError:  # there are fewer frames than that
        return False
    return True


def is_main_thread(token: Token) -> bool:
    return token[0] == threading.main_thread().ident
