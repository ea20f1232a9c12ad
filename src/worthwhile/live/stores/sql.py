"""Every statement of the SQL stores, in one place; SQLite and PostgreSQL differ only in how they run them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from worthwhile.live.stores.base import OWN, Header, LogRow, NameRow, Snapshot, TaskRow, TokenRow

AT_ONCE = 500  # values in one list: databases limit how many a statement has, a batch may name more


def columns(row: Any) -> str:
    return ", ".join(row._fields)


def marks(count: int) -> str:
    return ", ".join("?" * count)


# Statements are written with SQLite's placeholders. Columns are named by the rows they fill, so they cannot fall apart.

LIST_SCHEDULERS = "select name from schedulers order by name"
CREATE_SCHEDULER = "insert into schedulers (name, seed_key, settings) values (?, ?, ?) on conflict (name) do nothing"
READ_SETTINGS = "select settings from schedulers where id = ?"
CHANGE_SETTINGS = "update schedulers set settings = ?, generation = generation + 1 where id = ?"
# The counters give the next numbers. Whoever counts has locked the row with OPEN, so numbers come in order of commit.
COUNT_ROWS = "update schedulers set names = names + ?, tasks = tasks + ?, reports = reports + ? where id = ?"

READ_NAMES = f"select {columns(NameRow)} from names where scheduler = ? and place > ? order by place"
ADD_NAMES = f"insert into names (scheduler, {columns(NameRow)}) values ({marks(5)})"

# `report is null and cancelled = 0` is the condition of the index tasks_running, word for word: only so is it used.
RUNNING_TASKS = """select kind, option from tasks
  where scheduler = ? and kind in ({list}) and lease_end > ? and report is null and cancelled = 0"""
COUNT_RUNNING = f"select kind, option, count(*) from ({RUNNING_TASKS}) as each group by kind, option"
COUNT_EXPIRED = """select kind, option, count(*) from tasks
  where scheduler = ? and lease_end <= ? and report is null and cancelled = 0
  group by kind, option order by kind, option"""
READ_TASKS = f"select {columns(TaskRow)} from tasks where scheduler = ? and task in ({{list}})"
READ_TASKS_BY_KEY = f"select {columns(TaskRow)} from tasks where scheduler = ? and key in ({{list}})"
READ_LATEST_TASKS = f"select {columns(TaskRow)} from tasks where scheduler = ? order by task desc limit ?"
ADD_TASKS = f"insert into tasks (scheduler, {columns(TaskRow)}) values ({marks(19)})"
# Option and overhead change only when history tells of a task first by an observation, then by its own report.
CHANGE_TASKS = """update tasks set option = ?, overhead = ?, reward = ?, cost = ?, report = ?, cancelled = ?
  where scheduler = ? and task = ?"""

READ_LOG = f"select {columns(LogRow)} from reports where scheduler = ? and number > ? order by number limit ?"
READ_OBSERVATIONS = (
    f"select {columns(LogRow)} from reports where scheduler = ? and task in ({{list}}) and observed <> {OWN}"
)
ADD_TO_LOG = f"insert into reports (scheduler, {columns(LogRow)}) values ({marks(12)})"

READ_SNAPSHOT = f"select {columns(Snapshot)} from snapshots where scheduler = ?"
DELETE_SNAPSHOT = "delete from snapshots where scheduler = ?"
ADD_SNAPSHOT = f"insert into snapshots (scheduler, {columns(Snapshot)}) values ({marks(7)})"

READ_TOKENS = f"select {columns(TokenRow)} from tokens order by created, name"
ADD_TOKEN = f"insert into tokens ({columns(TokenRow)}) values ({marks(5)})"
REVOKE_TOKEN = "update tokens set revoked = ? where name = ? and revoked is null"  # the first time counts


class SqlTransaction(ABC):
    """The store's statements; a dialect says how to query, how to write, how to lock, and what time it is."""

    OPEN: ClassVar[str]  # locks the scheduler's row and gives the header

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
        return [name for (name,) in self.query(LIST_SCHEDULERS)]

    def create(self, name: str, seed_key: int, settings: str) -> None:
        self.write(CREATE_SCHEDULER, [(name, seed_key, settings)])

    def open(self, name: str) -> Header | None:
        rows = self.query(self.OPEN, (name,))
        return Header(*rows[0]) if rows else None

    def settings(self, id: int) -> str:
        return str(self.query(READ_SETTINGS, (id,))[0][0])

    def change(self, id: int, settings: str) -> None:
        self.write(CHANGE_SETTINGS, [(settings, id)])

    def names(self, id: int, after: int) -> list[NameRow]:
        return [NameRow._make(row) for row in self.query(READ_NAMES, (id, after))]

    def running(self, id: int, kinds: Sequence[int], now: float) -> list[tuple[int, int, int]]:
        return self.listed(COUNT_RUNNING, (id,), kinds, (now,))

    def expired(self, id: int, now: float) -> list[tuple[int, int, int]]:
        return [(kind, option, count) for kind, option, count in self.query(COUNT_EXPIRED, (id, now))]

    def tasks(self, id: int, numbers: Sequence[int]) -> list[TaskRow]:
        return [TaskRow._make(row) for row in self.listed(READ_TASKS, (id,), numbers)]

    def keyed(self, id: int, keys: Sequence[str]) -> list[TaskRow]:
        return [TaskRow._make(row) for row in self.listed(READ_TASKS_BY_KEY, (id,), keys)]

    def latest(self, id: int, count: int) -> list[TaskRow]:
        return [TaskRow._make(row) for row in self.query(READ_LATEST_TASKS, (id, count))]

    def observations(self, id: int, tasks: Sequence[int]) -> list[LogRow]:
        return [LogRow._make(row) for row in self.listed(READ_OBSERVATIONS, (id,), tasks)]

    def reports(self, id: int, after: int, count: int) -> list[LogRow]:
        return [LogRow._make(row) for row in self.query(READ_LOG, (id, after, count))]

    def snapshot(self, id: int) -> Snapshot | None:
        rows = self.query(READ_SNAPSHOT, (id,))
        return Snapshot._make(rows[0]) if rows else None

    def add(
        self,
        id: int,
        names: Sequence[NameRow],
        tasks: Sequence[TaskRow],
        changed: Sequence[TaskRow],
        reports: Sequence[LogRow],
    ) -> None:
        for sql, rows in ((ADD_NAMES, names), (ADD_TASKS, tasks), (ADD_TO_LOG, reports)):
            if rows:
                self.write(sql, [(id, *row) for row in rows])
        if changed:
            self.write(CHANGE_TASKS, [
                (row.option, row.overhead, row.reward, row.cost, row.report, row.cancelled, id, row.task)
                for row in changed
            ])  # fmt: skip
        if names or tasks or reports:
            self.write(COUNT_ROWS, [(len(names), len(tasks), len(reports), id)])
        self.wrote(id, tasks, changed)

    def wrote(self, id: int, tasks: Sequence[TaskRow], changed: Sequence[TaskRow]) -> None:  # noqa: B027 (most do not)
        """New and changed tasks have been written, for a dialect that wants to know."""

    def save(self, id: int, snapshot: Snapshot) -> None:
        self.write(DELETE_SNAPSHOT, [(id,)])
        self.write(ADD_SNAPSHOT, [(id, *snapshot)])

    def tokens(self) -> list[TokenRow]:
        return [TokenRow._make(row) for row in self.query(READ_TOKENS)]

    def add_token(self, token: TokenRow) -> None:
        self.write(ADD_TOKEN, [token])

    def revoke_token(self, name: str, now: float) -> None:
        self.write(REVOKE_TOKEN, [(now, name)])
