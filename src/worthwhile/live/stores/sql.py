"""Every statement of the SQL stores, in one place; SQLite and PostgreSQL differ only in how they run them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from worthwhile.live.stores.base import (
    MOST_TASKS,
    OWN,
    AuditRow,
    Header,
    LogRow,
    NameRow,
    SessionRow,
    Snapshot,
    TaskRow,
    TokenRow,
)
from worthwhile.live.stores.checksums import (
    DOES_NOT_FIT,
    checksum,
    log_checksum,
    session_fault,
    task_checksum,
    task_fault,
    token_fault,
)
from worthwhile.live.stores.schema import VERSION, Damaged, too_new, version_in

AT_ONCE = 500  # values in one list: databases limit how many a statement has, a batch may name more
PARTS_AT_ONCE = 8  # of a snapshot, in memory


def columns(row: Any) -> str:
    return ", ".join(row._fields)


def marks(count: int) -> str:
    return ", ".join("?" * count)


# Statements are written with SQLite's placeholders. Columns are named by the rows they fill, so they cannot fall apart.

READ_SCHEDULERS = "select name, seed_key, settings, checksum from schedulers order by name"
# The version comes along with every header: whoever is older than the store must not write another row.
HEADER = "(select max(version) from worthwhile), id, seed_key, settings_generation, names, tasks, reports"
READ_VERSION = "select max(version) from worthwhile"
CREATE_SCHEDULER = """insert into schedulers (name, seed_key, settings, checksum) values (?, ?, ?, ?)
  on conflict (name) do nothing"""
READ_SETTINGS = "select name, seed_key, settings, checksum from schedulers where id = ?"
CHANGE_SETTINGS = """update schedulers set settings = ?, checksum = ?, settings_generation = settings_generation + 1
  where id = ?"""
# The counters give the next numbers. Whoever counts has locked the row with OPEN, so numbers come in order of commit.
COUNT_ROWS = "update schedulers set names = names + ?, tasks = tasks + ?, reports = reports + ? where id = ?"

READ_NAMES = f"select {columns(NameRow)}, checksum from names where scheduler = ? and position > ? order by position"
ADD_NAMES = f"insert into names (scheduler, {columns(NameRow)}, checksum) values ({marks(6)})"

# `report is null and cancelled = 0` is the condition of the index tasks_running, word for word: only so is it used.
RUNNING_TASKS = """select kind, option from tasks
  where scheduler = ? and kind in ({list}) and lease_end > ? and report is null and cancelled = 0"""
COUNT_RUNNING = f"select kind, option, count(*) from ({RUNNING_TASKS}) as each group by kind, option"
READ_IN_FLIGHT = """select kind, count(*), sum(reward_estimate), sum(cost_estimate) from tasks
  where scheduler = ? and lease_end > ? and report is null and cancelled = 0 group by kind order by kind"""
COUNT_EXPIRED = """select kind, option, count(*) from tasks
  where scheduler = ? and lease_end <= ? and report is null and cancelled = 0
  group by kind, option order by kind, option"""
SELECT_TASKS = f"select {columns(TaskRow)}, checksum from tasks where scheduler = ?"
# In the order of `+task`, which is the same, but in no index: else all tasks are gone through, in their order.
READ_LOST = f"""{SELECT_TASKS} and lease_end <= ? and report is null and cancelled = 0
  and (holder is null or holder <> '') order by +task limit ?"""
READ_TASKS = f"{SELECT_TASKS} and task in ({{list}})"
READ_TASKS_BY_KEY = f"{SELECT_TASKS} and key in ({{list}})"
# Once a lease has been renewed by the right clock, it ends before it began by the wrong one.
READ_DECIDED_LATER = f"{SELECT_TASKS} and decided > ? and lease_end > decided and report is null and cancelled = 0"
READ_LATEST_TASKS = f"{SELECT_TASKS} order by task desc limit ?"
ADD_TASKS = f"insert into tasks (scheduler, {columns(TaskRow)}, checksum) values ({marks(28)})"
# Option and overhead change with another attempt, and when history tells of a task by an observation, then by a report.
CHANGE_TASKS = """update tasks set option = ?, overhead = ?, reward = ?, cost = ?, report = ?, cancelled = ?,
  features = ?, outcome = ?, attempts = ?, lease_end = ?, holder = ?, checksum = ? where scheduler = ? and task = ?"""
# Another attempt is another decision.
CHANGE_DECISIONS = """update tasks set pending = ?, reward_estimate = ?, cost_estimate = ?, price = ?, seen = ?,
  policy = ?, decided = ?, probability = ?, own = ?, in_flight = ? where scheduler = ? and task = ?"""

LOGGED = ", ".join(LogRow._fields[:-1])  # `damage` is found when a row is read
SELECT_LOG = f"select {LOGGED}, checksum from reports where scheduler = ?"
READ_LOG = f"{SELECT_LOG} and number > ? order by number limit ?"
READ_OBSERVATIONS = f"{SELECT_LOG} and task in ({{list}}) and observed > {OWN}"
READ_OUTCOMES = f"{SELECT_LOG} and task in ({{list}}) and observed <= {OWN}"
ADD_TO_LOG = f"insert into reports (scheduler, {LOGGED}, checksum) values ({marks(17)})"

FORGET_IN_LOG = "update reports set features = ?, reason = ?, checksum = ? where scheduler = ? and number = ?"

READ_SNAPSHOT = f"select {columns(Snapshot)} from snapshots where scheduler = ?"
READ_PARTS = "select bytes from snapshot_parts where scheduler = ? and part > ? and part <= ? order by part"
DELETE_SNAPSHOT = "delete from snapshots where scheduler = ?"
DELETE_PARTS = "delete from snapshot_parts where scheduler = ?"
ADD_SNAPSHOT = f"insert into snapshots (scheduler, {columns(Snapshot)}) values ({marks(9)})"
ADD_PART = f"insert into snapshot_parts (scheduler, part, bytes) values ({marks(3)})"

READ_TOKENS = f"select {columns(TokenRow)} from tokens order by created, name"
ADD_TOKEN = f"insert into tokens ({columns(TokenRow)}) values ({marks(7)})"
READ_SESSIONS = f"select {columns(SessionRow)} from sessions order by created, hash"
ADD_SESSION = f"insert into sessions ({columns(SessionRow)}) values ({marks(4)})"
END_SESSION = "delete from sessions where hash = ?"
READ_AUDIT = f"select {columns(AuditRow)} from audit order by number desc limit ?"
ADD_AUDIT = f"insert into audit ({columns(AuditRow)}) values ({marks(5)})"
REVOKE_TOKEN = "update tokens set revoked = ? where name = ? and revoked is null"  # the first time counts


class SqlTransaction(ABC):
    """The store's statements; a dialect says how to query, how to write, how to lock, and what time it is."""

    OPEN: ClassVar[str]  # locks the scheduler's row and gives the header
    read_only: bool

    @abstractmethod
    def query(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of an answer."""

    @abstractmethod
    def write(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement for each row of values."""

    def listed(self, sql: str, before: Sequence[Any], values: Sequence[Any], after: Sequence[Any] = ()) -> list[Any]:
        """The rows of a statement with a list in it, in portions."""
        rows: list[Any] = []
        for start in range(0, len(values), AT_ONCE):
            portion = values[start : start + AT_ONCE]
            rows += self.query(sql.format(list=marks(len(portion))), (*before, *portion, *after))
        return rows

    def schedulers(self) -> list[str]:
        return [scheduler_row(*row)[0] for row in self.query(READ_SCHEDULERS)]

    def create(self, name: str, seed_key: int, settings: str) -> None:
        for row in self.query(READ_SCHEDULERS):
            scheduler_row(*row)  # a damaged name must not let the same scheduler begin anew
        self.write(CREATE_SCHEDULER, [(name, seed_key, settings, checksum(name, seed_key, settings))])

    def open(self, name: str) -> Header | None:
        rows = self.query(self.OPEN, (name,))
        if not rows:
            return None
        row = rows[0]
        if row[0] != VERSION:
            version_in([row])
            raise too_new("the store", row[0])
        return header_of(name, row[1:])

    def settings(self, id: int) -> str:
        return scheduler_row(*self.query(READ_SETTINGS, (id,))[0])[2]

    def change(self, id: int, settings: str) -> None:
        name, seed_key, *_ = self.query(READ_SETTINGS, (id,))[0]
        self.write(CHANGE_SETTINGS, [(settings, checksum(name, seed_key, settings), id)])

    def names(self, id: int, after: int) -> list[NameRow]:
        return [name_row(id, row) for row in self.query(READ_NAMES, (id, after))]

    def running(self, id: int, kinds: Sequence[int], now: float) -> list[tuple[int, int, int]]:
        return self.listed(COUNT_RUNNING, (id,), kinds, (now,))

    def in_flight(self, id: int, now: float) -> list[tuple[int, int, float, float]]:
        return self.query(READ_IN_FLIGHT, (id, now))

    def expired(self, id: int, now: float) -> list[tuple[int, int, int]]:
        return [(kind, option, count) for kind, option, count in self.query(COUNT_EXPIRED, (id, now))]

    def lost(self, id: int, now: float, count: int) -> list[TaskRow]:
        if self.read_only:
            return []
        rows = self.query(READ_LOST, (id, now, count))
        return [tuple.__new__(TaskRow, row[:-1]) for row in rows if not task_fault(id, row)]

    def renew(self, id: int, now: float) -> None:
        rows = [task_row(id, row) for row in self.query(READ_DECIDED_LATER, (id, now))]
        self.add(id, (), (), [row._replace(lease_end=now + (row.lease_end - row.decided)) for row in rows], ())

    def tasks(self, id: int, numbers: Sequence[int]) -> list[TaskRow]:
        return [task_row(id, row) for row in self.listed(READ_TASKS, (id,), numbers)]

    def keyed(self, id: int, keys: Sequence[str]) -> list[TaskRow]:
        return [task_row(id, row) for row in self.listed(READ_TASKS_BY_KEY, (id,), keys)]

    def latest(self, id: int, count: int) -> list[TaskRow]:
        return [task_row(id, row) for row in self.query(READ_LATEST_TASKS, (id, count))]

    def observations(self, id: int, tasks: Sequence[int]) -> list[LogRow]:
        return self.sound_entries(id, READ_OBSERVATIONS, tasks)

    def outcomes(self, id: int, tasks: Sequence[int]) -> list[LogRow]:
        return sorted(self.sound_entries(id, READ_OUTCOMES, tasks))

    def sound_entries(self, id: int, sql: str, tasks: Sequence[int]) -> list[LogRow]:
        """Entries of the log that some tasks have, all of them as they were written."""
        rows = [log_row(id, row) for row in self.listed(sql, (id,), tasks)]
        for row in rows:
            if row.damage:
                raise Damaged("reports", f"scheduler {id}, number {row.number!r}", row.damage)
        return rows

    def reports(self, id: int, after: int, count: int) -> list[LogRow]:
        rows = self.query(READ_LOG, (id, after, count))
        return [log_row(id, row) for row in rows if type(row[0]) is int]  # an entry without a number is missing

    def snapshot(self, id: int) -> Snapshot | None:
        rows = self.query(READ_SNAPSHOT, (id,))
        if not rows:
            return None
        snapshot = Snapshot._make(rows[0])
        return snapshot._replace(parts=self.parts(id, snapshot.parts))

    def parts(self, id: int, count: Any) -> Iterator[bytes]:
        """The parts of the snapshot, a few at a time."""
        for after in range(0, count, PARTS_AT_ONCE):
            last = min(count, after + PARTS_AT_ONCE)
            rows = self.query(READ_PARTS, (id, after, last))
            if len(rows) != last - after:
                raise ValueError(f"one of its parts {after + 1} to {last} is missing")
            for (part,) in rows:
                yield part

    def add(
        self,
        id: int,
        names: Sequence[NameRow],
        tasks: Sequence[TaskRow],
        changed: Sequence[TaskRow],
        reports: Sequence[LogRow],
    ) -> None:
        if names:
            self.write(ADD_NAMES, [(id, *row, checksum(id, *row)) for row in names])
        if tasks:
            self.write(ADD_TASKS, [(id, *row, task_checksum(id, row)) for row in tasks])
        if reports:
            self.write(ADD_TO_LOG, [(id, *row[:-1], log_checksum(id, row[:-1])) for row in reports])
        if changed:
            self.write(CHANGE_TASKS, [
                (row.option, row.overhead, row.reward, row.cost, row.report, row.cancelled, row.features, row.outcome,
                 row.attempts, row.lease_end, row.holder, task_checksum(id, row), id, row.task)
                for row in changed
            ])  # fmt: skip
            if again := [row for row in changed if row.attempts is not None or row.own is not None]:
                self.write(CHANGE_DECISIONS, [
                    (row.pending, row.reward_estimate, row.cost_estimate, row.price, row.seen, row.policy, row.decided,
                     row.probability, row.own, row.in_flight, id, row.task)
                    for row in again
                ])  # fmt: skip
        if names or tasks or reports:
            self.write(COUNT_ROWS, [(len(names), len(tasks), len(reports), id)])
        self.wrote(id, tasks, changed)

    def wrote(self, id: int, tasks: Sequence[TaskRow], changed: Sequence[TaskRow]) -> None:  # noqa: B027 (most do not)
        """New and changed tasks have been written, for a dialect that wants to know."""

    def forget(self, id: int, entries: Sequence[LogRow]) -> None:
        if entries:
            self.write(FORGET_IN_LOG, [
                (row.features, row.reason, log_checksum(id, row[:-1]), id, row.number) for row in entries
            ])  # fmt: skip
        self.delete_snapshot(id)

    def delete_snapshot(self, id: int) -> None:
        for sql in (DELETE_SNAPSHOT, DELETE_PARTS):
            self.write(sql, [(id,)])

    def save(self, id: int, snapshot: Snapshot) -> None:
        count = 0
        self.delete_snapshot(id)
        for count, part in enumerate(snapshot.parts, 1):
            self.write(ADD_PART, [(id, count, part)])
        self.write(ADD_SNAPSHOT, [(id, *snapshot._replace(parts=count))])  # type: ignore[arg-type]

    def tokens(self) -> list[TokenRow]:
        return [token_row(TokenRow._make(row)) for row in self.query(READ_TOKENS)]

    def add_token(self, token: TokenRow) -> None:
        self.write(ADD_TOKEN, [token])

    def revoke_token(self, name: str, now: float) -> None:
        self.write(REVOKE_TOKEN, [(now, name)])

    def sessions(self) -> list[SessionRow]:
        return [row for row in map(SessionRow._make, self.query(READ_SESSIONS)) if not session_fault(row)]

    def add_session(self, session: SessionRow) -> None:
        self.write(ADD_SESSION, [session])

    def end_sessions(self, hashes: Sequence[str]) -> None:
        if hashes:
            self.write(END_SESSION, [(hash,) for hash in hashes])

    def audit(self, count: int) -> list[AuditRow]:
        return [AuditRow._make(row) for row in self.query(READ_AUDIT, (count,))]

    def add_audit(self, entry: AuditRow) -> None:
        self.write(ADD_AUDIT, [entry])


def header_of(name: str, fields: Sequence[Any]) -> Header:
    """What `open` has read; the last field is the time."""
    id, seed_key, generation, names, tasks, reports, _ = fields
    try:  # `|` of whole numbers has all their bits, and the sign of any that is negative; it is fast
        if 0 <= id | seed_key | generation | names | tasks | reports <= MOST_TASKS:
            return Header(*fields)
    except TypeError:
        pass
    counted = dict(zip(Header.__slots__, fields[:-1], strict=False))
    raise Damaged("schedulers", f"scheduler {name!r}", f"{counted} are not all numbers from 0 to 2⁴⁸ − 1")


def scheduler_row(name: Any, seed_key: Any, settings: Any, kept: Any) -> tuple[str, int, str]:
    """A scheduler's name, key and settings as they were written."""
    types = type(name), type(seed_key), type(settings)
    if types != (str, int, str) or not 0 <= seed_key < 1 << 32:
        raise Damaged("schedulers", f"scheduler {name!r}", f"seed_key = {seed_key!r}, settings = {settings!r}")
    if kept is not None and kept != checksum(name, seed_key, settings):
        raise Damaged("schedulers", f"scheduler {name!r}", DOES_NOT_FIT)
    return name, seed_key, settings


def name_row(id: int, row: tuple[Any, ...]) -> NameRow:
    """A name as it was written."""
    fields, kept = row[:-1], row[-1]
    if kept is not None and kept != checksum(id, *fields):
        raise Damaged("names", f"scheduler {id}, position {fields[0]!r}", DOES_NOT_FIT)
    return NameRow._make(fields)


def token_row(row: TokenRow) -> TokenRow:
    """A token, or in place of a damaged one, what fits no token; without any, a service would be open to all."""
    return TokenRow("", "damaged", "", 0.0, 0.0) if token_fault(row) else row


def task_row(id: int, row: tuple[Any, ...]) -> TaskRow:
    """A task as it was written."""
    why = task_fault(id, row)
    if why:
        raise Damaged("tasks", f"scheduler {id}, task {row[0]!r}", why)
    return tuple.__new__(TaskRow, row[:-1])


def log_row(id: int, row: tuple[Any, ...]) -> LogRow:
    """An entry of the log, with its damage if it is not what was written."""
    fields, kept = row[:-1], row[-1]
    damage = DOES_NOT_FIT if kept is not None and kept != log_checksum(id, fields) else ""
    return tuple.__new__(LogRow, (*fields, damage))
