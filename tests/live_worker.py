"""A process that uses a scheduler as hard as it can, and writes down what was acknowledged: `python live_worker.py`.

One line per acknowledgement, flushed at once: `decided KEY ID OPTION`, `reported ID REWARD COST`, `broke ID OPTION
COST` for an attempt that has failed, `again ID OPTION` for the one after it. Whoever kills it then asks the store for
every one of them, with `check_everything`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections import defaultdict

from worthwhile import Scheduler, Task
from worthwhile.errors import StoreError
from worthwhile.live.stores.base import FAILED, LogRow, TaskRow

OPTIONS = [1, 5, 10]
FAILURE_COST = 0.5


def acknowledged(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def work(scheduler: Scheduler, name: str, count: int, features: bool = False) -> None:
    """Decide and report, again and again; some tasks fail first, some reports are sent twice, some have features."""
    for number in range(count):
        try:
            key = f"{name}.{number}"
            told = {"number": number % 11, "name": f"n{number % 5}", f"late {number // 50 % 9}": True}
            told = told if features and number % 8 else None
            task = scheduler.decide(f"kind {number % 3}", OPTIONS, key=key, features=told)
            acknowledged("decided", key, task.id, task.option)
            if number % 4 == 3:
                task = tried_again(task, 1 + number % 3)
            reward, cost = int(task.id) % 7 / 7, 1.0 + task.option / 4
            for _ in range(1 + number % 2):
                task.report(reward, cost)
            acknowledged("reported", task.id, reward, cost)
        except StoreError as reason:
            acknowledged("failed", type(reason).__name__)


def tried_again(task: Task, times: int) -> Task:
    """The next attempt at a task that fails; each is said so many times."""
    for _ in range(times):
        task.fail(FAILURE_COST, "broken")
    acknowledged("broke", task.id, task.option, FAILURE_COST)
    again = [task.again() for _ in range(times)][-1]
    acknowledged("again", again.id, again.option)
    return again


def use(url: str, name: str, count: int, threads: int, scheduler_name: str = "default", features: bool = False) -> None:
    """So many tasks in each of so many threads; the name is the worker's."""
    with Scheduler(url, name=scheduler_name) as scheduler:
        acknowledged("ready")
        workers = [
            threading.Thread(target=work, args=(scheduler, f"{name}.{number}", count, features))
            for number in range(threads)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        acknowledged("rebuilt", scheduler.rebuild())


def start(url: str, name: str, count: int, threads: int = 1, features: bool = False) -> subprocess.Popen[bytes]:
    """A process that uses the scheduler."""
    arguments = [sys.executable, __file__, url, name, str(count), str(threads), *(["features"] if features else [])]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE)


def all_rows(scheduler: Scheduler) -> tuple[dict[int, TaskRow], list[LogRow]]:
    """Every task and the whole log."""
    tasks = scheduler._transactor.do(lambda batch: batch.tx.latest(batch.replica.id, 10**9))
    return {row.task: row for row in tasks}, scheduler._transactor.entries(0, 10**9)


def attempts_at(row: TaskRow) -> list[int]:
    """The options that a task was tried with, one after the other, by number."""
    return [attempt["option"] for attempt in json.loads(row.attempts or "[]")] + [row.option]


def check_everything(url: str, outputs: list[str], name: str = "default") -> tuple[int, int]:
    """Every acknowledgement is in the store, every report is there once, and a rebuild gives the same bits."""
    with Scheduler(url, name=name) as scheduler:
        tasks, log = all_rows(scheduler)
        by_key = {row.key: row for row in tasks.values()}
        log_of: dict[int, list[LogRow]] = defaultdict(list)
        for entry in log:
            log_of[entry.task].append(entry)
        decided = reported = 0
        for word, *rest in (line.split() for output in outputs for line in output.splitlines()):
            if word == "decided":
                row, decided = by_key[rest[0]], decided + 1
                assert str(row.task) == rest[1]
                assert OPTIONS[attempts_at(row)[0]] == int(rest[2])
            elif word == "broke":
                [entry] = [entry for entry in log_of[int(rest[0])] if entry.outcome == FAILED]
                assert (OPTIONS[entry.option], entry.cost) == (int(rest[1]), float(rest[2]))
            elif word == "again":
                assert OPTIONS[attempts_at(tasks[int(rest[0])])[1]] == int(rest[1])
            elif word == "reported":
                row, reported = tasks[int(rest[0])], reported + 1
                assert (row.reward, row.cost) == (float(rest[1]), float(rest[2]))
                assert row.report is not None
            assert word != "rebuilt" or rest == ["True"]
        assert [entry.number for entry in log] == list(range(1, len(log) + 1))
        for row in tasks.values():  # an attempt has one entry once it has ended, and only the latest may not have
            numbers = [entry.number for entry in log_of[row.task]]
            assert [entry.option for entry in log_of[row.task]] == attempts_at(row)[: len(numbers)]
            assert len(numbers) == row.attempt + (row.report is not None)
            assert row.report in (None, *numbers[-1:])
        assert sorted(tasks) == list(range(1, len(tasks) + 1))
        found, failed = scheduler.summary(), sum(entry.outcome == FAILED for entry in log)
        assert (found.tasks, found.reports, found.failed) == (len(tasks), len(log) - failed, failed)
        assert found.bad_entries == 0
        assert scheduler.rebuild()
        return decided, reported


if __name__ == "__main__":
    use(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), features=sys.argv[5:] == ["features"])
