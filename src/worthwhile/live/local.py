"""Deciding elsewhere: from a copy of what a scheduler knows, and taking in what was decided there.

A copy has everything that a decision is based on, but for the log. Decisions from it are made by the same code as any
other, in a store of their own that keeps nothing. They are taken in as they were made, whatever has changed since.
"""

from __future__ import annotations

import json
import secrets
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from worthwhile.errors import BadParameter, BadTask, Error
from worthwhile.live.batch import Batch
from worthwhile.live.group_commit import Request
from worthwhile.live.requests import Deciding
from worthwhile.live.stores.base import (
    CHOSEN,
    DRAWS,
    LOCAL,
    MODES,
    MOST_TASKS,
    NO_BASELINE,
    NO_POLICY,
    Header,
    LogRow,
    NameRow,
    Snapshot,
    TaskRow,
)
from worthwhile.live.stores.memory import MemoryStore, Rows
from worthwhile.live.task import Feedback, Task
from worthwhile.live.transactor import Transactor
from worthwhile.live.trials import NO_TRIAL, TrialSettings
from worthwhile.live.validation import Option, check_text, feature_text, option_texts, quoted
from worthwhile.policies.features import Feature
from worthwhile.state import LARGEST, SMALLEST

MOST_BYTES = 8_000_000  # of a state that is handed out
LEAST_LEFT = 60.0  # seconds of a lease: until the report that was kept behind its decision has arrived, too
LONGEST_AWAY = 1e8  # seconds, three years
ESTIMATES = "reward_estimate", "cost_estimate", "price"
FARTHEST = LARGEST / SMALLEST  # of those: the largest price there can be


@dataclass(frozen=True)
class CopiedName:
    """A name and its number."""

    role: str
    number: int
    text: str


@dataclass(frozen=True)
class CopiedCount:
    """Tasks that are running, of a kind and with an option by their numbers."""

    kind: int
    option: int
    tasks: int


@dataclass(frozen=True)
class Copy:
    """What a scheduler knows after `position` entries of its log."""

    seed_key: int
    generation: int
    settings: str
    names: list[CopiedName]
    running: list[CopiedCount]
    position: int
    policy: int
    kinds: int
    options: int
    features: int
    set_aside: str
    parts: list[bytes]
    checksum: int


class Taken(NamedTuple):
    """A decision that was made elsewhere, and what it was based on."""

    key: str
    kind: str
    options: Sequence[Option]
    option: int  # its place among them
    pending: Sequence[int]
    reward_estimate: float
    cost_estimate: float
    price: float | None
    seen: int
    policy: int
    overhead: float
    lease: float
    age: float  # seconds since then
    features: Mapping[str, Feature] | None = None
    probability: float | None = None
    own: int | None = None
    mode: int = CHOSEN
    trial: int = 0  # the mark of what was held out, and how


def copy_of(batch: Batch) -> Copy:
    """What this process knows now."""
    replica, tx, header = batch.replica, batch.tx, batch.header
    if replica.fold.bytes > MOST_BYTES:
        has = f"what this scheduler has learned takes {replica.fold.bytes:,} bytes"
        raise BadParameter(f"{has}, and {MOST_BYTES:,} are handed out; decide in the service")
    snapshot, names = replica.fold.snapshot(), tx.names(replica.id, 0)
    counts = tx.running(replica.id, range(len(replica.kinds.texts)), header.now)
    running = [CopiedCount(*count) for count in counts]
    return Copy(
        header.seed_key, header.generation, replica.settings.text(),
        [CopiedName(row.role, row.number, row.text) for row in names], running,
        snapshot.number, snapshot.policy, snapshot.kinds, snapshot.options, snapshot.features,
        snapshot.set_aside, list(map(bytes, snapshot.parts)), snapshot.checksum,
    )  # fmt: skip


class CopyStore(MemoryStore):
    """A scheduler as a copy has it. Its tasks are numbered at random: the numbers are those of their draws alone."""

    def __init__(self, name: str, copy: Copy) -> None:
        super().__init__()
        rows = Rows(0, copy.seed_key, copy.settings)
        rows.names = [NameRow(place, name.role, name.number, name.text) for place, name in enumerate(copy.names, 1)]
        rows.header = Header(0, copy.seed_key, copy.generation, len(rows.names), 0, copy.position, 0.0)
        sizes = copy.kinds, copy.options, copy.features
        rows.snapshot = Snapshot(copy.position, copy.policy, *sizes, copy.set_aside, copy.parts, copy.checksum)
        self.by_name, self.by_id = {name: rows}, [rows]
        self.counts: dict[int, Counter[int]] = defaultdict(Counter)  # running tasks by kind and option, there and here
        self.sums: dict[int, list[float]] = defaultdict(lambda: [0, 0.0, 0.0])  # tasks, reward and cost by kind, here
        for each in copy.running:
            self.counts[each.kind][each.option] = each.tasks

    def open(self, name: str) -> Header | None:
        header = self.by_id[0].header
        header.tasks, header.now = secrets.randbelow(MOST_TASKS - (1 << 20)), time.time()
        return header

    def add(
        self,
        id: int,
        names: Sequence[NameRow],
        tasks: Sequence[TaskRow],
        changed: Sequence[TaskRow],
        reports: Sequence[LogRow],
    ) -> None:
        """Tasks are counted, not kept: until the next copy they count as running, which spreads tries."""
        super().add(id, names, [], [], [])
        for row in tasks:
            self.counts[row.kind][row.option] += 1
            sums = self.sums[row.kind]
            sums[:] = sums[0] + 1, sums[1] + row.reward_estimate, sums[2] + row.cost_estimate

    def running(self, id: int, kinds: Sequence[int], now: float) -> list[tuple[int, int, int]]:
        return [(kind, option, count) for kind in kinds for option, count in self.counts[kind].items()]

    def in_flight(self, id: int, now: float) -> list[tuple[int, int, float, float]]:
        return [(kind, int(tasks), reward, cost) for kind, (tasks, reward, cost) in sorted(self.sums.items())]

    def latest(self, id: int, count: int) -> list[TaskRow]:
        return []

    def lost(self, id: int, now: float, count: int) -> list[TaskRow]:
        return []

    def reports(self, id: int, after: int, count: int) -> list[LogRow]:
        return []


class LocalScheduler:
    """Decides from a copy."""

    def __init__(self, name: str, copy: Copy, engine: str = "python") -> None:
        self.made = time.monotonic()
        for each in copy.names:
            if each.role == "policy" and ":" in json.loads(each.text)["policy"]:
                raise BadParameter(f"policy {each.text}: one given by import path decides in the service alone")
        self.transactor = Transactor(None, name, engine, True, CopyStore(name, copy))
        bad = self.transactor.do(lambda batch: batch.replica.fold.bad)
        if bad != json.loads(copy.set_aside)[0]:
            raise BadParameter("what the service has learned cannot be read here; install the same version")

    def decide(self, deciding: TakingHere) -> tuple[Task, Taken]:
        """A task with a key of its own, and what its scheduler is to be told of it."""
        return self.transactor.ask(deciding)  # type: ignore[no-any-return]


class TakingHere(Deciding):
    """Asks a copy for a task."""

    def __init__(
        self,
        scheduler: Feedback,
        kind: str,
        options: Sequence[Option],
        lease: float,
        features: Mapping[str, Feature] | None = None,
        usual: Option = None,
    ) -> None:
        super().__init__(scheduler, kind, options, None, lease, features, usual)  # type: ignore[arg-type]  # its lease

    def action(self, batch: Batch) -> tuple[Task, Taken]:  # type: ignore[override]
        replica = batch.replica
        row = batch.decide(self.kind, self.options, None, self.lease, self.features, self.usual)
        numbers, key = row.numbers, key_of(row.task)
        place = numbers.index(row.option)
        options = [replica.option(number) for number in numbers]
        own = None if row.own is None else numbers.index(row.own)
        features = None if self.features is None else json.loads(self.features)
        taken = Taken(
            key, self.kind, options, place, [*map(int, row.pending.split(","))], row.reward_estimate,
            row.cost_estimate, row.price, row.seen, row.policy, row.overhead, self.lease, 0.0, features,
            row.probability, own, row.mode, replica.settings.trial.mark,
        )  # fmt: skip
        return Task(self.scheduler, key, self.kind, options[place]), taken


class TakingIn(Request):
    """Tells of a decision that was made elsewhere; told twice, it is the same task."""

    def __init__(self, taken: Taken) -> None:
        self.taken, self.key, self.kind = taken, taken.key, check_text("kind", taken.kind)
        self.options, self.features = option_texts(taken.options), feature_text(taken.features)
        check(taken)

    def action(self, batch: Batch) -> str:
        if (earlier := batch.keyed(self.taken.key)) is not None:
            return str(self.same(batch, batch.same_kind(earlier, self.taken.kind)).task)
        return str(batch.add(self.row(batch)).task)

    def same(self, batch: Batch, row: TaskRow) -> TaskRow:
        """What was told before; it may have been tried again since."""
        told, took = self.options[self.taken.option], batch.replica.options.texts[row.option]
        if row.attempt == 0 and told != took:
            raise BadTask(f"key {row.key!r} belongs to task {row.task}, which took {took}, not {told}; use another key")
        return row

    def row(self, batch: Batch) -> TaskRow:
        """The decision by its numbers here."""
        taken, replica, now = self.taken, batch.replica, batch.header.now
        if taken.seen > batch.header.reports or not 0 <= taken.policy < len(replica.policies.texts):
            says = f"task {taken.key}: seen = {taken.seen}, policy = {taken.policy}: not of this scheduler"
            raise BadTask(f"{says}; tell the one that the copy is of")
        task = batch.header.tasks + len(batch.new) + 1
        if task > MOST_TASKS:
            raise BadTask(f"this scheduler has decided {MOST_TASKS:,} tasks; use another one")
        new = sum(text not in replica.options.number for text in self.options)
        replica.check_room(taken.kind not in replica.kinds.number, new)
        if self.features is not None:
            replica.name_features([self.features])
        numbers = [replica.name("option", text) for text in self.options]
        kind, decided = replica.name("kind", taken.kind), now - taken.age
        row = TaskRow.running(
            task=task, kind=kind, option=numbers[taken.option], options=",".join(map(str, numbers)),
            pending=",".join(map(str, taken.pending)), reward_estimate=taken.reward_estimate + 0.0,
            cost_estimate=taken.cost_estimate + 0.0, price=taken.price, seen=taken.seen, policy=taken.policy,
            key=taken.key, decided=decided, lease_end=max(decided + taken.lease, now + LEAST_LEFT),
            overhead=taken.overhead, features=self.features,
        )  # fmt: skip
        own = None if taken.own is None else numbers[taken.own]
        running = batch.running(kind)
        running[row.option] = running.get(row.option, 0) + 1
        replica.look_at = min(replica.look_at, row.lease_end)
        row = row._replace(probability=taken.probability, own=own, mode=self.mode(replica.settings.trial))
        batch.count_in_flight(row, 1.0)
        return row

    def mode(self, trial: TrialSettings) -> int:
        """How its option came about; what was held out under other settings tells nothing of these."""
        return self.taken.mode if trial == NO_TRIAL or self.taken.trial == trial.mark else NO_BASELINE


def check(taken: Taken) -> None:
    """Refuse what no decision can be, by the first value that is wrong."""
    places, given = range(len(taken.options)), taken._asdict()
    fits: dict[str, tuple[bool, str]] = {
        "key": (taken.key.startswith(LOCAL), f"it begins with {LOCAL}"),
        "pending": (len(taken.pending) == len(places), f"it has a number for each of the {len(places)} options"),
        "option": (taken.option in places, "it is the place of one of the options, from 0"),
        "own": (taken.own is None or taken.own in places, "it is the place of one of the options, from 0"),
        "age": (0.0 <= taken.age <= LONGEST_AWAY, f"it is at most {LONGEST_AWAY:g} seconds"),
        "probability": (taken.probability is None or 0.0 <= taken.probability <= 1.0, "it is from 0 to 1"),
        "mode": (0 <= taken.mode < len(MODES), f"it is below {len(MODES)}"),
        "seen": (taken.policy != NO_POLICY or taken.seen == 0, "it is 0 where no policy has decided"),
    }
    fits |= {name: (abs(given[name] or 0.0) <= FARTHEST, f"it is at most {FARTHEST:g}") for name in ESTIMATES}
    fits |= {name: (0.0 <= given[name] <= LARGEST, f"it is from 0 to {LARGEST:g}") for name in ("overhead", "lease")}
    for name, (fit, rule) in fits.items():
        if not fit:
            wrong = f"task {quoted(taken.key)}: {name} = {quoted(given[name])}"
            raise BadTask(f"{wrong}; {rule}: send each decision as it was made")


def key_of(number: int) -> str:
    """The key of a decision with these random draws."""
    return LOCAL + uuid.uuid4().hex[:-DRAWS] + format(number, f"0{DRAWS}x")


def without_copy(asked: TakingHere, error: Error) -> tuple[Task, Taken]:
    """The last resort: what it would take without a scheduler; an error if nobody has said what that is."""
    texts = option_texts(asked.options)
    if asked.usual not in texts:
        raise error
    key, place = key_of(secrets.randbelow(MOST_TASKS)), texts.index(asked.usual)
    features = None if asked.features is None else json.loads(asked.features)
    options = [json.loads(text) for text in texts]
    taken = Taken(
        key, asked.kind, options, place, [0] * len(texts), 0.0, 0.0, None, 0, NO_POLICY, 0.0, asked.lease, 0.0, features
    )
    return Task(asked.scheduler, key, asked.kind, options[place]), taken
