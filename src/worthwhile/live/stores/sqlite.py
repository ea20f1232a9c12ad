"""SQLite in one file, the default: nothing to set up, any number of processes on one machine.

It is used through apsw, which brings a current SQLite along: before 3.51.3, several writers could damage a file in WAL
mode. Its VFS also lets a test cut the power.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import apsw

from worthwhile.errors import StoreError, StoreReplaced
from worthwhile.live.stores.base import Answer, Snapshot, TaskRow, Transaction
from worthwhile.live.stores.forking import Forkable
from worthwhile.live.stores.schema import prepare, version_in
from worthwhile.live.stores.sql import HEADER, RUNNING_TASKS, SqlTransaction
from worthwhile.live.stores.sqlite_file import READ_ONLY, OpenFile, explained, is_writable, make_private, version_of

SYNCHRONOUS = ("full", "normal")
PATIENCE = 30.0  # seconds to wait for other processes
MOST_OWN = 10_000  # tasks that are kept in memory
WORDS = {"identity": "integer primary key", "bytes": "blob"}


class SqliteStore(SqlTransaction, Forkable):
    """Store and transaction in one. `full` survives a power cut, `normal` only the end of the process."""

    # No lock here: `begin immediate` has taken the only one that SQLite has for writers.
    OPEN = f"select {HEADER}, unixepoch('subsec') from schedulers where name = ?"

    def __init__(self, path: str | Path, synchronous: str = "full", create: bool = True) -> None:
        super().__init__()
        self.path, self.synchronous = Path(path), synchronous
        self.file = str(self.path.absolute())  # the working directory may change before it is opened again
        if not create and not self.path.is_file():
            raise StoreError(f"no store at {str(path)!r}; name the file that a scheduler uses")
        self.closed = False
        # Unfinished tasks as this connection has written them: most are reported here, soon, and need not be read.
        # They hold as long as the file's data_version, which changes when another connection has committed.
        self.own: dict[tuple[int, int], TaskRow] = {}
        self.version = 0  # data_version after the latest commit
        self.connection: apsw.Connection | None = None
        self.opened: OpenFile | None = None  # by the connection, or the one before it
        self.read_only = False
        self.unchanging: object = None  # what the file looked like, if it was opened as one that nobody writes to
        make_private(self.file)
        try:
            self.transact(lambda _: prepare(self.schema(), self.run, WORDS, str(path)))
        except BaseException:
            self.close()
            raise

    def connect(self) -> None:
        """Open the file; to read it, if it cannot be written."""
        if self.closed:
            raise StoreError(f"{self.path} was closed; open it again")
        if self.opened is not None and self.opened.left_behind():
            self.opened.check()
        self.own.clear()
        before = OpenFile(self.file)
        try:
            self.open_to_write_or_read()
            before.check()
        except BaseException:
            self.hang_up()
            raise
        self.opened = OpenFile(self.file)

    def open_to_write_or_read(self) -> None:
        try:
            self.use(apsw.Connection(self.file, apsw.SQLITE_OPEN_READWRITE))
        except (
            apsw.CantOpenError,
            apsw.ReadOnlyError,
        ):  # perhaps only the files beside it, which nobody needs where nobody writes
            unchanging = version_of(self.file)
            if unchanging is None or is_writable(self.file):
                raise
            flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
            self.use(apsw.Connection(f"file:{quote(self.file)}?immutable=1", flags))
            self.unchanging = unchanging

    def use(self, connection: apsw.Connection) -> None:
        """Set up a new connection."""
        self.hang_up()
        self.connection = connection
        self.read_only = connection.readonly("main")
        connection.set_busy_handler(wait_briefly())
        self.schema()  # of something else? Then not even its journal mode is changed
        if not self.read_only:
            self.set_journal_mode()
            self.run(f"pragma synchronous = {self.synchronous}")

    def set_journal_mode(self) -> None:
        """A commit is one append and one fsync, and readers wait for nobody.

        While another process changes the mode, SQLite asks no busy handler: whoever is second must come again.
        """
        wait, attempts = wait_briefly(), 0
        while True:
            try:
                return self.run("pragma journal_mode = wal")
            except apsw.BusyError:
                if not wait(attempts):
                    raise
                attempts += 1

    def schema(self) -> int | None:
        """The schema version; None if the file is empty."""
        tables = {name for (name,) in self.rows("select name from sqlite_master where type = 'table'")}
        if "worthwhile" in tables:
            return version_in(self.rows("select version from worthwhile"))
        if tables:
            raise StoreError(f"{self.path} is a database of something else (it has {min(tables)}); name another file")
        return None

    def read(self, work: Callable[[Transaction], Answer]) -> Answer:
        return self.transact(work, "begin")

    def transact(self, work: Callable[[Transaction], Answer], begin: str = "begin immediate") -> Answer:
        with self.in_use, in_our_words(self.path):
            if self.unchanging is not None and self.unchanging != version_of(self.file):
                self.hang_up()
            if self.connection is None:
                self.connect()
            if self.open_connection.in_transaction:  # what Ctrl-C may have left
                self.run("rollback")
            try:
                self.run("begin" if self.read_only else begin)
                if self.version != self.open_connection.data_version():  # somebody else has written
                    self.own.clear()
                answer = work(self)
                self.run("commit")
                # what was written, or read, must be in the file of this name: only then is it acknowledged
                if self.opened is not None:
                    self.opened.check()
                if self.unchanging is not None and self.unchanging != version_of(self.file):
                    raise StoreError(f"{self.path} was written to while it was read; try again")
                self.version = self.open_connection.data_version()
                return answer
            except BaseException as error:
                if self.connection is not None and self.connection.in_transaction:
                    # not by `self.run`: a second Ctrl-C after a call of ours would leave the file locked for all
                    self.connection.execute("rollback")
                self.own.clear()
                if self.read_only or isinstance(error, StoreReplaced):
                    self.hang_up()  # the next connection may be to another file, or allowed to write
                raise

    @property
    def open_connection(self) -> apsw.Connection:
        """The one that this transaction uses."""
        if self.connection is None:
            raise StoreError(f"{self.path}: the process was forked in the middle of this; nothing was stored")
        return self.connection

    def tasks(self, id: int, numbers: Sequence[int]) -> list[TaskRow]:
        own = self.own
        rows = [own[id, number] for number in numbers if (id, number) in own]
        if len(rows) < len(numbers):
            rows += super().tasks(id, [number for number in numbers if (id, number) not in own])
        return rows

    def wrote(self, id: int, tasks: Sequence[TaskRow], changed: Sequence[TaskRow]) -> None:
        own = self.own
        for row in changed:
            own.pop((id, row.task), None)
        for row in tasks:
            if row.report is None:
                own[id, row.task] = row
        if len(own) > MOST_OWN:
            own.clear()

    def running(self, id: int, kinds: Sequence[int], now: float) -> list[tuple[int, int, int]]:
        """Counted here: SQLite would sort them first, which takes longer for the few that usually run."""
        counts = Counter(self.listed(RUNNING_TASKS, (id,), kinds, (now,)))
        return [(kind, option, count) for (kind, option), count in counts.items()]

    def run(self, sql: str) -> None:
        self.open_connection.execute(sql).fetchall()

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self.open_connection.execute(sql).fetchall()

    def query(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        try:
            return self.open_connection.execute(sql, values).fetchall()
        except UnicodeDecodeError:
            return read_anyway(self.open_connection, sql, values)
        except apsw.Error as error:
            raise explained(error, self.path, PATIENCE) from error

    def write(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        if self.read_only:
            raise StoreError(f"{self.path}: {READ_ONLY}")
        try:
            self.open_connection.executemany(sql, rows).fetchall()
        except apsw.Error as error:
            raise explained(error, self.path, PATIENCE) from error

    def renew(self, id: int, now: float) -> None:
        if not self.read_only:  # others do
            self.own.clear()
            super().renew(id, now)

    def save(self, id: int, snapshot: Snapshot) -> None:
        if not self.read_only:  # it only shortens the next start
            super().save(id, snapshot)

    def hang_up(self) -> None:
        if self.connection is not None:
            with suppress(apsw.Error):  # whatever was committed is there, and the next one to open it tidies up
                self.connection.close(True)
        self.connection = self.unchanging = None

    def close(self) -> None:
        with self.in_use:
            self.closed = True
            self.hang_up()


def read_anyway(connection: apsw.Connection, sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Rows with text that is no Unicode: it comes with surrogates, which no checksum fits."""
    from apsw.ext import query_info  # slow, and rarely needed

    names = [f"c{number}" for number, _ in enumerate(query_info(connection, sql).description)]
    cells = ", ".join(f"typeof({name}), iif(typeof({name}) = 'text', cast({name} as blob), {name})" for name in names)
    rows = connection.execute(f"with found ({', '.join(names)}) as ({sql}) select {cells} from found", values)
    return [tuple(map(readable, row[::2], row[1::2])) for row in rows]


def readable(kind: str, cell: Any) -> Any:
    return cell.decode(errors="surrogateescape") if kind == "text" else cell


def wait_briefly() -> Any:
    """Ask again after a moment while another process writes.

    SQLite's own pauses grow to a tenth of a second, far longer than a transaction. These stay short, and are random, so
    that processes which wait for the same lock do not meet again and again.
    """
    began = 0.0

    def wait(attempts: int) -> bool:
        nonlocal began
        began = time.monotonic() if attempts == 0 else began
        time.sleep(random.uniform(0.0001, 0.001 if attempts < 50 else 0.01))
        return time.monotonic() - began < PATIENCE

    return wait


@contextmanager
def in_our_words(path: Path) -> Iterator[None]:
    try:
        yield
    except apsw.Error as error:
        raise explained(error, path, PATIENCE) from error
