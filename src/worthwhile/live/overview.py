"""What `Scheduler.summary()` says, worked out: who is winning, is that settled, what would other rules have earned."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from worthwhile.formatting import counted, shown
from worthwhile.goals.goal import Goal
from worthwhile.goals.suggestions import suggestions_of, suggestions_text
from worthwhile.learning import UNKNOWN, Sums
from worthwhile.live.advice import (
    about_failures,
    about_features,
    about_floors,
    about_goal,
    about_options,
    about_tasks,
    listed,
    warnings_and_remedies,
)
from worthwhile.live.batch import Batch
from worthwhile.live.completed import completed_ratio, failure_cost, failure_error
from worthwhile.live.fold import Fold
from worthwhile.live.gain import gain_summary
from worthwhile.live.goal_summary import (
    best_mixes,
    goal_summary,
    judged_by_cost,
    means_so_far,
    never_seen,
    out_of_reach,
)
from worthwhile.live.log_statistics import Failures, LogStatistics, score_errors
from worthwhile.live.rules import against_baseline, comparisons, means_of
from worthwhile.live.settings import policy_words
from worthwhile.live.stores.schema import Damaged
from worthwhile.live.summary import (
    Comparison,
    FeatureShare,
    FeaturesSummary,
    KindSummary,
    OptionSummary,
    Summary,
)
from worthwhile.live.summary_text import own_tasks
from worthwhile.live.totals import Totals, expected_gain
from worthwhile.live.trials import TrialSettings
from worthwhile.live.validation import Option, option_text
from worthwhile.policies.features import FeaturesSoFar
from worthwhile.state import Floats

SURE = 2.0  # standard errors
NEVER_AGAIN = 0.99  # of the texts that a feature has: what comes once tells nothing
FEWEST = 2  # results of an option before a kind is settled; what is clearly worse is hardly ever tried a third time

Counts = npt.NDArray[np.int64]
Arm = tuple[int, int]  # kind and option
Known = Mapping[Arm, Sums]


class Standing(NamedTuple):
    """A scheduler as one transaction shows it, copied: the rest is worked out while others go on."""

    so_far: Summary  # without kinds, comparisons and warnings
    goal: Goal
    prices: list[float | None]  # by kind
    by_cost: list[bool]  # by kind: whether cost alone decides
    kinds: list[str]
    options: list[Option]
    texts: list[str]  # the options as JSON
    retired: tuple[tuple[str | None, str], ...]
    totals: Totals
    running: Counts
    expired: Counts
    failed: Counts
    history: Counts
    benched: dict[Arm, int | None]  # and when each is tried again
    ids: list[str]  # features that are different in nearly every task
    trial: TrialSettings


def summary(name: str, statistics: LogStatistics) -> Summary:
    """How the scheduler stands."""
    with statistics.followed(partial(standing, name)) as now:
        for arm, failures in statistics.failures.items():
            now.expired[arm] += failures.lost
            now.failed[arm] += failures.failed
        for arm, imported in statistics.history.items():
            now.history[arm] = imported.reports
        moments, changes = statistics.moments, statistics.drift.changes()
        changed = [(now.kinds[change.kind], now.options[change.option], change) for change in changes]
        known = now.goal, now.kinds, now.options, now.totals, moments
        mixes = best_mixes(*known) if now.so_far.goal else {}
        kinds = [
            kind_summary(now, moments, statistics.failures, kind, mixes.get(name, {}))
            for kind, name in enumerate(now.kinds)
        ]
        reports, failed, expired = sum(kind.reports for kind in kinds), int(now.failed.sum()), int(now.expired.sum())
        retried = np.array([statistics.retried[kind] for kind in range(len(now.kinds))], float)
        completed = completed_ratio(now.totals, retried) if now.totals.failed.any() else now.so_far.ratio
        # what others have achieved is compared with nothing
        own = completed_here(now.totals, retried, statistics) if statistics.history else completed
        so_far = replace(
            now.so_far, reports=reports, failed=failed, expired=expired, completed_ratio=completed,
            own_completed_ratio=own, history=int(now.history.sum()),
            history_reward=math.fsum(imported.reward for imported in statistics.history.values()),
            history_cost=math.fsum(imported.cost for imported in statistics.history.values()),
        )  # fmt: skip
        advice = [
            *about_failures(kinds),
            *about_options(so_far, kinds, changed, suggested(now, moments)),
            *about_tasks(so_far),
            *about_features(now.ids),
            *about_goal(out_of_reach(*known) if so_far.goal else []),
            *about_floors(never_seen(now.goal, now.kinds, now.totals)),
        ]
        warnings, remedies = warnings_and_remedies(advice)
        gain = gain_summary(now.trial, statistics, now.goal)
        rules = [] if own_tasks(so_far.features) or so_far.goal else simpler_rules(now, own, moments)
        simpler = [*against_baseline(gain), *rules]
        return replace(so_far, kinds=kinds, comparisons=simpler, warnings=warnings, remedies=remedies, gain=gain)


def suggested(now: Standing, moments: Known) -> str:
    """Floors and costs per task that would lead away from the cheapest options, in words with what they lead to."""
    if not moments:
        return ""
    return suggestions_text(suggestions_of(means_so_far(now.kinds, now.options, now.totals, moments)))


def completed_here(totals: Totals, retried: Floats, statistics: LogStatistics) -> float | None:
    """The completed ratio of what was decided here."""
    own = Totals(*(array.copy() for array in totals))
    for arm, imported in statistics.history.items():
        for field in ("pulls", "reward", "cost", "failed", "failed_cost"):
            getattr(own, field)[arm] -= getattr(imported, field)
    others = [statistics.history_retried[kind] for kind in range(len(retried))]
    return completed_ratio(own, retried - np.array(others, float))


def standing(name: str, batch: Batch) -> Standing:
    """Everything that only a transaction can tell."""
    replica, fold, tx, now = batch.replica, batch.replica.fold, batch.tx, batch.header.now
    kinds, texts, settings = [*replica.kinds.texts], [*replica.options.texts], replica.settings
    running, expired, failed, history = np.zeros((4, len(kinds), len(texts)), np.int64)
    put_counts(running, tx.running(replica.id, list(range(len(kinds))), now))
    put_counts(expired, tx.expired(replica.id, now))
    totals = Totals(*(array[: len(kinds), : len(texts)].copy() for array in fold.state.totals))
    tried = totals.pulls > 0.0
    reward, cost = math.fsum(totals.reward[tried]), math.fsum(totals.cost[tried])  # whatever numbers names have
    ratio = quotient(reward, cost)
    policy = policy_words(replica.policies.texts[fold.number])
    counts = batch.header.tasks, int(totals.pulls.sum()), int(running.sum()), int(expired.sum())
    earned = reward, cost, ratio, ratio if fold.price is None else fold.price
    so_far = Summary(name, policy, settings.overhead, *counts, *earned, [], [], [], fold.bad, list(fold.set_aside))
    units = settings.units
    so_far = replace(so_far, goal=goal_summary(replica), reward_unit=units.reward, cost_unit=units.cost)
    paid = [earned[-1] if fold.price is None else fold.price_of(kind) for kind in range(len(kinds))]
    by_cost = [judged_by_cost(replica, price) for price in paid]
    if judged_by_cost(replica, so_far.price):
        so_far = replace(so_far, price=None)
    options = [replica.option(number) for number in range(len(texts))]
    failing: list[list[int]] = np.argwhere(totals.failed > 0.0).tolist()
    benched = {(kind, option): fold.next_try(kind, option) for kind, option in failing if fold.benched(kind, option)}
    seen = running, expired, failed, history
    features, names = fold.features_so_far(), replica.features.texts
    if features is None:
        return Standing(
            so_far,
            replica.goal,
            paid,
            by_cost,
            kinds,
            options,
            texts,
            settings.retired,
            totals,
            *seen,
            benched,
            [],
            settings.trial,
        )
    so_far = replace(so_far, features=features_summary(features, names, fold))
    ids = [name for name, different in zip(names, features.different, strict=False) if different > NEVER_AGAIN]
    return Standing(
        so_far, replica.goal, paid, by_cost, kinds, options, texts, settings.retired, totals, *seen, benched, ids,
        settings.trial,
    )  # fmt: skip


def features_summary(features: FeaturesSoFar, names: Sequence[str], fold: Fold) -> FeaturesSummary:
    """Which features matter, and what they bring."""
    whole = math.fsum(features.importance)
    shares = [FeatureShare(name, gain / whole) for name, gain in zip(names, features.importance, strict=False) if gain]
    shares.sort(key=lambda one: -one.share)
    reports = int(fold.state.features.reports[0])
    return FeaturesSummary(reports, features.believed, expected_gain(fold.state), shares)


def put_counts(counts: Counts, rows: Iterable[tuple[int, int, int]]) -> None:
    """Tasks by kind and option, as the store counts them."""
    for kind, option, count in rows:
        try:
            counts[kind, option] = count
        except IndexError as error:
            raise Damaged(
                "tasks", f"those of kind {kind!r} and option {option!r}", "one of them has no name"
            ) from error


def quotient(above: float, below: float) -> float | None:
    return float(above) / float(below) if below > 0.0 else None


def finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def kind_summary(
    now: Standing, moments: Known, failures: Mapping[Arm, Failures], kind: int, mix: Mapping[str, float]
) -> KindSummary:
    """Every option judged by reward − θ·cost; the best first, and what has never succeeded last.

    Under a goal, what is best may be a mix; its options come first.
    """
    options, totals = option_summaries(now, moments, failures, kind), now.totals
    options.sort(key=lambda option: (-math.inf if option.score is None else option.score, option.pulls), reverse=True)
    options.sort(key=lambda option: mix.get(shown(option.option), 0.0), reverse=True)
    usable = [option for option in options if not option.retired]
    winner = next((option for option in usable if works(option)), None)
    options = [replace(option, winning=True) if option is winner else option for option in options]
    running, expired, failed = (int(counts[kind].sum()) for counts in (now.running, now.expired, now.failed))
    history = int(now.history[kind].sum())
    reports = sum(option.pulls - option.failed - option.lost for option in options)
    ratio = quotient(totals.reward[kind].sum(), totals.cost[kind].sum())
    name, best = now.kinds[kind], winner.option if winner else None
    said = verdict(usable, mix)
    if usable and usable[0].benched and usable[0].score is not None:  # the best, if it worked
        arm = kind, now.texts.index(option_text(usable[0].option))
        in_a_row = counted(failures.get(arm, Failures()).in_a_row, "failure")
        leads = f"{shown(best)} leads" if winner else "nothing else works"
        said = False, f"{shown(usable[0].option)} is benched after {in_a_row} in a row; {leads}"
    return KindSummary(
        name, reports, ratio, running, expired, best, *said, options=options, failed=failed, history=history,
        price=None if now.by_cost[kind] else now.prices[kind], by_cost=now.by_cost[kind],
    )  # fmt: skip


def works(option: OptionSummary) -> bool:
    """Whether it has succeeded, and does not keep failing."""
    return option.score is not None and not option.benched


def option_summaries(now: Standing, moments: Known, failures: Mapping[Arm, Failures], kind: int) -> list[OptionSummary]:
    """The options of a kind that anything is known about."""
    totals, price, attempts = now.totals, now.prices[kind], now.totals.pulls[kind].sum()
    used = np.flatnonzero(totals.pulls[kind] + totals.observed[kind] + now.running[kind] + now.expired[kind])
    retired = {text for only, text in now.retired if only in (None, now.kinds[kind])}
    known = [moments.get((kind, option), UNKNOWN) for option in used.tolist()]
    errors = score_errors(known, math.nan if price is None else price)
    counts = (count[kind, used].tolist() for count in (totals.pulls, totals.observed, now.running, now.expired))
    options = []
    for number, sums, error, *rest in zip(used.tolist(), known, errors, *counts, strict=True):
        (seen, reward, cost), (pulls, observed, running, expired), arm = sums[:3], rest, (kind, number)
        failed, failed_cost = float(totals.failed[arm]), float(totals.failed_cost[arm])
        means: tuple[float | None, float | None] = (reward, cost) if seen else (None, None)
        completed = finite(cost + failure_cost(failed_cost, seen))
        score = finite(reward - price * completed) if price is not None and completed is not None else None
        if score is not None and now.so_far.goal is not None:  # a task that fails brings nothing, and is not done again
            score *= seen / (seen + failed)
        width = SURE * math.hypot(error, failure_error(failed, failed_cost, seen) * (price or 0.0))
        if now.by_cost[kind] and price is not None:  # in units of cost, or nobody could read it
            score, width = None if score is None else score / price, width / price
        unhappy = failures.get(arm, Failures())
        options.append(
            OptionSummary(
                now.options[number], int(pulls), quotient(pulls, attempts) or 0.0, *means, score, finite(width),
                int(observed), running, expired, now.texts[number] in retired, winning=False, failed=unhappy.failed,
                lost=unhappy.lost, completed_cost=completed, benched=arm in now.benched, reason=unhappy.reason,
                next_try=now.benched.get(arm), results=int(seen), history=int(now.history[arm]),
            )
        )  # fmt: skip
    return options


def verdict(options: Sequence[OptionSummary], mix: Mapping[str, float]) -> tuple[bool, str]:
    """Whether the best is clearly the best, in words; under a goal, the best may be a mix."""
    working = [option for option in options if works(option)]
    failing = [option for option in options if option.score is None and option.pulls]
    if not working:
        return False, "nothing has succeeded yet" if failing else "nothing reported yet"
    best, name = working[0], shown(working[0].option)
    if len(working) == 1 and not failing:
        return False, f"only {name} has been tried"
    if best.results < FEWEST:
        return False, f"{name} leads after one report"
    others = [option for option in working[1:] if shown(option.option) not in mix]
    rivals = [option for option in others if option.results >= FEWEST and not clearly_better(best, option)]
    rivals += [option for option in failing if not option.benched]
    doubts = [f"{listed_options(rivals)} may still be better"] if rivals else []
    if once := [option for option in working[1:] if option.results < FEWEST]:
        doubts.append(f"{listed_options(once)} {'has' if len(once) == 1 else 'have'} one report only")
    if len(mix) > 1:
        shares = " and ".join(f"{option} in {share:.0%}" for option, share in sorted(mix.items(), key=by_share))
        return not doubts, "; ".join([f"{shares} of the tasks", *doubts])
    return not doubts, f"{name} leads; {'; '.join(doubts)}" if doubts else f"{name} is clearly best"


def by_share(pair: tuple[str, float]) -> float:
    return -pair[1]


def listed_options(options: Sequence[OptionSummary]) -> str:
    return listed([shown(option.option) for option in options])


def clearly_better(option: OptionSummary, rival: OptionSummary) -> bool:
    """Apart by two standard errors of the difference."""
    if option.error is None or rival.error is None or option.score is None or rival.score is None:
        return False
    return option.score - rival.score > math.hypot(option.error, rival.error)


def simpler_rules(now: Standing, achieved: float | None, moments: Known) -> list[Comparison]:
    """What simpler rules would have earned with the same tasks, had each been done."""
    benched: dict[int, list[str]] = {}
    for kind, option in sorted(now.benched):
        benched.setdefault(option, []).append(now.kinds[kind])
    return comparisons(means_of(now.totals, moments), now.options, benched, achieved)
