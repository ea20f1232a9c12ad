"""How a scheduler stands, as `Scheduler.summary()` gives it: data."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from worthwhile.errors import Error
from worthwhile.formatting import number, quotient_unit
from worthwhile.live.fold import SetAside
from worthwhile.live.gain import GainSummary
from worthwhile.live.summary_text import as_html, as_text
from worthwhile.live.validation import Option

NEXT_TO_NOTHING = 1e-9  # of the cost: what rounding leaves of it, when all was imported


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
        return as_text(self)

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
        return as_html(self)
