"""What `Scheduler.summary()` says, worked out: who is winning, is that settled, what would other rules have earned."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from worthwhile.errors import BadProblem
from worthwhile.formatting import shown
from worthwhile.learning import Moments
from worthwhile.live.batch import Batch
from worthwhile.live.fold import SetAside
from worthwhile.live.log_statistics import Evidence, LogStatistics, changes, score_errors
from worthwhile.live.replica import Replica
from worthwhile.live.settings import policy_words
from worthwhile.live.summary import Comparison, KindSummary, OptionSummary, Summary, counted
from worthwhile.live.totals import Totals
from worthwhile.live.validation import Option
from worthwhile.optimum import solve
from worthwhile.problem import Problem

SURE = 2.0  # standard errors
ENOUGH_TO_JUDGE = 100  # reports
TOO_MANY_EXPIRED = 0.05  # of all tasks
MOST_NAMED = 3  # in a warning

Counts = npt.NDArray[np.int64]


class Standing(NamedTuple):
    """A scheduler as one transaction shows it, copied: the rest is worked out while others go on."""

    policy: str
    overhead: float
    tasks: int
    price: float | None
    kinds: list[str]
    options: list[Option]
    totals: Totals
    running: Counts
    expired: Counts
    retired: npt.NDArray[np.bool_]
    bad_entries: int
    set_aside: list[SetAside]


def summary(name: str, statistics: LogStatistics) -> Summary:
    """How the scheduler stands."""
    with statistics.followed(standing) as now:
        totals, evidence = now.totals, statistics.evidence
        tried = totals.pulls > 0.0
        reward, cost = math.fsum(totals.reward[tried]), math.fsum(totals.cost[tried])  # whatever numbers names have
        ratio = quotient(reward, cost)
        price = ratio if now.price is None else now.price
        kinds = [kind_summary(now, evidence.moments, kind, price) for kind in range(len(now.kinds))]
        return Summary(
            scheduler=name,
            policy=now.policy,
            overhead=now.overhead,
            tasks=now.tasks,
            reports=int(totals.pulls.sum()),
            running=int(now.running.sum()),
            expired=int(now.expired.sum()),
            reward=reward,
            cost=cost,
            ratio=ratio,
            price=price,
            kinds=kinds,
            comparisons=comparisons(now, evidence.moments, ratio),
            warnings=warnings(now, kinds, evidence),
            bad_entries=now.bad_entries,
            set_aside=now.set_aside,
        )


def standing(batch: Batch) -> Standing:
    """Everything that only a transaction can tell."""
    replica, fold, tx = batch.replica, batch.replica.fold, batch.tx
    kinds, options = len(replica.kinds.texts), len(replica.options.texts)
    running, expired = np.zeros((2, kinds, options), np.int64)
    for counts, rows in (
        (running, tx.running(replica.id, list(range(kinds)), batch.header.now)),
        (expired, tx.expired(replica.id, batch.header.now)),
    ):
        for kind, option, count in rows:
            counts[kind, option] = count
    return Standing(
        policy=policy_words(replica.policies.texts[fold.number]),
        overhead=replica.settings.overhead,
        tasks=batch.header.tasks,
        price=fold.price,
        kinds=list(replica.kinds.texts),
        options=[replica.option(number) for number in range(options)],
        totals=Totals(*(array[:kinds, :options].copy() for array in fold.state.totals)),
        running=running,
        expired=expired,
        retired=retired(replica, kinds, options),
        bad_entries=fold.bad,
        set_aside=list(fold.set_aside),
    )


def retired(replica: Replica, kinds: int, options: int) -> npt.NDArray[np.bool_]:
    """(kinds, options): what is never chosen."""
    never = np.zeros((kinds, options), bool)
    for kind, text in replica.settings.retired:
        option = replica.options.number.get(text)
        if option is not None and (kind is None or kind in replica.kinds.number):
            never[slice(None) if kind is None else replica.kinds.number[kind], option] = True
    return never


def quotient(above: float, below: float) -> float | None:
    return float(above) / float(below) if below > 0.0 else None


def finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def kind_summary(now: Standing, moments: Moments, kind: int, price: float | None) -> KindSummary:
    """Every option judged by reward − θ·cost; the best first."""
    totals = now.totals
    options = option_summaries(now, moments, kind, price)
    options.sort(key=lambda option: (-math.inf if option.score is None else option.score, option.pulls), reverse=True)
    judged = [place for place, option in enumerate(options) if option.score is not None and not option.retired]
    if judged:
        options[judged[0]] = replace(options[judged[0]], winning=True)
    settled, words = verdict([options[place] for place in judged])
    return KindSummary(
        kind=now.kinds[kind],
        reports=int(totals.pulls[kind].sum()),
        ratio=quotient(totals.reward[kind].sum(), totals.cost[kind].sum()),
        running=int(now.running[kind].sum()),
        expired=int(now.expired[kind].sum()),
        winner=options[judged[0]].option if judged else None,
        settled=settled,
        verdict=words,
        options=options,
    )


def option_summaries(now: Standing, moments: Moments, kind: int, price: float | None) -> list[OptionSummary]:
    """The options of a kind that anything is known about."""
    totals, reports = now.totals, now.totals.pulls[kind].sum()
    used = np.flatnonzero(totals.pulls[kind] + totals.observed[kind] + now.running[kind] + now.expired[kind])
    errors = np.full(moments.pulls.shape[1], np.nan) if price is None else SURE * score_errors(moments, kind, price)
    columns = totals.pulls, totals.observed, now.running, now.expired, now.retired, *moments[:3]
    rows = zip(used.tolist(), *(column[kind, used].tolist() for column in columns), errors[used].tolist(), strict=True)
    options = []
    for option, pulls, observed, running, expired, never, seen, reward, cost, error in rows:
        options.append(
            OptionSummary(
                option=now.options[option],
                pulls=int(pulls),
                share=quotient(pulls, reports) or 0.0,
                mean_reward=reward if seen else None,
                mean_cost=cost if seen else None,
                score=finite(reward - price * cost) if seen and price is not None else None,
                error=finite(error),
                observed=int(observed),
                running=running,
                expired=expired,
                retired=never,
                winning=False,
            )
        )
    return options


def verdict(judged: Sequence[OptionSummary]) -> tuple[bool, str]:
    """Whether the best is clearly the best, in words."""
    if not judged:
        return False, "nothing reported yet"
    best, name = judged[0], shown(judged[0].option)
    if len(judged) == 1:
        return False, f"only {name} has been tried"
    rivals = [shown(option.option) for option in judged[1:] if not clearly_better(best, option)]
    if not rivals:
        return True, f"{name} is clearly best"
    return False, f"{name} leads; {listed(rivals)} may still be better"


def clearly_better(option: OptionSummary, rival: OptionSummary) -> bool:
    """Apart by two standard errors of the difference."""
    if option.error is None or rival.error is None or option.score is None or rival.score is None:
        return False
    return option.score - rival.score > math.hypot(option.error, rival.error)


def comparisons(now: Standing, moments: Moments, achieved: float | None) -> list[Comparison]:
    """What simpler rules would have earned with the same tasks; an option not tried with a kind is not on offer."""
    problem = known_problem(now, moments)
    if problem is None:
        return []
    best = solve(problem)
    single = "no option was tried with every kind that has a choice"
    if best.single is not None:
        single = f"always {shown(now.options[int(problem.options[best.single])])}"
    reward, cost = (problem.arrival @ np.nanmean(means, axis=1) for means in (problem.reward, problem.cost))
    rules: list[tuple[str, str, float | None]] = [
        ("best single option", single, best.single_ratio),
        ("per-kind greedy", "for each kind alone, its best reward per cost", best.greedy_ratio),
        ("random", "any option that was tried, equally often", float(reward / cost)),
    ]
    return [Comparison(rule, says, ratio, advantage(achieved, ratio)) for rule, says, ratio in rules]


def known_problem(now: Standing, moments: Moments) -> Problem | None:
    """The tasks so far as a problem with the means so far; its options are named by their numbers."""
    size = np.s_[: len(now.kinds), : len(now.options)]
    pulls, mean_reward, mean_cost = (array[size] for array in moments[:3])
    kinds, options = np.flatnonzero(pulls.any(axis=1)), np.flatnonzero(pulls.any(axis=0))
    reports = now.totals.pulls.sum(axis=1)[kinds]
    if not reports.any():
        return None
    tried = pulls[np.ix_(kinds, options)] > 0.0
    reward, cost = (np.where(tried, means[np.ix_(kinds, options)], np.nan) for means in (mean_reward, mean_cost))
    names = tuple(now.kinds[kind] for kind in kinds), tuple(map(str, options))
    try:
        return Problem("so far", *names, reports / reports.sum(), reward, cost)
    except BadProblem:  # an overhead on top of the largest cost
        return None


def advantage(achieved: float | None, ratio: float | None) -> float | None:
    return achieved / ratio - 1.0 if achieved is not None and ratio is not None and ratio > 0.0 else None


def warnings(now: Standing, kinds: Sequence[KindSummary], evidence: Evidence) -> list[str]:
    """What somebody should look at, in plain words."""
    return [*about_options(now, kinds, evidence), *about_tasks(now)]


def about_options(now: Standing, kinds: Sequence[KindSummary], evidence: Evidence) -> Iterable[str]:
    if now.totals.pulls.sum() >= ENOUGH_TO_JUDGE and cheapest_always_wins(kinds):
        yield (
            "The cheapest option wins for every kind, so there is little to learn. If every task also costs something "
            "that is not reported (set-up, review), tell the scheduler: overhead."
        )
    silent = [
        f"{kind.kind} / {shown(option.option)} ({counted(option.expired, 'task')})"
        for kind in kinds
        for option in kind.options
        if option.pulls == 0 and option.expired > 0
    ]
    if silent:
        yield f"Chosen, but never reported: {listed(silent)}. Does whoever runs these tasks report?"
    changed = [f"{now.kinds[kind]} / {shown(now.options[option])} ({what})" for kind, option, what in changes(evidence)]
    if changed:
        yield f"Something may have changed: lately different from before are {listed(changed)}."


def about_tasks(now: Standing) -> Iterable[str]:
    expired = int(now.expired.sum())
    if expired > max(10, TOO_MANY_EXPIRED * now.tasks):
        yield f"Not reported when the lease ended: {expired:,} tasks ({expired / now.tasks:.0%})."
    if now.bad_entries:
        entries = "entry" if now.bad_entries == 1 else "entries"
        yield f"Set aside, because nothing can be learned from it: {now.bad_entries:,} {entries} of the log."


def listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def cheapest_always_wins(kinds: Sequence[KindSummary]) -> bool:
    """For every kind that has a choice, if there is one."""
    choices = [[option for option in kind.options if option.score is not None and not option.retired] for kind in kinds]
    cheapest = [min(options, key=lambda option: option.mean_cost or 0.0) for options in choices if len(options) > 1]
    return bool(cheapest) and all(option.winning for option in cheapest)
