"""A PostgreSQL server that is locked, stopped, out of reach or set up otherwise: every call ends, and says why."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from unreliable_network import network_before
from waiting import NET, wait_until
from worthwhile import Scheduler
from worthwhile.errors import StoreError
from worthwhile.live.stores.base import Transaction

OPTIONS = [1, 2, 3]
LIMIT = "worthwhile.live.stores.postgres_connection.PATIENCE"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two seconds instead of thirty: more than a busy machine takes for anything that is not stuck."""
    monkeypatch.setattr(LIMIT, 2.0)


def refused(call: Callable[[], object]) -> str:
    """Why a call failed; it must end."""
    errors: list[str] = []

    def work() -> None:
        try:
            call()
        except StoreError as error:
            errors.append(str(error))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(NET)
    assert not thread.is_alive(), "it waits for ever"
    [error] = errors
    return error


def pair(scheduler: Scheduler) -> None:
    scheduler.decide("x", OPTIONS).report(1.0, 2.0)


@pytest.mark.slow
@pytest.mark.usefixtures("impatient")
def test_a_row_that_somebody_keeps_locked_is_named(postgres: str) -> None:
    with Scheduler(postgres) as scheduler, psycopg.connect(postgres) as other:
        pair(scheduler)
        other.execute("select * from schedulers for update")
        error = refused(lambda: pair(scheduler))
        assert "lock timeout; nothing was stored: another session kept it locked: find that with pg_blocking" in error
        other.rollback()
        pair(scheduler)
        assert scheduler.summary().reports == 2


@pytest.mark.slow
@pytest.mark.usefixtures("impatient")
def test_a_server_process_that_was_stopped_is_given_up(postgres: str) -> None:
    """Over a Unix socket, where the network knows no limits."""
    with Scheduler(postgres) as scheduler:
        pair(scheduler)
        store: Any = scheduler._transactor.store
        backend = store.connection.info.backend_pid
        os.kill(backend, signal.SIGSTOP)
        try:
            error = refused(lambda: pair(scheduler))
        finally:
            os.kill(backend, signal.SIGCONT)
        assert "no answer from the server for 2.2 s; what was asked may or may not be stored: repeat it" in error
        pair(scheduler)
        assert (scheduler.summary().reports, scheduler.rebuild()) == (2, True)


@pytest.mark.slow
@pytest.mark.usefixtures("impatient")
def test_a_network_that_swallows_everything_is_given_up(postgres: str) -> None:
    with network_before(postgres) as (network, url), Scheduler(url) as scheduler:
        pair(scheduler)
        network.flows.clear()
        assert "repeat it (a key or a report counts once)" in refused(lambda: pair(scheduler))
        assert "connection timeout expired; nothing was stored: start the server" in refused(lambda: Scheduler(url))
        network.flows.set()
        pair(scheduler)
        assert scheduler.rebuild()


@pytest.mark.slow
@pytest.mark.usefixtures("impatient")
def test_who_waits_behind_a_call_that_was_given_up_is_told_the_same(postgres: str) -> None:
    with Scheduler(postgres) as scheduler, psycopg.connect(postgres) as other:
        other.execute("select * from schedulers for update")
        tries, errors, real = [], [], scheduler._transactor.store.transact

        def transact(work: Callable[[Transaction], Any]) -> Any:
            tries.append(work)
            wait_until(lambda: len(scheduler._transactor.queue) == 7, "the others in the queue")
            return real(work)

        scheduler._transactor.store.transact = transact  # type: ignore[method-assign]
        threads = [threading.Thread(target=lambda: errors.append(refused(lambda: pair(scheduler)))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(NET)
        scheduler._transactor.store.transact = real  # type: ignore[method-assign]
        other.rollback()
        assert (len(errors), len(set(errors)), len(tries)) == (8, 1, 1)
        pair(scheduler)


@pytest.mark.slow
def test_who_stops_in_the_middle_of_a_transaction_does_not_block_the_others(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Scheduler(postgres) as scheduler:
        monkeypatch.setattr(LIMIT, 2.0)
        stopped, opened, over = Scheduler(postgres), threading.Event(), threading.Event()

        def open_and_stop(tx: Transaction) -> None:
            tx.open("default")
            opened.set()
            assert over.wait(NET)

        thread = threading.Thread(target=lambda: refused(lambda: stopped._transactor.store.transact(open_and_stop)))
        thread.start()
        assert opened.wait(NET)
        pair(scheduler)
        over.set()
        thread.join(NET)
        pair(stopped)
        stopped.close()
        assert scheduler.summary().reports == 2


def test_limits_that_the_user_has_set_are_left_alone(server: Any, postgres: str) -> None:
    def shown(url: str) -> list[str]:
        with Scheduler(url) as scheduler:
            store: Any = scheduler._transactor.store
            names = ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout")
            limits = [store.connection.execute(f"show {name}").fetchone()[0] for name in names]
            return [*limits, *(store.connection.info.get_parameters().get(name) for name in ("connect_timeout",))]

    assert shown(postgres) == ["30s", "31500ms", "30s", "30"]
    assert shown(f"{postgres}%20-clock_timeout%3D7s&connect_timeout=9") == ["7s", "31500ms", "30s", "9"]


@pytest.fixture(params=["read committed", "repeatable read", "serializable"])
def isolated(request: pytest.FixtureRequest, server: Any, postgres: str) -> Iterator[str]:
    """The address of a role with another default."""
    schema, role = postgres.rpartition("%3D")[2], f"isolated_{os.getpid()}"
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        connection.execute(f"create role {role} login; grant all on schema {schema} to {role}")
        connection.execute(f"alter role {role} set default_transaction_isolation = '{request.param}'")
    yield postgres.replace("postgres:@", f"{role}:@")
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        connection.execute(f"drop owned by {role}; drop role {role}")


def test_a_role_with_another_isolation_level_is_no_hindrance(isolated: str) -> None:
    schedulers = [Scheduler(isolated) for _ in range(4)]
    failed: list[Exception] = []

    def work(scheduler: Scheduler) -> None:
        for _ in range(15):
            try:
                pair(scheduler)
            except Exception as error:
                failed.append(error)

    threads = [threading.Thread(target=work, args=(scheduler,)) for scheduler in schedulers for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(NET)
    assert failed == []
    assert {(scheduler.summary().reports, scheduler.rebuild()) for scheduler in schedulers} == {(120, True)}
    for scheduler in schedulers:
        scheduler.close()


@pytest.mark.parametrize("conflicts", [3, 99])
def test_a_conflict_with_another_transaction_is_tried_again_a_few_times(
    postgres: str, conflicts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worthwhile.live.transactor.LONGEST_PAUSE", 0.001)
    with Scheduler(postgres) as scheduler:
        left = [conflicts]
        store: Any = scheduler._transactor.store

        def conflict(batch: Any) -> str:
            batch.decide("x", (1, 2), None, 60.0)
            if left[0] > 0:
                left[0] -= 1
                store.run("do $$ begin raise exception 'in the way' using errcode = '40001'; end $$")
                store.query("select 1")
            return "done"

        if conflicts == 3:
            assert scheduler._transactor.do(conflict) == "done"
        else:
            with pytest.raises(StoreError, match=r"in the way.* nothing was stored: .*repeat the call"):
                scheduler._transactor.do(conflict)
            assert left == [99 - 11]
        assert scheduler.summary().tasks == (conflicts == 3)
        assert scheduler.rebuild()


@pytest.fixture
def reader(server: Any, postgres: str) -> Iterator[Callable[[str], str]]:
    """Makes a role that may use the tables as far as it is granted."""
    schema, role = postgres.rpartition("%3D")[2], f"reader_{os.getpid()}"
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        connection.execute(f"create role {role} login; grant usage on schema {schema} to {role}")

    def grant(rights: str) -> str:
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            connection.execute(f"grant {rights} on all tables in schema {schema} to {role}")
        return postgres.replace("postgres:@", f"{role}:@")

    yield grant
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        connection.execute(f"drop owned by {role}; drop role {role}")


@pytest.mark.parametrize("how", ["a role that may only select", "a server that is a copy"])
def test_what_cannot_be_written_can_be_read(
    postgres: str, reader: Callable[[str], str], how: str, tmp_path: Path
) -> None:
    with Scheduler(postgres) as writer:
        for _ in range(20):
            pair(writer)
        task = writer.decide("x", OPTIONS)
        read_only = f"{postgres}%20-cdefault_transaction_read_only%3Don"
        url = reader("select") if how == "a role that may only select" else read_only
        with Scheduler(url, create=False) as scheduler:
            assert scheduler.summary().reports == 20
            assert scheduler.explain("7").repeated
            assert scheduler.export(tmp_path / "log.csv") == 20
            assert scheduler.rebuild()
            calls = (lambda: scheduler.decide("y", [4]), lambda: scheduler.cancel(task.id), lambda: scheduler.retire(1))
            for call in calls:
                with pytest.raises(StoreError, match=r"it can only be read here; nothing was stored: use the primary"):
                    call()
            pair(writer)
            assert scheduler.summary().reports == 21
        with pytest.raises(StoreError, match="it can only be read here"):
            Scheduler(url, "another")


def test_rights_that_are_missing_are_named(postgres: str, reader: Callable[[str], str]) -> None:
    Scheduler(postgres).close()
    url = reader("select, update")
    with Scheduler(url) as scheduler, pytest.raises(
        StoreError, match=r"permission denied for table .*; nothing was stored: grant the role select, insert, update"
    ):  # fmt: skip
        pair(scheduler)


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        ("drop table reports", r"reports.* does not exist; nothing was stored: worthwhile's tables are not all there"),
        ("alter table reports drop policy", r"policy.* does not exist; nothing was stored: .*not as they were made"),
        ("alter table reports add check (reward < 0)", r"violates check constraint.*; nothing was stored"),
    ],
)
def test_tables_that_were_changed_are_named(postgres: str, harm: str, words: str) -> None:
    with Scheduler(postgres) as scheduler, psycopg.connect(postgres, autocommit=True) as other:
        task = scheduler.decide("x", OPTIONS)
        other.execute(harm)
        with pytest.raises(StoreError, match=words):
            task.report(1.0, 1.0)


def test_a_refused_connection_says_why(postgres: str) -> None:
    for wrong, remedy in (
        (postgres.replace("/postgres?", "/nowhere?"), "create the database, or correct the address"),
        (postgres.replace("postgres:@", "nobody_of_this_name:@"), "correct the user and the password in the address"),
    ):
        with pytest.raises(StoreError, match=f"does not exist; nothing was stored: {remedy}"):
            Scheduler(wrong)


def test_too_many_connections_are_named(postgres: str) -> None:
    with Scheduler(postgres) as scheduler, psycopg.connect(postgres, autocommit=True) as other:
        pair(scheduler)
        role, schema = f"limited_{os.getpid()}", postgres.rpartition("%3D")[2]
        other.execute(f"create role {role} login connection limit 1; grant all on schema {schema} to {role}")
        other.execute(f"grant all on all tables in schema {schema} to {role}")
        url = postgres.replace("postgres:@", f"{role}:@")
        with (
            psycopg.connect(url),
            pytest.raises(StoreError, match=r"too many connections for role .*close some, or raise"),
        ):
            Scheduler(url)
        other.execute(f"drop owned by {role}; drop role {role}")
