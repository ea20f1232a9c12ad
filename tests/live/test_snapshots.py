"""Snapshots only shorten a start: none, a damaged one and one that cannot be saved do no harm."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tampering import execute
from worthwhile import Scheduler
from worthwhile.live.checking import find_damage

OPTIONS = [1, 2, 3]
REFUSING = {
    "sqlite": "create trigger refusing before insert on snapshots begin select raise(abort, 'no room'); end",
    "postgres": "alter table snapshots add constraint refusing check (number < 0)",
}
NO_LONGER = {"sqlite": "drop trigger refusing", "postgres": "alter table snapshots drop constraint refusing"}


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("worthwhile.live.replica.SNAPSHOT_EVERY", 20)
    monkeypatch.setattr("worthwhile.state.parts.__defaults__", (100,))


def run(scheduler: Scheduler, count: int) -> None:
    for number in range(count):
        scheduler.decide(f"kind {number % 3}", OPTIONS).report(1.0 + number % 2, 1.0 + number % 5)


def saved(scheduler: Scheduler) -> int:
    position: int = scheduler._transactor.do(lambda batch: batch.replica.saved)
    return position


def test_a_snapshot_that_cannot_be_saved_fails_no_report_and_is_tried_again(
    durable: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = durable.split(":", maxsplit=1)[0].replace("postgresql", "postgres")
    with Scheduler(durable) as scheduler:
        execute(durable, REFUSING[store])
        run(scheduler, 50)
        assert saved(scheduler) == 0
        assert caplog.text.count("no snapshot of scheduler 'default', the next start takes longer") == 2
        execute(durable, NO_LONGER[store])
        run(scheduler, 15)
        assert saved(scheduler) == 60
        assert scheduler.summary().reports == 65
        assert scheduler.rebuild()
    with Scheduler(durable) as scheduler:
        assert saved(scheduler) > 0
        assert scheduler.summary().reports == 65


DAMAGE = {
    "delete from snapshot_parts where part = 2": "one of its parts 1 to [0-9]+ is missing",
    "delete from snapshot_parts": "one of its parts 1 to [0-9]+ is missing",
    "update snapshots set checksum = checksum + 1": "its checksum does not fit",
    "update snapshots set parts = parts - 1": "the bytes end in the middle of",
    "update snapshots set set_aside = '[7, []]'": "its checksum does not fit",
    "update snapshots set number = number - 1": "its checksum does not fit",
    "update snapshots set features = 8": "it has more kinds, options and features than there are",
    "update snapshots set options = 1000000": "it has more kinds, options and features than there are",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_snapshot_is_ignored_with_a_warning(
    durable: str, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    with Scheduler(durable) as scheduler:
        run(scheduler, 25)
        known = scheduler._transactor.do(lambda batch: batch.replica.fold)
    execute(durable, damage)
    assert [line.table for line in find_damage(durable).damage] == ["snapshots"]
    with Scheduler(durable) as scheduler:
        assert scheduler._transactor.do(lambda batch: batch.replica.fold.same_as(known))
        assert saved(scheduler) == 25  # a new one
        said = f"a snapshot cannot be used, the log is read from its start: ({DAMAGE[damage]})"
        assert re.match(said, caplog.records[0].getMessage())
        run(scheduler, 1)
        assert scheduler.summary().reports == 26


def test_a_snapshot_has_as_many_parts_as_it_needs_and_replaces_the_one_before(durable: str) -> None:
    with Scheduler(durable) as scheduler:
        run(scheduler, 45)
        store: Any = scheduler._transactor.store
        snapshot = store.transact(lambda tx: tx.snapshot(1)._replace(parts=[*tx.snapshot(1).parts]))
        assert snapshot.number == 40
        assert len(snapshot.parts) > 5
        assert {len(part) for part in snapshot.parts[:-1]} == {100}
        [(rows,)] = store.transact(lambda tx: tx.query("select count(*) from snapshot_parts"))
        assert rows == len(snapshot.parts)


def test_a_large_state_is_saved_less_often(address: str) -> None:
    with Scheduler(address) as scheduler:
        scheduler.announce([f"kind {number}" for number in range(512)], list(range(256)))
        run(scheduler, 45)
        replica = scheduler._transactor.do(lambda batch: batch.replica)
        assert replica.fold.bytes > 8_000_000
        assert replica.snapshot_spacing() > 1500
        assert replica.saved == 0
