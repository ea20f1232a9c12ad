"""One transaction's work: decisions, reports, observations and cancellations, on rows read and written together."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from math import isfinite
from typing import Any

from worthwhile.errors import BadTask, Error, StoreError
from worthwhile.live.group_commit import IN_THE_MIDDLE, Request
from worthwhile.live.outcomes import Outcomes
from worthwhile.live.settings import Settings
from worthwhile.live.stores.base import MOST_TASKS, TaskRow

FINDS_OUT = "worthwhile.testing.check_policy finds out more"


class Spoiled(Exception):
    """A request that failed when it had changed something: the batch is done again without it."""

    def __init__(self, request: Request) -> None:
        self.request = request


class Batch(Outcomes):
    """What is asked at the same time. Everything is read at once, worked out here, and written at once."""

    def run(self) -> None:
        """Answer every request, then write what has changed."""
        replica, new, entries = self.replica, self.new, self.entries
        for request in self.requests:
            self.touched, names = False, replica.known_names
            try:
                request.answer, request.error = request.action(self), None
            except Exception as error:
                if isinstance(error, StoreError) and error.args != (IN_THE_MIDDLE,):  # which only who asked is told
                    raise
                request.error = error
                # Errors of ours are raised before anything is changed but names, which harm nobody. Others come from
                # objects of the user's own, or because there is no memory or stack left: anywhere.
                if self.touched or (replica.known_names != names and not isinstance(error, Error)):
                    raise Spoiled(request) from error
        if new or entries or self.changed or replica.added:
            changed = [*self.changed.values()] if self.changed else []
            self.tx.add(replica.id, replica.added, new, changed, entries)
            replica.added = []

    def decide(self, kind: str, options: Sequence[Any], key: str | None, lease: float) -> TaskRow:
        """Choose an option; the task of the same key if there is one."""
        replica, now = self.replica, self.header.now
        if key is not None and (earlier := self.keyed(key)):
            return self.same_kind(earlier, kind)
        offer = replica.offer(kind, options)
        fold, running = replica.fold, self.running(offer.kind)
        pending = ",".join(map(str, map(running.get, offer.numbers, repeat(0)))) if running else offer.idle
        task = self.header.tasks + len(self.new) + 1
        if task > MOST_TASKS:
            raise BadTask(
                f"this scheduler has decided {MOST_TASKS:,} tasks, and cannot count further; use another scheduler"
            )
        try:  # a policy of the user's own may do anything
            option, reward, cost = fold.engine.choose(offer, running, task)
            reward, cost = float(reward) + 0.0, float(cost) + 0.0  # −0.0 is 0.0 in every store
        except Exception as error:
            raise fold.broken(f"raised {type(error).__name__}: {error}; {FINDS_OUT}") from error
        if option not in offer.numbers:
            raise fold.broken("chose an option that is not on offer")
        if not isfinite(reward + cost):
            raise fold.broken(f"estimated reward {reward!r} and cost {cost!r}; both must be finite")
        option = int(option)
        row = TaskRow.running(
            task=task, kind=offer.kind, option=option, options=offer.text, pending=pending, reward_estimate=reward,
            cost_estimate=cost, price=fold.prices[0], seen=fold.position, policy=fold.number, key=key, decided=now,
            lease_end=now + lease, overhead=replica.settings.overhead,
        )  # fmt: skip
        self.touched = True
        running[option] = running.get(option, 0) + 1
        self.rows[task] = row
        if key is not None:
            self.keys[key] = task
        self.new.append(row)
        return row

    def same_kind(self, row: TaskRow, kind: str) -> TaskRow:
        """A key that is used again must mean the same task."""
        earlier = self.replica.kinds.texts[row.kind]
        if earlier != kind:
            task = f"task {row.task} of kind {earlier!r}"
            raise BadTask(f"key {row.key!r} belongs to {task}, not {kind!r}; use another key")
        return row

    def announce(self, kinds: Sequence[str], options: Sequence[str]) -> None:
        """Give names their numbers: all of them or, if there is no room, none."""
        replica = self.replica
        new_kinds, new_options = set(kinds) - replica.kinds.number.keys(), set(options) - replica.options.number.keys()
        replica.check_room(len(new_kinds), len(new_options))
        for role, texts in (("kind", kinds), ("option", options)):
            for text in texts:
                replica.name(role, text)

    def retire(self, kind: str | None, option: str) -> None:
        if (kind, option) not in self.replica.settings.retired:
            self.set(self.replica.settings._replace(retired=(*self.replica.settings.retired, (kind, option))))

    def restore(self, kind: str | None, option: str) -> None:
        retired = self.replica.settings.retired
        if (kind, option) not in retired:
            where = f" for kind {kind!r}" if kind is not None else ""
            raise BadTask(f"option {option} is not retired{where}; retired are {retired or 'none'}")
        self.set(self.replica.settings._replace(retired=tuple(pair for pair in retired if pair != (kind, option))))

    def change(self, policy: str | None, overhead: float | None, failed_reward: float | str | None = None) -> None:
        """Other settings; None leaves one as it is, and NONE makes failures worth no number."""
        settings = self.replica.settings
        if policy is not None:
            settings = settings._replace(policy=self.replica.name("policy", policy))
        if overhead is not None:
            settings = settings._replace(overhead=overhead)
        if failed_reward is not None:
            settings = settings._replace(failed_reward=None if isinstance(failed_reward, str) else failed_reward)
        if settings != self.replica.settings:
            self.set(settings)

    def set(self, settings: Settings) -> None:
        """Write the settings; every process, this one too, reads them before its next batch."""
        self.touched = True
        self.tx.change(self.replica.id, settings.text())
        self.replica.settings = settings
        self.replica.offers.clear()
