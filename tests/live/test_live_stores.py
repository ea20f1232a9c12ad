"""Stores: one interface, one behaviour; and the kit that checks it notices what is wrong."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from old_stores import VERSIONS, install
from worthwhile import Scheduler
from worthwhile.errors import BrokenRule
from worthwhile.live.requests import Deciding
from worthwhile.live.stores import open_store
from worthwhile.live.stores.base import CHOSEN, HELD_OUT, LogRow, Snapshot, TaskRow, Transaction
from worthwhile.live.stores.checksums import checksum, log_checksum, task_checksum
from worthwhile.live.stores.memory import MemoryStore
from worthwhile.live.stores.schema import MIGRATIONS, VERSION, prepare, statements
from worthwhile.testing import check_store


def test_every_store_keeps_the_rules(address: str) -> None:
    check_store(address)


class Forgetful(MemoryStore):
    def save(self, id: int, snapshot: Snapshot) -> None:
        super().save(id, snapshot._replace(parts=[*snapshot.parts][:-1]))


class Remembering(MemoryStore):
    def forget(self, id: int, entries: Sequence[LogRow]) -> None:
        super().forget(id, [])


class Rounding(MemoryStore):
    def reports(self, id: int, after: int, count: int) -> list[LogRow]:
        return [row._replace(cost=round(row.cost, 12)) for row in super().reports(id, after, count)]


class Backwards(MemoryStore):
    def reports(self, id: int, after: int, count: int) -> list[LogRow]:
        return super().reports(id, after, count)[::-1]


class Untidy(MemoryStore):
    def add(self, *rows: Any) -> None:
        super().add(*rows)
        self.undo.clear()


class Eternal(MemoryStore):
    def running(self, id: int, kinds: Sequence[int], now: float) -> list[tuple[int, int, int]]:
        return super().running(id, kinds, 0.0)


class Mixed(MemoryStore):
    def tasks(self, id: int, numbers: Sequence[int]) -> list[TaskRow]:
        return [row for kept in self.by_id for row in kept.tasks.values() if row.task in numbers]


class Open(MemoryStore):
    """Two at a time may be in a transaction."""

    def __init__(self) -> None:
        super().__init__()
        self.in_use: Any = threading.Semaphore(2)

    def open(self, name: str) -> Any:
        header = super().open(name)
        threading.Event().wait(0.002)
        return header


@pytest.mark.parametrize(
    ("store", "rule"),
    [
        (Forgetful, "what was committed is read back"),
        (Remembering, "what was committed is read back"),
        (Rounding, "what was committed is read back"),
        (Backwards, "read back, to the bit"),
        (Untidy, "a transaction that fails leaves nothing behind"),
        (Eternal, "a task is running until"),
        (Mixed, "a query gives the rows that were asked for"),
        (Open, "between opening a scheduler and the commit"),
    ],
)
def test_the_kit_notices_what_is_wrong(store: Callable[[], MemoryStore], rule: str) -> None:
    kept = store()
    with pytest.raises(BrokenRule, match=rule):
        check_store(lambda: kept)


def test_an_older_schema_is_brought_up_to_date_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    monkeypatch.setattr("worthwhile.live.stores.schema.VERSION", VERSION + 2)
    monkeypatch.setitem(MIGRATIONS, VERSION, "first {bytes}; second")
    monkeypatch.setitem(MIGRATIONS, VERSION + 1, "third")
    prepare(VERSION, done.append, {"bytes": "blob"}, "here")
    assert done == ["first blob", "second", "third", f"update worthwhile set version = {VERSION + 2}"]
    done.clear()
    prepare(VERSION + 2, done.append, {}, "here")
    assert done == []
    assert statements("a;\n b ;\n") == ["a", "b"]


@pytest.mark.parametrize("version", VERSIONS)
def test_an_older_store_is_brought_up_to_date_and_says_what_it_said(durable: str, version: int) -> None:
    said = install(durable, version)
    with Scheduler(durable, "old") as scheduler:
        summary = scheduler.summary()
        assert [summary.ratio, summary.tasks, summary.reports, summary.reward, summary.cost] == said
        assert summary.bad_entries == 0
        assert scheduler.decide("weather", [1, "five"], key="key 3").id == "4"
        scheduler.report("6", cost=2.0)
        scheduler.decide("new", [1, "new"]).report(0.5, 2.0)
        assert scheduler.summary().reports == said[2] + 2
        assert scheduler.explain("1").kind == "weather"
        assert scheduler._transactor.store.transact(lambda tx: tx.tokens()) == []
        assert scheduler.rebuild()
    with Scheduler(durable, "old") as scheduler:
        assert scheduler.summary().reports == said[2] + 2


@pytest.mark.parametrize("version", VERSIONS)
def test_migrated_tables_have_the_same_columns_as_new_ones(durable: str, version: int, tmp_path: Path) -> None:
    install(durable, version)
    open_store(durable).close()
    new: Any = open_store(f"sqlite:///{tmp_path}/new.db")
    for table in (
        "schedulers",
        "names",
        "tasks",
        "reports",
        "snapshots",
        "snapshot_parts",
        "tokens",
        "sessions",
        "audit",
    ):
        columns = {row[1] for row in new.transact(lambda tx, table=table: tx.query(f"pragma table_info({table})"))}
        with_them: Any = open_store(durable)
        with_them.transact(
            lambda tx, table=table, columns=columns: tx.query(f"select {', '.join(columns)} from {table}")
        )
        with_them.close()
    new.close()


def test_checksums_are_the_same_in_every_python() -> None:
    row = TaskRow(1, 0, 2, "0,2", "0,1", 0.1, 1 / 3, None, 0, 1, "ü", 1.5, 2e9, 0.25)
    entry = row.log_row(2**40, -0.5, 1e300)[:-1]
    known_to_4, features = entry[:-2], '{"x": 1}'
    assert checksum(1, known_to_4) == 138969447
    assert log_checksum(1, entry) == checksum(1, *known_to_4)  # as version 4, which knew no features
    assert log_checksum(1, (*known_to_4, features, CHOSEN)) == checksum(1, *known_to_4, features)  # as version 5
    assert log_checksum(1, (*known_to_4, None, HELD_OUT)) == checksum(1, *known_to_4, None, HELD_OUT)
    assert task_checksum(1, row) == 458087363  # as version 5, which knew no mode
    assert task_checksum(1, row._replace(price=-0.0)) == task_checksum(1, row._replace(price=0.0))
    changed = [
        row._replace(key=None),
        row._replace(cancelled=1),
        row._replace(outcome=1),
        row._replace(lease_end=7.0),
        row._replace(holder="me"),
        row._replace(mode=HELD_OUT),
        row._replace(own=0),
        row._replace(in_flight="[]"),
    ]
    assert len({task_checksum(1, other) for other in [row, *changed]} | {task_checksum(2, row)}) == len(changed) + 2


class Interrupted(dict[int, TaskRow]):
    """Ctrl-C comes when the second thing is put here."""

    put = 0

    def __setitem__(self, task: int, row: TaskRow) -> None:
        self.put += 1
        if self.put == 2:
            raise KeyboardInterrupt
        super().__setitem__(task, row)


def test_memory_takes_back_what_was_interrupted() -> None:
    with Scheduler() as scheduler:
        scheduler.decide("x", [1, 2]).report(1.0, 1.0)
        before, store = scheduler.summary(), scheduler._transactor.store
        assert isinstance(store, MemoryStore)
        store.by_id[0].tasks = Interrupted(store.by_id[0].tasks)
        with pytest.raises(KeyboardInterrupt):
            scheduler._transactor.ask_all([Deciding(scheduler, "x", [1, 2]) for _ in range(3)])
        assert scheduler.summary() == before
        scheduler.decide("x", [1, 2]).report(1.0, 1.0)
        assert scheduler.rebuild()


def test_memory_goes_on_taking_back_if_that_is_interrupted_too() -> None:
    store, done = MemoryStore(), []

    def interrupted_once() -> None:
        done.append("latest")
        if len(done) == 1:
            raise KeyboardInterrupt

    def work(tx: Transaction) -> None:
        tx.create("new", 1, "{}")
        store.undo += [(done.append, "earlier"), (interrupted_once,)]
        raise ValueError

    with pytest.raises(KeyboardInterrupt):
        store.transact(work)
    assert store.transact(lambda tx: tx.schedulers()) == []
    assert done == ["latest", "latest", "earlier"]
    assert store.undo == []
