"""Schedulers and forks, in a process of their own: `python forks.py URL`.

A thread keeps deciding and reporting while children are forked off; each goes on by itself, outlives the parent's
scheduler, and writes down what was acknowledged.
"""

from __future__ import annotations

import os
import sys
import threading
import warnings

from worthwhile import Scheduler
from worthwhile.errors import StoreError

CHILDREN, EACH = 4, 10


def run(scheduler: Scheduler, count: int) -> None:
    for _ in range(count):
        scheduler.decide("x", [1, 2]).report(0.5, 1.0)


def child(scheduler: Scheduler, parent_closed: int) -> None:
    """Ends without what Python does at its end, as forked processes should."""
    run(scheduler, EACH)
    os.read(parent_closed, 1)
    run(scheduler, EACH)
    good = scheduler.rebuild()
    scheduler.close()
    os._exit(0 if good else 1)


def main(url: str) -> None:
    scheduler, memory = Scheduler(url), Scheduler()
    stop = threading.Event()
    done = 0

    def keep_on() -> None:
        nonlocal done
        while not stop.is_set():
            run(scheduler, 1)
            done += 1

    thread = threading.Thread(target=keep_on)
    thread.start()
    closed, close = os.pipe()
    children = []
    for _ in range(CHILDREN):
        pid = os.fork()
        if pid == 0:
            child(scheduler, closed)
        children.append(pid)
        run(scheduler, 1)
    pid = os.fork()
    if pid == 0:
        try:
            memory.decide("x", [1])
        except StoreError as reason:
            os._exit(0 if "in the memory of the process that was forked" in str(reason) else 2)
        os._exit(1)
    stop.set()
    thread.join()
    scheduler.close()
    os.write(close, b"x" * CHILDREN)
    codes = [os.waitpid(each, 0)[1] for each in (*children, pid)]
    with Scheduler(url) as again:
        found = again.summary()
        expected = done + CHILDREN * (2 * EACH + 1)
        assert not any(codes), codes
        assert found.tasks == found.reports == expected, (found.tasks, found.reports, expected)
        assert again.rebuild()
    sys.stdout.write("good\n")


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # newer Pythons mind forks of processes with threads
    main(sys.argv[1])
