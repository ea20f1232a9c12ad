"""Group commit among threads: everybody is answered once, in few batches, whatever interrupts them."""

from __future__ import annotations

import dis
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from types import CodeType, FrameType
from typing import Any

import pytest

from waiting import NET, once, wait_until
from worthwhile.errors import StoreError
from worthwhile.live.group_commit import Follower, GroupCommit, Request, Token
from worthwhile.live.group_commit import __file__ as module_file


class Working(GroupCommit):
    """Commits by calling a function."""

    def __init__(self, work: Callable[[Sequence[Request]], None]) -> None:
        super().__init__()
        self.work = work

    def commit(self, requests: Sequence[Request]) -> None:
        self.work(requests)


class Slow:
    """Answers a batch when it is told to, and counts."""

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.begun, self.go = threading.Event(), threading.Event()
        self.group_commit = Working(self.work)

    def work(self, batch: Sequence[Request]) -> None:
        self.batches.append(len(batch))
        self.begun.set()
        assert self.go.wait(NET)
        for request in batch:
            request.answer, request.error = request.task, None


class Crowd:
    """Threads that ask one after the other, and their answers."""

    def __init__(self, slow: Slow) -> None:
        self.slow = slow
        self.threads: list[threading.Thread] = []
        self.answers: list[int] = []

    def ask(self, number: int) -> None:
        """Another thread: it is at work, or it waits, when this returns."""
        waiting = len(self.slow.group_commit.queue)
        self.threads.append(threading.Thread(target=self.asking, args=(number,)))
        self.threads[-1].start()
        assert self.slow.begun.wait(NET)
        wait_until(lambda: number == 0 or len(self.slow.group_commit.queue) != waiting, "another one who waits")

    def asking(self, number: int) -> None:
        self.answers.append(self.slow.group_commit.ask(Request(print, number)))

    def all_answered(self) -> list[int]:
        for thread in self.threads:
            thread.join(NET)
        return sorted(self.answers)


def test_what_waits_is_done_together() -> None:
    slow = Slow()
    crowd = Crowd(slow)
    for number in range(8):
        crowd.ask(number)
    slow.go.set()
    assert crowd.all_answered() == list(range(8))
    assert slow.batches == [1, 7]
    assert not slow.group_commit.leading


def test_whoever_has_been_answered_asks_again_before_the_next_batch() -> None:
    """The last one answered passes the lead on, so that batches stay as large as the crowd."""
    batches: list[int] = []
    crowd = [None] * 8

    def work(batch: Sequence[Request]) -> None:
        batches.append(len(batch))
        wait_until(lambda: len(batch) + len(group_commit.queue) >= len(crowd), "all others, as on a slow disk")
        at_once(batch)

    group_commit, together = Working(work), threading.Barrier(8)

    def ask() -> None:
        together.wait()
        for number in range(20):
            assert group_commit.ask(Request(print, number)) == number
        crowd.pop()

    threads = [threading.Thread(target=ask, daemon=True) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(NET)
    assert sum(batches) == 160
    assert len(batches) < 32  # two crowds taking turns would need 40, one by one 160


def test_several_requests_queue_like_one_and_are_not_passed_over() -> None:
    def work(batch: Sequence[Request]) -> None:
        wait_until(lambda: group_commit.queue or len(batch) >= 8 or not busy, "the next one")  # somebody always waits
        at_once(batch)

    group_commit, busy = Working(work), True

    def ask() -> None:
        while busy:
            group_commit.ask(Request(print, 1))

    threads = [threading.Thread(target=ask, daemon=True) for _ in range(8)]
    for thread in threads:
        thread.start()
    asked = [[Request(print, 10 * turn + number) for number in range(3)] for turn in range(50)]
    patient = threading.Thread(target=lambda: [group_commit.ask_all(some) for some in asked], daemon=True)
    patient.start()
    patient.join(NET)
    done = not patient.is_alive()
    busy = False
    for thread in threads:
        thread.join(NET)
    assert done
    assert [[one.answer for one in some] for some in asked] == [
        [10 * turn, 10 * turn + 1, 10 * turn + 2] for turn in range(50)
    ]
    assert not group_commit.leading


def test_work_that_is_interrupted_leaves_nobody_waiting() -> None:
    slow = Slow()
    crowd = Crowd(slow)
    crowd.ask(0)
    reasons: list[str] = []

    def interrupted(batch: Sequence[Request]) -> None:
        at_once(batch[:1])
        raise KeyboardInterrupt

    def ask(number: int) -> None:
        try:
            slow.group_commit.ask(Request(print, number))
        except (StoreError, KeyboardInterrupt) as reason:
            reasons.append(type(reason).__name__)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(5)]
    for number, thread in enumerate(threads, 1):
        thread.start()
        wait_until(lambda: len(slow.group_commit.queue) >= number, "this one in the queue")  # noqa: B023
    slow.group_commit.work = interrupted
    slow.go.set()
    for thread in threads:
        thread.join(NET)
    assert crowd.all_answered() == [0]
    assert sorted(reasons) == ["KeyboardInterrupt", *["StoreError"] * 4]
    assert not slow.group_commit.leading


@pytest.fixture
def signalled() -> Iterator[Callable[[Callable[[], None]], None]]:
    """The main thread gets SIGUSR1 when something else has been waited for; handlers are as before afterwards."""
    before, helpers = signal.getsignal(signal.SIGUSR1), []

    def when(waited: Callable[[], None]) -> None:
        def helper() -> None:
            waited()
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

        helpers.append(threading.Thread(target=helper))
        helpers[-1].start()

    yield when
    for helper in helpers:
        helper.join(NET)
    signal.signal(signal.SIGUSR1, before)


Signalled = Callable[[Callable[[], None]], None]


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_who_is_interrupted_in_the_queue_leaves_it_and_the_others_are_answered(signalled: Signalled) -> None:
    slow = Slow()
    crowd = Crowd(slow)
    for number in range(3):
        crowd.ask(number)

    def more_wait() -> None:
        wait_until(lambda: len(slow.group_commit.queue) >= 3, "the main thread in the queue")
        for number in range(3, 7):
            crowd.ask(number)

    signal.signal(signal.SIGUSR1, interrupt)
    signalled(more_wait)
    with pytest.raises(KeyboardInterrupt):
        slow.group_commit.ask(Request(print, 99))
    slow.go.set()
    assert crowd.all_answered() == list(range(7))
    assert slow.batches == [1, 6]
    assert not slow.group_commit.leading


def test_who_is_interrupted_while_somebody_works_on_it_waits_for_that(signalled: Signalled) -> None:
    slow, request, heard = Slow(), Request(print, 99), threading.Event()
    crowd = Crowd(slow)
    crowd.ask(0)
    crowd.ask(1)

    def it_is_worked_on() -> None:
        wait_until(lambda: len(slow.group_commit.queue) >= 2, "the main thread in the queue")
        slow.begun.clear()
        slow.go.set()
        slow.go.clear()
        assert slow.begun.wait(NET)
        crowd.ask(2)
        once(heard.is_set, slow.go.set, "the signal")

    def hear(*_: object) -> None:
        heard.set()
        raise KeyboardInterrupt

    signal.signal(signal.SIGUSR1, hear)
    signalled(it_is_worked_on)
    with pytest.raises(KeyboardInterrupt):
        slow.group_commit.ask(request)
    assert (request.answer, request.error) == (99, None)
    assert crowd.all_answered() == [0, 1, 2]
    assert not slow.group_commit.leading


def test_a_signal_handler_may_ask_while_its_thread_waits(signalled: Signalled) -> None:
    slow, answers = Slow(), []
    crowd = Crowd(slow)
    crowd.ask(0)

    def it_waits() -> None:
        wait_until(lambda: slow.group_commit.queue, "the main thread in the queue")
        crowd.ask(1)
        once(lambda: len(slow.group_commit.queue) == 3, slow.go.set, "the handler in the queue")

    signal.signal(signal.SIGUSR1, lambda *_: answers.append(slow.group_commit.ask(Request(print, 98))))
    signalled(it_waits)
    assert slow.group_commit.ask(Request(print, 99)) == 99
    assert answers == [98]
    assert crowd.all_answered() == [0, 1]
    assert not slow.group_commit.leading


def test_who_asks_in_the_middle_of_its_own_work_is_told_so() -> None:
    def work(batch: Sequence[Request]) -> None:
        group_commit.ask(Request(print, 2))

    group_commit = Working(work)
    with pytest.raises(StoreError, match=r"in the middle of using the scheduler; .* set a flag, and do it later"):
        group_commit.ask(Request(print, 1))
    assert not group_commit.leading


def test_ctrl_c_at_any_moment_leaves_nobody_waiting() -> None:
    """A process of its own: eight threads ask, the main thread is interrupted all the time."""
    command = [sys.executable, "-c", INTERRUPTED]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, timeout=NET)
    assert (ended.stdout, ended.returncode) == ("all went on\n", 0), ended.stderr


INTERRUPTED = """
import os, signal, threading, time
from worthwhile.live.group_commit import Request, GroupCommit

class Working(GroupCommit):
    def commit(self, requests):
        time.sleep(0.0002)
        for request in requests:
            request.answer, request.error = request.task, None

def ask(place):
    while not stop:
        group_commit.ask(Request(print, 1))
        asked[place] += 1

def interrupt():
    for _ in range(200):
        time.sleep(0.011)
        os.kill(os.getpid(), signal.SIGINT)

group_commit, stop, asked = Working(), False, [0] * 8
threads = [threading.Thread(target=ask, args=(place,), daemon=True) for place in range(8)]
helper = threading.Thread(target=interrupt)

def once_in_a_while(*_):
    global armed
    if armed:  # nobody interrupts the handling of an interrupt
        armed = False
        raise KeyboardInterrupt

armed = False
signal.signal(signal.SIGINT, once_in_a_while)
for thread in (*threads, helper):
    thread.start()
while helper.is_alive():
    try:
        armed = True
        while helper.is_alive():
            group_commit.ask(Request(print, 2))
        armed = False
    except KeyboardInterrupt:
        pass
signal.signal(signal.SIGINT, signal.SIG_IGN)
before = list(asked)
while not all(now > then for now, then in zip(asked, before)):  # for ever, if somebody is forgotten
    os.sched_yield()
stop = True
print("all went on")
"""


class Interrupting:
    """Raises Ctrl-C in this thread twice, where Python may: as functions of group_commit.py begin, and after calls.

    Python drops a tracer that raises, and a profiler likewise; so each of them raises once.
    """

    def __init__(self, first: int, second: int) -> None:
        self.first, self.second = first, second

    def trace(self, frame: FrameType, event: str, arg: object) -> Any:
        if frame.f_code.co_filename != module_file:
            return None
        frame.f_trace_opcodes = True
        if event == "call" or (event == "opcode" and frame.f_lasti in after_calls(frame.f_code)):
            self.first -= 1
            if self.first == 0:
                raise KeyboardInterrupt
        return self.trace

    def profile(self, frame: FrameType, event: str, arg: object) -> None:
        if self.first <= 0 and frame.f_code.co_filename == module_file and event in ("call", "c_return"):
            self.second -= 1
            if self.second == 0:
                raise KeyboardInterrupt

    def __enter__(self) -> None:
        sys.setprofile(self.profile)
        self.before = sys.gettrace()  # that of coverage, which sees nothing more if it is not put back
        sys.settrace(self.trace)

    def __exit__(self, *reason: object) -> None:
        sys.settrace(self.before)
        sys.setprofile(None)


@cache
def after_calls(code: CodeType) -> set[int]:
    """The instructions that follow a call."""
    return {after.offset for one, after in pairwise(dis.get_instructions(code)) if one.opname.startswith("CALL")}


@pytest.mark.parametrize("others", [0, 2])
def test_two_interrupts_anywhere_leave_the_lead_to_others(others: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one comes while the first is being dealt with."""
    monkeypatch.setattr("worthwhile.live.group_commit.LONGEST_SLEEP", 0.01)
    interrupts = 0
    for first in range(1, 30):
        for second in range(1, 8):
            slow, over = Slow(), threading.Event()
            crowd, answered, queue = Crowd(slow), [], slow.group_commit.queue
            for number in range(others):
                crowd.ask(number)
            release = once(
                lambda: over.is_set() or len(queue) == others,  # noqa: B023
                slow.go.set,
                "the main thread at work, in the queue, or done with",
            )
            try:
                with Interrupting(first, second):
                    slow.group_commit.ask(Request(print, 98))
            except KeyboardInterrupt:
                interrupts += 1
            last = threading.Thread(target=lambda: answered.append(slow.group_commit.ask(Request(print, 99))))  # noqa: B023
            over.set()
            release.join(NET)
            last.start()
            last.join(NET)
            assert crowd.all_answered() == list(range(others)), (first, second)
            assert (answered, slow.group_commit.leading, list(slow.group_commit.queue)) == ([99], {}, []), (
                first,
                second,
            )
    assert interrupts > 20


def at_once(batch: Sequence[Request]) -> None:
    for request in batch:
        request.answer, request.error = request.task, None


class Late(dict[str, Token]):
    """A lead that is free again just when somebody has queued for it; another thread asks before that one goes on."""

    def __init__(self, meanwhile: Callable[[], None]) -> None:
        super().__init__(leader=(0,))
        self.meanwhile, self.asked = meanwhile, 0

    def setdefault(self, key: str, token: Any = None) -> Token:
        self.asked += 1
        if self.asked == 2:
            self.clear()
            super().setdefault(key, token)
            self.meanwhile()
        return super().setdefault(key, token)


def test_who_finds_the_lead_free_at_last_wakes_those_behind() -> None:
    group_commit = Working(at_once)
    answers: list[int] = []
    second = threading.Thread(target=lambda: answers.append(group_commit.ask(Request(print, 2))), daemon=True)

    def meanwhile() -> None:
        second.start()
        wait_until(lambda: len(group_commit.queue) >= 2, "the second one in the queue")

    group_commit.leading = Late(meanwhile)
    assert group_commit.ask(Request(print, 1)) == 1
    second.join(NET)
    assert answers == [2]


def test_a_full_stack_leaves_the_lead_to_others() -> None:
    """Asked at every depth, until there is no room for another call."""
    group_commit, refused = Working(at_once), []

    def deeper() -> None:
        try:
            group_commit.ask_all([ready])
        except RecursionError:
            refused.append(1)
        deeper()

    ready = Request(print, 1)
    with pytest.raises(RecursionError):
        deeper()
    assert len(refused) > 1
    assert group_commit.leading == {}
    assert group_commit.ask(Request(print, 2)) == 2


@pytest.mark.parametrize("followers", [0, 2])
def test_a_call_that_forks_goes_on_in_the_child(followers: int) -> None:
    """There its followers, threads of the parent, are gone; nobody waits for them."""

    def forking(batch: Sequence[Request]) -> None:
        group_commit.begin_anew()
        at_once(batch)

    group_commit, answers = Working(forking), []
    group_commit.queue.extend(Follower([Request(print, number)], (number,)) for number in range(1, 1 + followers))

    def ask() -> None:
        answers.append(group_commit.ask(Request(print, 8)))
        group_commit.work = at_once
        answers.append(group_commit.ask(Request(print, 9)))

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(NET)
    assert (answers, group_commit.leading) == ([8, 9], {})


class Leaving(deque[Follower]):
    """A queue that everybody else leaves as soon as one has been taken out."""

    def popleft(self) -> Follower:
        first = super().popleft()
        self.clear()
        return first


def test_who_leaves_the_queue_while_it_is_taken_out_holds_nobody_up() -> None:
    group_commit, requests = Working(at_once), [Request(print, number) for number in range(3)]
    group_commit.queue = Leaving(Follower([request], (number,)) for number, request in enumerate(requests[1:], 1))
    first, second = group_commit.queue
    thread = threading.Thread(target=lambda: group_commit.ask(requests[0]))
    thread.start()
    thread.join(NET)
    assert [request.answer for request in requests] == [0, 1, None]
    assert (first.answered, second.answered) == (True, False)


def test_nobody_is_forgotten_when_threads_change_all_the_time() -> None:
    group_commit, interval = Working(at_once), sys.getswitchinterval()

    def ask() -> None:
        for number in range(2000):
            assert group_commit.ask(Request(print, number)) == number
            if number % 3:
                time.sleep(0)

    threads = [threading.Thread(target=ask, daemon=True) for _ in range(24)]
    sys.setswitchinterval(1e-7)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(NET)
    finally:
        sys.setswitchinterval(interval)
    assert not any(thread.is_alive() for thread in threads)
    assert not group_commit.leading
