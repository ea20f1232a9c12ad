"""What is asked of a scheduler most often: decisions and what came of them, as requests for its next transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import methodcaller
from typing import Protocol

from worthwhile.live.batch import Batch
from worthwhile.live.group_commit import Request
from worthwhile.live.stores.base import TaskRow
from worthwhile.live.task import Feedback, Task
from worthwhile.live.validation import (
    Option,
    attempt_number,
    both,
    check_text,
    feature_text,
    feedback,
    not_negative,
    option_text,
    plain_option,
    plain_options,
    reason_text,
    task_number,
)
from worthwhile.policies.features import Feature

LEASE = 3600.0  # seconds


class Decider(Feedback, Protocol):
    """Who decides: a scheduler, with how long its tasks may take."""

    lease: float


class Deciding(Request):
    """Asks for a task."""

    kind: str
    usual: str | None = None  # as JSON

    def __init__(
        self,
        scheduler: Decider,
        kind: str,
        options: Sequence[Option],
        key: str | None = None,
        lease: float | None = None,
        features: Mapping[str, Feature] | None = None,
        usual: Option = None,
    ) -> None:
        # here, in the caller's own thread: what these objects do when they are looked at concerns nobody else
        self.kind = kind if type(kind) is str else check_text("kind", kind)
        self.key = None if key is None else check_text("key", key)
        self.scheduler, self.options = scheduler, plain_options(options)
        self.lease = scheduler.lease if lease is None else not_negative("lease", lease)
        self.features = None if features is None else feature_text(features)
        if usual is not None:
            self.usual = option_text(usual)

    def action(self, batch: Batch) -> Task:
        kind, replica = self.kind, batch.replica
        row = batch.decide(kind, self.options, self.key, self.lease, self.features, self.usual)
        option = replica.values[row.option] if row.option < len(replica.values) else replica.option(row.option)
        task = Task(self.scheduler, str(row.task), kind, option, row.state(batch.header.now))
        if row.attempts is not None:
            task.attempt = row.attempt
        return task


class Reporting(Request):
    """Says what came of a task."""

    task: int

    def __init__(
        self, id: str | int, reward: float | None = None, cost: float | None = None, attempt: int | None = None
    ) -> None:
        self.task, self.reward, self.cost, self.attempt = task_number(id), reward, cost, attempt
        if attempt is not None and (type(attempt) is not int or attempt):
            self.attempt = attempt_number(attempt)
        if type(reward) is not float or type(cost) is not float:
            self.reward, self.cost = both(reward, cost)

    def action(self, batch: Batch) -> TaskRow:
        return batch.report(self.task, self.reward, self.cost, self.attempt)


def observing(id: str | int, option: Option, reward: float, cost: float) -> Request:
    """Says what another option would have brought."""
    number, values = task_number(id), (feedback("reward", reward), feedback("cost", cost))
    return Request(methodcaller("observe", number, plain_option(option), *values), number)


class Retrying(Request):
    """Asks for another attempt at a task."""

    task: int

    def __init__(self, scheduler: Decider, id: str | int, after: int | None = None, lease: float | None = None) -> None:
        self.scheduler, self.task = scheduler, task_number(id)
        self.after = None if after is None else attempt_number(after)
        self.lease = scheduler.lease if lease is None else not_negative("lease", lease)

    def action(self, batch: Batch) -> Task:
        row, replica = batch.again(self.task, self.after, self.lease), batch.replica
        kind, option = replica.kinds.texts[row.kind], replica.option(row.option)
        task = Task(self.scheduler, str(row.task), kind, option, row.state(batch.header.now))
        task.attempt = row.attempt
        return task


def failing(id: str | int, cost: float | None = None, reason: str = "", attempt: int | None = None) -> Request:
    """Says that a task has failed."""
    number, spent = task_number(id), None if cost is None else feedback("cost", cost)
    which = None if attempt is None else attempt_number(attempt)
    return Request(methodcaller("fail", number, spent, reason_text(reason), attempt=which), number)


def cancelling(id: str | int, attempt: int | None = None) -> Request:
    """Says that a task will not report."""
    number, which = task_number(id), None if attempt is None else attempt_number(attempt)
    return Request(methodcaller("cancel", number, which), number)


class Withdrawing(Request):
    """Cancels the task of a decision asked for before it, as nobody waits for that any more."""

    def __init__(self, decision: Request) -> None:
        self.decision = decision

    @property
    def task(self) -> int | None:  # type: ignore[override]
        """Not known before the decision is made, perhaps in the same batch."""
        answer = self.decision.answer
        return int(answer.id) if isinstance(answer, Task) and self.decision.error is None else None

    def action(self, batch: Batch) -> None:
        if self.task is not None:
            batch.cancel(self.task)
