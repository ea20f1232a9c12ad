"""Report: what came of an attempt at a task, as a request for the next transaction."""

from __future__ import annotations

from worthwhile.execution.metering import Failure, Outcome
from worthwhile.live.batch import Batch
from worthwhile.live.group_commit import Request
from worthwhile.live.task import Task
from worthwhile.live.validation import reason_text, task_number


class Ending(Request):
    """A result or a failure, with what was observed of other options: all of it is stored, or nothing."""

    task: int

    def __init__(self, task: Task, outcome: Outcome | Failure, failed_reward: float | None) -> None:
        self.task, self.outcome, self.failed_reward = task_number(task.id), outcome, failed_reward
        self.others = {option: values for option, values in outcome.observed.items() if option != task.option}

    def action(self, batch: Batch) -> float | None:
        """The reward, as it is stored."""
        if isinstance(self.outcome, Outcome):
            return batch.report_all(self.task, self.outcome.reward, self.outcome.cost, self.others).reward
        observed = [batch.observation(self.task, option, *values) for option, values in self.others.items()]
        row = batch.fail(self.task, self.outcome.cost, reason_text(self.outcome.why), self.failed_reward)
        for new in filter(None, observed):
            batch.log_observation(row, *new)
        return row.reward
