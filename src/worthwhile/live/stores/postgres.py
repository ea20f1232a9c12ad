"""PostgreSQL: for many machines. Needs the extra `postgres`.

A transaction is sent in pipelines, so that it takes two or three round trips however many rows it writes.
"""

from __future__ import annotations

import math
import select
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

from worthwhile.errors import StoreError
from worthwhile.live.stores import postgres_connection as connecting
from worthwhile.live.stores.base import Answer, Snapshot, Transaction
from worthwhile.live.stores.forking import Forkable
from worthwhile.live.stores.postgres_connection import connect, explained
from worthwhile.live.stores.schema import VERSION, prepare, version_in, without_password
from worthwhile.live.stores.sql import HEADER, SqlTransaction

import psycopg  # isort: skip (whether it is installed has been asked before)

WORDS = {"identity": "bigint generated always as identity primary key", "bytes": "bytea"}
INSTALLING = 0x776F727468  # the advisory lock of whoever creates or migrates the tables
# Said here, because a role or a database may have another default, under which whoever waited for a lock would fail.
BEGIN = "begin isolation level read committed"
BEGIN_READING = "begin isolation level repeatable read read only"  # one moment, without a lock
IS_READ_ONLY = """select current_setting('transaction_read_only') = 'on'
  or not coalesce(has_table_privilege(to_regclass('schedulers'), 'update'), true)"""
# Not by to_regclass, which remembers that a table was not there, also while another process creates it.
HAS_TABLES = "select 1 from pg_class where relname = 'worthwhile' and pg_table_is_visible(oid)"
READ_ONLY = "it can only be read here; nothing was stored: use the primary server, or a role that may write"


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
        self.pipeline: psycopg.Pipeline  # of the transaction
        with in_our_words(self.where):
            self.connect(patience=0.0)
        try:
            self.transact(lambda _: self.install())
        except BaseException:
            self.close()
            raise

    def connect(self, patience: float) -> None:
        """Also find out whether this role, on this server, can write."""
        connection = connect(self.url, patience)
        try:
            answer = connection.execute(IS_READ_ONLY).fetchone()
        except BaseException:  # Ctrl-C: the answer must not be taken for a later one
            connection.close()
            raise
        self.connection, self.read_only = connection, answer is not None and bool(answer[0])

    def install(self) -> None:
        """Create the tables, or bring them up to date; one at a time, and however long that takes."""
        if self.version() != VERSION:
            self.run(f"select pg_advisory_xact_lock({INSTALLING})")
            self.query("select set_config('statement_timeout', '0', true)")
            self.connection.deadline = math.inf
            prepare(self.version(), self.run, WORDS, self.where)

    def version(self) -> int | None:
        """The schema version; None if there are no tables of ours."""
        if not self.query(HAS_TABLES):
            return None
        return version_in(self.query("select version from worthwhile"))

    def read(self, work: Callable[[Transaction], Answer]) -> Answer:
        return self.transact(work)

    def transact(self, work: Callable[[Transaction], Answer]) -> Answer:
        with self.in_use, in_our_words(self.where):
            if self.closed:
                raise StoreError(f"{self.where} was closed; open it again")
            began = time.monotonic()
            if self.is_gone():
                self.connection.close()
                self.connect(connecting.PATIENCE)
            self.connection.deadline = began + connecting.PATIENCE * connecting.GRACE
            try:
                with self.connection.pipeline() as self.pipeline:
                    self.connection.execute(BEGIN_READING if self.read_only else BEGIN)
                    answer = work(self)
                    self.connection.execute("commit")
                return answer
            except BaseException as error:
                is_the_server = isinstance(error.__cause__ if isinstance(error, StoreError) else error, psycopg.Error)
                if is_the_server or not isinstance(error, Exception):
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
        with in_our_words(self.where):
            self.connection.execute(sql.encode())

    def query(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        try:
            cursor = self.connection.execute(in_psycopg(sql, self.read_only), values)
            self.pipeline.sync()  # only now is the server idle in its own eyes, which it is for a limited time
            return cursor.fetchall()
        except psycopg.Error as error:
            raise explained(error, self.where) from error

    def write(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        if self.read_only:
            self.connection.close()  # the next one may be allowed to write
            raise StoreError(f"{self.where}: {READ_ONLY}")
        try:
            if len(rows) == 1:
                self.connection.execute(in_psycopg(sql), rows[0])
            else:
                self.connection.cursor().executemany(in_psycopg(sql), rows)
        except psycopg.Error as error:
            raise explained(error, self.where) from error

    def renew(self, id: int, now: float) -> None:
        if not self.read_only:  # others do
            super().renew(id, now)

    def save(self, id: int, snapshot: Snapshot) -> None:
        if not self.read_only:  # it only shortens the next start
            super().save(id, snapshot)

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
def in_psycopg(sql: str, read_only: bool = False) -> bytes:
    """Placeholders as psycopg writes them; without the lock, which takes the right to write."""
    return (sql.removesuffix(" for update") if read_only else sql).replace("?", "%s").encode()


@contextmanager
def in_our_words(where: str) -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        raise explained(error, where) from error
