"""What goes over the wire, checked when it is read: a field that nobody knows is an error."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from worthwhile.live.ratio_curve import Point
from worthwhile.live.validation import LONGEST_FEATURES, MOST_FEATURES, MOST_OPTIONS, Option
from worthwhile.policies.features import Feature

MOST_AT_ONCE = 10_000  # tasks or reports in one request
MOST_ROWS = 1000  # of history
MOST_FORGOTTEN = 1000  # tasks

Text = Annotated[str, Meta(min_length=1, max_length=200)]
Id = Annotated[str, Meta(min_length=1, max_length=20, description="a task's id, as `decide` gave it")]
Ids = Annotated[str, Meta(pattern=r"^[0-9]{1,15}(,[0-9]{1,15}){0,999}$", description="with commas between")]
Reason = Annotated[str, Meta(description="its first 200 characters are kept")]
Number = float
Attempt = Annotated[int, Meta(ge=0, lt=2**31, description="the attempt that has failed; the first is 0")]
Which = Annotated[int, Meta(ge=0, lt=2**31, description="the attempt that it tells of, the latest if left out")]
Features = Annotated[
    Annotated[dict[Text, Feature], Meta(max_length=MOST_FEATURES)] | None,
    Meta(
        description="what is known of the task beside its kind: numbers, true, false, text, null where it is missing; "
        f"in all at most {LONGEST_FEATURES} bytes of JSON",
        examples=[{"clauses": 12000, "family": "crypto", "gpu": True}],
    ),
]
StoreReasons = Annotated[bool, Meta(description="whether it is kept why tasks failed, which may be personal")]
Aim = Annotated[
    Literal["ratio", "cost", "reward"],
    Meta(description="what to aim at; a floor alone implies cost, a budget alone reward, ratio alone drops both"),
]
MeanReward = (
    Annotated[Number, Meta(description="the mean reward per task not to fall below")]
    | Annotated[dict[Text, Number], Meta(min_length=1, description="the same, by kind")]
)
MeanCost = Annotated[Number, Meta(gt=0.0, description="the mean cost per task not to exceed, overhead included")]
Place = Annotated[int, Meta(ge=0, lt=MOST_OPTIONS)]
Count = Annotated[int, Meta(ge=1, le=1000)]
Baseline = Annotated[
    Option | dict[Text, Option],
    Meta(description="what a task would take without a scheduler: one option, or one for each kind; {} for none"),
]
Unit = Annotated[str, Meta(max_length=40, description="what it is counted in, for people; empty for none")]
Share = Annotated[Number, Meta(ge=0.0, le=1.0, description="of the tasks")]


class Message(Struct, forbid_unknown_fields=True, kw_only=True):
    """Something that a client sends."""


class Change(Message):
    """Settings to go on with; what is left out stays."""

    policy: Text | None = None
    overhead: Number | None = None
    failed_reward: (
        Annotated[Number, Meta(description="makes failures results worth so much")]
        | Annotated[str, Meta(pattern="^none$", description="failures are failures again")]
        | None
    ) = None
    store_reasons: StoreReasons | None = None
    goal: Aim | None = None
    floor: MeanReward | None = None
    budget: MeanCost | None = None
    baseline: Baseline = None
    holdout: Share | None = None
    explore: Share | None = None
    guard: Share | Annotated[str, Meta(pattern="^none$", description="no guard any more")] | None = None
    guard_error: Share | None = None
    reward_unit: Unit | None = None
    cost_unit: Unit | None = None


class Create(Message):
    """A scheduler's settings when it is made; with one that exists, they have to agree with it."""

    policy: Text | None = None
    overhead: Number | None = None
    failed_reward: Annotated[Number, Meta(description="makes failures results worth so much")] | None = None
    seed: Annotated[int, Meta(ge=0, lt=2**62)] | None = None
    store_reasons: StoreReasons | None = None
    goal: Aim | None = None
    floor: MeanReward | None = None
    budget: MeanCost | None = None
    baseline: Baseline = None
    holdout: Share | None = None
    explore: Share | None = None
    guard: Share | None = None
    guard_error: Share | None = None
    reward_unit: Unit | None = None
    cost_unit: Unit | None = None


class Decide(Message):
    """A task that has arrived. The same key gives the same task, however often it is asked."""

    kind: Text
    options: Annotated[list[Option], Meta(min_length=1, max_length=MOST_OPTIONS)]
    features: Features = None
    key: Text | None = None
    lease: Annotated[Number, Meta(description="seconds for which it counts as running")] | None = None
    usual: Annotated[Option, Meta(description="what it would take without a scheduler")] = None


class DecideMany(Message):
    """Several tasks, decided in this order in one transaction."""

    tasks: Annotated[list[Decide], Meta(min_length=1, max_length=MOST_AT_ONCE)]


class TakenDecision(Message):
    """A decision that a client has made itself, from a copy, while the service was away or for speed."""

    key: Annotated[str, Meta(pattern="^local-[0-9a-f]{32}$")]
    kind: Text
    options: Annotated[list[Option], Meta(min_length=1, max_length=MOST_OPTIONS)]
    option: Annotated[Place, Meta(description="the place of what was taken among the options, from 0")]
    pending: Annotated[list[Annotated[int, Meta(ge=0, lt=2**31)]], Meta(max_length=MOST_OPTIONS)]
    reward_estimate: Number
    cost_estimate: Number
    price: Number | None
    seen: Annotated[int, Meta(ge=0, lt=2**62, description="entries of the log that the copy knew")]
    policy: Annotated[int, Meta(ge=0, lt=2**31, description="its number in the copy; 0 if it was `usual`")]
    overhead: Number
    lease: Annotated[Number, Meta(ge=0.0)]
    age: Annotated[Number, Meta(ge=0.0, description="seconds since it was made")]
    features: Features = None
    probability: Annotated[Number, Meta(ge=0.0, le=1.0)] | None = None
    own: Place | None = None
    mode: Annotated[int, Meta(ge=0, le=5)] = 0
    trial: Annotated[int, Meta(ge=0, lt=2**32)] = 0


class TakeIn(Message):
    """Decisions that were made elsewhere, taken in as they are, in this order in one transaction."""

    decisions: Annotated[list[TakenDecision], Meta(min_length=1, max_length=MOST_ROWS)]


class Report(Message):
    """What came of a task: both at once, or one now and the other later."""

    reward: Number | None = None
    cost: Number | None = None
    attempt: Which | None = None


class ReportOf(Report, kw_only=True):
    """One of several reports; of a task that has failed, without a reward."""

    task: Id
    failed: bool = False
    reason: Reason = ""


class Fail(Message):
    """A task has failed: at this cost or, if nobody knows, at what such tasks cost on average."""

    cost: Number | None = None
    reason: Reason = ""
    attempt: Which | None = None


class Cancel(Message):
    """A task will not report."""

    attempt: Which | None = None


class Again(Message):
    """Another attempt at a task that has failed; the same attempt again, if `after` says which one it follows."""

    after: Attempt | None = None
    lease: Annotated[Number, Meta(description="seconds for which it counts as running")] | None = None


class ReportMany(Message):
    """Several reports, taken in this order in one transaction."""

    reports: Annotated[list[ReportOf], Meta(min_length=1, max_length=MOST_AT_ONCE)]


class Observe(Message):
    """What another option on offer would have brought."""

    option: Option
    reward: Number
    cost: Number


class Retire(Message):
    """An option, for one kind or for all."""

    option: Option
    kind: Text | None = None


class Forget(Message):
    """Tasks whose features, and the reasons why they failed, are taken out of the store, for good.

    All learn again from the whole log then, so that nothing is left of them in what was learned: send many at once.
    """

    tasks: Annotated[list[Id], Meta(min_length=1, max_length=MOST_FORGOTTEN)]


class Announce(Message):
    """Kinds and options, numbered in this order."""

    kinds: Annotated[list[Text], Meta(max_length=MOST_AT_ONCE)] = field(default_factory=list)
    options: Annotated[list[Option], Meta(max_length=MOST_AT_ONCE)] = field(default_factory=list)


class Declare(Message):
    """The kinds there are, with the options of each; from then on, others are refused. Empty: none are."""

    options: Annotated[
        dict[Text, Annotated[list[Option], Meta(min_length=1, max_length=MOST_OPTIONS)]],
        Meta(max_length=MOST_AT_ONCE, examples=[{"weather": [1, 5, 10]}]),
    ]


class Past(Message):
    """A row of history; the key says which task it belongs to. One that is there already adds nothing, or is refused
    if it says something else."""

    key: Text
    kind: Text
    option: Option
    reward: Number | None
    cost: Number
    overhead: Number | None = None
    observed: bool = False
    outcome: Text = "result"
    reason: str = ""
    attempt: int = 0
    features: Features = None


class History(Message):
    """Recorded elsewhere, learned from in this order in one transaction: all rows or, if one is refused, none."""

    rows: Annotated[list[Past], Meta(min_length=1, max_length=MOST_ROWS)]


class Nothing(Message):
    """An empty object."""


class Latest(Message):
    """How many of the latest tasks, or which ones."""

    count: Count = 20
    ids: Ids | None = None


class Audit(Message):
    """How many of the latest entries."""

    count: Count = 100


class Evaluate(Message):
    """A rule (always:OPTION, baseline, greedy, random), or a policy."""

    rule: Text | None = None
    policy: Text | None = None


class Promote(Message):
    """The share of the tasks that the scheduler decides from now on; without one, it is only proposed."""

    share: Share | None = None


class Points(Message):
    """How many points a curve has, at most; of all reports, of the last ones, or of tasks of the last seconds."""

    points: Annotated[int, Meta(ge=2, le=1000)] = 200
    last: Annotated[int, Meta(ge=1, lt=2**31, description="so many reports")] | None = None
    seconds: Annotated[Number, Meta(gt=0.0)] | None = None


class Kinds(Message):
    """How many kinds, those with the most reports first; without a number all, in the order of their first task."""

    kinds: Count | None = None


class Format(Message):
    """How the log is written, and after which of its entries it begins."""

    format: Annotated[str, Meta(pattern="^(jsonl|csv)$")] = "jsonl"
    after: Annotated[int, Meta(ge=0, lt=2**62)] = 0


class Problem(Struct, omit_defaults=True, kw_only=True):
    """What went wrong, as application/problem+json; the title is the class in worthwhile.errors."""

    type: str
    title: str
    status: int
    detail: str


class Decided(Struct, omit_defaults=True):
    """A task and the option chosen for it; one whose key was used before may have ended."""

    task: str
    kind: str
    option: Option
    state: str
    attempt: int = 0


class DecidedOrNot(Struct, omit_defaults=True):
    """One of several: the decision, or what was wrong."""

    task: str | UnsetType = UNSET
    kind: str | UnsetType = UNSET
    option: Option | UnsetType = UNSET
    state: str | UnsetType = UNSET
    attempt: int = 0
    problem: Problem | UnsetType = UNSET


class DecidedMany(Struct):
    """One answer per task, in the order asked."""

    tasks: list[DecidedOrNot]


class TakenOrNot(Struct, omit_defaults=True):
    """One of several: its task, or what was wrong."""

    task: str | UnsetType = UNSET
    problem: Problem | UnsetType = UNSET


class TakenIn(Struct):
    """One answer per decision, in the order told."""

    tasks: list[TakenOrNot]


class Taken(Struct):
    """It is stored, and counts once; of history, how many rows were new, and of what is forgotten, how many tasks."""

    taken: int


class ReportedMany(Struct):
    """How many were taken, and what was wrong with the others."""

    taken: int
    refused: list[RefusedReport]


class RefusedReport(Struct):
    """A report that was not taken: its place in the request, from 0, and why."""

    place: int
    task: str
    problem: Problem


class RetiredOption(Struct):
    """An option that is never chosen, for one kind or, without one, for all."""

    option: Option
    kind: str | None


class SchedulerFacts(Struct):
    """A scheduler: its settings, and how far it has come."""

    scheduler: str
    policy: str
    overhead: float
    failed_reward: float | None
    store_reasons: bool
    goal: str
    floor: float | dict[str, float] | None
    budget: float | None
    retired: list[RetiredOption]
    tasks: int
    reports: int
    baseline: dict[str, Option] = {}  # by kind; "" stands for all others
    holdout: float = 0.0
    explore: float = 0.0
    guard: float | None = None
    guard_error: float = 0.05
    reward_unit: str = ""
    cost_unit: str = ""
    declared: dict[str, list[Option]] = {}  # options by kind; empty if there may be any
    paused: bool = False  # every task takes the baseline


class SchedulerNames(Struct):
    """All schedulers of the store."""

    schedulers: list[str]


class AuditEntry(Struct):
    """Who changed what, when (seconds since 1970): a token's name, empty without tokens, null at the command line."""

    time: float
    token: str | None
    action: str
    scheduler: str | None
    details: dict[str, Any]


class Health(Struct):
    """That the service runs, and which version."""

    status: str
    version: str


class Rebuilt(Struct):
    """Whether the whole log, folded again, gives what the scheduler knows, to the bit."""

    same: bool


class Series(Struct):
    """Reward per cost over time."""

    points: list[Point]
