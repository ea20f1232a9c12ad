"""What people ask a scheduler about its tasks: where each stands, and why it got its option."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from worthwhile.formatting import counted, shown
from worthwhile.live.batch import Batch
from worthwhile.live.by_features import UNCHANGED, ByFeatures, named, why_by_features
from worthwhile.live.engines import Offer, offer_of
from worthwhile.live.fold import Fold
from worthwhile.live.replica import Replica
from worthwhile.live.settings import policy_words
from worthwhile.live.stores.base import CHOSEN, GUARDED, HELD_OUT, MODES, NO_BASELINE, RESULT, STATES, TaskRow
from worthwhile.live.stores.schema import Damaged
from worthwhile.live.validation import Option, features_in
from worthwhile.policies.base import NOTHING_RUNS, Running
from worthwhile.policies.features import NOTHING, Feature
from worthwhile.policies.goal_imed import NO_FLOOR, GoalImed, has_budget, is_per_kind
from worthwhile.policies.pursuit import higher, lower


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
    features: dict[str, Feature] | None = None  # of the task
    by_features: ByFeatures | None = None  # what they led to, if the policy says
    probability: float | None = None  # of the option, given the policy's own draws; None if it is not known
    own: Option = None  # what the policy would have taken, if the task took another option
    mode: str = MODES[CHOSEN]  # how the option came about


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
    features: dict[str, Feature] | None = None

    @property
    def id(self) -> str:
        """As a task calls it."""
        return self.task


def explanation(row: TaskRow, fold: Fold | None, batch: Batch) -> Explanation:
    """Why a task got its option; `fold` is what its policy knew then, None if no policy decided it."""
    replica = batch.replica
    if fold is not None and max(row.numbers) >= len(replica.options.texts):
        raise Damaged("tasks", f"scheduler {replica.id}, task {row.task}", f"options = {row.options}: one has no name")
    judged = [] if fold is None else judgements(row, fold, replica)
    told = None if fold is None else told_by_features(row, fold, replica)
    return Explanation(
        str(row.task),
        replica.kinds.texts[row.kind],
        replica.option(row.option),
        "it was recorded elsewhere, and imported" if fold is None else in_words(row, judged, fold, told, replica),
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
        features_of(row),
        told,
        row.probability,
        None if row.own is None else replica.option(row.own),
        MODES[row.mode],
    )


def features_of(row: TaskRow) -> dict[str, Feature] | None:
    """What is known of a task beside its kind."""
    return None if row.features is None else dict(features_in(row.features))


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
        if chosen and row.features is None:  # the others are not judged by features, either
            reward, cost = row.reward_estimate, row.cost_estimate
        pulls, name = int(totals.pulls[arm]), replica.option(option)
        counts = int(totals.failed[arm]), fold.benched(*arm)
        if 0 < pulls == counts[0] and not totals.observed[arm]:  # what is expected is the kind's, not what it brought
            reward = cost = 0.0
        score = reward - row.price * cost if row.price is not None and cost > 0.0 else None
        judged.append(Judgement(name, pulls, running, reward, cost, score, chosen, *counts))
    return judged


def pending_of(row: TaskRow) -> dict[int, int]:
    """How many tasks were running with each option that could be chosen."""
    pending, offered = map(int, row.pending.split(",")), set(row.choice[1])
    return {option: count for option, count in zip(row.numbers, pending, strict=True) if option in offered}


def in_words(row: TaskRow, judged: list[Judgement], fold: Fold, told: ByFeatures | None, replica: Replica) -> str:
    """Why this option."""
    why = why_chosen(row, judged, fold, told) if row.own is None else instead_of_own(row, replica)
    if row.choice[0] == row.attempt:
        return why
    return f"whoever takes a task over keeps its option. It was chosen because {why}"


def instead_of_own(row: TaskRow, replica: Replica) -> str:
    """Why not what the policy would have taken."""
    own = f"the policy would have taken {shown(replica.option(row.own or 0))}"
    if row.mode == GUARDED:
        return f"the guard took the baseline, because too much may have been lost already; {own}"
    if row.mode in (CHOSEN, NO_BASELINE):
        return f"the run stopped there, because of what it had brought so far; {own}"
    if row.mode == HELD_OUT:
        return f"the task was held out, to compare: it got the baseline, {own}"
    return f"it was drawn at random, to explore; {own}"


def why_chosen(row: TaskRow, judged: list[Judgement], fold: Fold, told: ByFeatures | None) -> str:
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
    if told is not None and not chosen.benched:
        return why_by_features(told, chosen.option) or f"{whatever_features(row, judged, chosen, told)}; {UNCHANGED}"
    if not chosen.benched and judged_by_features(row, fold):
        return (
            f"for its features, a reward of {row.reward_estimate:.3g} at a cost of {row.cost_estimate:.3g} was expected"
        )
    return by_estimates(row, judged, chosen, what_price_keeps(row, fold))


def what_price_keeps(row: TaskRow, fold: Fold) -> str:
    """Which floor or budget the price of a decision is for, if that is what it was."""
    policy, state = fold.policy, fold.state.learned
    if not isinstance(policy, GoalImed) or row.price is None:
        return ""
    at = row.kind if is_per_kind(policy) else 0
    if state.floor[at] > NO_FLOOR and lower(state.for_floor, at) <= row.price <= higher(state.for_floor, at):
        return f" (which keeps the floor of {state.floor[at]:g})"
    if has_budget(policy) and lower(state.for_budget, 0) <= row.price <= higher(state.for_budget, 0):
        return f" (which keeps the budget of {policy.budget:g})"
    return ""


def whatever_features(row: TaskRow, judged: list[Judgement], chosen: Judgement, told: ByFeatures) -> str:
    """Why an option for which the features of the task had no part; what was expected of it here may be less."""
    best = told.effect == NOTHING and row.price is not None and chosen.option == told.usual and chosen.works
    return (
        f"its score, reward − θ·cost with θ = {row.price:g}, was the best overall"
        if best
        else by_estimates(row, judged, chosen)
    )


def judged_by_features(row: TaskRow, fold: Fold) -> bool:
    """Whether the policy expected something else of the option than for a task without features."""
    _, reward, cost = fold.engine.judge(row.kind, row.option)
    return fold.vector(row.features) is not None and (reward, cost) != (row.reward_estimate, row.cost_estimate)


def first_try(row: TaskRow, fold: Fold) -> str:
    """Why an option that this kind had not tried: for what it did elsewhere, or because nobody knew it."""
    totals, option = fold.state.totals, row.option
    attempts, failed = (int(count[:, option].sum()) for count in (totals.pulls + totals.observed, totals.failed))
    here = "it had not been tried with this kind"
    if attempts == 0 or not hasattr(fold.state.learned, "sharing"):  # nobody knows it, or each kind is for itself
        return here
    if attempts == failed:
        return f"{here}; with others it had failed in {counted(failed, 'attempt')} of {attempts:,}, and was due again"
    return f"{here}; other kinds suggested a reward of {row.reward_estimate:.3g} at a cost of {row.cost_estimate:.3g}"


def by_estimates(row: TaskRow, judged: list[Judgement], chosen: Judgement, keeps: str = "") -> str:
    """Why an option that was tried before, where something has succeeded."""
    if chosen.benched:
        failures = f"{chosen.failed:,} of {counted(chosen.pulls, 'attempt')} had failed"
        return f"it was due to be tried again after its failures (benched: {failures})"
    if row.price is None:
        return "the policy's rule, which knows no price θ, took it"
    if chosen.score is None:
        return f"it had never succeeded in {counted(chosen.pulls, 'attempt')}, and was tried again"
    return by_score(chosen, chosen.score, judged, row.price, keeps)


def by_score(chosen: Judgement, score: float, judged: list[Judgement], price: float, keeps: str) -> str:
    """How the option compares with those that have succeeded and are not benched; what the price keeps, if anything."""
    best, leader = score, chosen
    for option in judged:
        if option.works and option.score is not None and option.score > best:
            best, leader = option.score, option
    if leader is chosen:
        those = "that work" if any(option.failed for option in judged) else "tried"
        return f"its score, reward − θ·cost with θ = {price:g}{keeps}, was the best of those {those}"
    after = f"after {counted(chosen.pulls, 'report')}, its score was {best - score:.3g} below that of"
    return f"there was more to learn about it: {after} {shown(leader.option)}"


def repeats(row: TaskRow, fold: Fold) -> bool:
    """Whether the policy, asked again, takes the same option."""
    attempt, (offer, running) = row.choice[0], offered(row)
    engine = fold.engine if attempt == 0 else fold.engine.seldom.for_attempt(attempt)
    price = fold.aim(row.kind, in_flight_of(row)) if fold.has_goal else None
    made = engine.choose(offer, running, row.draws, fold.vector(row.features), price)
    own = row.option if row.own is None else row.own
    return int(made[0]) == own and price in (None, row.price)


def in_flight_of(row: TaskRow) -> tuple[Running, Running]:
    """What was running when a task was decided, of all kinds and of its own."""
    of_all, of_kind = json.loads(row.in_flight) if row.in_flight is not None else (NOTHING_RUNS, NOTHING_RUNS)
    return Running(*of_all), Running(*of_kind)


def offered(row: TaskRow) -> tuple[Offer, dict[int, int]]:
    """What was on offer, and running."""
    pending = pending_of(row)
    return offer_of(row.kind, list(pending)), {option: count for option, count in pending.items() if count}


def told_by_features(row: TaskRow, fold: Fold, replica: Replica) -> ByFeatures | None:
    """What the features of a task led to; None if it has none, or the policy does not say."""
    vector, attempt, engine = fold.vector(row.features), row.choice[0], fold.engine.seldom
    if vector is None:
        return None
    engine = engine.for_attempt(attempt) if attempt else engine
    told = engine.by_features(*offered(row), row.draws, vector, row.option)
    return None if told is None else named(told, features_of(row) or {}, replica)


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
        features_of(row),
    )
