"""A number beside every row of a SQL store that shows whether the row is still what was written.

Rows of earlier versions have none, and are not checked.
"""

from __future__ import annotations

from marshal import dumps
from typing import Any
from zlib import crc32

from worthwhile.live.stores.base import TaskRow

FORMAT = 2  # of marshal: plain values, no references; the same in every Python 3, as tests with fixed numbers see to
PRICE, LEASE_END, ATTEMPTS = map(TaskRow._fields.index, ("price", "lease_end", "attempts"))
DOES_NOT_FIT = "it is not what was written: its checksum does not fit"


def checksum(*values: Any) -> int:
    """Of a row; numbers must have the type that they are read back with."""
    return crc32(dumps(values, FORMAT))


def task_checksum(id: int, row: tuple[Any, ...]) -> int:
    """Of a task, without what changes by itself: the end of its lease, earlier attempts, who holds it."""
    price = row[PRICE] or 0  # SQLite makes 0.0 of −0.0
    return crc32(dumps((id, row[:PRICE], price, row[PRICE + 1 : LEASE_END], row[LEASE_END + 1 : ATTEMPTS]), FORMAT))
