"""A newer version takes over a store: killed in the middle, raced by others, with older processes still at work."""

from __future__ import annotations

import signal
import threading
from typing import Any

import apsw
import psycopg
import pytest

from old_stores import VERSIONS, content, install
from tampering import execute
from upgrading import exit_code, exit_codes_at_once
from worthwhile import Scheduler
from worthwhile.errors import StoreError
from worthwhile.live.checking import find_damage
from worthwhile.live.stores import open_store
from worthwhile.live.stores.schema import VERSION

pytestmark = pytest.mark.slow

OPENED_BY = {  # the statement with which every transaction of that version begins
    1: "select id, key, generation, names, tasks, reports from schedulers where name = 'old'",
    2: "select id, key, generation, names, tasks, reports from schedulers where name = 'old'",
    3: "select id, seed_key, generation, names, tasks, reports from schedulers where name = 'old'",
}


def rows(url: str, sql: str) -> list[Any]:
    """What a statement gives to somebody who is not us."""
    if url.startswith("sqlite"):
        connection = apsw.Connection(url.removeprefix("sqlite:///"))
        try:
            return connection.execute(sql).fetchall()
        finally:
            connection.close()
    with psycopg.connect(url, autocommit=True) as server:
        return server.execute(sql.encode()).fetchall()


# version 1 goes through what all later ones do, in the same transaction
@pytest.mark.parametrize("version", [1, *(pytest.param(other, marks=pytest.mark.long) for other in VERSIONS[1:])])
def test_a_kill_at_any_statement_of_an_upgrade_leaves_the_old_version_or_the_new_one_whole(
    durable: str, version: int
) -> None:
    said, kills, old = install(durable, version), 0, content(version)["rows"]
    while (ended := exit_code(durable, kills + 1)) == -signal.SIGKILL:
        kills += 1
        [(found,)] = rows(durable, "select version from worthwhile")
        if found == VERSION:
            break
        assert found == version
        for table, stored in old.items():  # all of the old columns, and all rows
            assert len(rows(durable, f"select {', '.join(stored[0])} from {table}")) == len(stored)
    assert ended in (0, -signal.SIGKILL)
    assert kills >= {4: 9, 5: 5}.get(version, 16)
    with Scheduler(durable, "old") as scheduler:
        summary = scheduler.summary()
        assert [summary.ratio, summary.tasks, summary.reports, summary.reward, summary.cost] == said
        assert scheduler.rebuild()
    assert find_damage(durable).damage == []


@pytest.mark.parametrize("version", [None, 1])
def test_several_processes_create_or_upgrade_the_tables_at_once(durable: str, version: int | None) -> None:
    said = None if version is None else install(durable, version)
    assert exit_codes_at_once(durable, "old", 6) == [0] * 6
    with Scheduler(durable, "old") as scheduler:
        assert scheduler.summary().reports == (0 if said is None else said[2])


@pytest.mark.parametrize("version", OPENED_BY)
def test_a_process_of_an_older_version_can_no_longer_begin_a_transaction(durable: str, version: int) -> None:
    """Its first statement is refused by the database, so that nothing after it is stored."""
    install(durable, version)
    assert len(rows(durable, OPENED_BY[version])) == 1
    open_store(durable).close()
    with pytest.raises((apsw.SQLError, psycopg.errors.UndefinedColumn), match=r"key|generation"):
        rows(durable, OPENED_BY[version])


@pytest.mark.parametrize("old", [4, 5])
def test_a_process_of_version_4_or_5_reads_the_newer_version_with_every_header(durable: str, old: int) -> None:
    """It compares them, and refuses to go on: see below."""
    install(durable, old)
    opened = "select (select max(version) from worthwhile), id, settings_generation from schedulers"
    [(version, _, generation)] = rows(durable, opened)
    open_store(durable).close()
    assert (version, rows(durable, opened)) == (old, [(VERSION, 1, generation)])


@pytest.mark.parametrize("old", [4, 5])
def test_checksums_of_versions_4_and_5_are_kept_and_fit(durable: str, old: int) -> None:
    install(durable, old)
    kept = "select number, checksum from reports order by number", "select task, checksum from tasks order by task"
    before = [rows(durable, sql) for sql in kept]
    with Scheduler(durable, "old") as scheduler:
        assert all(checksum for table in before for _, checksum in table)
        assert [rows(durable, sql) for sql in kept] == before
        assert scheduler.summary().bad_entries == 0
        assert len(scheduler.latest(20)) == len(before[1])
        scheduler.decide("weather", [1, "five"], features={"x": 1}).report(1.0, 1.0)
    assert find_damage(durable).damage == []


def test_a_process_is_refused_in_its_next_transaction_once_a_newer_version_has_the_store(durable: str) -> None:
    with Scheduler(durable) as scheduler:
        task, other = scheduler.decide("x", [1, 2]), scheduler.decide("x", [1, 2])
        execute(durable, "update worthwhile set version = 99")
        count = "select tasks, reports from schedulers"
        for refused in (
            lambda: scheduler.decide("x", [1, 2]),
            lambda: task.report(1.0, 1.0),
            lambda: scheduler.cancel(other.id),
            lambda: scheduler.retire(1),
            scheduler.summary,
        ):
            with pytest.raises(StoreError, match=r"schema version 99, .*pip install --upgrade worthwhile"):
                refused()
        assert rows(durable, count) == [(2, 0)]
        execute(durable, f"update worthwhile set version = {VERSION}")
        task.report(1.0, 1.0)
        assert rows(durable, count) == [(2, 1)]


def test_what_is_queued_when_a_newer_version_takes_the_store_is_refused_too(durable: str) -> None:
    with Scheduler(durable) as scheduler:
        scheduler.decide("x", [1, 2])
        began, goes_on, answers = threading.Event(), threading.Event(), []

        def hold_up(batch: Any) -> None:
            began.set()
            goes_on.wait()

        def decide() -> None:
            try:
                answers.append(scheduler.decide("x", [1, 2]).id)
            except StoreError as error:
                answers.append(str(error))

        first = threading.Thread(target=lambda: scheduler._transactor.do(hold_up))
        first.start()
        began.wait()
        threads = [threading.Thread(target=decide) for _ in range(8)]
        for thread in threads:
            thread.start()
        real = scheduler._transactor.store.transact

        def taken_over(work: Any) -> Any:
            scheduler._transactor.store.transact = real
            execute(durable, "update worthwhile set version = 99")
            return real(work)

        scheduler._transactor.store.transact = taken_over
        goes_on.set()
        for thread in (first, *threads):
            thread.join()
        assert len(answers) == 8
        assert all("schema version 99" in answer for answer in answers)
        assert rows(durable, "select tasks from schedulers") == [(1,)]
        execute(durable, f"update worthwhile set version = {VERSION}")
