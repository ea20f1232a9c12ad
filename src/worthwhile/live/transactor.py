"""What is asked of one scheduler, done in transactions: its store, and this process's replica of what is in it.

`Scheduler` is the user's face of it; the service and `worthwhile.work` ask it directly.
"""

from __future__ import annotations

import logging
import math
import os
import random
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING
from weakref import WeakSet

import numpy as np

from worthwhile.errors import BadParameter, StoreError, StoreReplaced, UnknownScheduler
from worthwhile.goals.goal import Goal
from worthwhile.live.batch import Batch, Spoiled
from worthwhile.live.fold import Fold
from worthwhile.live.group_commit import GroupCommit, Request
from worthwhile.live.replica import PORTION, Replica
from worthwhile.live.settings import Settings, SettingsChange, policy_text, policy_words
from worthwhile.live.stores import open_store, without_password
from worthwhile.live.stores.base import Answer, Header, LogRow, NameRow, Snapshot, Store, Transaction
from worthwhile.live.trials import TrialSettings
from worthwhile.policies.base import Policy, checked
from worthwhile.policies.goal_imed import towards, without_goal
from worthwhile.policies.registry import DEFAULT, make

if TYPE_CHECKING:
    from worthwhile.live.history import Line
    from worthwhile.live.log_statistics import LogStatistics
    from worthwhile.live.run_curves import RunCurves

MOST_CONFLICTS = 10  # with other transactions, until a batch is given up
CLOCKS_DIFFER = 60.0  # seconds: a store's clock that goes back by more was set
LONGEST_PAUSE = 0.05  # seconds, until it is tried again

log = logging.getLogger(__name__)


class Transactor(GroupCommit):
    """One scheduler in its store, by name."""

    def __init__(self, url: str | None, name: str, engine: str, create: bool, store: Store | None = None) -> None:
        super().__init__()
        self.url, self.name, self.engine, self.create = url, name, engine, create
        self.store = open_store(url, create) if store is None else store
        self.replica: Replica | None = None  # read from the store when it is needed
        self.given_policies: dict[str, Policy] = {}  # objects of the user's, by their text: they need not be importable
        # what the latest explanation was based on: the next one is often near; by how often something was forgotten
        self.explained: dict[int, Snapshot] = {}
        self.latest_time = -math.inf  # by the store's clock
        self.batch: Sequence[Request] = ()  # for `attempt`; a lambda that hands it over costs a pair in memory 1.5 %
        IN_USE.add(self)

    @cached_property
    def statistics(self) -> LogStatistics:
        """What a summary knows of the log; made when one is asked for."""
        from worthwhile.live.log_statistics import LogStatistics  # slow, and decisions do not need it

        return LogStatistics(self.do)

    def find_or_create(self, wanted: SettingsChange, seed: int | None = None) -> None:
        """Agree with the scheduler of this name, or make it."""
        header = self.store.transact(lambda tx: tx.open(self.name) or self.created(tx, wanted, seed))
        if seed is not None and header is not None and header.seed_key != seed_key_of(seed):
            raise BadParameter(f"scheduler {self.name!r} exists with another seed; leave seed out")
        self.do(partial(self.agree, wanted))

    def created(self, tx: Transaction, wanted: SettingsChange, seed: int | None) -> Header | None:
        if not self.create:
            known, where = ", ".join(tx.schedulers()) or "none", without_password(self.url or "memory")
            raise UnknownScheduler(f"no scheduler {self.name!r} in {where}; there are: {known}")
        kinds = list((wanted.goal or Goal()).floors)  # those with floors are the first that have numbers
        numbers = {kind: number for number, kind in enumerate(kinds)}
        text = self.described(DEFAULT if wanted.policy is None else wanted.policy, (), wanted.goal, numbers)
        seed_key = secrets.randbits(32) if seed is None else seed_key_of(seed)
        settings = wanted.applied(Settings(1), 0)
        refuse_guard(settings.trial, wanted.goal or Goal())
        tx.create(self.name, seed_key, settings.text())
        header = tx.open(self.name)
        if header is not None and header.names == 0:  # unless another process was faster
            names = [NameRow(number + 2, "kind", number, kind) for kind, number in numbers.items()]
            tx.add(header.id, [NameRow(1, "policy", 1, text), *names], [], [], [])
        return header

    def agree(self, wanted: SettingsChange, batch: Batch) -> None:
        """Refuse other settings than the scheduler has."""
        replica, settings = batch.replica, batch.replica.settings
        policy, overhead, failed_reward, store_reasons, goal, trial, units = wanted
        if goal is not None and goal != replica.goal:
            goals = f"scheduler {self.name!r} has the goal {replica.goal.words()}, not {goal.words()}"
            raise BadParameter(f"{goals}; leave it out, or switch with scheduler.change(goal=…, floor=…, budget=…)")
        if policy is not None:
            has = replica.policies.texts[settings.policy]
            text = self.described(policy, replica.options.texts, replica.goal, replica.kinds.number)
            if text != has:
                names = f"scheduler {self.name!r} has policy {policy_words(has)}, not {policy_words(text)}"
                raise BadParameter(f"{names}; leave policy out, or switch with scheduler.change(policy=…)")
        if overhead is not None and overhead != settings.overhead:
            numbers = f"scheduler {self.name!r} has overhead {settings.overhead:g}, not {overhead:g}"
            raise BadParameter(f"{numbers}; leave overhead out, or switch with scheduler.change(overhead=…)")
        if failed_reward is not None and failed_reward != settings.failed_reward:
            has = f"scheduler {self.name!r} has failed_reward {settings.failed_reward}, not {failed_reward:g}"
            raise BadParameter(f"{has}; leave it out, or switch with scheduler.change(failed_reward=…)")
        if store_reasons is not None and store_reasons != settings.store_reasons:
            has = f"scheduler {self.name!r} has store_reasons {settings.store_reasons}, not {store_reasons}"
            raise BadParameter(f"{has}; leave it out, or switch with scheduler.change(store_reasons=…)")
        if trial.contradicts(settings.trial):
            has = f"scheduler {self.name!r} has {settings.trial.in_words()}"
            raise BadParameter(f"{has}; leave these out, or switch with scheduler.change(baseline=…, holdout=…)")
        if units.contradicts(settings.units):
            has = f"scheduler {self.name!r} has {settings.units.in_words()}"
            raise BadParameter(f"{has}; leave these out, or switch with scheduler.change(reward_unit=…, cost_unit=…)")

    def change(self, change: SettingsChange, batch: Batch) -> None:
        """Other settings. A goal stays with another policy, if that can keep it."""
        replica, text = batch.replica, None
        goal = replica.goal if change.goal is None else change.goal
        if change.policy is not None or change.goal is not None:
            batch.announce(list(goal.floors), ())
            kept = without_goal(replica.fold.policy) if change.policy is None else change.policy
            text = self.described(kept, replica.options.texts, goal, replica.kinds.number)
        refuse_guard(change.trial.applied(replica.settings.trial, batch.header.reports), goal)
        batch.change(change, text)

    def described(
        self,
        policy: str | Policy,
        options: Sequence[str],
        goal: Goal | None = None,
        kinds: Mapping[str, int] | None = None,
    ) -> str:
        """A policy with its goal as text; one that was given as an object is kept."""
        names = [text.strip('"') for text in options]
        made = make(policy, options=names) if isinstance(policy, str) else checked(policy)
        if goal is not None:
            made = checked(towards(made, goal, kinds or {}))
        text = policy_text(made)
        if not isinstance(policy, str):
            self.given_policies.setdefault(text, made)
        return text

    def do(self, action: Callable[[Batch], Answer], task: int | None = None) -> Answer:
        """Have something done in a transaction, together with what other threads ask for."""
        answer: Answer = self.ask(Request(action, task))
        return answer

    def commit(self, requests: Sequence[Request]) -> None:
        """One batch in one transaction; after any failure, what is known is read from the store again."""
        self.batch, self.gave_up, conflicts = requests, None, 0
        try:
            while True:
                try:
                    if (behind := self.store.transact(self.attempt)) is None:
                        break
                    behind.fold_backlog()  # so much that others should not wait for it
                except Spoiled as spoiled:
                    self.replica = None
                    self.batch = [request for request in self.batch if request is not spoiled.request]
                except StoreError as error:
                    conflicts += 1
                    if not error.again or conflicts > MOST_CONFLICTS:
                        raise
                    self.replica = None
                    time.sleep(random.uniform(0.0, LONGEST_PAUSE))
        except BaseException as error:
            self.replica = None
            if isinstance(error, StoreReplaced):
                self.explained = {}
                if "statistics" in self.__dict__:
                    self.statistics.outdated = True
            self.gave_up = error if isinstance(error, StoreError) and error.waited else None
            for request in self.batch:
                request.error = error if isinstance(error, Exception) else StoreError(f"interrupted ({error!r})")
            if not isinstance(error, Exception):
                raise
        if (replica := self.replica) is not None and replica.fold.position >= replica.snapshot_due:
            self.save_snapshot(replica)

    def save_snapshot(self, replica: Replica) -> None:
        """Shorten the next start, in a transaction of its own: what was asked for is stored, whatever comes of this."""
        if replica.snapshot_worthwhile():
            try:
                replica.saved = self.store.transact(partial(replica.save, name=self.name))
            except Exception as error:  # a store of the user's own may raise anything
                log.warning("no snapshot of scheduler %r, the next start takes longer: %s", self.name, error)

    def attempt(self, tx: Transaction) -> Replica | None:
        """Do what was asked; or, if much must be learned first, give the replica that has read some of it."""
        header, replica = tx.open(self.name), self.replica
        if header is None:
            raise StoreError(f"scheduler {self.name!r} is no longer in its store")
        if header.now < self.latest_time - CLOCKS_DIFFER:
            tx.renew(header.id, header.now)
            if replica is not None:
                replica.look_at = header.now
        self.latest_time = header.now
        if (
            replica is None
            or header.reports != replica.fold.position
            or header.names != replica.known_names
            or header.generation != replica.generation
        ):
            if replica is None or header.reports < replica.fold.position:
                replica, self.explained = Replica(header, self.engine, self.given_policies), {}
                self.replica = replica
                newest = tx.latest(header.id, 1)
                if newest and newest[0].decided > header.now + CLOCKS_DIFFER:
                    tx.renew(header.id, header.now)
            if not replica.read(tx, header):
                return replica
        Batch(replica, tx, header, self.batch).run()
        return None

    def entries(self, after: int, count: int) -> list[LogRow]:
        """A portion of the log."""
        return self.do(lambda batch: batch.tx.reports(batch.replica.id, after, count))

    def lines(self, after: int = 0, portion: int = PORTION) -> Iterator[list[Line]]:
        """The log in portions, without entries that were set aside and losses that were none."""
        from worthwhile.live.history import lines  # slow, and rarely needed

        until = self.do(lambda batch: batch.header.reports)
        while after < until:
            entries = self.entries(after, min(portion, until - after))
            after = entries[-1].number if entries else until
            yield self.do(partial(lines, entries=entries, until=until))

    def fold_at(self, policy: int, entry: int) -> Fold:
        """What a policy knew after an entry of the log."""

        def begin(batch: Batch) -> tuple[Fold, int]:
            forgotten = batch.replica.forgotten
            explained = self.explained.get(forgotten)
            return batch.replica.fold_before(batch.tx, policy, entry, explained), forgotten

        fold, forgotten = self.do(begin)
        self.explained = {forgotten: self.refold(fold, entry).snapshot()}
        return fold

    def refold(self, fold: Fold, until: int) -> Fold:
        """Learn from the log up to an entry; others can go on meanwhile."""
        while fold.position < until:
            rows = self.entries(fold.position, min(PORTION, until - fold.position))
            fold.take(rows)
            if not rows:
                fold.miss(until)
        return fold

    @cached_property
    def curves(self) -> RunCurves:
        """What runs of many steps have brought so far; made when one begins."""
        from worthwhile.live.run_curves import RunCurves

        return RunCurves()

    def close(self) -> None:
        """Keep a snapshot if that saves the next start much, and let go of the store."""
        try:
            replica = self.replica
            if replica is not None and replica.fold.position - replica.saved >= replica.snapshot_spacing() // 20:
                self.do(lambda batch: batch.replica.want_snapshot())
        finally:
            self.store.close()


IN_USE: WeakSet[Transactor] = WeakSet()


def begin_anew_in_child() -> None:
    """After a fork: other threads, in the middle of their calls, are not there any more."""
    for transactor in list(IN_USE):
        transactor.replica = None
        transactor.__dict__.pop("statistics", None)
        transactor.begin_anew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=begin_anew_in_child)


def refuse_guard(trial: TrialSettings, goal: Goal) -> None:
    """A guard watches the ratio; what keeps a floor or a budget may well have a worse one."""
    if trial.guard is not None and goal.constrained:
        says = f"guard = {trial.guard:g} keeps the ratio near the baseline's, and the goal is {goal.words()}"
        raise BadParameter(f"{says}; leave one of them out: guard='none', or goal='ratio' alone")


def seed_key_of(seed: int) -> int:
    """The key of the random draws that the first run of a simulation with this seed has."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise BadParameter(f"seed = {seed!r}; it must be a whole number, at least 0")
    return int(np.random.SeedSequence(int(seed), spawn_key=(0, 2)).generate_state(1)[0])
