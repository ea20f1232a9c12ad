"""Warnings of a summary: what somebody should look at, in plain words, and what can be done about it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from worthwhile.formatting import counted, printable, shown
from worthwhile.live.drift import Change, half_life
from worthwhile.live.summary import KindSummary, OptionSummary, Remedy, Summary
from worthwhile.live.summary_text import own_tasks
from worthwhile.live.validation import Option

ENOUGH_TO_JUDGE = 100  # reports
ENOUGH_ZEROS = 10  # results of an option
NEXT_TO_NOTHING = 0.1  # of what other options cost
ENOUGH_ATTEMPTS = 20  # of an option
FAILS_OFTEN = 0.2  # of its attempts
CHOSEN_FOR_IT = 0.2  # of a kind's tasks
TOO_MANY_EXPIRED = 0.05  # of all tasks
MOST_NAMED = 3  # in a warning
MOST_REMEDIES = 6  # for one

MOST_CHANGES = 20  # in a warning

Changed = tuple[str, Option, Change]  # kind, option, and what of it has changed


class Advice(NamedTuple):
    """A warning, and what can be done about it."""

    text: str
    remedies: Sequence[tuple[str, str, dict[str, Any]]] = ()  # in words, method, arguments


def warnings_and_remedies(advice: Iterable[Advice]) -> tuple[list[str], list[Remedy]]:
    """As a summary has them: every remedy says which warning it is for."""
    given = list(advice)
    remedies = [
        Remedy(place, *remedy) for place, advice in enumerate(given) for remedy in advice.remedies[:MOST_REMEDIES]
    ]
    return [advice.text for advice in given], remedies


def look_at(words: str, **tasks: Any) -> tuple[str, str, dict[str, Any]]:
    """Tasks that tell more."""
    return words, "tasks", tasks


def about_failures(kinds: Sequence[KindSummary]) -> Iterable[Advice]:
    """Kinds in which nothing works, and options that keep failing."""
    hopeless = [kind for kind in kinds if not has_results(kind.options) and any(map(failures, kind.options))]
    for kind in hopeless[:MOST_NAMED]:
        worst = max(kind.options, key=failures)
        tries = counted(sum(map(failures, kind.options)), "attempt")
        said = f"{shown(worst.option)}: {why(worst)}"
        yield Advice(
            f"NOTHING HAS SUCCEEDED YET for {kind.kind}: {tries}, all failed or lost. {said}.",
            [look_at(f"failed tasks of {kind.kind}", kind=kind.kind, state="failed")],
        )
    if len(hopeless) > MOST_NAMED:
        yield Advice(f"NOTHING HAS SUCCEEDED YET for {len(hopeless) - MOST_NAMED:,} more kinds.")
    benched: dict[tuple[str, str], list[str]] = {}  # kinds by option and reason
    for kind in kinds:
        for option in kind.options:
            if option.benched and not option.retired:
                benched.setdefault((shown(option.option), why(option)), []).append(kind.kind)
    if benched:
        which = listed([f"{listed(where)} / {option} ({reason})" for (option, reason), where in benched.items()])
        yield Advice(
            f"Benched, tried now and then only, because they keep failing: {which}. Repair or retire them.",
            [remedy for kind in kinds for option in kind.options for remedy in for_benched(kind.kind, option)],
        )
    often = [
        f"{kind.kind} / {shown(option.option)} ({failures(option) / option.pulls:.0%})"
        for kind in kinds
        for option in kind.options
        if option.winning and fails_often(option)
    ]
    if often:
        yield Advice(
            f"Wins, though many of its attempts fail: {listed(often)}. To have such tasks done by another option, try "
            "them again (task.again(), or attempts=2 for work). If a failure costs more than it reports, say so: with "
            "overhead, or with failed_reward.",
            [look_at("failed tasks", state="failed"), setting("overhead"), setting("failed_reward")],
        )


def for_benched(kind: str, option: OptionSummary) -> Iterable[tuple[str, str, dict[str, Any]]]:
    """What can be done about an option that keeps failing: for good, or once it is repaired."""
    if option.benched and not option.retired:
        which = {"option": option.option, "kind": kind}
        yield f"retire {shown(option.option)} for {kind}", "retire", which
        yield f"{shown(option.option)} is repaired: try it again for {kind}", "restore", which


def setting(name: str) -> tuple[str, str, dict[str, Any]]:
    """A setting to be thought about."""
    return f"set {name.replace('_', ' ')}", "change", {name: None}


def fails_often(option: OptionSummary) -> bool:
    """Whether enough is known to say so; failures that are worth a number are results like others."""
    priced_in = option.completed_cost == option.mean_cost
    return option.pulls >= ENOUGH_ATTEMPTS and failures(option) >= FAILS_OFTEN * option.pulls and not priced_in


def failures(option: OptionSummary) -> int:
    return option.failed + option.lost


def has_results(options: Sequence[OptionSummary]) -> bool:
    return any(option.mean_reward is not None for option in options)


def why(option: OptionSummary) -> str:
    return option.reason or f"failed {counted(failures(option), 'time')}"


def about_options(
    so_far: Summary, kinds: Sequence[KindSummary], changes: Sequence[Changed], suggestions: str = ""
) -> Iterable[Advice]:
    """What somebody should look at, in plain words."""
    comparable = so_far.goal is None and not own_tasks(so_far.features)
    if so_far.reports >= ENOUGH_TO_JUDGE and comparable and cheapest_always_wins(kinds):
        yield Advice(
            "The cheapest option wins for every kind, so there is little to learn. If every task also costs something "
            "that is not reported (set-up, review), tell the scheduler: overhead. If cheap is not good enough, set a "
            f"floor.{suggestions}",
            [setting("overhead"), setting("floor")],
        )
    silent = [
        f"{kind.kind} / {shown(option.option)} ({counted(option.expired, 'task')})"
        for kind in kinds
        for option in kind.options
        if option.pulls == option.lost and option.expired > 0
    ]
    if silent:
        yield Advice(
            f"Chosen, but never reported: {listed(silent)}. Does whoever runs these tasks report?",
            [look_at("expired tasks", state="expired")],
        )
    free = [
        f"{kind.kind} / {shown(option.option)}"
        for kind in kinds
        for option in kind.options
        if wins_by_zeros(option, kind)
    ]
    if free:
        yield Advice(
            f"Chosen because it costs next to nothing, though it has never earned anything: {listed(free)}. If these "
            "are failures, report them as such (task.fail). If not, set a cost per task (overhead), or a floor.",
            [setting("overhead"), setting("floor")],
        )
    if changes:
        yield about_changes(so_far, changes)


def about_changes(so_far: Summary, changes: Sequence[Changed]) -> Advice:
    """Every kind and option that is not what it was, since when, and what to do about it."""
    named = [
        f"{kind} / {shown(option)} ({what} {before:.3g}, since report {since:,} {after:.3g})"
        for kind, option, (_, _, what, since, before, after) in changes[:MOST_CHANGES]
    ]
    more = f" and {len(changes) - MOST_CHANGES} more" if len(changes) > MOST_CHANGES else ""
    said = f"Something has changed: {', '.join(named)}{more}."
    if "half_life=" in so_far.policy:
        return Advice(said)
    life = half_life([change for *_, change in changes], so_far.reports)
    policy = f"ratio-imed,half_life={life}"
    fade = f"let old evidence fade (half-life {life} reports)", "change", {"policy": policy}
    return Advice(f"{said} If that goes on, let old evidence fade: policy='{policy}'.", [fade])


def about_tasks(so_far: Summary) -> Iterable[Advice]:
    if so_far.expired > max(10, TOO_MANY_EXPIRED * so_far.tasks):
        share = so_far.expired / so_far.tasks
        yield Advice(
            f"Not reported when the lease ended: {so_far.expired:,} tasks ({share:.0%}).",
            [look_at("expired tasks", state="expired")],
        )
    if so_far.bad_entries:
        entries = "entry" if so_far.bad_entries == 1 else "entries"
        yield Advice(f"Set aside, because nothing can be learned from it: {so_far.bad_entries:,} {entries} of the log.")


def about_goal(out_of_reach: Sequence[str]) -> Iterable[Advice]:
    """Floors and budgets that no choice can keep."""
    for missed in out_of_reach[:MOST_NAMED]:
        yield Advice(f"Out of reach: {missed}", [setting("floor"), setting("budget")])
    if len(out_of_reach) > MOST_NAMED:
        yield Advice(f"Out of reach: the floors of {len(out_of_reach) - MOST_NAMED:,} more kinds.")


def about_floors(never_seen: Sequence[str]) -> Iterable[Advice]:
    """Floors that are about nothing."""
    if never_seen:
        kinds = listed([printable(kind) for kind in never_seen])
        yield Advice(
            f"There is a floor for {kinds}, and there has been no such task: is that what the kind is called?",
            [setting("floor")],
        )


def about_features(ids: Sequence[str]) -> Iterable[Advice]:
    """Features from which nothing can be learned, because no text comes again."""
    if ids:
        yield Advice(
            f"Different in nearly every task, so that nothing can be learned from it: {listed(ids)}. If that is an id "
            "or a title, leave it out; give as features what such tasks have in common."
        )


def wins_by_zeros(option: OptionSummary, kind: KindSummary) -> bool:
    """Whether an option is taken although all it has ever reported is 0, because that is so cheap."""
    results = option.pulls - option.failed - option.lost
    others = [other.mean_cost for other in kind.options if other is not option and other.mean_cost is not None]
    cheap = bool(others) and option.mean_cost is not None and option.mean_cost < NEXT_TO_NOTHING * min(others)
    return cheap and option.mean_reward == 0.0 and results >= ENOUGH_ZEROS and option.share >= CHOSEN_FOR_IT


def listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def cheapest_always_wins(kinds: Sequence[KindSummary]) -> bool:
    """For every kind that has a choice, if there is one."""
    choices = [[option for option in kind.options if option.score is not None and not option.retired] for kind in kinds]
    choices = [options for options in choices if len(options) > 1]
    cheapest = [min(options, key=lambda option: option.mean_cost or 0.0) for options in choices]
    dearer = any(len({option.mean_cost for option in options}) > 1 for options in choices)
    return dearer and all(option.winning for option in cheapest)
