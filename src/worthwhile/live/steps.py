"""Steps: a task whose options are lengths goes on while the next steps are worth it, and reports where it stops.

Nothing is stored before the end of the run; then the report, as that of the length at which it has stopped, and what
was seen of the shorter ones are stored together. A run that is killed leaves nothing but its lost task.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from worthwhile.errors import AlreadyFailed, BadFeedback, BadParameter, BadTask
from worthwhile.live.batch import Batch
from worthwhile.live.group_commit import Request
from worthwhile.live.stopping import Outlook, as_planned, outlook
from worthwhile.live.stores.base import CHOSEN, LOST, NO_BASELINE, TaskRow
from worthwhile.live.validation import Option, feedback, option_text, plain_options, task_number

if TYPE_CHECKING:
    from worthwhile.live.scheduler import Scheduler
    from worthwhile.live.task import Task

FREE = CHOSEN, NO_BASELINE  # modes in which a task may stop elsewhere: what is held out or explored stays as it is
LEAST_COST = 1e-9


class Steps:
    """The steps of one task; after each of them, `progress` says what the run would bring if it ended there."""

    def __init__(self, task: Task, lengths: Sequence[Option]) -> None:
        from worthwhile.live.scheduler import Scheduler

        if not isinstance(task.scheduler, Scheduler):
            raise BadParameter(f"scheduler = {task.scheduler!r}; steps are learned from the log: give a Scheduler")
        self.task, self.lengths = task, list(lengths)
        if not self.lengths:
            raise BadTask("no steps; give the lengths that were on offer, shortest first")
        self.outlook = by_the_log(task.scheduler, task, self.lengths)
        self.seen: list[tuple[float, float]] = []  # reward and cost after each step that has ended
        self.began = getattr(task, "began", time.perf_counter())  # of its `with` block
        self.given = 0

    def __iter__(self) -> Iterator[Option]:
        while self.goes_on():
            self.given += 1
            yield self.lengths[self.given - 1]
            if len(self.seen) < self.given:
                raise BadFeedback(f"step {self.lengths[self.given - 1]!r} has ended without a word; call task.progress")

    def progress(self, reward: float, cost: float | None = None) -> None:
        """What the run would bring if it ended here, and what it has cost so far: the time unless told."""
        if len(self.seen) == self.given:
            raise BadFeedback("no step is under way; call task.progress once in every step")
        spent = max(time.perf_counter() - self.began, LEAST_COST) if cost is None else cost
        reward, spent = feedback("reward", reward), feedback("cost", spent)
        if self.seen and spent < self.seen[-1][1]:
            raise BadFeedback(
                f"cost {spent:g} after {self.seen[-1][1]:g}: give what the run has cost from its beginning"
            )
        self.seen.append((reward, spent))
        self.task.reward = reward

    def goes_on(self) -> bool:
        """Whether there is another step, and it is worth its cost."""
        if not self.seen:
            return True
        reward, step = self.seen[-1][0], len(self.seen) - 1
        return self.outlook.goes_on(step, reward, reward - self.seen[step - 1][0] if step else 0.0)

    def report(self, reward: float | None, cost: float | None) -> None:
        """The end of the run; its shorter lengths are observations."""
        if not self.seen:
            raise BadFeedback(f"task {self.task.id} has made no step; call task.progress, or task.fail")
        last_reward, last_cost = self.seen[-1]
        values = last_reward if reward is None else reward, last_cost if cost is None else cost
        passed = dict(zip(self.lengths, self.seen[:-1], strict=False))
        stopping = Stopping(self.task, self.lengths[len(self.seen) - 1], *values, passed)
        self.task.scheduler._transactor.ask(stopping)  # type: ignore[attr-defined]
        self.task.option = self.lengths[len(self.seen) - 1]


def by_the_log(scheduler: Scheduler, task: Task, lengths: Sequence[Option]) -> Outlook:
    """What the log says of runs of this kind."""
    transactor, texts = scheduler._transactor, [option_text(length) for length in plain_options(lengths)]
    number = task_number(task.id)
    while not transactor.do(transactor.curves.read):
        pass
    row, places = transactor.do(lambda batch: (batch.task(number), places_of(batch, batch.task(number), texts)), number)
    plan = places.index(row.option)
    if row.mode not in FREE or row.price is None:
        return as_planned(plan)
    return outlook(plan, transactor.curves.of(row.kind, places), len(places), row.price)


def places_of(batch: Batch, row: TaskRow, texts: Sequence[str]) -> list[int]:
    """The numbers of the lengths, all of which were on offer and nothing else."""
    numbers = [batch.replica.options.number.get(text, -1) for text in texts]
    if sorted(numbers) != sorted(row.numbers):
        offered = ", ".join(batch.replica.options.texts[option] for option in row.numbers)
        raise BadTask(
            f"task {row.task}: steps {', '.join(texts)}, but on offer were {offered}; give the same, in order"
        )
    return numbers


class Stopping(Request):
    """Says at which length a run has stopped, what it brought, and what was seen on the way: all of it, or nothing."""

    task: int

    def __init__(
        self, task: Task, option: Option, reward: float, cost: float, passed: Mapping[Option, tuple[float, float]]
    ) -> None:
        self.task, self.option, self.attempt = task_number(task.id), option_text(option), task.attempt
        self.values, self.passed = (feedback("reward", reward), feedback("cost", cost)), passed

    def action(self, batch: Batch) -> TaskRow:
        row, length = batch.task(self.task), batch.replica.options.number[self.option]
        if row.attempt != self.attempt:
            raise AlreadyFailed(f"task {self.task} has failed, and is tried again; this run counts no more")
        if row.outcome == LOST and row.option != length:
            raise AlreadyFailed(
                f"task {self.task} was lost before its run ended: its lease was too short; decide with a longer one"
            )
        if not row.ended():
            batch.stop_at(row, length)
        return batch.report_all(self.task, *self.values, self.passed)
