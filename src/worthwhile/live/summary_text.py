"""How a summary prints: as text, and as HTML in a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from worthwhile.formatting import amount, counted, number, printable, rounded, shown, table, titled
from worthwhile.live.gain import GainSummary, span

if TYPE_CHECKING:
    from worthwhile.live.summary import (
        Comparison,
        FeaturesSummary,
        GoalSummary,
        Kept,
        KindSummary,
        OptionSummary,
        Summary,
    )

MOST_KINDS = 40  # that are printed
MOST_SET_ASIDE = 10
COLUMNS = (
    "kind", "option", "attempts", "share", "reward", "cost", "reward − θ·cost", "running", "observed",
    "history", "failed", "verdict",
)  # fmt: skip
LEFT = ("kind", "option", "verdict")
MOST_FEATURES = 10
MOST_KEPT = 10  # floors of kinds
SHARES = ("features that matter", "share")
OWN_TASKS = (
    "Options are chosen by features, so each is measured on the tasks that suit it. Their means say little about other "
    "tasks, and what a simpler rule would have earned cannot be told from them."
)
RULES = ("simpler rules, had they known all this from the start", "reward / cost", "we earn")


def as_text(summary: Summary) -> str:
    """For a terminal."""
    columns, rows = cells(summary.kinds[:MOST_KINDS], summary.reward_unit, summary.cost_unit)
    left = [column for column, name in enumerate(columns) if name in LEFT]
    rules = comparison_cells(summary.comparisons)
    parts = ["\n".join([*headline(summary), *goal_lines(summary.goal)])]
    if rows:
        parts.append(table(columns, rows, left))
    if len(summary.kinds) > MOST_KINDS:
        parts.append(f"… and {len(summary.kinds) - MOST_KINDS} more kinds; --json has them all")
    if rules:
        parts.append(table(RULES, rules))
    if summary.features:
        parts.append("\n".join([features_line(summary.features), *share_lines(summary.features)]))
    if note := own_tasks(summary.features):
        parts.append(note)
    if summary.warnings:
        entries = [f"  entry {entry.number}: {entry.why}" for entry in summary.set_aside[:MOST_SET_ASIDE]]
        parts.append("\n".join(map(printable, [*(f"! {warning}" for warning in summary.warnings), *entries])))
    return "\n\n".join(parts)


def as_html(summary: Summary) -> str:
    """For a notebook."""
    lines = "<br>".join(escape(line) for line in [*headline(summary), *goal_lines(summary.goal)])
    units = summary.reward_unit, summary.cost_unit
    tables = html_table(*cells(summary.kinds[:MOST_KINDS], *units))
    tables += html_table(RULES, comparison_cells(summary.comparisons))
    if summary.features:
        tables += f"<p>{escape(features_line(summary.features))}</p>"
        tables += html_table(SHARES, share_cells(summary.features))
    warnings = "".join(f"<li>{escape(warning)}</li>" for warning in summary.warnings)
    return f"<p>{lines}</p>{tables}" + (f"<ul>{warnings}</ul>" if warnings else "")


def headline(summary: Summary) -> list[str]:
    """The totals, in three lines, and the gain."""
    expired = f", {summary.expired:,} expired" if summary.expired else ""
    failed = f", {counted(summary.failed, 'failed attempt')}" if summary.failed else ""
    done = f"; {number(summary.completed_ratio)} had every task been done" if summary.failed + summary.expired else ""
    total = f"{amount(summary.reward, summary.reward_unit)} / {amount(summary.cost, summary.cost_unit)}"
    reported, own = f"{summary.reports:,} reported", ""
    if summary.history_cost:
        reported = f"{summary.reports - summary.history:,} reported here, {summary.history:,} from history"
        own = f"; {number(summary.own_ratio)} without history"
    return [
        f"{printable(summary.scheduler)}: {summary.policy}"
        + (f", overhead {summary.overhead:g}" if summary.overhead else ""),
        f"{counted(summary.tasks, 'task')}, {reported}{failed}, {summary.running:,} running{expired}"
        f"; {summary.settled_kinds} of {counted(len(summary.kinds), 'kind')} settled",
        f"reward / cost = {with_unit(summary.ratio, summary.ratio_unit)}  (Σ {total}{own}{done})"
        f"   price θ = {number(summary.price)}",
        *gain_lines(summary.gain),
    ]


def with_unit(value: float | None, unit: str) -> str:
    """A number that may be missing, with its unit."""
    return number(value) if value is None else amount(value, unit)


def goal_lines(goal: GoalSummary | None) -> list[str]:
    """What is aimed at, and how far every floor and budget is kept."""
    if goal is None:
        return []
    kept = [f"  {kept_text(each)}" for each in goal.kept[:MOST_KEPT]]
    more_kinds = len(goal.kept) - MOST_KEPT
    return [f"goal: {goal.words}", *kept, *([f"  … and {more_kinds} more; --json has them all"] * (more_kinds > 0))]


def kept_text(kept: Kept) -> str:
    """A limit and its mean, in words."""
    means = "mean reward" if kept.limit == "floor" else "mean cost per task"
    where = "" if kept.kind is None else f" of {printable(kept.kind)}"
    if kept.mean is None:
        return f"{means}{where}: nothing reported since {kept.limit} {kept.wanted:g} was set"
    beside = f"{' of' * (kept.limit == 'floor')} {kept.wanted:g}"
    verdict = f"{kept.missing_text}{beside}" if kept.missing else "kept"
    price = "whatever is chosen" if kept.slack else f"price {kept.price:.4g}"
    return f"{means}{where}: {number(kept.mean)}, {verdict}; lately {number(kept.recent)}   ({price})"


def gain_lines(gain: GainSummary | None) -> list[str]:
    """The gain over the baseline, and what it does not rest on."""
    if gain is None:
        return []
    lines = [f"gain: {gain.says}"]
    if gain.gain is not None:
        always = f"whenever you look: {span(gain.gain.always_low, gain.gain.always_high)}"
        lines.append(f"      {always}; {sides(gain)}; both agreed on {counted(gain.agreed, 'task')}")
    if gain.guarded:
        lines.append(f"      the guard took the baseline for {counted(gain.guarded, 'task')}")
    if gain.not_held_out:
        why = "the baseline was not on offer, retired or benched"
        lines.append(f"      {counted(gain.not_held_out, 'task')} could not be held out or guarded: {why}")
    return lines


def sides(gain: GainSummary) -> str:
    """What is compared: of the scheduler, against the baseline."""
    if gain.measure == "ratio":
        return f"{number(gain.ratio)} against {number(gain.baseline_ratio)}"
    rewards = f"a task brings {number(gain.reward)} against {number(gain.baseline_reward)}"
    return f"{rewards}, and costs {number(gain.cost)} against {number(gain.baseline_cost)}"


def cells(
    kinds: Sequence[KindSummary], reward_unit: str = "", cost_unit: str = ""
) -> tuple[list[str], list[list[str]]]:
    """A row for every option, under those columns that have something to say."""
    rows = []
    for kind in kinds:
        first = kind.kind, f"{'settled' if kind.settled else 'learning'}: {kind.verdict}"
        for option in kind.options:
            name, verdict = first if option is kind.options[0] else ("", "")
            mark = " ★" * option.winning + " (retired)" * option.retired + " (benched)" * option.benched
            means = number(option.mean_reward), number(option.completed_cost), score_text(option)
            failed = option.failed + option.lost
            seen = option.running, option.observed, option.history, failed
            counts = [f"{count:,}" if count else "" for count in seen]
            share = f"{option.pulls:,}", f"{option.share:.1%}"
            rows.append([name, shown(option.option) + mark, *share, *means, *counts, verdict])
    used = [column for column in range(len(COLUMNS)) if any(row[column] for row in rows)]
    units = {"reward": reward_unit, "cost": cost_unit}
    heads = [titled(COLUMNS[column], units.get(COLUMNS[column], "")) for column in used]
    return heads, [[row[column] for column in used] for row in rows]


def comparison_cells(comparisons: Sequence[Comparison]) -> list[list[str]]:
    """A row for every rule."""
    return [
        [f"{simpler.rule}: {simpler.says}", range_text(simpler), advantage_text(simpler)] for simpler in comparisons
    ]


def range_text(simpler: Comparison) -> str:
    """What a rule would have earned, from … to …; a dash if that cannot be told."""
    if simpler.ratio is None or simpler.low is None or simpler.high is None:
        return "–"
    return f"{number(simpler.ratio)} ({number(simpler.low)} to {number(simpler.high)})"


def advantage_text(simpler: Comparison) -> str:
    """What we earn beside a rule, if its range tells them apart."""
    if simpler.advantage is None or simpler.ratio is None or simpler.low is None or simpler.high is None:
        return ""
    achieved = simpler.ratio * (1.0 + simpler.advantage)
    return "cannot be told apart" if simpler.low <= achieved <= simpler.high else more(simpler.advantage)


def features_line(features: FeaturesSummary) -> str:
    """What features are good for, in a line."""
    if not features.shares:
        return "features: nothing tells tasks apart yet"
    return f"features: forecasts are trusted to {features.believed:.0%}; expected gain {gain_text(features)}"


def own_tasks(features: FeaturesSummary | None) -> str:
    """What means do not say where options get the tasks that suit them; empty where they do not."""
    return OWN_TASKS if features and features.believed > 0.0 else ""


def gain_text(features: FeaturesSummary) -> str:
    """The expected gain in words."""
    gain = features.expected_gain
    return "–" if gain is None else "nothing yet" if gain < 0.0005 else f"{gain:.1%} more reward per cost"


def share_cells(features: FeaturesSummary) -> list[list[str]]:
    """A row for each of those that matter most."""
    return [[each.feature, f"{each.share:.0%}"] for each in features.shares[:MOST_FEATURES]]


def share_lines(features: FeaturesSummary) -> list[str]:
    rows = share_cells(features)
    return ["", table(SHARES, rows)] if rows else []


def html_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    def line(tag: str, row: Sequence[str]) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(printable(cell))}</{tag}>" for cell in row) + "</tr>"

    body = "".join(line("td", row) for row in rows)
    return f"<table><thead>{line('th', head)}</thead><tbody>{body}</tbody></table>" if rows else ""


def score_text(option: OptionSummary) -> str:
    if option.score is None or option.error is None:
        return number(option.score)
    return " ± ".join(rounded(option.score, option.error))


def more(advantage: float | None) -> str:
    """An advantage in words."""
    if advantage is None:
        return ""
    return "the same" if abs(advantage) < 0.0005 else f"{abs(advantage):.1%} {'more' if advantage > 0 else 'less'}"
