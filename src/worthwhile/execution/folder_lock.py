"""One run at a time in a folder: a second one, or one after a kill that left the first alive, waits for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw


@contextmanager
def alone(
    folder: Path, tell: Callable[[str], object], show: Callable[[], object] = lambda: None, every: float = 0.5
) -> Iterator[None]:
    """Hold the folder's lock, which ends with the process; shows what the other run does until it is free."""
    lock = apsw.Connection(str(folder / "lock.db"))
    try:
        if not taken(lock):
            tell(f"another run is at work in {folder}; this one waits for it, then goes on")
            show()
            while not taken(lock):
                time.sleep(every)
                show()
        yield
    finally:
        lock.close()


def taken(lock: apsw.Connection) -> bool:
    try:
        lock.execute("begin exclusive")
    except apsw.BusyError:
        return False
    return True
