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
    explored: bool  # whether any option could have been taken
    probability: float | None
    reward: float
    cost: float
    seen: Mapping[int, tuple[float, float]]


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
            tasks,
            [*batch.replica.kinds.texts],
            [batch.replica.option(number) for number in range(len(batch.replica.options.texts))],
            [*batch.replica.options.texts],
            batch.replica.settings.trial,
        )
    )


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
        options = tuple(sorted({*row.numbers, *seen})) if entry.policy == NO_POLICY else tuple(row.numbers)
        wanted, usual = option if own is None else own, baseline_at(batch, entry, option)
        explored = replica.settings.trial.shares_at(entry.task).explore > 0.0
        known = {**seen, option: values}
        found.append(
            Logged(entry.task, entry.kind, options, option, wanted, usual, explored, probability, *values, known)
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
