"""The log, task by task: what each took, how likely that was, what came of it, and what it showed on the side."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from worthwhile.live.batch import Batch
from worthwhile.live.fold import fault
from worthwhile.live.replica import PORTION
from worthwhile.live.stores.base import AGREED, HELD_OUT, NO_BASELINE, NO_POLICY, OWN, LogRow, TaskRow
from worthwhile.live.transactor import Transactor
from worthwhile.live.trials import TrialSettings


class Logged(NamedTuple):
    """A task as the log tells of it: what it took, how likely that was, and what it showed on the side."""

    task: int
    kind: int
    options: tuple[int, ...]
    option: int
    wanted: int  # by the policy
    baseline: int | None  # that it could have been held out with
    holdout: float  # share of such tasks that takes the baseline
    explore: float  # share of the others that takes any option
    probability: float | None
    reward: float
    cost: float
    seen: Mapping[int, tuple[float, float]]

    def chance(self, option: int) -> float:
        """How likely it was to take an option; 0 if that could not be, or nobody knows."""
        if self.probability is None or self.probability == 1.0 or option == self.option:
            return (self.probability or 0.0) * (option == self.option)
        if self.holdout == self.explore == 0.0:  # the policy has drawn: as likely as all others it did not draw
            return (1.0 - self.probability) / (len(self.options) - 1)
        by_scheduler = (1.0 - self.explore) * (option == self.wanted) + self.explore / len(self.options)
        return (1.0 - self.holdout) * by_scheduler + self.holdout * (option == self.baseline)


class Log(NamedTuple):
    """All tasks with a first outcome, and the names of what they are about."""

    tasks: list[Logged]
    kinds: list[str]
    options: list[Any]
    texts: list[str]
    trial: TrialSettings


def read(transactor: Transactor) -> Log:
    """The log, task by task, in the order of their first outcomes."""
    tasks: list[Logged] = []
    after, until = 0, transactor.do(lambda batch: batch.header.reports)
    while after < until:
        entries = transactor.entries(after, min(PORTION, until - after))
        after = entries[-1].number if entries else until
        tasks += transactor.do(partial(logged, entries=entries))
    return transactor.do(
        lambda batch: Log(
            with_all_options(tasks),
            [*batch.replica.kinds.texts],
            [batch.replica.option(number) for number in range(len(batch.replica.options.texts))],
            [*batch.replica.options.texts],
            batch.replica.settings.trial,
        )
    )


def with_all_options(tasks: list[Logged]) -> list[Logged]:
    """The tasks; of imported ones nobody knows what was on offer, so that it is all that others of their kind had."""
    offered: dict[int, set[int]] = {}
    for task in tasks:
        if not task.options:
            offered.setdefault(task.kind, set()).update(task.seen)
    return [task if task.options else task._replace(options=tuple(sorted(offered[task.kind]))) for task in tasks]


def logged(batch: Batch, entries: Sequence[LogRow]) -> list[Logged]:
    """A portion of the log: tasks whose first attempt has ended."""
    replica = batch.replica
    counts = len(replica.kinds.texts), len(replica.options.texts)
    first = [entry for entry in entries if entry.observed == OWN and not fault(entry, *counts)]
    numbers = [entry.task for entry in first]
    rows = {row.task: row for row in batch.tx.tasks(replica.id, numbers)}
    aside: dict[int, dict[int, tuple[float, float]]] = {}
    for entry in batch.tx.observations(replica.id, numbers):
        if entry.reward is not None:
            aside.setdefault(entry.task, {})[entry.option] = entry.reward, entry.cost + entry.overhead
    found = []
    for entry in first:
        row, seen = rows.get(entry.task), aside.get(entry.task, {})
        if row is None:
            continue
        option, own, probability = first_attempt(row)
        values = entry.reward or 0.0, entry.cost + entry.overhead
        options = () if row.policy == NO_POLICY else tuple(row.numbers)
        wanted, usual = option if own is None else own, baseline_at(batch, entry, option)
        shares = replica.settings.trial.shares_at(entry.task)
        held_out = shares.holdout if usual is not None else 0.0
        known = {**seen, option: values}
        found.append(
            Logged(
                entry.task,
                entry.kind,
                options,
                option,
                wanted,
                usual,
                held_out,
                shares.explore,
                probability,
                *values,
                known,
            )
        )
    return found


def baseline_at(batch: Batch, entry: LogRow, option: int) -> int | None:
    """What a task could have been held out with; None if it could not."""
    replica = batch.replica
    trial = replica.settings.trial
    if entry.mode in (HELD_OUT, AGREED):
        return option
    if entry.mode == NO_BASELINE or trial.shares_at(entry.task).holdout == 0.0 or entry.task < trial.since:
        return None
    return replica.options.number.get(trial.usual(replica.kinds.texts[entry.kind]) or "")


def first_attempt(row: TaskRow) -> tuple[int, int | None, float | None]:
    """The option that a task took first, the policy's own if that was another, and how likely it was."""
    if row.attempts is None:
        return row.option, row.own, row.probability
    first = json.loads(row.attempts)[0]
    return first["option"], first.get("own"), first.get("probability")
