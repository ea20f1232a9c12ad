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
    score: float | None  # None if the policy has no estimate, as of what has never succeeded
    chosen: bool
    failed: int = 0  # of the pulls
    benched: bool = False

    @property
    def works(self) -> bool:
        """Whether it had succeeded, and was not benched."""
        return self.pulls > self.failed and not self.benched


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
    total_cost: float | None = None  # of all of them


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
    total_cost: float | None = None  # of all attempts


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
        "it was recorded elsewhere, and imported" if fold is None else in_words(row, judged, fold),
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
        total_cost(row),
    )


def earlier_attempts(row: TaskRow, replica: Replica) -> list[Attempt]:
    """What was tried before, and what came of it."""
    earlier = json.loads(row.attempts or "[]")
    return [
        Attempt(replica.option(one["option"]), STATES[one["outcome"]], one["cost"], one["reason"])
        for one in earlier
        if one["report"] is not None  # imported history may not tell of all
    ]


def total_cost(row: TaskRow) -> float | None:
    """What all attempts have cost, as far as that is known."""
    known = [one["cost"] for one in json.loads(row.attempts or "[]")] + [row.cost]
    return sum(cost for cost in known if cost is not None) if any(cost is not None for cost in known) else None


def reasons(batch: Batch, rows: Sequence[TaskRow]) -> dict[int, str | None]:
    """Why tasks have failed, by number."""
    failed = {row.report: row.task for row in rows if row.outcome != RESULT and row.report is not None}
    if not failed:
        return {}
    entries = batch.tx.outcomes(batch.replica.id, list(failed.values()))
    return {entry.task: entry.reason for entry in entries if entry.number in failed}


def judgements(row: TaskRow, fold: Fold, replica: Replica) -> list[Judgement]:
    """Every option that could be chosen, as the policy saw it; what has never succeeded has no score."""
    judged, totals = [], fold.state.totals
    for option, running in pending_of(row).items():
        arm, chosen = (row.kind, option), option == row.option
        reward, cost = map(float, fold.engine.judge(*arm)[1:])
        if chosen:
            reward, cost = row.reward_estimate, row.cost_estimate
        score = reward - row.price * cost if row.price is not None and cost > 0.0 else None
        counts = int(totals.failed[arm]), fold.benched(*arm)
        pulls, name = int(totals.pulls[arm]), replica.option(option)
        judged.append(Judgement(name, pulls, running, reward, cost, score, chosen, *counts))
    return judged


def pending_of(row: TaskRow) -> dict[int, int]:
    """How many tasks were running with each option that could be chosen."""
    pending, offered = map(int, row.pending.split(",")), set(row.choice[1])
    return {option: count for option, count in zip(row.numbers, pending, strict=True) if option in offered}


def in_words(row: TaskRow, judged: list[Judgement], fold: Fold) -> str:
    """Why this option."""
    why = why_chosen(row, judged, fold)
    if row.choice[0] == row.attempt:
        return why
    return f"whoever takes a task over keeps its option. It was chosen because {why}"


def why_chosen(row: TaskRow, judged: list[Judgement], fold: Fold) -> str:
    chosen = next(option for option in judged if option.chosen)
    if len(judged) == 1:
        of_several = chosen.works and len(row.untried) > 1
        return "it was the only option " + (
            "left that works" if of_several else "left" if row.choice[0] else "on offer"
        )
    if chosen.pulls == 0:
        return first_try(row, fold)
    if all(option.pulls == option.failed for option in judged):
        return "nothing has succeeded yet for this kind: options take turns"
    return by_estimates(row, judged, chosen)


def first_try(row: TaskRow, fold: Fold) -> str:
    """Why an option that this kind had not tried: for what it did elsewhere, or because nobody knew it."""
    totals, option = fold.state.totals, row.option
    attempts, failed = (int(count[:, option].sum()) for count in (totals.pulls + totals.observed, totals.failed))
    here = "it had not been tried with this kind"
    if attempts == 0 or not hasattr(fold.state.learned, "sharing"):  # nobody knows it, or each kind is for itself
        return here
    if attempts == failed:
        return f"{here}; with others it had failed in {counted(failed, 'attempt')} of {attempts:,}, and was due again"
    return f"{here}; others led to expect a reward of {row.reward_estimate:.3g} at a cost of {row.cost_estimate:.3g}"


def by_estimates(row: TaskRow, judged: list[Judgement], chosen: Judgement) -> str:
    """Why an option that was tried before, where something has succeeded."""
    if chosen.benched:
        failures = f"{chosen.failed:,} of {counted(chosen.pulls, 'attempt')} had failed"
        return f"it was due to be tried again after its failures (benched: {failures})"
    if row.price is None:
        return "the policy's rule, which knows no price θ, took it"
    if chosen.score is None:
        return f"it had never succeeded in {counted(chosen.pulls, 'attempt')}, and was tried again"
    return by_score(chosen, chosen.score, judged, row.price)


def by_score(chosen: Judgement, score: float, judged: list[Judgement], price: float) -> str:
    """How the option compares with those that have succeeded and are not benched."""
    best, leader = score, chosen
    for option in judged:
        if option.works and option.score is not None and option.score > best:
            best, leader = option.score, option
    if leader is chosen:
        those = "that work" if any(option.failed for option in judged) else "tried"
        return f"its score, reward − θ·cost with θ = {price:g}, was the best of those {those}"
    after = f"after {counted(chosen.pulls, 'report')}, its score was {best - score:.3g} below that of"
    return f"there was more to learn about it: {after} {shown(leader.option)}"


def repeats(row: TaskRow, fold: Fold) -> bool:
    """Whether the policy, asked again, takes the same option."""
    attempt, pending = row.choice[0], pending_of(row)
    running = {option: count for option, count in pending.items() if count}
    engine = fold.engine if attempt == 0 else fold.engine.seldom.for_attempt(attempt)
    return int(engine.choose(offer_of(row.kind, list(pending)), running, row.task)[0]) == row.option


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
        total_cost(row),
    )
