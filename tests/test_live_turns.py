"""Group commit among threads: everybody is answered once, in few batches, whatever interrupts them."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence

import pytest

from worthwhile.live.turns import Request, Turns


class Slow:
    """Answers a batch when it is told to, and counts."""

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.begun, self.go = threading.Event(), threading.Event()
        self.turns = Turns(self.work)

    def work(self, batch: Sequence[Request]) -> None:
        self.batches.append(len(batch))
        self.begun.set()
        assert self.go.wait(30)
        for request in batch:
            request.answer, request.reason = request.task, None


class Crowd:
    """Threads that ask one after the other, and their answers."""

    def __init__(self, slow: Slow) -> None:
        self.slow = slow
        self.threads: list[threading.Thread] = []
        self.answers: list[int] = []

    def ask(self, number: int) -> None:
        """Another thread: it is at work, or it waits, when this returns."""
        waiting = len(self.slow.turns.waiting)
        self.threads.append(threading.Thread(target=self.asking, args=(number,)))
        self.threads[-1].start()
        assert self.slow.begun.wait(30)
        while number > 0 and len(self.slow.turns.waiting) == waiting:
            time.sleep(0.001)

    def asking(self, number: int) -> None:
        self.answers.append(self.slow.turns.ask(Request(print, number)))

    def all_answered(self) -> list[int]:
        for thread in self.threads:
            thread.join(30)
        return sorted(self.answers)


def test_what_waits_is_done_together() -> None:
    slow = Slow()
    crowd = Crowd(slow)
    for number in range(8):
        crowd.ask(number)
    slow.go.set()
    assert crowd.all_answered() == list(range(8))
    assert slow.batches == [1, 7]
    assert not slow.turns.turn.locked()


def test_an_interrupted_thread_wakes_the_next_all_the_same() -> None:
    slow, main = Slow(), threading.get_ident()
    crowd = Crowd(slow)
    for number in range(3):
        crowd.ask(number)

    def interrupt() -> None:
        while len(slow.turns.waiting) < 3:  # this thread waits too
            time.sleep(0.001)
        for number in range(3, 7):
            crowd.ask(number)
        for _ in range(3):
            signal.pthread_kill(main, signal.SIGINT)
            time.sleep(0.05)
        slow.go.set()

    helper = threading.Thread(target=interrupt)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        helper.start()
        with pytest.raises(KeyboardInterrupt):
            slow.turns.ask(Request(print, 99))
    finally:
        signal.signal(signal.SIGINT, before)
    helper.join(30)
    assert crowd.all_answered() == list(range(7))
    assert not slow.turns.turn.locked()


def at_once(batch: Sequence[Request]) -> None:
    for request in batch:
        request.answer, request.reason = request.task, None


class Late:
    """A lock that is free again just when somebody has queued for it; another thread asks before that one goes on."""

    def __init__(self, meanwhile: Callable[[], None]) -> None:
        self.lock, self.meanwhile, self.asked = threading.Lock(), meanwhile, 0

    def acquire(self, blocking: bool = True) -> bool:
        self.asked += 1
        if self.asked == 1:
            return False
        got = self.lock.acquire(blocking)
        if self.asked == 2:
            self.meanwhile()
        return got

    def release(self) -> None:
        self.lock.release()


def test_who_finds_the_turn_free_at_last_wakes_those_behind() -> None:
    turns = Turns(at_once)
    answers: list[int] = []
    second = threading.Thread(target=lambda: answers.append(turns.ask(Request(print, 2))), daemon=True)

    def meanwhile() -> None:
        second.start()
        while len(turns.waiting) < 2:
            time.sleep(0.001)

    turns.turn = Late(meanwhile)  # type: ignore[assignment]
    assert turns.ask(Request(print, 1)) == 1
    second.join(10)
    assert answers == [2]


def test_nobody_is_forgotten_when_threads_change_all_the_time() -> None:
    turns, interval = Turns(at_once), sys.getswitchinterval()

    def ask() -> None:
        for number in range(2000):
            assert turns.ask(Request(print, number)) == number
            if number % 3:
                time.sleep(0)

    threads = [threading.Thread(target=ask, daemon=True) for _ in range(24)]
    sys.setswitchinterval(1e-7)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    finally:
        sys.setswitchinterval(interval)
    assert not any(thread.is_alive() for thread in threads)
    assert not turns.turn.locked()
