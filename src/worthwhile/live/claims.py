"""Claims: who runs a task, and until when. `worthwhile.work` asks for them; `decide` and `report` know nothing of them.

A task with a key is run by one holder at a time, who renews the lease while it runs. Once the lease has ended, the task
is lost, and whoever asks next takes it over: another attempt, with the same option. Which report counts does not depend
on any of this: the first one, and it alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from worthwhile.live.batch import Batch
from worthwhile.live.group_commit import Request
from worthwhile.live.requests import Decider, Deciding
from worthwhile.live.stores.base import LOST, TaskRow
from worthwhile.live.task import Task
from worthwhile.live.validation import Option
from worthwhile.policies.features import Feature

RELEASED = ""  # TaskRow.holder of a task that nobody runs, and that is not lost for it


class Claim(NamedTuple):
    """A task, and who holds it: whoever asked, or somebody else."""

    task: Task
    holder: str | None
    decided: float
    now: float  # by the same clock


class Claiming(Deciding):
    """Asks for a task in order to run it."""

    key: str | None

    def __init__(
        self,
        scheduler: Decider,
        kind: str,
        options: Sequence[Option],
        key: str | None,
        lease: float,
        holder: str,
        instead_of: str | None = None,  # a holder that is known to be gone, though its lease lasts
        features: Mapping[str, Feature] | None = None,
    ) -> None:
        super().__init__(scheduler, kind, options, key, lease, features)
        self.holder, self.instead_of = holder, instead_of

    def action(self, batch: Batch) -> Claim:  # type: ignore[override]
        task = super().action(batch)
        row, now = batch.rows[int(task.id)], batch.header.now
        if row.outcome == LOST:
            row = batch.next_attempt(row)._replace(decided=now)
        free = row.holder in (None, RELEASED, self.holder, self.instead_of) or row.lease_end <= now
        if free and not row.ended():
            row = held(batch, row, self.holder, self.lease)
            task.state, task.attempt = row.state(now), row.attempt
        return Claim(task, row.holder, row.decided, now)


class Renewing(Request):
    """Says that tasks still run; the answer are those that are no longer this holder's, or have ended."""

    def __init__(self, holder: str, tasks: Iterable[str], lease: float) -> None:
        self.holder, self.tasks, self.lease = holder, list(map(int, tasks)), lease

    def action(self, batch: Batch) -> list[str]:
        lost = []
        for row in rows_of(batch, self.tasks):
            if row.holder == self.holder and not row.ended():
                held(batch, row, self.holder, self.lease)
            elif row.holder != self.holder or row.outcome != LOST:  # what seemed lost may still report
                lost.append(str(row.task))
        return lost


class Releasing(Request):
    """Says that tasks will not be run after all: anybody may, at once; one without a key is nobody's for good."""

    def __init__(self, holder: str, tasks: Iterable[str]) -> None:
        self.holder, self.tasks = holder, list(map(int, tasks))

    def action(self, batch: Batch) -> None:
        for row in rows_of(batch, self.tasks):
            if row.holder == self.holder and not row.ended():
                batch.update(row._replace(holder=RELEASED, cancelled=int(row.key is None)))


def held(batch: Batch, row: TaskRow, holder: str, lease: float) -> TaskRow:
    """The task is that holder's, until the lease ends."""
    now = batch.header.now
    if row.lease_end <= now:  # it had stopped counting as running
        running = batch.running(row.kind)
        running[row.option] = running.get(row.option, 0) + 1
    row = row._replace(holder=holder, lease_end=now + lease)
    batch.update(row)
    return row


def rows_of(batch: Batch, tasks: Sequence[int]) -> list[TaskRow]:
    """Tasks by number, as this batch has left them."""
    unread = [task for task in tasks if task not in batch.rows]
    for row in batch.tx.tasks(batch.replica.id, unread) if unread else ():
        batch.rows[row.task] = row
    return [batch.rows[task] for task in tasks]
