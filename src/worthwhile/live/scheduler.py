"""Live: `decide` picks an option for a real task, `report` says later what came of it, both stored for good.

Any number of threads and processes may use one scheduler; all learn from one another.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from weakref import WeakSet

import numpy as np

from worthwhile.errors import BadParameter, StoreError, UnknownScheduler
from worthwhile.live import explain as explaining
from worthwhile.live.batch import Batch
from worthwhile.live.fold import Fold
from worthwhile.live.group_commit import GroupCommit, Request
from worthwhile.live.history import Line, lines, read_history, table_at, take_in, write_table
from worthwhile.live.replica import PORTION, Replica
from worthwhile.live.requests import Deciding, Reporting, cancelling, observing, task_number
from worthwhile.live.settings import Settings, policy_by_name, policy_text, policy_words
from worthwhile.live.stores import open_store, without_password
from worthwhile.live.stores.base import Header, LogRow, NameRow, Snapshot, TaskRow, Transaction
from worthwhile.live.task import Task
from worthwhile.live.validation import Option, check_text, not_negative, option_text
from worthwhile.policies.base import Policy, check_parameters
from worthwhile.policies.registry import DEFAULT

LEASE = 3600.0  # seconds
LOADED_AT_ONCE = 1000  # rows of a file
WORTH_SAVING = 1000  # entries of the log
IN_USE: WeakSet[Scheduler] = WeakSet()


class Scheduler:
    """Decides for real tasks and learns from their reports.

    >>> scheduler = Scheduler()  # in memory; Scheduler("sqlite:///tasks.db") keeps everything
    >>> task = scheduler.decide("weather", options=[1, 5, 10])
    >>> task.report(reward=0.9, cost=3.2)
    >>> scheduler.summary().ratio
    0.28125
    """

    def __init__(
        self,
        url: str | Path | None = None,
        name: str = "default",
        policy: str | Policy | None = None,
        *,
        overhead: float | None = None,
        lease: float = LEASE,
        seed: int | None = None,
        engine: str = "python",
        create: bool = True,
    ) -> None:
        url = str(url) if isinstance(url, Path) else url
        self.url, self.name, self.engine = url, check_text("scheduler", name, BadParameter), engine
        self.lease = not_negative("lease", lease)
        self.in_hand: dict[str, Policy] = {}
        self.store = open_store(url, create)
        self.replica: Replica | None = None  # what is needed comes from the store
        self.early: Snapshot | None = None  # what the latest explanation was based on
        self.group_commit = GroupCommit(self.work)
        self.asked: Sequence[Request] = ()  # of whoever has the turn
        IN_USE.add(self)
        try:
            self.find_or_create(policy, overhead, seed, create)
        except BaseException:
            self.store.close()
            raise

    def find_or_create(
        self, policy: str | Policy | None, overhead: float | None, seed: int | None, create: bool
    ) -> None:
        """Agree with the scheduler of this name, or make it."""

        def found(tx: Transaction) -> Header | None:
            header = tx.open(self.name)
            if header is None and not create:
                there = ", ".join(tx.schedulers()) or "none"
                where = without_password(self.url or "memory")
                raise UnknownScheduler(f"no scheduler {self.name!r} in {where}; there are: {there}")
            if header is None:
                text = self.described(DEFAULT if policy is None else policy, ())
                extra = 0.0 if overhead is None else not_negative("overhead", overhead)
                seed_key = secrets.randbits(32) if seed is None else seed_key_of(seed)
                tx.create(self.name, seed_key, Settings(1, extra).text())
                header = tx.open(self.name)
                if header is not None and header.names == 0:
                    tx.add(header.id, [NameRow(1, "policy", 1, text)], [], [], [])
            return header

        header = self.store.transact(found)
        if seed is not None and header is not None and header.seed_key != seed_key_of(seed):
            raise BadParameter(f"scheduler {self.name!r} exists with another seed; leave seed out")
        self.ask(lambda batch: self.agree(batch, policy, overhead))

    def agree(self, batch: Batch, policy: str | Policy | None, overhead: float | None) -> None:
        """Refuse other settings than the scheduler has."""
        replica = batch.replica
        if policy is not None:
            wanted, found = (
                self.described(policy, replica.options.texts),
                replica.policies.texts[replica.settings.policy],
            )
            if wanted != found:
                names = f"scheduler {self.name!r} has policy {policy_words(found)}, not {policy_words(wanted)}"
                raise BadParameter(f"{names}; leave policy out, or switch with scheduler.change(policy=…)")
        if overhead is not None and overhead != replica.settings.overhead:
            has = f"scheduler {self.name!r} has overhead {replica.settings.overhead:g}, not {overhead:g}"
            raise BadParameter(f"{has}; leave overhead out, or switch with scheduler.change(overhead=…)")

    def described(self, policy: str | Policy, options: Sequence[str]) -> str:
        """A policy as text; one that was given as an object is kept in hand."""
        made = policy_by_name(policy, [text.strip('"') for text in options]) if isinstance(policy, str) else policy
        check_parameters(made)
        text = policy_text(made)
        if not isinstance(policy, str):
            self.in_hand.setdefault(text, made)
        return text

    def ask(
        self,
        action: Callable[[Batch], Any],
        task: int | None = None,
        key: str | None = None,
        kind: str | None = None,
    ) -> Any:
        """Have something done in a transaction, together with what other threads ask for."""
        return self.group_commit.ask(Request(action, task, key, kind))

    def ask_all(self, requests: Sequence[Request]) -> None:
        """Have several things done in one transaction; each request gets its own answer or reason."""
        self.group_commit.ask_all(requests)

    def work(self, requests: Sequence[Request]) -> None:
        """One batch in one transaction; after any failure, what is known is read from the store again."""
        try:
            self.asked = requests
            while (behind := self.store.transact(self.attempt)) is not None:
                behind.fold_backlog()  # so much that others should not wait for it
        except BaseException as reason:
            self.replica = None
            for request in requests:
                request.reason = reason if isinstance(reason, Exception) else StoreError(f"interrupted ({reason!r})")
            if not isinstance(reason, Exception):
                raise

    def attempt(self, tx: Transaction) -> Replica | None:
        """Do what was asked; or, if there is much to be learned first, give the replica that has read some of it."""
        header, replica = tx.open(self.name), self.replica
        if header is None:
            raise StoreError(f"scheduler {self.name!r} is no longer in its store")
        if (
            replica is None
            or header.reports != replica.fold.position
            or header.names != replica.place
            or header.generation != replica.generation
        ):
            if replica is None or header.reports < replica.fold.position:
                replica, self.early = Replica(header, self.engine, self.in_hand), None
                self.replica = replica
            if not replica.read(tx, header):
                return replica
        Batch(replica, tx, header, self.asked).run()
        return None

    def decide(
        self, kind: str, options: Sequence[Option], *, key: str | None = None, lease: float | None = None
    ) -> Task:
        """Choose an option for a task of this kind. The same key gives the same task, however often it is asked."""
        task: Task = self.group_commit.ask(Deciding(self, kind, options, key, lease))
        return task

    def task(self, kind: str, options: Sequence[Option], *, key: str | None = None, lease: float | None = None) -> Task:
        """The same as `decide`, for a `with` block that sets task.reward."""
        return self.decide(kind, options, key=key, lease=lease)

    def report(self, id: str | int, reward: float | None = None, cost: float | None = None) -> None:
        """What came of a task. The same report again changes nothing; another one is refused."""
        self.group_commit.ask(Reporting(id, reward, cost))

    def observe(self, id: str | int, option: Option, reward: float, cost: float) -> None:
        """What another option on offer would have brought, if the task showed it on the side."""
        self.group_commit.ask(observing(id, option, reward, cost))

    def cancel(self, id: str | int) -> None:
        """The task will not report; it no longer counts as running."""
        self.group_commit.ask(cancelling(id))

    def announce(self, kinds: Sequence[str] = (), options: Sequence[Option] = ()) -> None:
        """Number kinds and options in this order now, for policies that know them by number."""
        texts = [option_text(option) for option in options]
        names = [check_text("kind", kind) for kind in kinds]
        self.ask(lambda batch: batch.announce(names, texts))

    def retire(self, option: Option, kind: str | None = None) -> None:
        """Never choose this option again, for one kind or for all."""
        self.ask(lambda batch: batch.retire(kind, option_text(option)))

    def restore(self, option: Option, kind: str | None = None) -> None:
        """Undo `retire`."""
        self.ask(lambda batch: batch.restore(kind, option_text(option)))

    def change(self, policy: str | Policy | None = None, overhead: float | None = None) -> None:
        """Go on with another policy, which learns from the whole history first, or with another cost per task."""
        extra = None if overhead is None else not_negative("overhead", overhead)

        def changed(batch: Batch) -> None:
            text = None if policy is None else self.described(policy, batch.replica.options.texts)
            batch.change(text, extra)

        self.ask(changed)

    def summary(self) -> explaining.Summary:
        """How it stands: the ratio so far, θ, and every option of every kind."""
        found: explaining.Summary = self.ask(lambda batch: explaining.summary(self.name, batch))
        return found

    def explain(self, task: Task | str | int) -> explaining.Explanation:
        """Why that option: everything as it was when the decision was made."""
        number = task_number(task.id if isinstance(task, Task) else task)
        row: TaskRow = self.ask(lambda batch: batch.task(number), number)
        fold = self.as_of(row.policy, row.seen) if row.policy else None
        found: explaining.Explanation = self.ask(lambda batch: explaining.explanation(row, fold, batch))
        return found

    def tasks(self, ids: Sequence[str | int]) -> list[explaining.TaskLine]:
        """Tasks by id."""
        numbers = [task_number(id) for id in ids]
        found: list[explaining.TaskLine] = self.ask(lambda batch: explaining.tasks(batch, numbers))
        return found

    def latest(self, count: int = 20) -> list[explaining.TaskLine]:
        """The latest tasks, newest first."""
        found: list[explaining.TaskLine] = self.ask(lambda batch: explaining.latest(batch, count))
        return found

    def rebuild(self) -> bool:
        """Fold the whole log again, from its start: whether that gives what this process knows, to the bit."""
        mine: Fold = self.ask(lambda batch: batch.replica.fold.copy())
        fresh: Fold = self.ask(lambda batch: batch.replica.new_fold(mine.number))
        return self.refold(fresh, mine.position).same_as(mine)

    def as_of(self, policy: int, entry: int) -> Fold:
        """What a policy knew after an entry of the log."""
        fold: Fold = self.ask(lambda batch: batch.replica.fold_before(batch.tx, policy, entry, self.early))
        self.early = self.refold(fold, entry).snapshot()
        return fold

    def refold(self, fold: Fold, until: int) -> Fold:
        """Learn from the log up to an entry; others can go on meanwhile."""
        while fold.position < until:
            rows = self.entries(fold.position, min(PORTION, until - fold.position))
            fold.take(rows)
            if not rows:
                fold.miss(until)
        return fold

    def entries(self, after: int, count: int) -> list[LogRow]:
        """A portion of the log."""
        found: list[LogRow] = self.ask(lambda batch: batch.tx.reports(batch.replica.id, after, count))
        return found

    def export(self, path: str | Path) -> int:
        """Write the log as a table (.parquet, .csv, .jsonl) that `replay` can read; how many rows it has."""
        return write_table(table_at(path), self.lines())

    def lines(self, after: int = 0) -> Iterator[list[Line]]:
        """The log in portions, entries that were set aside left out."""
        until = self.ask(lambda batch: batch.header.reports)
        while after < until:
            entries = self.entries(after, min(PORTION, until - after))
            after = entries[-1].number if entries else until
            yield self.ask(partial(lines, entries=entries))

    def load(self, path: str | Path) -> int:
        """Learn from recorded history: columns task_type, item_id, option, reward, cost. How many rows were new.

        Options that read as JSON (5, true, null) are taken as such. The same file again adds nothing.
        """
        new, rows = 0, list(read_history(Path(path)))
        for place in range(0, len(rows), LOADED_AT_ONCE):
            new += self.ask(partial(take_in, rows=rows[place : place + LOADED_AT_ONCE]))
        return new

    def close(self) -> None:
        """Keep a snapshot if that saves the next start much, and let go of the store."""
        try:
            if self.replica is not None and self.replica.fold.position - self.replica.saved >= WORTH_SAVING:
                self.ask(Batch.save_snapshot)
        finally:
            self.store.close()

    def __enter__(self) -> Scheduler:
        return self

    def __exit__(self, *reason: object) -> None:
        self.close()


def begin_anew_in_child() -> None:
    """After a fork: other threads, in the middle of their turns, are not there any more."""
    for scheduler in list(IN_USE):
        scheduler.replica, scheduler.group_commit = None, GroupCommit(scheduler.work)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=begin_anew_in_child)


def seed_key_of(seed: int) -> int:
    """The key of the random draws that the first run of a simulation with this seed has."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise BadParameter(f"seed = {seed!r}; it must be a whole number, at least 0")
    return int(np.random.SeedSequence(int(seed), spawn_key=(0, 2)).generate_state(1)[0])
