"""PostgreSQL: for many machines. Needs the extra `postgres`.

A transaction is sent in pipelines, so that it takes two or three round trips however many rows it writes.
"""

from __future__ import annotations

import select
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

from worthwhile.errors import MissingExtra, StoreError
from worthwhile.live.stores.base import Answer, Transaction
from worthwhile.live.stores.forking import Forkable
from worthwhile.live.stores.schema import prepare, without_password
from worthwhile.live.stores.sql import HEADER, SqlTransaction

try:
    import psycopg
except ImportError:
    raise MissingExtra("a PostgreSQL store", "postgres") from None

PATIENCE = 30.0  # seconds to wait for a server that is starting again
WORDS = {"identity": "bigint generated always as identity primary key", "bytes": "bytea"}
INSTALLING = 0x776F727468  # the advisory lock of whoever creates or migrates the tables


class PostgresStore(SqlTransaction, Forkable):
    """Store and transaction in one."""

    # `for update` locks the scheduler's row until the commit, so that its numbers are given in the order of commits.
    # clock_timestamp() is the time of this statement, now() would be that of the transaction's begin.
    OPEN = f"""select {HEADER}, extract(epoch from clock_timestamp())::double precision
      from schedulers where name = ? for update"""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.url = url
        self.where = without_password(url)
        self.closed = False
        with explained(self.where):
            self.connection = connect(url, patience=0.0)
            try:
                self.transact(lambda _: self.install())
            except BaseException:
                self.close()
                raise

    def install(self) -> None:
        """Create the tables, or bring them up to date; one at a time."""
        self.run(f"select pg_advisory_xact_lock({INSTALLING})")
        prepare(self.version(), self.run, WORDS, self.where)

    def version(self) -> int | None:
        """The schema version; None if there are no tables of ours."""
        if self.query("select to_regclass('worthwhile')")[0][0] is None:
            return None
        return int(self.query("select version from worthwhile")[0][0])

    def transact(self, work: Callable[[Transaction], Answer]) -> Answer:
        with self.in_use, explained(self.where):
            if self.closed:
                raise StoreError(f"{self.where} was closed; open it again")
            if self.is_gone():
                self.connection.close()
                self.connection = connect(self.url, PATIENCE)
            try:
                with self.connection.pipeline():
                    self.connection.execute("begin")
                    answer = work(self)
                    self.connection.execute("commit")
                return answer
            except BaseException as error:
                if isinstance(error, psycopg.Error) or not isinstance(error, Exception):
                    self.connection.close()  # what the server still has to say must not be taken for later answers
                    if isinstance(error.__context__, KeyboardInterrupt):  # which has broken the pipeline
                        raise error.__context__ from None
                with suppress(psycopg.Error):
                    if self.connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                        self.connection.execute("rollback")
                raise

    def is_gone(self) -> bool:
        """Whether the server has hung up; it says nothing unasked but good-bye."""
        return self.connection.closed or readable(self.connection.fileno())

    def run(self, sql: str) -> None:
        self.connection.execute(sql.encode())

    def query(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self.connection.execute(in_psycopg(sql), values).fetchall()

    def write(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        if len(rows) == 1:
            self.connection.execute(in_psycopg(sql), rows[0])
        else:
            self.connection.cursor().executemany(in_psycopg(sql), rows)

    def hang_up(self) -> None:
        self.connection.close()

    def close(self) -> None:
        with self.in_use:
            self.closed = True
            self.hang_up()


def readable(number: int) -> bool:
    """Whether there is something to read from a file."""
    if sys.platform == "win32":
        return bool(select.select([number], [], [], 0)[0])
    watcher = select.poll()  # unlike `select`, it takes numbers above 1023
    watcher.register(number, select.POLLIN)
    return bool(watcher.poll(0))


@cache
def in_psycopg(sql: str) -> bytes:
    """Placeholders as psycopg writes them."""
    return sql.replace("?", "%s").encode()


def connect(url: str, patience: float) -> psycopg.Connection[Any]:
    """A connection, also to a server that is just restarting."""
    until = time.monotonic() + patience
    while True:
        try:
            return psycopg.connect(url, autocommit=True)
        except psycopg.ProgrammingError:  # which repeats the part that it cannot read, a password perhaps
            where = without_password(url)
            raise StoreError(f"{where}: this address cannot be read; %-encode what is special in it") from None
        except psycopg.OperationalError as error:
            if time.monotonic() > until:
                remedy = "start the server, or correct the address"
                raise StoreError(
                    f"{without_password(url)}: {in_one_line(error)}; nothing was stored: {remedy}"
                ) from error
            time.sleep(0.1)


@contextmanager
def explained(where: str) -> Iterator[None]:
    """psycopg's errors in our words."""
    try:
        yield
    except psycopg.Error as error:
        remedy = "what was asked may or may not be stored: repeat it (a key or a report counts once)"
        raise StoreError(f"{where}: {in_one_line(error)}; {remedy}") from error


def in_one_line(error: psycopg.Error) -> str:
    return " ".join(str(error).split())
