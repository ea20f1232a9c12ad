"""How a scheduler stands, for people: who is winning, is that settled, what would other rules have earned."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

from msgspec import UNSET, Struct, UnsetType

from worthwhile.live import explain as explaining
from worthwhile.live.batch import Batch
from worthwhile.live.explain import KindSummary, OptionSummary, SchedulerTotals, Summary
from worthwhile.live.scheduler import Scheduler
from worthwhile.live.validation import Option, option_text
from worthwhile.service.chronicle import Arm, Chronicle

SURE = 2.0  # standard errors
ENOUGH_TO_JUDGE = 100  # reports
TOO_MANY_EXPIRED = 0.05  # of all tasks
MOST_NAMED = 3  # in a warning


class OptionView(Struct):
    """One option of one kind; its score is reward − θ·cost, give or take its error (two standard errors).

    Means count what was observed on the side, pulls and share do not.
    """

    option: Option
    pulls: int
    share: float
    mean_reward: float | None
    mean_cost: float | None
    score: float | None
    error: float | None
    observed: int
    running: int
    expired: int
    retired: bool
    winning: bool


class KindView(Struct, omit_defaults=True):
    """One kind: the option that is winning, and whether that is settled."""

    kind: str
    reports: int
    ratio: float | None
    running: int
    expired: int
    settled: bool
    verdict: str
    options: list[OptionView]
    winner: Option | UnsetType = UNSET


class Comparison(Struct):
    """What another rule would have earned per cost, estimated from what is known now."""

    rule: str
    says: str
    ratio: float | None
    advantage: float | None  # of what was achieved, over this rule: 0.1 is 10 % more


@dataclass(frozen=True)
class Overview(SchedulerTotals):
    """A scheduler so far. The comparisons are estimates: nobody saw what other options would have brought."""

    comparisons: list[Comparison]
    warnings: list[str]
    kinds: list[KindView]
    all_kinds: int


class Known(NamedTuple):
    """One kind as the rules see it: how many tasks, and the mean reward and cost of every option tried."""

    tasks: int
    means: dict[str, tuple[float, float]]


def overview(
    scheduler: Scheduler, chronicle: Chronicle, kinds: int, refused: int, skip: int = 0, only: str | None = None
) -> Overview:
    """How it stands, with so many kinds in full, or only one."""
    chronicle.follow(scheduler)

    def asked(batch: Batch) -> tuple[Summary, dict[str, int]]:
        return explaining.summary(scheduler.name, batch), dict(batch.replica.options.number)

    found, numbers = scheduler._transactor.do(asked)
    price = found.ratio if found.price is None else found.price
    with chronicle.lock:
        found = with_observations(found, chronicle, numbers)
        views = [kind_view(kind, chronicle, place, numbers, price) for place, kind in enumerate(found.kinds)]
        changed = changes(found, chronicle, numbers)
    shown = [view for view in views if only in (None, view.kind)]
    known = [known_of(kind) for kind in found.kinds]
    known = [one for one in known if one.means]
    return Overview(
        **{field.name: getattr(found, field.name) for field in fields(SchedulerTotals)} | {"price": price},
        comparisons=comparisons(known, found.ratio),
        warnings=warnings(found, views, changed, refused),
        kinds=sorted(shown, key=lambda view: -view.reports)[skip : skip + kinds],
        all_kinds=len(views),
    )


def with_observations(found: Summary, chronicle: Chronicle, numbers: dict[str, int]) -> Summary:
    """The same, with means that count what was seen on the side: a policy learns from that as well."""

    def seen(place: int, one: OptionSummary) -> OptionSummary:
        arm = chronicle.arms.get((place, numbers[option_text(one.option)]))
        return replace(one, mean_reward=arm.reward, mean_cost=arm.cost) if arm and one.observed else one

    kinds = [
        replace(kind, options=[seen(place, one) for one in kind.options]) for place, kind in enumerate(found.kinds)
    ]
    return replace(found, kinds=kinds)


def shown(option: Option) -> str:
    """An option for people: text as it is, the rest as JSON writes it."""
    return option if isinstance(option, str) else option_text(option)


def kind_view(
    kind: KindSummary, chronicle: Chronicle, place: int, numbers: dict[str, int], price: float | None
) -> KindView:
    """Every option judged by reward − θ·cost; the best first."""
    options = []
    arms = [chronicle.arms.get((place, numbers[option_text(one.option)]), Arm()) for one in kind.options]
    for one, arm in zip(kind.options, arms, strict=True):
        score = error = None
        if one.mean_reward is not None and one.mean_cost is not None and price is not None:
            score = one.mean_reward - price * one.mean_cost
            error = arm.borrowed_error(price, arms) if arm.pulls == 1 else arm.score_error(price)
        options.append(
            OptionView(
                one.option, one.pulls, one.share, one.mean_reward, one.mean_cost, score,
                None if error is None else SURE * error, one.observed, one.running, one.expired, one.retired, False,
            )
        )  # fmt: skip
    options.sort(key=lambda one: (-math.inf if one.score is None else one.score, one.pulls), reverse=True)
    judged = [one for one in options if one.score is not None and not one.retired]
    view = KindView(kind.kind, kind.reports, kind.ratio, kind.running, kind.expired, False, "", options)
    if not judged:
        view.verdict = "nothing reported yet"
        return view
    judged[0].winning, view.winner = True, judged[0].option
    view.settled, view.verdict = verdict(judged)
    return view


def verdict(judged: list[OptionView]) -> tuple[bool, str]:
    """Whether the best is clearly the best, in words."""
    best, name = judged[0], shown(judged[0].option)
    if len(judged) == 1:
        return False, f"only {name} has been tried"
    rivals = [one for one in judged[1:] if not clearly_better(best, one)]
    if not rivals:
        return True, f"{name} is clearly best"
    near = ", ".join(shown(one.option) for one in rivals[:MOST_NAMED])
    more = f" and {len(rivals) - MOST_NAMED} more" if len(rivals) > MOST_NAMED else ""
    return False, f"{name} leads; {near}{more} may still be better"


def clearly_better(one: OptionView, other: OptionView) -> bool:
    """Apart by two standard errors of the difference."""
    if one.error is None or other.error is None or one.score is None or other.score is None:
        return False
    return one.score - other.score > math.hypot(one.error, other.error)


def known_of(kind: KindSummary) -> Known:
    """What the rules need of a kind."""
    means = {
        option_text(one.option): (one.mean_reward, one.mean_cost)
        for one in kind.options
        if one.mean_reward is not None and one.mean_cost is not None
    }
    return Known(kind.reports, means)


def earned(known: list[Known], pick: Callable[[Known], tuple[float, float]]) -> float | None:
    """Reward per cost if every task of a kind had brought the means that `pick` gives for it."""
    reward = sum(one.tasks * pick(one)[0] for one in known)
    cost = sum(one.tasks * pick(one)[1] for one in known)
    return reward / cost if cost > 0.0 else None


def comparisons(known: list[Known], achieved: float | None) -> list[Comparison]:
    """What simpler rules would have earned with the same tasks."""
    single = best_single(known)
    found = [
        ("best single option", f"always {single[0]}" if single else "no option was tried with every kind",
         single[1] if single else None),
        ("greedy per kind", "for each kind alone, its best reward per cost", earned(known, greedy)),
        ("random", "any option that was tried, equally often", earned(known, average)),
    ]  # fmt: skip
    return [Comparison(rule, says, ratio, advantage(achieved, ratio)) for rule, says, ratio in found]


def advantage(achieved: float | None, ratio: float | None) -> float | None:
    return achieved / ratio - 1.0 if achieved is not None and ratio is not None and ratio > 0.0 else None


def best_single(known: list[Known]) -> tuple[str, float] | None:
    """The option that, taken for every task, would have earned the most per cost."""
    if not known:
        return None
    everywhere = set.intersection(*(set(one.means) for one in known))
    ratios = [(earned(known, lambda one, option=option: one.means[option]) or 0.0, option) for option in everywhere]  # type: ignore[misc]
    return max(((option.strip('"'), ratio) for ratio, option in ratios), key=lambda found: found[1], default=None)


def greedy(one: Known) -> tuple[float, float]:
    return max(one.means.values(), key=lambda mean: mean[0] / mean[1])


def average(one: Known) -> tuple[float, float]:
    count = len(one.means)
    return sum(mean[0] for mean in one.means.values()) / count, sum(mean[1] for mean in one.means.values()) / count


def changes(found: Summary, chronicle: Chronicle, numbers: dict[str, int]) -> list[str]:
    """Options that lately do not bring what they brought before."""
    told = []
    for place, kind in enumerate(found.kinds):
        for one in kind.options:
            arm = chronicle.arms.get((place, numbers[option_text(one.option)]))
            what = arm.changed() if arm is not None else ""
            if what:
                told.append(f"{kind.kind} / {shown(one.option)} ({what})")
    return told


def warnings(found: Summary, views: list[KindView], changed: list[str], refused: int) -> list[str]:
    """What somebody should look at, in plain words."""
    told = []
    if cheapest_always_wins(found, views):
        told.append(
            "The cheapest option wins for every kind, so there is little to learn. If every task also costs something "
            "that is not reported (set-up, review), tell the scheduler: overhead."
        )
    silent = [
        f"{kind.kind} / {shown(one.option)} ({one.expired} tasks)"
        for kind in found.kinds
        for one in kind.options
        if one.pulls == 0 and one.expired > 0
    ]
    if silent:
        told.append(f"Chosen, but never reported: {listed(silent)}. Does whoever runs these tasks report?")
    if found.expired > max(10, TOO_MANY_EXPIRED * found.tasks):
        share = found.expired / found.tasks
        told.append(f"{found.expired:,} tasks ({share:.0%}) had not reported when their lease ended.")
    if refused:
        told.append(f"{refused:,} reports were refused since this service started; its log says why.")
    if changed:
        told.append(f"Something may have changed: lately different from before are {listed(changed)}.")
    if found.bad_entries:
        told.append(f"{found.bad_entries:,} entries of the log cannot be learned from and were set aside.")
    return told


def listed(names: list[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def cheapest_always_wins(found: Summary, views: list[KindView]) -> bool:
    """With enough reports, and a choice to make at all."""
    choices = [[one for one in view.options if one.mean_cost is not None and not one.retired] for view in views]
    choices = [options for options in choices if len(options) > 1]
    if not choices or found.reports < ENOUGH_TO_JUDGE:
        return False
    return all(min(options, key=lambda one: one.mean_cost or 0.0).winning for options in choices)
