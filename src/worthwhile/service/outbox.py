"""What a client has to tell its service, kept in a file until the service has it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from worthwhile.errors import StoreError
from worthwhile.service.calls import encoded

OWN_FILE = "give every process, and every scheduler, an offline_file of its own"
MOST_KNOWN = 1_000_000  # tasks decided here whose ids are remembered, for reports that come late

SCHEMA = """
pragma journal_mode = wal;
pragma synchronous = normal;
create table if not exists entries (number integer primary key autoincrement, what text, task text, body text);
create table if not exists ids (number integer primary key autoincrement, key text unique, id text);
create table if not exists refused (number integer primary key, what text, task text, body text, why text);
create table if not exists scheduler (name text);
"""
TABLES = {"entries", "ids", "refused", "scheduler"}


class Entry(NamedTuple):
    """Something to be told: `what` of which task, with which body."""

    number: int
    what: str
    task: str
    body: Any


class Outbox:
    """A SQLite file of one process. What was put into it outlives the process, and is there until it is `done`."""

    def __init__(self, path: str | Path, scheduler: str) -> None:
        self.path, self.lock = Path(path), threading.Lock()
        try:
            self.database = apsw.Connection(str(path))
            self.check_tables()
            self.database.execute("pragma locking_mode = exclusive").fetchall()  # nobody else delivers the same
            self.database.execute(SCHEMA).fetchall()
            self.database.execute("begin immediate; commit").fetchall()
        except apsw.Error as error:
            raise StoreError(f"{path}: {error}; {OWN_FILE}") from error
        self.begin(scheduler)

    def check_tables(self) -> None:
        """Leave alone what somebody else keeps in the file, like a scheduler its log."""
        names = "select name from sqlite_schema where type = 'table' and name not like 'sqlite\\_%' escape '\\'"
        others = {str(name) for (name,) in self.database.execute(names)} - TABLES
        if others:
            self.database.close()
            raise StoreError(f"{self.path}: it has a table {min(others)!r}, so it is no offline_file; {OWN_FILE}")

    def begin(self, scheduler: str) -> None:
        """For this scheduler; what was kept for another one would be told to the wrong one."""

        def named(database: apsw.Connection) -> str:
            found = database.execute("select name from scheduler").fetchall()
            if not found:
                database.execute("insert into scheduler values (?)", (scheduler,))
            return str(found[0][0]) if found else scheduler

        if (name := self.transact(named)) != scheduler:
            self.close()
            raise StoreError(f"{self.path}: it is that of scheduler {name!r}, not of {scheduler!r}; {OWN_FILE}")

    @property
    def waiting(self) -> int:
        """How many entries the service does not have yet."""
        return self.count("entries")

    def count(self, table: str) -> int:
        statement = f"select count(*) from {table}"
        return int(self.transact(lambda database: database.execute(statement).fetchall())[0][0])

    def transact(self, work: Callable[[apsw.Connection], Any]) -> Any:
        """All or nothing."""
        with self.lock:
            try:
                with self.database:
                    return work(self.database)
            except apsw.Error as error:
                first = error.__context__ or error  # of a full disk; that nothing is left to roll back follows from it
                raise StoreError(f"{self.path}: {first}; nothing was kept") from error

    def put(self, what: str, task: str, body: Any) -> None:
        """Keep it; it comes after what was put before."""
        statement = "insert into entries (what, task, body) values (?, ?, ?)"
        text = encoded(body).decode()
        self.transact(lambda database: database.execute(statement, (what, task, text)))

    def latest(self) -> int:
        """The number of what was put last."""
        statement = "select coalesce(max(number), 0) from entries"
        return int(self.transact(lambda database: database.execute(statement).fetchall())[0][0])

    def first(self, count: int, until: int) -> list[Entry]:
        """The oldest up to a number."""
        statement = "select * from entries where number <= ? order by number limit ?"
        rows = self.transact(lambda database: database.execute(statement, (until, count)).fetchall())
        return [Entry(number, what, task, json.loads(body)) for number, what, task, body in rows]

    def done(
        self, entries: Sequence[Entry], ids: Sequence[tuple[str, str]], refused: Sequence[tuple[Entry, str]]
    ) -> None:
        """The service has these, under these ids, or has refused them for good."""

        def settle(database: apsw.Connection) -> None:
            database.executemany("insert or ignore into ids (key, id) values (?, ?)", ids)
            database.execute("delete from ids where number <= (select max(number) from ids) - ?", (MOST_KNOWN,))
            rows = [(entry.number, entry.what, entry.task, json.dumps(entry.body), why) for entry, why in refused]
            database.executemany("insert or replace into refused values (?, ?, ?, ?, ?)", rows)
            database.executemany("delete from entries where number = ?", [(entry.number,) for entry in entries])

        self.transact(settle)

    def id_of(self, task: str) -> str | None:
        """A task's id at the service; None if that is not known yet."""
        rows = self.transact(lambda database: database.execute("select id from ids where key = ?", (task,)).fetchall())
        return str(rows[0][0]) if rows else None

    def close(self) -> None:
        with self.lock:
            self.database.close()
