"""Is everything in a store still what was written? Reads all of it, in portions, and changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from worthwhile.errors import BadParameter, Error, StoreError
from worthwhile.formatting import counted
from worthwhile.live.fold import fault
from worthwhile.live.replica import PORTION, Replica
from worthwhile.live.stores import open_store, sql
from worthwhile.live.stores.base import (
    LOST,
    OWN,
    REPLACES,
    RESTORES,
    Header,
    NameRow,
    SessionRow,
    Store,
    TaskRow,
    TokenRow,
)
from worthwhile.live.stores.checksums import session_fault, task_fault, token_fault
from worthwhile.live.stores.schema import Damaged

Rows = Sequence[Sequence[Any]]

READ_SCHEDULERS = """select id, name, seed_key, settings, checksum, settings_generation, names, tasks, reports
  from schedulers"""
READ_TASKS = f"{sql.SELECT_TASKS} and task > ? order by task limit ?"
ATTEMPT = f"case when observed <= {REPLACES} then {REPLACES} - observed else {OWN} - observed end"
# What a task says came of it, and what the log says of its latest attempt; imported history may tell of that before it
# tells of earlier ones. Parts of a report stay with a task that was lost.
READ_OTHERWISE = f"""with ends as (
    select task, number, reward, cost, outcome,
      row_number() over (partition by task order by {ATTEMPT} desc, number desc) as place
    from reports where scheduler = ? and observed between {RESTORES + 1} and {OWN}),
  latest as (select * from ends where place = 1)
  select t.task, r.number from (select * from tasks where scheduler = ?) t full join latest r on r.task = t.task
  where (t.report is not null or r.number is not null)
  and not coalesce(t.report = r.number and t.outcome = r.outcome and (t.outcome = {LOST}
    or t.cost = r.cost and coalesce(t.reward = r.reward, t.reward is null and r.reward is null)), false)
  and not coalesce(t.report is null and t.attempts is not null, false)"""
READ_ORPHANS = "select distinct scheduler from {table} where scheduler not in (select id from schedulers)"
OF_A_SCHEDULER = ("names", "tasks", "reports", "snapshots", "snapshot_parts")


class Damage(NamedTuple):
    """Something that is not what was written, or is missing."""

    table: str
    row: str
    why: str


@dataclass
class Inspection:
    """What was read, and what of it is damaged."""

    schedulers: int = 0
    tasks: int = 0
    reports: int = 0
    damage: list[Damage] = field(default_factory=list)

    def __str__(self) -> str:
        tasks, reports = counted(self.tasks, "task"), counted(self.reports, "report")
        read = f"{counted(self.schedulers, 'scheduler')}, {tasks} and {reports} read: "
        lines = [f"  table {table}, {row}: {why}" for table, row, why in self.damage]
        return "\n".join([read + (f"{len(lines):,} damaged" if lines else "all as they were written"), *lines])

    def add(self, table: str, row: str, why: str) -> None:
        self.damage.append(Damage(table, row, why))


def find_damage(store: str) -> Inspection:
    """Everything in a store that is damaged, by table and row."""
    inspection = Inspection()
    try:
        opened = open_store(store, create=False)
    except Damaged as error:
        inspection.add(*error.damage)
        return inspection
    try:
        Reader(opened, inspection).read_all()
    finally:
        opened.close()
    return inspection


class Reader:
    """Goes through one store."""

    def __init__(self, store: Store, inspection: Inspection) -> None:
        if not isinstance(store, sql.SqlTransaction):
            raise BadParameter("only a SQLite file or a PostgreSQL database can be checked; name one")
        self.store, self.found = store, inspection

    def query(self, sql: str, values: Sequence[Any] = ()) -> Rows:
        """In a transaction of its own, so that nobody waits for long."""
        return self.store.transact(lambda tx: tx.query(sql, values))  # type: ignore[attr-defined]

    def noted(self, check: Callable[..., Any], *values: Any) -> bool:
        """Whether a check passes; if not, it is noted why."""
        try:
            check(*values)
        except Damaged as error:
            self.found.add(*error.damage)
            return False
        return True

    def read_all(self) -> None:
        for row in self.query(READ_SCHEDULERS):
            self.found.schedulers += 1
            self.read_scheduler(*row)
        for table in OF_A_SCHEDULER:
            for (id,) in self.query(READ_ORPHANS.format(table=table)):
                self.found.add(table, f"scheduler {id!r}", "there is no such scheduler")
        for token in map(TokenRow._make, self.query(sql.READ_TOKENS)):
            if why := token_fault(token):
                self.found.add("tokens", f"token {token.name!r}", f"{why}; it is of no use")
        for session in map(SessionRow._make, self.query(sql.READ_SESSIONS)):
            if why := session_fault(session):
                self.found.add("sessions", f"of token {session.token!r}", f"{why}; it has ended")
        if "sqlite" in type(self.store).__module__:
            for (line,) in self.query("pragma integrity_check"):
                if line != "ok":
                    self.found.add("the file", "SQLite says", str(line))

    def read_scheduler(self, id: int, name: Any, seed_key: Any, settings: Any, kept: Any, *counters: Any) -> None:
        sound = self.noted(sql.scheduler_row, name, seed_key, settings, kept)
        if not self.noted(sql.header_of, name, [id, seed_key, *counters, 0.0]):
            return
        header = Header(*[id, seed_key, *counters, 0.0])
        replica = self.read_names(header) if sound else None
        if replica is not None and self.noted(replica.use_settings, settings):
            self.read_snapshot(replica, header)
        self.read_tasks(header, replica)
        self.read_log(header, replica)
        for task, number in self.query(READ_OTHERWISE, (id, id)):
            says = "the task and the log do not say the same of its report"
            self.found.add("tasks", f"scheduler {id}, task {task!r}, entry {number!r} of the log", says)

    def read_names(self, header: Header) -> Replica | None:
        """The names, if they can be used."""
        rows, id, before = self.query(sql.READ_NAMES, (header.id, 0)), header.id, len(self.found.damage)
        for row in rows:
            self.noted(sql.name_row, id, row)
        replica = Replica(header, "python", {})
        if len(self.found.damage) == before:
            self.noted(replica.add_names, [NameRow._make(row[:-1]) for row in rows], header.names)
        return replica if len(self.found.damage) == before else None

    def read_snapshot(self, replica: Replica, header: Header) -> None:
        where = f"scheduler {header.id}"

        def restored(tx: Any) -> None:
            snapshot = tx.snapshot(header.id)
            if snapshot is None:
                return
            if not 0 < snapshot.number <= header.reports:
                raise ValueError(f"number = {snapshot.number!r}, the log has {header.reports} entries")
            if not 0 < snapshot.policy < len(replica.policies.texts):
                raise ValueError(f"no policy has the number {snapshot.policy!r}")
            replica.new_fold(snapshot.policy).restore(snapshot)

        try:
            self.store.transact(restored)
        except Damaged as error:
            self.found.add(*error.damage)
        except StoreError:
            raise
        except Error:  # a policy of the user's own, which is not at hand
            return
        except Exception as error:  # whatever damaged bytes may lead to
            self.found.add("snapshots", where, f"it cannot be used, a start reads the log instead: {error}")

    def pages(self, statement: str, header: Header, table: str, last: int) -> Iterator[Sequence[Any]]:
        """Rows in the order of their numbers; gaps, and rows without a number, are noted."""
        after: Any = 0
        expected, id = 1, header.id
        while type(after) in (int, float):
            rows = self.query(statement, (id, after, PORTION))
            for row in rows:
                after = row[0]
                if type(after) is not int or after > last:
                    self.found.add(table, f"scheduler {id}, number {after!r}", f"there should be 1 to {last}")
                    continue
                self.note_gap(table, id, expected, after)
                expected = after + 1
                yield row
            if len(rows) < PORTION:
                break
        self.note_gap(table, id, expected, last + 1)

    def note_gap(self, table: str, id: int, expected: int, number: int) -> None:
        if number > expected:
            self.found.add(table, f"scheduler {id}, numbers {expected} to {number - 1}", "missing")

    def read_tasks(self, header: Header, replica: Replica | None) -> None:
        for row in self.pages(READ_TASKS, header, "tasks", header.tasks):
            self.found.tasks += 1
            why = task_fault(header.id, tuple(row))
            if why:
                self.found.add("tasks", f"scheduler {header.id}, task {row[0]!r}", why)
            elif replica is not None:
                self.noted(replica.check_task, TaskRow._make(row[:-1]), header.tasks)

    def read_log(self, header: Header, replica: Replica | None) -> None:
        known = (len(replica.kinds.texts), len(replica.options.texts)) if replica else (1 << 62, 1 << 62)
        for row in self.pages(sql.READ_LOG, header, "reports", header.reports):
            self.found.reports += 1
            why = fault(sql.log_row(header.id, tuple(row)), *known)
            if why:
                self.found.add("reports", f"scheduler {header.id}, number {row[0]}", f"{why}; it is not learned from")
