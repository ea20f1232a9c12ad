"""Tasks of one kind, option, state or time, newest first; read in portions, so that nobody has to wait for long."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from worthwhile.live.batch import Batch
from worthwhile.live.explain import TaskLine, task_lines
from worthwhile.live.stores.base import LOCAL, TaskRow
from worthwhile.live.transactor import Transactor

PORTION = 500  # tasks
NEXT = 20  # of them
MOST_SEARCHED = 20_000  # tasks for one page


class Wanted(NamedTuple):
    """Which tasks; None for all."""

    kind: str | None = None
    option: str | None = None  # as JSON
    state: str | None = None
    within: float | None = None  # seconds since they were decided


class Found(NamedTuple):
    """A page of tasks, and before which one the search goes on; None at the end."""

    tasks: list[TaskLine]
    following: int | None


def page_of_tasks(transactor: Transactor, wanted: Wanted, count: int, before: int | None = None) -> Found:
    """So many tasks, or as many as there are among the next 20 000."""
    tasks: list[TaskLine] = []
    first = before
    for lines, following in portions(transactor, wanted, before):
        tasks += lines
        first = following if first is None else first
        if len(tasks) > count:
            return Found(tasks[:count], int(tasks[count - 1].task))
        if first - following >= MOST_SEARCHED:
            return Found(tasks, following)
    return Found(tasks, None)


def portions(transactor: Transactor, wanted: Wanted, before: int | None = None) -> Iterator[tuple[list[TaskLine], int]]:
    """Portion by portion: what was found, and before which task the search goes on."""
    oldest = transactor.do(partial(first_since, within=wanted.within))
    following = before
    while following is None or following > oldest:
        lines, following = transactor.do(partial(portion, wanted=wanted, before=following, oldest=oldest))
        yield lines, following


def portion(batch: Batch, wanted: Wanted, before: int | None, oldest: int) -> tuple[list[TaskLine], int]:
    """What is wanted among the tasks just before one, and the oldest that was looked at."""
    last = batch.header.tasks if before is None else min(before - 1, batch.header.tasks)
    numbers = range(last, max(oldest - 1, last - PORTION), -1)
    rows = {row.task: row for row in batch.tx.tasks(batch.replica.id, numbers)}
    matching = [rows[number] for number in numbers if number in rows and is_wanted(batch, rows[number], wanted)]
    return task_lines(batch, matching), max(oldest, last - PORTION + 1)


def is_wanted(batch: Batch, row: TaskRow, wanted: Wanted) -> bool:
    replica, now = batch.replica, batch.header.now
    return (
        (wanted.kind is None or replica.kinds.number.get(wanted.kind) == row.kind)
        and (wanted.option is None or replica.options.number.get(wanted.option) == row.option)
        and (wanted.state is None or row.state(now) == wanted.state)
        and (wanted.within is None or row.decided >= now - wanted.within)
    )


def first_since(batch: Batch, within: float | None) -> int:
    """The first task that may have been decided since: those decided here are numbered in the order of that."""
    low, high = 1, batch.header.tasks + 1
    while within is not None and low < high:
        middle = (low + high) // 2
        row = decided_here(batch, middle, high)
        if row is not None and row.decided < batch.header.now - within:
            low = row.task + 1
        else:
            high = middle
    return low if within is not None else 1


def decided_here(batch: Batch, first: int, end: int) -> TaskRow | None:
    """One of the next few tasks that was not taken in, some time after it was decided."""
    rows = batch.tx.tasks(batch.replica.id, range(first, min(first + NEXT, end)))
    here = [row for row in rows if not (row.key or "").startswith(LOCAL)]
    return min(here, key=lambda row: row.task, default=None)
