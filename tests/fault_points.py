"""Faults at every call: the n-th thing that is asked of a disk or sent over a network fails, is torn, or takes long.

A fixed workload goes on after each of them as any program would: it repeats what failed. Then the store is asked for
everything that was acknowledged.
"""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import apsw

from live_worker import all_rows
from unreliable_network import network_before
from worthwhile import Scheduler
from worthwhile.errors import StoreError

NAME, REAL = "faulty", apsw.vfs_names()[0]
MODES = ("fail", "tear", "delay")
OPTIONS = [1, 2, 3]
TASKS = 4
MOST_FAULTS = 4  # in one run
TRIES = MOST_FAULTS + 2  # of each call
DELAY = 0.002  # seconds


class Faults:
    """What happens at which call, counted from 1."""

    def __init__(self, at: dict[int, str]) -> None:
        self.at, self.calls = at, 0

    def strike(self) -> str:
        """How this call goes wrong; empty if it does not."""
        self.calls += 1
        mode = self.at.get(self.calls, "")
        if mode == "delay":
            time.sleep(DELAY)
        return mode.removeprefix("delay")


class FaultyFile(apsw.VFSFile):
    """A file of a `FaultyDisk`."""

    def __init__(self, disk: FaultyDisk, name: Any, flags: list[int]) -> None:
        super().__init__(REAL, name, flags)
        self.disk = disk

    def xRead(self, amount: int, offset: int) -> bytes:
        self.disk.pass_or_fail(apsw.IOError)
        return super().xRead(amount, offset)

    def xWrite(self, data: Any, offset: int) -> None:
        mode = self.disk.faults.strike()
        if mode:
            if mode == "tear":
                super().xWrite(bytes(data)[: len(data) // 2], offset)
            raise apsw.FullError if self.disk.faults.calls % 2 else apsw.IOError
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:
        self.disk.pass_or_fail(apsw.IOError)
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:
        self.disk.pass_or_fail(apsw.IOError)  # the real disk need not be asked

    def xFileSize(self) -> int:
        self.disk.pass_or_fail(apsw.IOError)
        return super().xFileSize()

    def xLock(self, level: int) -> None:
        self.disk.pass_or_fail(apsw.IOError)
        super().xLock(level)


class FaultyDisk(apsw.VFS):
    """Counts what is asked of it; one of the calls goes wrong."""

    def __init__(self, faults: Faults) -> None:
        super().__init__(NAME, REAL, makedefault=True)
        self.faults = faults

    def pass_or_fail(self, error: type[apsw.Error]) -> None:
        if self.faults.strike():
            raise error

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        self.pass_or_fail(apsw.CantOpenError)
        return FaultyFile(self, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        self.pass_or_fail(apsw.IOError)
        super().xDelete(filename, syncdir)

    def xAccess(self, pathname: str, flags: int) -> bool:
        self.pass_or_fail(apsw.IOError)
        return super().xAccess(pathname, flags)


class Workload:
    """Decides and reports as a program does that repeats what failed, and remembers what was acknowledged."""

    def __init__(self, opened: Callable[[], Scheduler]) -> None:
        self.opened = opened
        self.scheduler: Scheduler | None = None
        self.decided: dict[str, str] = {}
        self.reported: set[str] = set()
        self.errors: list[str] = []

    def run(self) -> None:
        for number in range(TASKS):
            key = f"key {number}"
            task = self.repeated(lambda scheduler: scheduler.decide("x", OPTIONS, key=key))  # noqa: B023
            self.decided[key] = task.id
            if number % 2:
                self.repeated(lambda scheduler: scheduler.report(task.id, reward=int(task.id) / 2))  # noqa: B023
            self.repeated(lambda scheduler: scheduler.report(task.id, int(task.id) / 2, 2.0))  # noqa: B023
            self.reported.add(task.id)
        self.repeated(lambda scheduler: scheduler.decide("y", OPTIONS))  # without a key, it may have been decided twice

    def repeated(self, call: Callable[[Scheduler], Any]) -> Any:
        """Its answer; every error must be one that says what to do."""
        for _ in range(TRIES):
            try:
                if self.scheduler is None:
                    self.scheduler = self.opened()
                return call(self.scheduler)
            except StoreError as error:
                self.errors.append(str(error))
        raise AssertionError(f"it never works again: {self.errors}")

    def close(self) -> None:
        if self.scheduler is not None:
            with suppress(StoreError):
                self.scheduler.close()

    def check(self, scheduler: Scheduler) -> None:
        """Whatever was acknowledged is there, once."""
        tasks, log = all_rows(scheduler)
        by_key = {row.key: row for row in tasks.values()}
        for key, id in self.decided.items():
            assert str(by_key[key].task) == id, f"{key} is lost; {self.errors}"
        for id in self.reported:
            row = tasks[int(id)]
            assert (row.reward, row.cost, row.report is not None) == (int(id) / 2, 2.0, True), f"{id}; {self.errors}"
        assert len(log) == len({entry.task for entry in log}), "counted twice"
        assert scheduler.rebuild()
        assert scheduler.summary().bad_entries == 0


def on_disk(folder: Path, faults: Faults) -> Workload:
    """A fault of the disk of a SQLite store; what is on it is also looked at as a crash would have left it."""
    path = folder / "tasks.db"
    disk = FaultyDisk(faults)
    workload = Workload(lambda: Scheduler(path, seed=1))
    try:
        workload.run()
        (folder / "crashed").mkdir()
        for ending in ("", "-wal"):
            shutil.copy(f"{path}{ending}", folder / "crashed" / f"tasks.db{ending}")
    finally:
        workload.close()
        disk.unregister()
    for left in (path, folder / "crashed" / "tasks.db"):
        with Scheduler(left, create=False) as scheduler:
            workload.check(scheduler)
    return workload


@contextmanager
def network_faults(url: str) -> Iterator[Callable[[str, Faults], Workload]]:
    """Faults of the network before PostgreSQL, one scheduler after the other."""
    Scheduler(url).close()
    with network_before(url) as (network, through):

        def strike(name: str, faults: Faults) -> Workload:
            def message(data: bytes) -> bytes | None:
                mode = faults.strike()
                if not mode:
                    return data
                return data[: len(data) // 2] if mode == "tear" else None

            workload = Workload(lambda: Scheduler(through, name, seed=1))
            network.on_message = message
            try:
                workload.run()
            finally:
                network.on_message = bytes
                workload.close()
            with Scheduler(url, name, create=False) as scheduler:
                workload.check(scheduler)
            return workload

        yield strike


def plans(calls: int, count: int, luck: random.Random) -> Iterator[dict[int, str]]:
    """Every call in every mode, or a few of them at random; beyond that, several at random points of one run."""
    every = [{point: mode} for mode in MODES for point in range(1, calls + 1)]
    yield from every if count >= len(every) else luck.sample(every, count)
    for _ in range(count - len(every)):
        yield {luck.randint(1, calls): luck.choice(MODES) for _ in range(luck.randint(2, MOST_FAULTS))}
