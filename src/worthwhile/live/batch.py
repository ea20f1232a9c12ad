"""One transaction's work: decisions, reports, observations and cancellations, on rows read and written together."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import repeat
from math import isfinite
from typing import Any

from worthwhile.errors import AlreadyCancelled, AlreadyReported, BadTask, Error, StoreError
from worthwhile.live.engines import Offer, offer_of
from worthwhile.live.fold import Fold
from worthwhile.live.group_commit import IN_THE_MIDDLE, Request
from worthwhile.live.labels import Declared, check_declared
from worthwhile.live.outcomes import Outcomes
from worthwhile.live.replica import PORTION
from worthwhile.live.settings import Settings, SettingsChange
from worthwhile.live.stores.base import MOST_TASKS, RESULT, TaskRow
from worthwhile.live.trials import TrialSettings, assign
from worthwhile.rng import Rng

ALWAYS = 1.0  # the probability of what a policy takes, given its own draws
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
        if self.header.now >= replica.look_at:
            self.note_losses()
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

    def decide(
        self, kind: str, options: Sequence[Any], key: str | None, lease: float, features: str | None = None,
        usual: str | None = None,
    ) -> TaskRow:  # fmt: skip
        """Choose an option; the task of the same key if there is one. `usual` is its baseline, as JSON."""
        replica, now = self.replica, self.header.now
        if key is not None and (earlier := self.keyed(key)):
            return self.same_kind(earlier, kind)
        offer = replica.offer(kind, options)
        fold, running = replica.fold, self.running(offer.kind)
        pending = pending_text(running, offer.numbers) if running else offer.idle
        task = self.header.tasks + len(self.new) + 1
        if task > MOST_TASKS:
            raise BadTask(
                f"this scheduler has decided {MOST_TASKS:,} tasks, and cannot count further; use another scheduler"
            )
        if features is not None:
            replica.name_features([features])
        if fold.has_goal:
            price, in_flight = self.aimed(offer.kind)
            option, reward, cost = chosen(fold, offer, running, task, 0, features, price)
        else:
            price, in_flight = fold.prices[0], None
            option, reward, cost = chosen(fold, offer, running, task, 0, features)
        row = TaskRow.running(
            task=task, kind=offer.kind, option=option, options=offer.text, pending=pending, reward_estimate=reward,
            cost_estimate=cost, price=price, seen=fold.position, policy=fold.number, key=key, decided=now,
            lease_end=now + lease, overhead=replica.settings.overhead, features=features,
        )  # fmt: skip
        if replica.trial is not None or fold.draws:
            row = self.assigned(row, offer, replica.baseline(kind, offer, usual))
            option = row.option
            if not fold.has_goal:  # the guard may have counted
                self.count_in_flight(row, 1.0)
        if fold.has_goal:
            row = row._replace(in_flight=in_flight)
            self.count_in_flight(row, 1.0)
        replica.look_at = min(replica.look_at, row.lease_end)
        self.touched = True
        running[option] = running.get(option, 0) + 1
        self.rows[task] = row
        if key is not None:
            self.keys[key] = task
        self.new.append(row)
        return row

    def aimed(self, kind: int) -> tuple[float | None, str | None]:
        """The price at which a policy with a goal judges the next task of a kind, and what it counts on for that."""
        in_flight = self.in_flight(kind)
        return self.replica.fold.aim(kind, in_flight), json.dumps(in_flight) if in_flight[0].tasks else None

    def assigned(self, row: TaskRow, offer: Offer, baseline: int | None) -> TaskRow:
        """The decision, or another in its place, by chance or for caution; the policy's own is kept."""
        fold, rng, trial = self.replica.fold, Rng(self.replica.trial_key, row.task), self.replica.settings.trial
        drawn = partial(fold.probability, offer) if fold.draws else None
        allowed = None if trial.guard is None else partial(self.is_allowed, trial, offer.kind)
        option, mode, own, probability = assign(trial, rng, offer.numbers, row.option, baseline, drawn, allowed)
        if own is not None:
            _, reward, cost = fold.engine.judge(offer.kind, option)
            row = row._replace(option=option, reward_estimate=float(reward) + 0.0, cost_estimate=float(cost) + 0.0)
        return row._replace(mode=mode, own=own, probability=probability)

    def stop_at(self, row: TaskRow, option: int) -> None:
        """A task that runs has become one with another option on offer; what the policy had chosen is kept."""
        if option == row.option:
            return
        _, reward, cost = self.replica.fold.engine.judge(row.kind, option)
        self.count_in_flight(row, -1.0)
        self.count_instead(row, option)
        row = row._replace(
            option=option, own=row.option if row.own is None else row.own, probability=None,
            reward_estimate=float(reward) + 0.0, cost_estimate=float(cost) + 0.0,
        )  # fmt: skip
        self.count_in_flight(row, 1.0)
        self.replace(row)

    def is_allowed(self, trial: TrialSettings, kind: int) -> bool:
        """Whether the guard lets a task take another option than the baseline, by what the log had so far."""
        replica, reports = self.replica, self.header.reports
        guard = replica.guard_of(trial)
        if guard.position < reports:
            known = len(replica.kinds.texts), len(replica.options.texts)
            guard.take(self.tx.reports(replica.id, guard.position, PORTION), *known)
        if guard.position < reports:  # after a start: what is not read yet is not trusted
            return False
        self.in_flight(kind)
        running = {each: tasks for each, (tasks, _, _) in (self.sums or {}).items()}
        return guard.allows(kind, trial.guard or 0.0, trial.guard_error, running)

    def again(self, number: int, after: int | None, lease: float) -> TaskRow:
        """Try a task that has failed with another option; the attempt that follows `after`, if it is there already."""
        row = self.task(number)
        if self.earlier(row, after) is not None or (after is None and self.is_retried(row)):
            return row
        self.check_failed(row)
        fold, running, now = self.replica.fold, self.running(row.kind), self.header.now
        left = self.untried(row)
        if row.report is None:
            row = self.lose(row)
        offered = self.working(row.kind, left)
        price, in_flight = self.aimed(row.kind) if fold.has_goal else (fold.prices[0], None)
        aimed = price if fold.has_goal else None
        option, reward, cost = chosen(
            fold, offer_of(row.kind, offered), running, number, row.attempt + 1, row.features, aimed
        )
        row = self.next_attempt(row, offered)._replace(
            option=option, pending=pending_text(running, row.numbers), reward_estimate=reward,
            cost_estimate=cost, price=price, seen=fold.position, policy=fold.number, decided=now,
            lease_end=now + lease, overhead=self.replica.settings.overhead, holder=row.holder,
            probability=fold.probability(offer_of(row.kind, offered), option) if fold.draws else ALWAYS, own=None,
            in_flight=in_flight,
        )  # fmt: skip
        self.count_in_flight(row, 1.0)
        self.replica.look_at = min(self.replica.look_at, row.lease_end)
        running[option] = running.get(option, 0) + 1
        self.update(row)
        return row

    def check_failed(self, row: TaskRow) -> None:
        """Refuse to try a task again that has not failed."""
        if row.cancelled:
            raise AlreadyCancelled(f"task {row.task} was cancelled; it cannot be tried again")
        if row.report is None and not self.has_lapsed(row):
            raise BadTask(f"task {row.task} has not failed; only what has failed can be tried again")
        if row.report is not None and row.outcome == RESULT:
            raise AlreadyReported(f"task {row.task} has reported already; there is nothing to try again")

    def untried(self, row: TaskRow) -> list[int]:
        """Options that were on offer, have not failed on the task, and are not retired."""
        texts, retired = self.replica.options.texts, self.replica.retired(self.replica.kinds.texts[row.kind])
        left = [option for option in row.untried if option != row.option and texts[option] not in retired]
        if not left:
            raise BadTask(f"task {row.task}: every option on offer has failed on it, or is retired; offer more options")
        return left

    def working(self, kind: int, options: list[int]) -> list[int]:
        """Those to try a task with that has failed: what works, else what may work; a try of what fails can wait."""
        fold = self.replica.fold
        hopeful = [option for option in options if not fold.benched(kind, option)]
        return [option for option in hopeful if fold.has_succeeded(kind, option)] or hopeful or options

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

    def declare(self, declared: Declared) -> None:
        """Only these kinds and options from now on; any if there are none."""
        if declared != self.replica.settings.declared:
            self.set(self.replica.settings._replace(declared=declared))

    def retire(self, kind: str | None, option: str) -> None:
        check_declared(self.replica.settings.declared, kind, [option])
        if (kind, option) not in self.replica.settings.retired:
            self.set(self.replica.settings._replace(retired=(*self.replica.settings.retired, (kind, option))))

    def restore(self, kind: str | None, option: str) -> None:
        """Undo `retire`; what keeps failing is tried again as if it were new."""
        retired, benched = self.replica.settings.retired, self.benched_kinds(kind, option)
        if not benched and (kind, option) not in retired:
            where = f" for kind {kind!r}" if kind is not None else ""
            says = f"option {option} is neither retired{where} nor benched"
            raise BadTask(f"{says}; retired are: {', '.join(map(in_words, retired)) or 'none'}")
        if (kind, option) in retired:
            self.set(self.replica.settings._replace(retired=tuple(pair for pair in retired if pair != (kind, option))))
        for number in benched:
            self.log_restored(number, self.replica.options.number[option])

    def benched_kinds(self, kind: str | None, option: str) -> list[int]:
        """The kinds for which an option is benched: this one, or of all."""
        kinds, number = self.replica.kinds, self.replica.options.number.get(option)
        asked = range(len(kinds.texts)) if kind is None else [kinds.number[kind]] if kind in kinds.number else []
        return [] if number is None else [each for each in asked if self.replica.fold.benched(each, number)]

    def forget(self, *numbers: int) -> None:
        """Blank features of tasks and reasons of their failures; all learn again, from what is left of the log."""
        for row in self.tx.tasks(self.replica.id, numbers):
            self.rows.setdefault(row.task, self.replica.check_task(row, self.header.tasks))
        rows, asked = [self.task(number) for number in numbers], set(numbers)
        stored = [*self.tx.outcomes(self.replica.id, numbers), *self.tx.observations(self.replica.id, numbers)]
        entries = [entry.without_words() for entry in stored if entry.without_words() != entry]
        changed = [row.without_words() for row in rows if row.without_words() != row]
        own = [entry.without_words() if entry.task in asked else entry for entry in self.entries]
        if entries or changed or own != self.entries:
            self.tx.forget(self.replica.id, entries)
            self.entries[:] = own
            for row in changed:
                self.replace(row)
            self.set(self.replica.settings._replace(forgotten=self.replica.settings.forgotten + 1))

    def change(self, change: SettingsChange, policy: str | None = None) -> None:
        """Other settings; a policy is given by its text."""
        settings = self.replica.settings
        if policy is not None:
            self.replica.check_memory(policy)
            settings = settings._replace(policy=self.replica.name("policy", policy))
        settings = change.applied(settings, self.header.tasks + len(self.new))
        if settings != self.replica.settings:
            self.set(settings)

    def set(self, settings: Settings) -> None:
        """Write the settings; every process, this one too, reads them before its next batch."""
        self.touched = True
        self.tx.change(self.replica.id, settings.text())
        self.replica.settings = settings
        self.replica.trial = settings.trial if settings.trial.active else None
        self.replica.offers.clear()


def chosen(
    fold: Fold,
    offer: Offer,
    running: Mapping[int, int],
    task: int,
    attempt: int = 0,
    features: str | None = None,
    price: float | None = None,
) -> tuple[int, float, float]:
    """The option that the policy takes, and its estimates."""
    engine = fold.engine if attempt == 0 else fold.engine.seldom.for_attempt(attempt)
    try:  # a policy of the user's own may do anything
        vector = None if features is None else fold.vector(features)
        option, reward, cost = engine.choose(offer, running, task, vector, price)
        reward, cost = float(reward) + 0.0, float(cost) + 0.0  # −0.0 is 0.0 in every store
    except Exception as error:
        raise fold.broken(f"raised {type(error).__name__}: {error}; {FINDS_OUT}") from error
    if option not in offer.numbers:
        raise fold.broken("chose an option that is not on offer")
    if not isfinite(reward + cost):
        raise fold.broken(f"estimated reward {reward!r} and cost {cost!r}; both must be finite")
    return int(option), reward, cost


def in_words(retired: tuple[str | None, str]) -> str:
    """Something that is retired."""
    kind, option = retired
    return f"{option} for {'all kinds' if kind is None else f'kind {kind!r}'}"


def pending_text(running: Mapping[int, int], options: Sequence[int]) -> str:
    """How many tasks are running with each option."""
    return ",".join(map(str, map(running.get, options, repeat(0))))
