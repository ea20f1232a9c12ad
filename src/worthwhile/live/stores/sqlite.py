"""SQLite in one file, the default: nothing to set up, any number of processes on one machine.

It is used through apsw, which brings a current SQLite along: before 3.51.3, several writers could damage a file in WAL
mode. Its VFS also lets a test cut the power.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import apsw.ext

from worthwhile.errors import StoreError
from worthwhile.live.stores.base import Answer, TaskRow, Transaction
from worthwhile.live.stores.forking import Forkable
from worthwhile.live.stores.schema import prepare, version_in
from worthwhile.live.stores.sql import HEADER, RUNNING_TASKS, SqlTransaction

SYNCHRONOUS = ("full", "normal")
PATIENCE = 30.0  # seconds to wait for other processes
MOST_OWN = 10_000  # tasks that are kept in memory
WORDS = {"identity": "integer primary key", "bytes": "blob"}
NO_DATABASE = "is damaged, or no SQLite database; it was left as it is: restore a backup, or name another file"


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
        with explained(self.path):
            self.connection: apsw.Connection | None = None
            try:
                self.connect(apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
                self.transact(lambda _: prepare(self.schema(), self.run, WORDS, str(path)))
            except BaseException:
                self.close()
                raise

    def connect(self, flags: int = apsw.SQLITE_OPEN_READWRITE) -> None:
        """Open the file; after a fork, which ends every connection, it is there already."""
        if self.closed:
            raise StoreError(f"{self.path} was closed; open it again")
        self.own.clear()
        self.connection = apsw.Connection(self.file, flags)
        self.connection.set_busy_handler(wait_briefly())
        self.schema()  # of something else? Then not even its journal mode is changed
        self.run("pragma journal_mode = wal")  # a commit is one append and one fsync, and readers wait for nobody
        self.run(f"pragma synchronous = {self.synchronous}")

    def schema(self) -> int | None:
        """The schema version; None if the file is empty."""
        tables = {name for (name,) in self.query("select name from sqlite_master where type = 'table'")}
        if "worthwhile" in tables:
            return version_in(self.query("select version from worthwhile"))
        if tables:
            raise StoreError(f"{self.path} is a database of something else (it has {min(tables)}); name another file")
        return None

    def transact(self, work: Callable[[Transaction], Answer]) -> Answer:
        with self.in_use, explained(self.path):
            if self.connection is None:
                self.connect()
            if self.open_connection.in_transaction:  # what Ctrl-C may have left
                self.run("rollback")
            try:
                self.run("begin immediate")
                if self.version != self.open_connection.data_version():  # somebody else has written
                    self.own.clear()
                answer = work(self)
                self.run("commit")
                self.version = self.open_connection.data_version()
                return answer
            except BaseException:
                if self.connection is not None and self.connection.in_transaction:
                    # not by `self.run`: a second Ctrl-C after a call of ours would leave the file locked for all
                    self.connection.execute("rollback")
                self.own.clear()
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

    def query(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        try:
            return self.open_connection.execute(sql, values).fetchall()
        except UnicodeDecodeError:
            return read_anyway(self.open_connection, sql, values)

    def write(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        self.open_connection.executemany(sql, rows).fetchall()

    def hang_up(self) -> None:
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    def close(self) -> None:
        with self.in_use:
            self.closed = True
            self.hang_up()


def read_anyway(connection: apsw.Connection, sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Rows with text that is no Unicode: it comes with surrogates, which no checksum fits."""
    names = [f"c{number}" for number, _ in enumerate(apsw.ext.query_info(connection, sql).description)]
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
def explained(path: Path) -> Iterator[None]:
    """SQLite's errors in our words."""
    try:
        yield
    except (apsw.NotADBError, apsw.CorruptError) as error:
        raise StoreError(f"{path} {NO_DATABASE} ({error})") from error
    except apsw.FullError as error:
        raise StoreError(f"{path}: no space left on the disk; nothing was stored: free some and try again") from error
    except (apsw.ReadOnlyError, apsw.PermissionsError, apsw.CantOpenError) as error:
        remedy = "the file and its folder must be there and writable: SQLite keeps two more files beside it"
        raise StoreError(f"{path}: {error}; nothing was stored: {remedy}") from error
    except apsw.BusyError as error:
        waited = f"other processes kept it locked for {PATIENCE:g} s"
        raise StoreError(f"{path}: {waited}; nothing was stored: try again") from error
    except apsw.Error as error:
        raise StoreError(f"{path}: {error}; nothing was stored") from error
