"""`check_store`: does a store of your own keep what schedulers rely on?"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import astuple
from functools import partial
from typing import Any

from worthwhile.live.stores import open_store
from worthwhile.live.stores.base import (
    FAILED,
    LOST,
    OWN,
    REPLACES,
    RESTORED,
    RESTORES,
    AuditRow,
    Header,
    LogRow,
    NameRow,
    SessionRow,
    Snapshot,
    Store,
    TaskRow,
    TokenRow,
    Transaction,
)
from worthwhile.testing.rules import ALONE, ASKED, KEPT, ONCE, RUNNING, UNDONE, broken

NAME, SETTINGS = 'it\'s a "check"; ü', '{"ü": 1}'
NAMES = [NameRow(1, "policy", 1, "{}"), NameRow(2, "kind", 0, "ü; drop table names"), NameRow(3, "option", 0, "null")]
ROW = TaskRow(1, 0, 2, "0,2", "0,1", 0.1, 1 / 3, None, 0, 1, None, 1.5, 2e9, 0.25)
TASKS = [
    ROW._replace(key="first"),
    ROW._replace(task=2, kind=1, price=-1e-300, decided=3.0),
    ROW._replace(task=3, option=0, key="it's", lease_end=1e9),
    ROW._replace(task=4, features='{"ü": 1}', probability=1 / 3, holder="it's me", own=0, mode=1),
    ROW._replace(task=5),
]
LOG = [
    LogRow(1, 4, OWN, 0, 2, None, 1e-100, 0.1, -0.1, 5e-324, 1, LOST, "it's ü"),
    LogRow(2, 1, 0, 0, 0, 0.1 + 0.2, 1.7976931348623157e308, 0.0, 0.0, 0.0, 0),
    LogRow(3, 4, REPLACES, 0, 2, None, 2.0, 0.1, 0.0, 0.2, 0, FAILED, None),
    LogRow(4, 4, OWN - 1, 0, 0, 1e100, 1e-100, 0.1, -0.1, 5e-324, 1, features='{"ü": 1}', mode=1),
    LogRow(5, 0, RESTORES - 5, 0, 0, None, 1.0, 0.0, 0.0, 0.0, 0, RESTORED),
]
OF_TASK_4 = [LOG[0], LOG[2], LOG[3]]
CHANGED = [
    TASKS[3]._replace(
        option=0, pending="1,1", reward_estimate=0.2, cost_estimate=0.3, price=0.5, seen=1, policy=2, decided=2.0,
        reward=1e100, cost=1e-100, report=4, attempts='[{"option": 2}]', probability=0.5, own=None, in_flight="[ü]",
    ),
    TASKS[4]._replace(cancelled=1),
]  # fmt: skip
SNAPSHOT = Snapshot(2, 1, 8, 8, 16, "[]", (bytes(range(256)), b"more"), 0xFFFFFFFF)
TOKENS = [TokenRow("a1", "it's mine", "read", 1.5), TokenRow("b2", "other", "decide,report", 2.5, None, '["ü"]', 9e9)]
SESSIONS = [SessionRow("c3", "it's mine", 1.5, 2.5), SessionRow("d4", "it's mine", 2.5, 9e9)]
AUDIT = [AuditRow(1.5, None, "token created", None, "{}"), AuditRow(2.5, "it's mine", "changed", "ü", '{"a": 1}')]
THREADS, TURNS = 4, 10


def check_store(store: str | Callable[[], Store]) -> None:
    """Raise `BrokenRule` unless an empty store (its address, or a function that opens it) keeps every rule.

    >>> check_store("memory://")
    """
    reopen: Callable[[], Store] = partial(open_store, store) if isinstance(store, str) else store
    first = reopen()
    if store == "memory://":
        reopen = partial(itself, first)
    other = reopen()
    id = first.transact(partial(check_creating, first))
    first.transact(lambda tx: tx.change(id, SETTINGS))
    for opened, check in (
        (first, check_settings),
        (first, add_rows),
        (first, add_more_rows),
        (other, check_rows),
        (first, fail),
        (first, check_undone),
        (first, check_running),
        (first, forget),
        (other, check_forgotten),
        (first, add_tokens),
        (other, check_tokens),
    ):
        with suppress(OnPurpose):
            opened.transact(partial(check, opened))
    other.read(partial(check_tokens, other))
    check_numbers(first, reopen)
    for opened in (other, first):
        opened.close()


class OnPurpose(Exception):
    """In the middle of a transaction."""


def itself(store: Store) -> Store:
    return store


def header_of(store: Store, tx: Transaction, name: str = NAME) -> Header:
    header = tx.open(name)
    if header is None:
        raise broken(store, ONCE, f"open({name!r}) gave nothing after create")
    return header


def expect(store: Any, rule: str, found: Any, wanted: Any) -> None:
    if found != wanted or repr(found) != repr(wanted):  # 1 == 1.0, and one of them is wrong
        raise broken(store, rule, f"{found!r} instead of {wanted!r}")


def whole(snapshot: Snapshot | None) -> Snapshot | None:
    """With its parts read."""
    return snapshot and snapshot._replace(parts=tuple(map(bytes, snapshot.parts)))


def check_creating(store: Store, tx: Transaction) -> int:
    """A scheduler is made once, by whoever comes first; its id."""
    expect(store, ASKED, (tx.schedulers(), tx.open(NAME)), ([], None))
    for seed_key in (0xFFFFFFFF, 1):
        tx.create(NAME, seed_key, "{}")
    tx.create("other", 2, "{}")
    header = header_of(store, tx)
    expect(store, ONCE, astuple(header)[1:6], (0xFFFFFFFF, 0, 0, 0, 0))
    if not isinstance(header.now, float) or header.now < 1.7e9:
        raise broken(store, ONCE, f"now = {header.now!r} is not the time in seconds since 1970")
    return header.id


def check_settings(store: Store, tx: Transaction) -> None:
    """They were changed once."""
    header = header_of(store, tx)
    expect(store, ONCE, (header.generation, tx.settings(header.id)), (1, SETTINGS))
    expect(store, ASKED, tx.schedulers(), sorted([NAME, "other"]))


def add_rows(store: Store, tx: Transaction) -> None:
    tx.add(header_of(store, tx).id, NAMES, TASKS, [], [])


def add_more_rows(store: Store, tx: Transaction) -> None:
    """Rows are counted, each scheduler's apart."""
    id = header_of(store, tx).id
    tx.add(id, [], [], CHANGED, LOG)
    tx.save(id, SNAPSHOT._replace(number=1))
    tx.save(id, SNAPSHOT)
    expect(store, ONCE, astuple(header_of(store, tx))[3:6], (3, 5, 5))
    expect(store, ONCE, astuple(header_of(store, tx, "other"))[3:6], (0, 0, 0))


def check_rows(store: Store, tx: Transaction) -> None:
    """Whoever opens the store finds what was committed."""
    header = header_of(store, tx)
    id, other = header.id, header_of(store, tx, "other").id
    tasks = [*TASKS[:3], *CHANGED]
    expect(store, KEPT, astuple(header)[1:6], (0xFFFFFFFF, 1, 3, 5, 5))
    expect(store, KEPT, (tx.names(id, 0), tx.names(id, 2), tx.names(other, 0)), (NAMES, NAMES[2:], []))
    expect(store, KEPT, sorted(tx.tasks(id, [1, 2, 3, 4, 5])), sorted(tasks))
    expect(store, ASKED, (tx.tasks(id, [2, 77]), tx.tasks(other, [1])), ([TASKS[1]], []))
    expect(store, ASKED, sorted(tx.keyed(id, ["first", "it's", "none"])), [TASKS[0], TASKS[2]])
    expect(store, ASKED, (tx.latest(id, 2), tx.latest(other, 2)), (CHANGED[::-1], []))
    expect(store, KEPT, tx.reports(id, 0, 9), LOG)
    expect(store, ASKED, (tx.reports(id, 0, 1), tx.reports(id, 1, 9), tx.reports(id, 5, 9)), (LOG[:1], LOG[1:], []))
    expect(store, ASKED, (tx.observations(id, [1, 4]), tx.observations(id, [4])), (LOG[1:2], []))
    expect(store, ASKED, (tx.outcomes(id, [1, 4]), tx.outcomes(id, [1, 5])), (OF_TASK_4, []))
    expect(store, KEPT, (whole(tx.snapshot(id)), tx.snapshot(other)), (SNAPSHOT, None))


def fail(store: Store, tx: Transaction) -> None:
    """Write something of everything, and raise."""
    id = header_of(store, tx).id
    tx.create("third", 1, "{}")
    tx.change(id, "other settings")
    late = [TASKS[0]._replace(reward=1.0, cost=1.0, report=6)]
    entry = LOG[0]._replace(number=6, task=1)
    tx.add(id, [NameRow(4, "kind", 1, "x")], [ROW._replace(task=6, key="k")], late, [entry])
    tx.save(id, SNAPSHOT._replace(number=3))
    tx.forget(id, [LOG[0].without_words()])
    raise OnPurpose


def check_undone(store: Store, tx: Transaction) -> None:
    """Everything is as before."""
    header = header_of(store, tx)
    id = header.id
    found = astuple(header)[2:6], tx.schedulers(), tx.settings(id), whole(tx.snapshot(id)), tx.tasks(id, [1, 6])
    expect(store, UNDONE, found, ((1, 3, 5, 5), sorted([NAME, "other"]), SETTINGS, SNAPSHOT, [TASKS[0]]))
    expect(store, UNDONE, (tx.keyed(id, ["k"]), tx.names(id, 3), tx.reports(id, 5, 9)), ([], [], []))
    expect(store, UNDONE, tx.outcomes(id, [1, 4]), OF_TASK_4)


def check_running(store: Store, tx: Transaction) -> None:
    """Tasks 1 to 3 run, task 3 until its lease ends."""
    id = header_of(store, tx).id
    expect(store, RUNNING, sorted(tx.running(id, [0, 1, 7], 9e8)), [(0, 0, 1), (0, 2, 1), (1, 2, 1)])
    expect(store, RUNNING, sorted(tx.running(id, [0], 1.5e9)), [(0, 2, 1)])
    expect(store, RUNNING, tx.running(id, [0, 1], 3e9), [])
    reward, cost = ROW.reward_estimate, ROW.cost_estimate
    expected = [(0, 2, 2.0 * reward, 2.0 * cost), (1, 1, reward, cost)]
    expect(store, RUNNING, (tx.in_flight(id, 9e8), tx.in_flight(id, 3e9)), (expected, []))
    expect(store, RUNNING, (tx.expired(id, 9e8), tx.expired(id, 1.5e9)), ([], [(0, 0, 1)]))
    expect(store, RUNNING, tx.expired(id, 3e9), [(0, 0, 1), (0, 2, 1), (1, 2, 1)])
    expect(store, RUNNING, (tx.lost(id, 9e8, 9), tx.lost(id, 1.5e9, 9)), ([], [TASKS[2]]))
    expect(store, RUNNING, (tx.lost(id, 3e9, 9), tx.lost(id, 3e9, 2)), (TASKS[:3], TASKS[:2]))
    tx.add(id, [], [], [TASKS[1]._replace(holder="")], [])
    expect(store, RUNNING, tx.lost(id, 3e9, 9), [TASKS[0], TASKS[2]])


def forget(store: Store, tx: Transaction) -> None:
    """Take features and reasons out of a task and its entries."""
    id = header_of(store, tx).id
    tx.add(id, [], [], [CHANGED[0].without_words()], [])
    tx.forget(id, [entry.without_words() for entry in OF_TASK_4])


def check_forgotten(store: Store, tx: Transaction) -> None:
    """They are gone, with the snapshot, and nothing else is."""
    id = header_of(store, tx).id
    left = [entry.without_words() if entry.task == 4 else entry for entry in LOG]
    expect(store, KEPT, (tx.tasks(id, [4]), tx.snapshot(id)), ([CHANGED[0].without_words()], None))
    expect(store, KEPT, tx.reports(id, 0, 9), left)
    expect(store, KEPT, tx.outcomes(id, [4]), [left[0], *left[2:4]])


def add_tokens(store: Store, tx: Transaction) -> None:
    """One of them is revoked, twice; and one of the sessions is ended."""
    expect(store, ASKED, (tx.tokens(), tx.sessions(), tx.audit(9)), ([], [], []))
    for session in SESSIONS:
        tx.add_session(session)
    tx.end_sessions([SESSIONS[0].hash, "nobody's"])
    for entry in AUDIT:
        tx.add_audit(entry)
    for token in TOKENS:
        tx.add_token(token)
    for now in (7.5, 8.5):
        tx.revoke_token("other", now)


def check_tokens(store: Store, tx: Transaction) -> None:
    expect(store, KEPT, tx.tokens(), [TOKENS[0], TOKENS[1]._replace(revoked=7.5)])
    expect(store, KEPT, (tx.sessions(), tx.audit(9), tx.audit(1)), (SESSIONS[1:], AUDIT[::-1], AUDIT[1:]))


def check_numbers(store: Store, reopen: Callable[[], Store]) -> None:
    """Numbers given out by several openers at once: each once, none missing."""
    errors: list[BaseException] = []

    def work(mine: Store) -> None:
        try:
            for _ in range(TURNS):
                mine.transact(partial(add_entry, mine))
        except BaseException as error:
            errors.append(error)

    stores = [reopen() for _ in range(THREADS)]
    threads = [threading.Thread(target=work, args=(opened,)) for opened in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise broken(store, ALONE, f"{type(errors[0]).__name__}: {errors[0]}") from errors[0]
    store.transact(partial(check_entries, store))
    for opened in stores:
        if opened is not store:
            opened.close()


def add_entry(store: Store, tx: Transaction) -> None:
    header = header_of(store, tx, "other")
    number = header.reports + 1
    tx.add(header.id, [], [], [], [LOG[0]._replace(number=number, task=number)])


def check_entries(store: Store, tx: Transaction) -> None:
    header, count = header_of(store, tx, "other"), THREADS * TURNS
    numbers = [row.number for row in tx.reports(header.id, 0, 1000)]
    expect(store, ALONE, (header.reports, numbers), (count, list(range(1, count + 1))))
