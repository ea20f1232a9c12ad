"""A number beside every row of a SQL store that shows whether the row is still what was written.

Rows of earlier versions have none, and are not checked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from marshal import dumps
from math import isfinite
from typing import Any
from zlib import crc32

from worthwhile.live.stores.base import CHOSEN, SessionRow, TaskRow, TokenRow

FORMAT = 2  # of marshal: plain values, no references; the same in every Python 3, as tests with fixed numbers see to
PRICE, FIELDS = TaskRow._fields.index("price"), len(TaskRow._fields)
OWN = TaskRow._fields.index("own")  # here begins what version 5 did not know
UNKNOWN_TO_5 = TaskRow._field_defaults["own"], TaskRow._field_defaults["mode"], TaskRow._field_defaults["in_flight"]
ALWAYS = "reward_estimate", "cost_estimate", "decided", "lease_end", "overhead"  # numbers that a task never lacks
NUMBERS = re.compile(r"\d{1,9}(,\d{1,9})*", re.ASCII)
DOES_NOT_FIT = "it is not what was written: its checksum does not fit"


def checksum(*values: Any) -> int:
    """Of a row; numbers must have the type that they are read back with."""
    return crc32(dumps(values, FORMAT))


def task_checksum(id: int, row: tuple[Any, ...]) -> int:
    """Of a task; what comes after its fields does not count. One that version 5 could have written has its checksum."""
    price = row[PRICE] or 0  # SQLite makes 0.0 of −0.0
    end = OWN if row[OWN:FIELDS] == UNKNOWN_TO_5 else FIELDS
    return crc32(dumps((id, row[:PRICE], price, row[PRICE + 1 : end]), FORMAT))


def log_checksum(id: int, fields: tuple[Any, ...]) -> int:
    """Of an entry of the log, without its damage; what an earlier version could have written has its checksum."""
    if fields[-1] != CHOSEN:
        return checksum(id, *fields)
    return checksum(id, *(fields[:-1] if fields[-2] is not None else fields[:-2]))


def task_fault(id: int, row: tuple[Any, ...]) -> str:
    """Why a task, with its checksum as the last field, is not what was written; empty if it is."""
    kept = row[-1]
    if kept is None:
        return next(unlikely(TaskRow._make(row[:-1])), "")
    return "" if kept == task_checksum(id, row) else DOES_NOT_FIT


def unlikely(row: TaskRow) -> Iterator[str]:
    """What no version has written, in a row that has no checksum."""
    for field in ("task", "kind", "option", "seen", "policy", "cancelled", "outcome", "report", "own", "mode"):
        number = getattr(row, field)
        if (type(number) is not int or number < 0) and (number is not None or field not in ("report", "own")):
            yield f"{field} = {number!r}"
    for field in (
        "reward_estimate",
        "cost_estimate",
        "price",
        "decided",
        "lease_end",
        "overhead",
        "reward",
        "cost",
        "probability",
    ):
        value = getattr(row, field)
        needed = value is not None or field not in ("price", "reward", "cost", "probability")
        if needed and (type(value) is not float or not isfinite(value)):
            yield f"{field} = {value!r} is not a finite number"
    for field in ("options", "pending"):
        text = getattr(row, field)
        if type(text) is not str or not NUMBERS.fullmatch(text):
            yield f"{field} = {text!r} is no list of numbers"
    if str(row.options).count(",") != str(row.pending).count(",") or str(row.option) not in str(row.options).split(","):
        yield f"option = {row.option!r}, options = {row.options!r}, pending = {row.pending!r} do not fit together"
    for field in ("key", "features", "attempts", "holder", "in_flight"):
        text = getattr(row, field)
        if text is not None and not is_text(text):
            yield f"{field} = {text!r} is no text"


def is_text(value: Any) -> bool:
    """Text that can be written."""
    try:
        return type(value) is str and bool(value.encode() or True)
    except UnicodeEncodeError:
        return False


def token_fault(row: TokenRow) -> str:
    """Why a token cannot be used; empty if it can."""
    texts = (row.hash, row.name, row.scopes, "" if row.schedulers is None else row.schedulers)
    times = (row.created, 0.0 if row.revoked is None else row.revoked, 0.0 if row.expires is None else row.expires)
    if not all(map(is_text, texts)) or not row.hash.isascii() or not all(map(is_time, times)):
        return "a text or a time of it is something else"
    return "" if row.schedulers is None or is_list_of_texts(row.schedulers) else f"schedulers = {row.schedulers!r}"


def session_fault(row: SessionRow) -> str:
    """Why a session cannot be used; empty if it can."""
    sound = is_text(row.hash) and is_text(row.token) and is_time(row.created) and is_time(row.expires)
    return "" if sound else "a text or a time of it is something else"


def is_time(value: Any) -> bool:
    return type(value) is float and isfinite(value)


def is_list_of_texts(text: str) -> bool:
    try:
        names = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return type(names) is list and all(type(name) is str for name in names)
