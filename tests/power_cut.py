"""A disk that loses its power: whatever was written and not synced may be there afterwards, in part, or not at all."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import apsw

from worthwhile import Scheduler
from worthwhile.errors import Error, StoreError

NAME, REAL = "losing-power", apsw.vfs_names()[0]
OPTIONS = [1, 2, 3]


class PowerOff(Exception):
    """The machine is gone."""


class Contents:
    """What a file will hold after a power cut: what was synced, and writes that may or may not get there."""

    def __init__(self) -> None:
        self.synced = bytearray()
        self.waiting: list[tuple[int, bytes | None]] = []  # (place, bytes), or (size, None) for a truncation

    def apply(self, place: int, data: bytes | None) -> None:
        if data is None:
            del self.synced[place:]
            return
        missing = place - len(self.synced)
        if missing > 0:
            self.synced.extend(bytes(missing))
        self.synced[place : place + len(data)] = data

    def sync(self) -> None:
        for step in self.waiting:
            self.apply(*step)
        self.waiting = []

    def lose(self, luck: random.Random) -> bytes:
        """Some of what waits arrives, in any order, some of it torn."""
        for place, data in luck.sample(self.waiting, luck.randint(0, len(self.waiting))):
            torn = data is not None and luck.random() < 0.2
            self.apply(place, data[: luck.randrange(len(data) + 1)] if torn and data is not None else data)
        return bytes(self.synced)


class LosingFile(apsw.VFSFile):
    """A file of a `LosingDisk`."""

    def __init__(self, disk: LosingDisk, name: Any, flags: list[int]) -> None:
        super().__init__(REAL, name, flags)
        self.disk = disk
        path = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        self.contents = disk.files.setdefault(Path(path).name, Contents())

    def xWrite(self, data: Any, offset: int) -> None:
        self.disk.spend()
        self.contents.waiting.append((offset, bytes(data)))
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:
        self.disk.spend()
        self.contents.waiting.append((newsize, None))
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:
        self.disk.spend()
        self.contents.sync()  # the real disk need not be asked


class LosingDisk(apsw.VFS):
    """Counts writes, truncations and syncs, and goes off at one of them."""

    def __init__(self, steps: int) -> None:
        super().__init__(NAME, REAL, makedefault=True)
        self.steps, self.files = steps, dict[str, Contents]()

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        return LosingFile(self, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        self.files.pop(Path(filename).name, None)
        super().xDelete(filename, syncdir)

    def spend(self) -> None:
        self.steps -= 1
        if self.steps < 0:
            raise PowerOff


def cut_power(folder: Path, steps: int, luck: random.Random, synchronous: str = "full") -> tuple[int, int]:
    """Work until the power goes, restore what the disk still has, and look for all that was acknowledged.

    Returns how many acknowledged decisions and reports there were, and how many of them are lost.
    """
    acknowledged: list[tuple[str, float | None]] = []
    disk = LosingDisk(steps)
    try:
        with_disk(folder / "before.db", synchronous, acknowledged)
    finally:
        disk.unregister()
    for name, contents in disk.files.items():
        if name.startswith("before.db"):
            (folder / name.replace("before", "after")).write_bytes(contents.lose(luck))
    return len(acknowledged), lost(folder / "after.db", acknowledged)


def with_disk(path: Path, synchronous: str, acknowledged: list[tuple[str, float | None]]) -> None:
    """Decide and report until the disk is gone."""
    scheduler = None
    try:
        scheduler = Scheduler(f"sqlite:///{path}?synchronous={synchronous}", seed=1)
        while True:
            task = scheduler.decide("x", OPTIONS)
            acknowledged.append((task.id, None))
            task.report(reward=float(task.id), cost=1.0)
            acknowledged.append((task.id, float(task.id)))
    except (Error, PowerOff, apsw.Error):
        pass
    finally:
        if scheduler is not None:
            with suppress(PowerOff, apsw.Error, Error):
                scheduler._transactor.store.close()


def lost(path: Path, acknowledged: list[tuple[str, float | None]]) -> int:
    """How many acknowledgements the store knows nothing of."""
    if not acknowledged:
        return 0
    try:
        scheduler = Scheduler(f"sqlite:///{path}", create=False)
    except StoreError as reason:
        if "no scheduler" in str(reason):  # the file is sound, and as it was before anything was written
            return len(acknowledged)
        raise
    with scheduler:
        found = {line.task: line.reward for line in scheduler.tasks([id for id, _ in acknowledged])}
        assert scheduler.rebuild()
        assert not scheduler.summary().bad_entries
    return sum(id not in found or (reward is not None and found[id] != reward) for id, reward in acknowledged)
