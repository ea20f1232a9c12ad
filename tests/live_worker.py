"""A process that uses a scheduler as hard as it can, and writes down what was acknowledged: `python live_worker.py`.

One line per acknowledgement, flushed at once: `decided KEY ID OPTION`, `reported ID REWARD COST`. Whoever kills it then
asks the store for every one of them, with `check_everything`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading

from worthwhile import Scheduler
from worthwhile.errors import StoreError
from worthwhile.live.stores.base import LogRow, TaskRow

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


def use(url: str, name: str, count: int, threads: int, scheduler_name: str = "default") -> None:
    """So many tasks in each of so many threads; the name is the worker's."""
    with Scheduler(url, name=scheduler_name) as scheduler:
        acknowledged("ready")
        workers = [
            threading.Thread(target=work, args=(scheduler, f"{name}.{number}", count)) for number in range(threads)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        acknowledged("rebuilt", scheduler.rebuild())


def start(url: str, name: str, count: int, threads: int = 1) -> subprocess.Popen[bytes]:
    """A process that uses the scheduler."""
    arguments = [sys.executable, __file__, url, name, str(count), str(threads)]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE)


def all_rows(scheduler: Scheduler) -> tuple[dict[int, TaskRow], list[LogRow]]:
    """Every task and the whole log."""
    tasks = scheduler._transactor.do(lambda batch: batch.tx.latest(batch.replica.id, 10**9))
    return {row.task: row for row in tasks}, scheduler._transactor.entries(0, 10**9)


def check_everything(url: str, outputs: list[str], name: str = "default") -> tuple[int, int]:
    """Every acknowledgement is in the store, every report is there once, and a rebuild gives the same bits."""
    with Scheduler(url, name=name) as scheduler:
        tasks, log = all_rows(scheduler)
        by_key = {row.key: row for row in tasks.values()}
        decided = reported = 0
        for word, *rest in (line.split() for output in outputs for line in output.splitlines()):
            if word == "decided":
                row, decided = by_key[rest[0]], decided + 1
                assert str(row.task) == rest[1]
                assert OPTIONS[row.option] == int(rest[2])
            elif word == "reported":
                row, reported = tasks[int(rest[0])], reported + 1
                assert (row.reward, row.cost) == (float(rest[1]), float(rest[2]))
                assert row.report is not None
            assert word != "rebuilt" or rest == ["True"]
        assert [entry.number for entry in log] == list(range(1, len(log) + 1))
        assert len({entry.task for entry in log}) == len(log)
        assert {entry.task: entry.number for entry in log} == {
            row.task: row.report for row in tasks.values() if row.report is not None
        }
        assert sorted(tasks) == list(range(1, len(tasks) + 1))
        found = scheduler.summary()
        assert (found.tasks, found.reports, found.bad_entries) == (len(tasks), len(log), 0)
        assert scheduler.rebuild()
        return decided, reported


if __name__ == "__main__":
    use(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
