"""What people ask a scheduler about its tasks: where each stands, and why it got its option."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from worthwhile.formatting import shown
from worthwhile.live.batch import Batch
from worthwhile.live.engines import offer_of
from worthwhile.live.fold import Fold
from worthwhile.live.replica import Replica
from worthwhile.live.settings import policy_words
from worthwhile.live.stores.base import RESULT, STATES, TaskRow
from worthwhile.live.stores.schema import Damaged
from worthwhile.live.summary import counted
from worthwhile.live.validation import Option


@dataclass(frozen=True)
class Judgement:
    """What was known of an option when a decision was made; its score is reward − θ·cost."""

    option: Option
    pulls: int
    running: int
    reward_estimate: float
    cost_estimate: float
    score: float | None
    chosen: bool


@dataclass(frozen=True)
class Attempt:
    """An earlier attempt at a task."""

    option: Option
    state: str  # failed or expired
    cost: float | None
    reason: str | None


@dataclass(frozen=True)
class Explanation:
    """A decision, with everything it was based on; `repeated` if the policy decides the same again from that."""

    task: str
    kind: str
    option: Option
    why: str
    policy: str
    price: float | None
    seen: int
    options: list[Judgement]
    repeated: bool | None
    state: str
    reward: float | None
    cost: float | None
    reason: str | None = None  # of a failure
    attempts: list[Attempt] = field(default_factory=list)  # earlier ones; what is explained is the latest


@dataclass(frozen=True)
class TaskLine:
    """A task in a list."""

    task: str
    kind: str
    option: Option
    state: str
    reward: float | None
    cost: float | None
    decided: float
    key: str | None
    reason: str | None = None  # of a failure
    attempts: int = 1


def explanation(row: TaskRow, fold: Fold | None, batch: Batch) -> Explanation:
    """Why a task got its option; `fold` is what its policy knew then, None if no policy decided it."""
    replica = batch.replica
    if fold is not None and max(row.numbers) >= len(replica.options.texts):
        raise Damaged("tasks", f"scheduler {replica.id}, task {row.task}", f"options = {row.options}: one has no name")
    judged = [] if fold is None else judgements(row, fold, replica)
    return Explanation(
        str(row.task),
        replica.kinds.texts[row.kind],
        replica.option(row.option),
        "it was recorded elsewhere, and imported" if fold is None else in_words(row, judged),
        "none" if fold is None else policy_words(replica.policies.texts[row.policy]),
        row.price,
        row.seen,
        judged,
        None if fold is None else repeats(row, fold),
        row.state(batch.header.now),
        row.reward,
        row.cost,
        reasons(batch, [row]).get(row.task),
        earlier_attempts(row, replica),
    )


def earlier_attempts(row: TaskRow, replica: Replica) -> list[Attempt]:
    """What was tried before, and what came of it."""
    earlier = json.loads(row.attempts or "[]")
    return [
        Attempt(replica.option(one["option"]), STATES[one["outcome"]], one["cost"], one["reason"])
        for one in earlier
        if one["report"] is not None  # imported history may not tell of all
    ]


def reasons(batch: Batch, rows: Sequence[TaskRow]) -> dict[int, str | None]:
    """Why tasks have failed, by number."""
    failed = {row.report: row.task for row in rows if row.outcome != RESULT and row.report is not None}
    if not failed:
        return {}
    entries = batch.tx.outcomes(batch.replica.id, list(failed.values()))
    return {entry.task: entry.reason for entry in entries if entry.number in failed}


def judgements(row: TaskRow, fold: Fold, replica: Replica) -> list[Judgement]:
    """Every option on offer that no earlier attempt has tried, as the policy saw it."""
    judged = []
    for option, running in pending_of(row).items():
        reward, cost = map(float, fold.engine.judge(row.kind, option)[1:])
        if option == row.option:
            reward, cost = row.reward_estimate, row.cost_estimate
        score = None if row.price is None else reward - row.price * cost
        pulls, chosen = int(fold.state.totals.pulls[row.kind, option]), option == row.option
        judged.append(Judgement(replica.option(option), pulls, running, reward, cost, score, chosen))
    return judged


def pending_of(row: TaskRow) -> dict[int, int]:
    """How many tasks were running with each option that could be chosen."""
    pending, untried = map(int, row.pending.split(",")), set(row.untried)
    return {option: count for option, count in zip(row.numbers, pending, strict=True) if option in untried}


def in_words(row: TaskRow, judged: list[Judgement]) -> str:
    """Why this option."""
    chosen = next(option for option in judged if option.chosen)
    if len(judged) == 1:
        return "it was the only option " + ("on offer" if row.attempts is None else "left")
    if chosen.pulls == 0:
        return "it had not been tried with this kind"
    if chosen.score is None or row.price is None:
        return "the policy's rule, which knows no price θ, took it"
    best = max((option for option in judged if option.pulls > 0), key=lambda option: option.score or 0.0)
    if chosen.score >= (best.score or 0.0):
        return f"its score, reward − θ·cost with θ = {row.price:g}, was the best of those tried"
    behind = (best.score or 0.0) - chosen.score
    after = f"after {counted(chosen.pulls, 'report')}, its score was {behind:.3g} below that of {shown(best.option)}"
    return f"there was more to learn about it: {after}"


def repeats(row: TaskRow, fold: Fold) -> bool:
    """Whether the policy, asked again, takes the same option."""
    pending = pending_of(row)
    running = {option: count for option, count in pending.items() if count}
    return int(fold.engine.choose(offer_of(row.kind, list(pending)), running, row.task)[0]) == row.option


def latest(batch: Batch, count: int) -> list[TaskLine]:
    """The latest tasks, newest first."""
    return task_lines(batch, batch.tx.latest(batch.replica.id, count))


def tasks(batch: Batch, numbers: list[int]) -> list[TaskLine]:
    """Tasks by number, in that order, each once."""
    rows = {row.task: row for row in batch.tx.tasks(batch.replica.id, numbers)}
    return task_lines(batch, [rows[number] for number in dict.fromkeys(numbers) if number in rows])


def task_lines(batch: Batch, rows: Sequence[TaskRow]) -> list[TaskLine]:
    why = reasons(batch, rows)
    return [task_line(batch, row, why.get(row.task)) for row in rows]


def task_line(batch: Batch, row: TaskRow, reason: str | None) -> TaskLine:
    batch.replica.check_task(row, batch.header.tasks)
    return TaskLine(
        str(row.task),
        batch.replica.kinds.texts[row.kind],
        batch.replica.option(row.option),
        row.state(batch.header.now),
        row.reward,
        row.cost,
        row.decided,
        row.key,
        reason,
        row.attempt + 1,
    )
