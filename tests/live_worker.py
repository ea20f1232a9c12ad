"""A process that uses a scheduler as hard as it can, and writes down what was acknowledged: `python live_worker.py`.

One line per acknowledgement, flushed at once: `decided KEY ID OPTION`, `reported ID REWARD COST`. Whoever kills it can
then ask the store for every one of them.
"""

from __future__ import annotations

import os
import sys
import threading

from worthwhile import Scheduler
from worthwhile.errors import StoreError

OPTIONS = [1, 5, 10]


def acknowledged(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def work(scheduler: Scheduler, name: str, count: int) -> None:
    """Decide and report, again and again; some reports are sent twice."""
    for number in range(count):
        try:
            key = f"{name}.{number}"
            task = scheduler.decide(f"kind {number % 3}", OPTIONS, key=key)
            acknowledged("decided", key, task.id, task.option)
            reward, cost = int(task.id) % 7 / 7, 1.0 + task.option / 4
            for _ in range(1 + number % 2):
                task.report(reward, cost)
            acknowledged("reported", task.id, reward, cost)
        except StoreError as reason:
            acknowledged("failed", type(reason).__name__)


def main() -> None:
    """url, name of the worker, tasks, threads."""
    url, name, count, threads = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    with Scheduler(url) as scheduler:
        acknowledged("ready")
        workers = [
            threading.Thread(target=work, args=(scheduler, f"{name}.{number}", count)) for number in range(threads)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        acknowledged("rebuilt", scheduler.rebuild())


if __name__ == "__main__":
    main()
