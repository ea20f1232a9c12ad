"""Processes that bring a store up to date, forked from a clean one: the tests' own may have threads of others."""

from __future__ import annotations

import multiprocessing
import os
import signal
from typing import Any

from worthwhile import Scheduler
from worthwhile.live.stores import open_store

CLEAN = multiprocessing.get_context("forkserver")
CLEAN.set_forkserver_preload([__name__, "worthwhile.live.stores.sqlite", "worthwhile.live.stores.postgres"])


def exit_code(url: str, statement: int) -> int | None:
    """How a process ends that is killed at a statement; 0 if there are fewer."""
    process = CLEAN.Process(target=open_killed_at, args=(url, statement))
    process.start()
    process.join()
    return process.exitcode


def open_killed_at(url: str, statement: int) -> None:
    """Bring a store up to date; kill −9 comes right after the n-th statement that changes something."""
    from worthwhile.live.stores import postgres, sqlite

    store: Any = sqlite.SqliteStore if url.startswith("sqlite") else postgres.PostgresStore
    real, count = store.run, [0]

    def run(self: Any, sql: str) -> None:
        real(self, sql)
        count[0] += sql.split(maxsplit=1)[0] in ("alter", "create", "--", "drop", "update", "commit")  # --: a comment
        if count[0] == statement:
            self.query("select 1")  # PostgreSQL has done it by now
            os.kill(os.getpid(), signal.SIGKILL)

    store.run = run
    open_store(url).close()


def exit_codes_at_once(url: str, name: str, processes: int) -> list[int | None]:
    """How several end that open the same scheduler at the same moment."""
    barrier = CLEAN.Barrier(processes)
    started = [CLEAN.Process(target=open_together, args=(url, name, barrier)) for _ in range(processes)]
    for process in started:
        process.start()
    for process in started:
        process.join()
    return [process.exitcode for process in started]


def open_together(url: str, name: str, barrier: Any) -> None:
    barrier.wait()
    Scheduler(url, name).close()
