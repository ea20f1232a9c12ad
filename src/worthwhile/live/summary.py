"""How a scheduler stands, as `Scheduler.summary()` gives it: data, which prints as text and as HTML in a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from html import escape
from typing import Any

from worthwhile.errors import Error
from worthwhile.formatting import amount, number, printable, quotient_unit, rounded, shown, table, titled
from worthwhile.live.fold import SetAside
from worthwhile.live.gain import GainSummary, span
from worthwhile.live.validation import Option

MOST_KINDS = 40  # that are printed
MOST_SET_ASIDE = 10
COLUMNS = (
    "kind", "option", "attempts", "share", "reward", "cost", "reward − θ·cost", "running", "observed",
    "history", "failed", "verdict",
)  # fmt: skip
LEFT = ("kind", "option", "verdict")
NEXT_TO_NOTHING = 1e-9  # of the cost: what rounding leaves of it, when all was imported
MOST_FEATURES = 10
MOST_KEPT = 10  # floors of kinds
SHARES = ("features that matter", "share")
OWN_TASKS = (
    "Options are chosen by features, so each is measured on the tasks that suit it. Their means say little about other "
    "tasks, and what a simpler rule would have earned cannot be told from them."
)
RULES = ("simpler rules, had they known all this from the start", "reward / cost", "we earn")


@dataclass(frozen=True)
class OptionSummary:
    """One option of one kind; its score is reward − θ·completed cost, give or take its error (two standard errors).

    Costs include the overhead. Means are those of results, and count what was observed on the side; pulls and share are
    of all attempts, and do not.
    """

    option: Option
    pulls: int
    share: float  # of the kind's attempts
    mean_reward: float | None
    mean_cost: float | None
    score: float | None
    error: float | None
    observed: int
    running: int
    expired: int  # neither reported nor cancelled by the end of the lease
    retired: bool
    winning: bool
    failed: int = 0  # attempts; pulls count them, and those that were lost, too
    lost: int = 0  # attempts that the log says were not reported by the end of the lease
    completed_cost: float | None = None  # of a completed task: failures are paid by those that succeed
    benched: bool = False  # it keeps failing, and is tried now and then only
    reason: str | None = None  # of its latest failure
    next_try: int | None = None  # of a benched one: after so many more reports of the kind
    results: int = 0  # that the means are of
    history: int = 0  # reports that were recorded elsewhere, and imported


@dataclass(frozen=True)
class KindSummary:
    """One kind: its options, best first, and whether it is settled which one wins.

    The winner is None while nothing has succeeded, or all that has is benched.
    """

    kind: str
    reports: int
    ratio: float | None
    running: int
    expired: int
    winner: Option
    settled: bool
    verdict: str  # the same in words
    options: list[OptionSummary]
    failed: int = 0  # attempts
    history: int = 0  # of the reports, those that were imported
    price: float | None = None  # at which its options are judged
    by_cost: bool = False  # cost alone decides: the score is −cost


@dataclass(frozen=True)
class Comparison:
    """What a simpler rule would have earned per cost, estimated from what is known now: from `low` to `high`."""

    rule: str
    says: str
    ratio: float | None  # None if it cannot be told
    advantage: float | None  # of what was achieved, over this rule: 0.1 is 10 % more
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Remedy:
    """What can be done about a warning: a method of the scheduler, or of its service, with its arguments.

    "tasks" are tasks to look at; an argument that is None is for somebody to choose.
    """

    warning: int  # its place among the warnings
    says: str
    method: str  # change, retire, restore or tasks
    arguments: dict[str, Any]


@dataclass(frozen=True)
class FeatureShare:
    """How much of what tasks were told apart by is due to a feature: its share of the gain of splits, beyond chance."""

    feature: str
    share: float


@dataclass(frozen=True)
class FeaturesSummary:
    """What features of tasks are good for.

    The expected gain is how far reward per cost is above that of the best option of every kind, taken always; by what
    the policy expected of every option before it knew the result.
    """

    reports: int  # of tasks with features that this policy decided
    believed: float  # how much of what features foretell, from 0 to 1
    expected_gain: float | None  # 0.1 is 10 % more
    shares: list[FeatureShare]  # those that matter, most of all first


@dataclass(frozen=True)
class Kept:
    """A floor or a budget, and the mean per task that it is about, of those that have reported since it was set."""

    limit: str  # floor or budget
    kind: str | None  # None: of all tasks together
    wanted: float
    mean: float | None  # None before the first report
    recent: float | None  # the same lately, over a few hundred tasks
    tasks: int
    price: float  # at which it is just kept, by what is known now
    slack: bool = False  # it is kept whatever is chosen

    @property
    def missing(self) -> float:
        """How far the mean is on the wrong side; 0 if it is kept."""
        if self.mean is None:
            return 0.0
        return max(0.0, self.wanted - self.mean if self.limit == "floor" else self.mean - self.wanted)

    @property
    def miss(self) -> float | None:
        """The same as a share of what is wanted; None if that is 0."""
        return None if self.mean is None or self.wanted == 0.0 else self.missing / abs(self.wanted)

    @property
    def missing_text(self) -> str:
        """The same in words; empty if it is kept."""
        wrong = "short" if self.limit == "floor" else "over"
        amount = number(self.missing) if self.miss is None else f"{self.miss:.1%}"
        return f"{amount} {wrong}" if self.missing else ""


@dataclass(frozen=True)
class GoalSummary:
    """What a scheduler aims at, where that is not the best ratio alone, and how far its limits are kept."""

    goal: str  # ratio, cost or reward
    floor: float | dict[str, float] | None  # of all tasks, or by kind
    budget: float | None
    words: str
    kept: list[Kept]


@dataclass(frozen=True)
class Summary:
    """A scheduler so far: its ratio is total reward / total cost, its price θ what it thinks a unit of cost is worth.

    The completed ratio is an estimate of what it would be had every task been done: each failure that was not tried
    again, by the same option. The same as the ratio, if nothing has failed.

    A policy that learns no price judges by the ratio so far, which is shown instead. The comparisons are estimates:
    nobody saw what other options would have brought.
    """

    scheduler: str
    policy: str
    overhead: float
    tasks: int
    reports: int
    running: int
    expired: int
    reward: float
    cost: float
    ratio: float | None
    price: float | None
    kinds: list[KindSummary]
    comparisons: list[Comparison]
    warnings: list[str]
    bad_entries: int
    set_aside: list[SetAside]
    failed: int = 0  # attempts
    completed_ratio: float | None = None
    history: int = 0  # of the reports, those that were recorded elsewhere and imported
    history_reward: float = 0.0  # of the reward, what was imported
    history_cost: float = 0.0  # of the cost, failures included
    own_completed_ratio: float | None = None  # the completed ratio without history, which comparisons are with
    features: FeaturesSummary | None = None  # None if no task has any, or the policy says nothing of them
    goal: GoalSummary | None = None  # None if the best ratio is all it is after
    gain: GainSummary | None = None  # over the baseline; None if none was named
    reward_unit: str = ""  # what rewards and costs are counted in; empty where nobody said
    cost_unit: str = ""
    remedies: list[Remedy] = field(default_factory=list)  # for warnings

    @property
    def own_ratio(self) -> float | None:
        """Reward per cost of what was decided here: the ratio without history."""
        cost = self.cost - self.history_cost
        return (self.reward - self.history_reward) / cost if cost > NEXT_TO_NOTHING * self.cost else None

    @property
    def ratio_unit(self) -> str:
        """The unit of the ratio and of the price."""
        return quotient_unit(self.reward_unit, self.cost_unit)

    @property
    def settled_kinds(self) -> int:
        """How many kinds have a clear winner."""
        return sum(kind.settled for kind in self.kinds)

    def __str__(self) -> str:
        columns, rows = cells(self.kinds[:MOST_KINDS], self.reward_unit, self.cost_unit)
        left = [column for column, name in enumerate(columns) if name in LEFT]
        rules = comparison_cells(self.comparisons)
        parts = ["\n".join([*headline(self), *goal_lines(self.goal)])]
        if rows:
            parts.append(table(columns, rows, left))
        if len(self.kinds) > MOST_KINDS:
            parts.append(f"… and {len(self.kinds) - MOST_KINDS} more kinds; --json has them all")
        if rules:
            parts.append(table(RULES, rules))
        if self.features:
            parts.append("\n".join([features_line(self.features), *share_lines(self.features)]))
        if note := own_tasks(self.features):
            parts.append(note)
        if self.warnings:
            entries = [f"  entry {entry.number}: {entry.why}" for entry in self.set_aside[:MOST_SET_ASIDE]]
            parts.append("\n".join(map(printable, [*(f"! {warning}" for warning in self.warnings), *entries])))
        return "\n\n".join(parts)

    def to_pandas(self) -> Any:
        """A row for every option of every kind, as a pandas.DataFrame; `export` writes the log itself."""
        try:
            import pandas
        except ImportError:
            raise Error("to_pandas needs pandas: pip install pandas") from None
        names = ["kind", *(each.name for each in fields(OptionSummary))]
        rows = [[kind.kind, *vars(option).values()] for kind in self.kinds for option in kind.options]
        return pandas.DataFrame(rows, columns=names)

    def _repr_html_(self) -> str:
        lines = "<br>".join(escape(line) for line in [*headline(self), *goal_lines(self.goal)])
        units = self.reward_unit, self.cost_unit
        tables = html_table(*cells(self.kinds[:MOST_KINDS], *units))
        tables += html_table(RULES, comparison_cells(self.comparisons))
        if self.features:
            tables += f"<p>{escape(features_line(self.features))}</p>" + html_table(SHARES, share_cells(self.features))
        warnings = "".join(f"<li>{escape(warning)}</li>" for warning in self.warnings)
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
    return [[one.feature, f"{one.share:.0%}"] for one in features.shares[:MOST_FEATURES]]


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


def counted(count: int, noun: str) -> str:
    """So many, in words."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def more(advantage: float | None) -> str:
    """An advantage in words."""
    if advantage is None:
        return ""
    return "the same" if abs(advantage) < 0.0005 else f"{abs(advantage):.1%} {'more' if advantage > 0 else 'less'}"
