"""Group commit among threads: everybody is answered once, in few batches, whatever interrupts them."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Sequence

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
        signal.pthread_kill(main, signal.SIGINT)
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
