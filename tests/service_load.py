"""Threads that use a running service as hard as they can, and remember what was acknowledged."""

from __future__ import annotations

import threading
from typing import Any

from live_worker import all_rows
from waiting import NET, wait_until
from worthwhile import Client, Scheduler

OPTIONS = [1, 5, 10]


class Load:
    """Decides and reports through clients that retry."""

    def __init__(self, urls: list[str], threads: int) -> None:
        self.stop, self.errors = threading.Event(), []  # type: threading.Event, list[BaseException]
        self.decided: dict[str, Any] = {}
        self.reported: dict[str, tuple[float, float]] = {}
        self.threads = [threading.Thread(target=self.work, args=(urls[n % len(urls)],)) for n in range(threads)]
        for thread in self.threads:
            thread.start()

    def work(self, url: str) -> None:
        try:
            with Client(url, timeout=NET, patience=2 * NET) as client:
                while not self.stop.is_set():
                    task = client.decide("kind", OPTIONS)
                    assert self.decided.setdefault(task.id, task.option) is task.option
                    values = int(task.id) % 7 / 7, 1.0 + task.option / 4
                    task.report(*values)
                    self.reported[task.id] = values
        except BaseException as error:
            self.errors.append(error)

    def await_more(self, reports: int) -> None:
        """Returns when so many more have been acknowledged."""
        wanted = len(self.reported) + reports
        wait_until(lambda: self.errors or len(self.reported) >= wanted, f"{reports} more reports")
        assert self.errors == []

    def finish(self) -> None:
        self.stop.set()
        for thread in self.threads:
            thread.join(NET)
        assert self.errors == []

    def check(self, url: str) -> None:
        """Everything acknowledged is in the store, and in the log once."""
        with Scheduler(url) as scheduler:
            tasks, log = all_rows(scheduler)
            for id, option in self.decided.items():
                assert OPTIONS[tasks[int(id)].option] == option
            for id, values in self.reported.items():
                assert (tasks[int(id)].reward, tasks[int(id)].cost) == values
            assert len({entry.task for entry in log}) == len(log) == scheduler.summary().reports
            assert len(log) == len(self.reported) > 0
            assert scheduler.rebuild()
