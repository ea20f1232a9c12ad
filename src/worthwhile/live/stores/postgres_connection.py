"""Connections to PostgreSQL on which nobody waits for ever, and its errors in our words.

The server is told how long a lock, a statement and an idle transaction may last. That is of no use with a server that
was stopped, or behind a network that swallows everything: so this side gives up by itself a little later.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Generator
from typing import Any

from worthwhile.errors import MissingExtra, StoreError
from worthwhile.live.stores.schema import without_password

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict, make_conninfo
except ImportError:
    raise MissingExtra("a PostgreSQL store", "postgres") from None

PATIENCE = 30.0  # seconds for a lock, a statement, an answer, and for a server that is starting again
GRACE = 1.1  # this side waits longer by so much, a statement by half of that: who waits for a lock is told so
# Unless the address, the role or the database says otherwise. 0 is what they are if nobody has set them.
SET_LIMITS = b"""select set_config(name, case name when 'statement_timeout' then %s else %s end, false)
  from pg_settings where setting = '0'
  and name in ('lock_timeout', 'statement_timeout', 'idle_in_transaction_session_timeout')"""

UNKNOWN = "what was asked may or may not be stored: repeat it (a key or a report counts once)"
REMEDIES = {  # by SQLSTATE, or by how it begins
    "25006": "it can only be read here: use the primary server, or a role that may write",
    "28": "correct the user and the password in the address, or the server's pg_hba.conf",
    "3D000": "create the database, or correct the address",
    "3F000": "create the schema, or correct the search_path",
    "40": "other transactions were in the way: repeat the call",
    "42501": "grant the role select, insert, update and delete on all of worthwhile's tables (select alone to read)",
    "42P01": "worthwhile's tables are not all there: restore a back-up, or name another database or schema",
    "42703": "worthwhile's tables are not as they were made: restore a back-up, or name another database or schema",
    "53100": "the server's disk is full: make room there, then repeat the call",
    "53300": "the server has as many connections as it allows: close some, or raise max_connections",
    "53": "the server has too little of something: give it more, then repeat the call",
    "55P03": "another session kept it locked: find that with pg_blocking_pids(), end it, then repeat the call",
    "57014": "the server took too long, or somebody cancelled it: see what it is busy with, then repeat the call",
    "58": "the server cannot use its disk: see its log",
    "XX": "the server's data may be damaged: see its log, restore a back-up",
}
# What libpq says when it cannot connect, which has no SQLSTATE.
REFUSALS = {
    "28": "authentication failed|no password supplied|role .* does not exist|no pg_hba.conf entry|not permitted to log",
    "3D000": "database .* does not exist",
    "53300": "too many clients|too many connections|connection slots",
}
FOR_GOOD = ("28", "3D000")
WAITED = ("55P03", "57014")


class NoAnswer(psycopg.OperationalError):
    """The server has said nothing for too long."""


class Connection(psycopg.Connection[Any]):
    """Gives up at its deadline."""

    deadline = math.inf

    def wait(self, gen: Any, *values: Any, **settings: Any) -> Any:
        return super().wait(until_deadline(self, gen), *values, **settings)


def until_deadline(connection: Connection, steps: Any) -> Generator[Any, Any, Any]:
    """The steps of a conversation, as long as there are answers in time."""
    try:
        wanted = next(steps)
        while True:
            ready = yield wanted
            if not ready and time.monotonic() > connection.deadline:
                raise NoAnswer(f"no answer from the server for {PATIENCE * GRACE:g} s")
            wanted = steps.send(ready)
    except StopIteration as end:
        return end.value


def connect(url: str, patience: float) -> Connection:
    """A connection, also to a server that is just restarting."""
    until = time.monotonic() + patience
    while True:
        try:
            return set_up(Connection.connect(with_limits(url, until), autocommit=True))
        except psycopg.ProgrammingError:  # which repeats the part that it cannot read, a password perhaps
            where = without_password(url)
            raise StoreError(f"{where}: this address cannot be read; %-encode what is special in it") from None
        except psycopg.OperationalError as error:
            state = state_of(error)
            if time.monotonic() > until or state.startswith(FOR_GOOD):
                remedy = remedy_of(state) or "start the server, or correct the address"
                message = f"{without_password(url)}: {in_one_line(error)}; nothing was stored: {remedy}"
                raise store_error(message, waited=patience > 0.0) from error
            time.sleep(min(0.1, PATIENCE / 10))


def set_up(connection: Connection) -> Connection:
    """Tell the server how long things may last."""
    connection.deadline = time.monotonic() + PATIENCE * GRACE
    try:
        connection.execute(SET_LIMITS, [f"{seconds * 1000:.0f}" for seconds in (PATIENCE * 1.05, PATIENCE)])
    except BaseException:
        connection.close()
        raise
    return connection


def with_limits(url: str, until: float) -> str:
    """The address, with limits for the network unless it has its own."""
    left = max(until - time.monotonic(), 2.0) if until > time.monotonic() else PATIENCE
    limits = {"connect_timeout": left, "tcp_user_timeout": PATIENCE * 1000}
    limits |= {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}
    given = conninfo_to_dict(url)
    return make_conninfo(url, **{name: math.ceil(limit) for name, limit in limits.items() if name not in given})


def state_of(error: psycopg.Error) -> str:
    """The SQLSTATE, or what it would be; empty if the server has said nothing."""
    if error.sqlstate is not None:
        return error.sqlstate
    said = [state for state, pattern in REFUSALS.items() if re.search(pattern, str(error))]
    return said[0] if said else ""


def remedy_of(state: str) -> str:
    return REMEDIES.get(state) or REMEDIES.get(state[:2]) or ""


def explained(error: psycopg.Error, where: str) -> StoreError:
    """An error during a transaction. Where the server has given a reason, it has stored nothing."""
    state = state_of(error)
    remedy = remedy_of(state)
    may_be_stored = state == "" or state.startswith(("08", "57P"))  # the connection broke, perhaps during the commit
    ending = UNKNOWN if may_be_stored else f"nothing was stored: {remedy or 'see what has changed in the database'}"
    waited = state in WAITED or isinstance(error, NoAnswer)
    return store_error(f"{where}: {in_one_line(error)}; {ending}", again=state.startswith("40"), waited=waited)


def store_error(message: str, again: bool = False, waited: bool = False) -> StoreError:
    error = StoreError(message)
    error.again, error.waited = again, waited
    return error


def in_one_line(error: psycopg.Error) -> str:
    return " ".join((error.diag.message_primary or str(error)).split())
