"""Report: what came of an attempt at a task, as a request for the next transaction; a failure may lead to the next."""

from __future__ import annotations

import json
from typing import NamedTuple

from worthwhile.errors import AlreadyFailed, AlreadyReported, BadTask
from worthwhile.execution.claims import Claims
from worthwhile.execution.metering import Failure, Outcome
from worthwhile.live.batch import Batch
from worthwhile.live.group_commit import Request
from worthwhile.live.requests import Retrying
from worthwhile.live.stores.base import FAILED, LOST, TaskRow
from worthwhile.live.task import Task
from worthwhile.live.validation import option_text, reason_text, task_number


class Ended(NamedTuple):
    """What was stored of an attempt."""

    reward: float | None
    again: Task | None = None  # the next attempt, if there is one


class Limits(NamedTuple):
    """What becomes of failures."""

    attempts: int = 1  # at a task that may fail, the first one included
    failed_reward: float | None = None  # what one is worth, unless the scheduler knows


class Ending(Request):
    """A result or a failure, what was observed of other options, and the next attempt: all of it, or nothing."""

    task: int

    def __init__(self, claims: Claims, task: Task, outcome: Outcome | Failure, limits: Limits) -> None:
        self.claims, self.task, self.outcome, self.limits = claims, task_number(task.id), outcome, limits
        self.option = option_text(task.option)
        self.others = {option: values for option, values in outcome.observed.items() if option != task.option}

    def action(self, batch: Batch) -> Ended:
        row = batch.task(self.task)
        self.check_ours(batch, row)
        if isinstance(self.outcome, Outcome):
            if row.holder and row.holder != self.claims.holder:  # who has it now is to hear that it was done elsewhere
                batch.update(row._replace(holder=self.claims.holder))
            return Ended(batch.report_all(self.task, self.outcome.reward, self.outcome.cost, self.others).reward)
        observed = [batch.observation(self.task, option, *values) for option, values in self.others.items()]
        row = batch.fail(self.task, self.outcome.cost, reason_text(self.outcome.why), self.limits.failed_reward)
        for new in filter(None, observed):
            batch.log_observation(row, *new)
        return Ended(row.reward, self.again(batch, row))

    def check_ours(self, batch: Batch, row: TaskRow) -> None:
        """Whoever has taken the task over may have another option by now, and decides about the next attempt.

        What they have said counts, though we say the same: it is to be counted once, here or there.
        """
        held = not row.holder or row.holder == self.claims.holder
        same = row.option == batch.replica.options.number.get(self.option)
        if row.ended() and row.outcome != LOST:
            if not held:
                raise AlreadyReported(f"task {self.task} has ended elsewhere")
        elif not same or (isinstance(self.outcome, Failure) and not held):
            raise AlreadyFailed(f"task {self.task} is run elsewhere by now")

    def again(self, batch: Batch, row: TaskRow) -> Task | None:
        """Another attempt, unless enough have failed, or every option has; one that was lost is nobody's fault."""
        if 1 + sum(one["outcome"] == FAILED for one in json.loads(row.attempts or "[]")) >= self.limits.attempts:
            return None
        try:
            return Retrying(self.claims.scheduler, row.task, row.attempt, self.claims.lease).action(batch)
        except BadTask:  # no option is left
            return None
