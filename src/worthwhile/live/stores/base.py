"""What a store keeps, as plain rows, and what it must be able to do; `worthwhile.testing.check_store` checks it.

A store knows nothing about policies. It keeps, for every scheduler, its names, its tasks, and the numbered log of
reports that every process folds in the same order.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

Answer = TypeVar("Answer")

# LogRow.observed of what is no side observation. Attempts are counted from 0, so that a task has each of these once.
MOST_ATTEMPTS = 1_000_000  # at a task
OWN = -1  # minus the attempt: its outcome
REPLACES = OWN - MOST_ATTEMPTS  # minus the attempt: its outcome, after it was taken for lost
RESTORES = REPLACES - MOST_ATTEMPTS  # minus the entry's number: no task, somebody has restored an option

RESULT, FAILED, LOST, RESTORED = range(4)  # LogRow.outcome, and but for the last TaskRow.outcome
# TaskRow.mode, how the option came about: the policy's choice; the baseline, because the task is held out; any option,
# to explore; the baseline, for caution; the policy's choice, because the baseline cannot be taken; and what is both.
CHOSEN, HELD_OUT, EXPLORED, GUARDED, NO_BASELINE, AGREED = range(6)
MODES = "chosen", "held out", "explored", "guarded", "no baseline", "agreed"  # these, in words
STATES = "reported", "failed", "expired"  # of tasks with these outcomes
MOST_TASKS = (1 << 48) - 1  # random draws are numbered by task, in 48 bits
LOCAL = "local-"  # TaskRow.key of a decision that a client has made itself, before a UUID
DRAWS = 12  # digits of that UUID, its last, that number the decision's random draws
NO_POLICY = 0  # TaskRow.policy of history that no policy of this scheduler decided
WORTH_A_NUMBER = -1  # LogRow.policy of an entry that replaces a loss which was learned from as a result


@dataclass(slots=True)
class Header:
    """A scheduler's row: how far its counters have come, and the store's time; good until it is opened again."""

    id: int
    seed_key: int  # of its random draws
    generation: int  # counts changes of the settings
    names: int
    tasks: int
    reports: int
    now: float  # seconds since 1970, UTC, by the store's clock


class NameRow(NamedTuple):
    """A kind, option, policy or feature gets a number when it first appears, and keeps it."""

    position: int  # 1, 2, 3 … within the scheduler
    role: str  # kind, option, policy or feature
    number: int
    text: str


class TaskRow(NamedTuple):
    """A decision with all that it was based on, and what was reported so far."""

    task: int
    kind: int
    option: int
    options: str  # numbers of the options on offer: 0,1,4
    pending: str  # tasks of this kind running with each of them: 0,2,0
    reward_estimate: float
    cost_estimate: float
    price: float | None  # θ
    seen: int  # reports folded when it was decided
    policy: int
    key: str | None
    decided: float
    lease_end: float
    overhead: float
    reward: float | None = None
    cost: float | None = None
    report: int | None = None  # its outcome's number in the log
    cancelled: int = 0
    features: str | None = None  # JSON
    probability: float | None = None  # of the choice, None if unknown
    outcome: int = RESULT
    attempts: str | None = None  # JSON: earlier ones, each with the options on offer to the next if that was a choice
    holder: str | None = None  # who has claimed it; empty if whoever did has released it
    own: int | None = None  # the option that the policy would have taken, where the task took another for its mode
    mode: int = CHOSEN  # of its first attempt
    in_flight: str | None = None  # JSON: what was expected of the tasks running when it was decided

    # `decide` and `report` make three rows, with the next three methods: the one place that relies on the order of the
    # fields. TaskRow(task=…), _replace and LogRow(number=…) would take 5 µs longer in all, a fifth of a pair in memory.

    @staticmethod
    def running(
        *, task: int, kind: int, option: int, options: str, pending: str, reward_estimate: float, cost_estimate: float,
        price: float | None, seen: int, policy: int, key: str | None, decided: float, lease_end: float, overhead: float,
        features: str | None = None,
    ) -> TaskRow:  # fmt: skip
        """A task that was just decided, by its policy alone."""
        return tuple.__new__(TaskRow, (
            task, kind, option, options, pending, reward_estimate, cost_estimate, price, seen, policy, key, decided,
            lease_end, overhead, None, None, None, 0, features, 1.0, 0, None, None, None, 0, None,
        ))  # fmt: skip

    def with_report(self, reward: float | None, cost: float | None, report: int | None) -> TaskRow:
        """The task with what was reported of it."""
        return tuple.__new__(TaskRow, (*self[:DECIDED], reward, cost, report, 0, *self[AFTER_REPORT:]))

    def log_row(self, number: int, reward: float | None, cost: float) -> LogRow:
        """The entry of the log for the result of the task's first attempt."""
        return tuple.__new__(LogRow, (
            number, self.task, OWN, self.kind, self.option, reward, cost, self.overhead, self.reward_estimate,
            self.cost_estimate, self.policy, 0, None, self.features, self.mode, "",
        ))  # fmt: skip

    @property
    def attempt(self) -> int:
        """How many attempts came before this one."""
        return 0 if self.attempts is None else len(json.loads(self.attempts))

    @property
    def draws(self) -> int:
        """The number of its random draws: its own, unless it was decided elsewhere."""
        key = self.key or ""
        try:
            return int(key[-DRAWS:], 16) if key.startswith(LOCAL) else self.task
        except ValueError:  # a key of the user's own
            return self.task

    @property
    def numbers(self) -> list[int]:
        """The options on offer."""
        return [int(part) for part in self.options.split(",")]

    @property
    def untried(self) -> list[int]:
        """Those that no earlier attempt has tried."""
        tried = {attempt["option"] for attempt in json.loads(self.attempts or "[]")}
        return [option for option in self.numbers if option not in tried]

    @property
    def choice(self) -> tuple[int, list[int]]:
        """Which attempt the option was chosen for, and among which ones: who takes a task over keeps its option."""
        earlier = json.loads(self.attempts or "[]")
        for attempt in range(len(earlier), 0, -1):
            if (offered := earlier[attempt - 1].get("next")) is not None:
                return attempt, offered
        return 0, self.numbers

    def without_words(self) -> TaskRow:
        """The task without what may be personal: its features, and why attempts at it have failed."""
        if self.attempts is None:
            return self._replace(features=None)
        attempts = [attempt | {"reason": None} for attempt in json.loads(self.attempts)]
        return self._replace(features=None, attempts=json.dumps(attempts, ensure_ascii=False))

    def ended(self) -> bool:
        """Reported, failed, lost or cancelled: it does not count as running, whatever its lease."""
        return self.report is not None or bool(self.cancelled)

    def state(self, now: float) -> str:
        """Where the task stands, in a word."""
        if self.report is not None:
            return STATES[self.outcome]
        if self.cancelled:
            return "cancelled"
        return "running" if self.lease_end > now else "expired"


DECIDED = TaskRow._fields.index("reward")  # so many fields say what was decided
AFTER_REPORT = TaskRow._fields.index("features")


class LogRow(NamedTuple):
    """One entry of the log: what came of an attempt at a task, or a side observation of another option.

    One that replaces a loss has, in place of estimates, what the loss had counted for: its cost with overhead and its
    reward; NO_POLICY if that was none, otherwise WORTH_A_NUMBER.
    """

    number: int
    task: int
    observed: int  # the option that was observed on the side, or below 0: see OWN, REPLACES and RESTORES
    kind: int
    option: int
    reward: float | None  # None for a failure that is worth no number
    cost: float
    overhead: float
    reward_estimate: float
    cost_estimate: float
    policy: int
    outcome: int = RESULT
    reason: str | None = None  # of a failure
    features: str | None = None  # of the task, JSON
    mode: int = CHOSEN  # of the task: how the option of its first attempt came about
    damage: str = ""  # why the store does not trust what it has read; not stored

    def without_words(self) -> LogRow:
        """The entry without what may be personal."""
        return self._replace(reason=None, features=None)


class Snapshot(NamedTuple):
    """What one policy had learned from the first `number` entries of the log."""

    number: int
    policy: int
    kinds: int
    options: int
    features: int  # so many there was room for
    set_aside: str  # JSON: bad entries and why
    parts: Iterable[bytes]  # of the state; a store may read or write one after the other
    checksum: int  # of all of it, for whoever restores it to check


class TokenRow(NamedTuple):
    """Who may use a service on this store: never the token itself, only its hash."""

    hash: str
    name: str
    scopes: str  # decide,report
    created: float
    revoked: float | None = None
    schedulers: str | None = None  # JSON: a list of names, None for all
    expires: float | None = None  # None: never


class SessionRow(NamedTuple):
    """A browser that is logged in with a token: never what its cookie says, only the hash of that."""

    hash: str
    token: str  # its name
    created: float
    expires: float


class AuditRow(NamedTuple):
    """Who changed what, when, through a service or with `worthwhile token`."""

    time: float
    token: str | None  # its name; empty if the service asks for none, None from the command line
    action: str
    scheduler: str | None
    details: str  # JSON


class Transaction(Protocol):
    """All or nothing. Between `open` and the commit, nobody else can open the same scheduler."""

    def schedulers(self) -> list[str]:
        """The names of all schedulers."""

    def create(self, name: str, seed_key: int, settings: str) -> None:
        """A new scheduler, unless there is one of that name."""

    def open(self, name: str) -> Header | None:
        """Lock a scheduler and read its row."""

    def settings(self, id: int) -> str:
        """The scheduler's settings."""

    def change(self, id: int, settings: str) -> None:
        """Replace the settings and count the generation up."""

    def names(self, id: int, after: int) -> list[NameRow]:
        """Names with a position beyond `after`, in order."""

    def running(self, id: int, kinds: Sequence[int], now: float) -> list[tuple[int, int, int]]:
        """(kind, option, tasks) of those neither reported nor cancelled whose lease ends after `now`."""

    def in_flight(self, id: int, now: float) -> list[tuple[int, int, float, float]]:
        """(kind, tasks, reward and cost that are expected of them) of those that are running."""

    def expired(self, id: int, now: float) -> list[tuple[int, int, int]]:
        """(kind, option, tasks) of those neither reported nor cancelled whose lease has ended by `now`."""

    def lost(self, id: int, now: float, count: int) -> list[TaskRow]:
        """At most so many of those, unless they were released; none if nothing can be written, or they are damaged."""

    def renew(self, id: int, now: float) -> None:
        """The clock was put back: tasks that seem to be decided after `now` get their whole lease from now on."""

    def tasks(self, id: int, numbers: Sequence[int]) -> list[TaskRow]:
        """Tasks by number."""

    def keyed(self, id: int, keys: Sequence[str]) -> list[TaskRow]:
        """Tasks by key."""

    def latest(self, id: int, count: int) -> list[TaskRow]:
        """The latest tasks, newest first."""

    def observations(self, id: int, tasks: Sequence[int]) -> list[LogRow]:
        """Side observations of these tasks."""

    def outcomes(self, id: int, tasks: Sequence[int]) -> list[LogRow]:
        """What came of all attempts at these tasks, in the order of the log."""

    def reports(self, id: int, after: int, count: int) -> list[LogRow]:
        """At most so many entries of the log with a number beyond `after`, in order."""

    def snapshot(self, id: int) -> Snapshot | None:
        """The latest snapshot; its parts are there until the transaction ends."""

    def add(
        self,
        id: int,
        names: Sequence[NameRow],
        tasks: Sequence[TaskRow],
        changed: Sequence[TaskRow],
        reports: Sequence[LogRow],
    ) -> None:
        """Write new names, new tasks, what has changed of earlier ones, and new entries of the log; count them.

        Reports, claims and leases change, and features are forgotten; what else a decision was based on changes only
        where there are earlier attempts.
        """

    def forget(self, id: int, entries: Sequence[LogRow]) -> None:
        """Entries of the log have lost their features and reasons; the snapshot goes, which has learned from them."""

    def save(self, id: int, snapshot: Snapshot) -> None:
        """Replace the snapshot."""

    def tokens(self) -> list[TokenRow]:
        """All tokens, revoked ones too, oldest first."""

    def add_token(self, token: TokenRow) -> None:
        """Keep a new token; its name is not used yet."""

    def revoke_token(self, name: str, now: float) -> None:
        """Let a token be of no use from now on."""

    def sessions(self) -> list[SessionRow]:
        """All sessions that were not ended, oldest first."""

    def add_session(self, session: SessionRow) -> None:
        """Keep a new session."""

    def end_sessions(self, hashes: Sequence[str]) -> None:
        """Forget these sessions."""

    def audit(self, count: int) -> list[AuditRow]:
        """The latest entries, newest first."""

    def add_audit(self, entry: AuditRow) -> None:
        """Keep a new entry."""


class Store(Protocol):
    """Where schedulers live. One thread at a time uses it; any number of processes may."""

    def transact(self, work: Callable[[Transaction], Answer]) -> Answer:
        """Do it and commit, or roll back if it raises; `StoreError` if the store cannot.

        No context manager: Ctrl-C may come between what it has begun and the first line of the block.
        """

    def read(self, work: Callable[[Transaction], Answer]) -> Answer:
        """The same for what only reads: it neither waits for those who write nor keeps them waiting."""

    def close(self) -> None:
        """Give everything back; a closed store is not used again."""
