"""One transaction's work: decisions, reports, observations and withdrawals, on rows read and written together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from worthwhile.decision import Decision
from worthwhile.errors import AlreadyCancelled, AlreadyReported, BadFeedback, BadTask, BrokenRule, Error, UnknownTask
from worthwhile.live.engines import Offer
from worthwhile.live.folding import fault
from worthwhile.live.history import Line, Recorded, line_of
from worthwhile.live.mirror import Mirror
from worthwhile.live.names import feedback, option_text
from worthwhile.live.settings import Settings
from worthwhile.live.turns import Request
from worthwhile.state import Indices
from worthwhile.stores.base import NO_POLICY, OWN, Header, LogRow, TaskRow, Transaction

SNAPSHOT_EVERY = 20_000  # entries of the log
REWARD = TaskRow._fields.index("reward")
COUNTS_ONCE = "a report counts once"


class Batch:
    """What is asked at the same time. Everything is read at once, worked out here, and written at once."""

    def __init__(self, mirror: Mirror, tx: Transaction, header: Header, requests: Sequence[Request]) -> None:
        self.mirror, self.tx, self.header, self.requests = mirror, tx, header, requests
        self.rows: dict[int, TaskRow] = {}
        self.keys: dict[str, TaskRow] = {}
        self.new: list[int] = []
        self.changed: set[int] = set()
        self.entries: list[LogRow] = []
        self.counts: dict[int, dict[int, int]] = {}  # running tasks by kind and option

    def run(self) -> None:
        """Answer every request, then write what has changed."""
        numbers, keys = [], []
        for request in self.requests:
            if request.task is not None:
                numbers.append(request.task)
            elif request.key is not None:
                keys.append(request.key)
        for row in self.tx.tasks(self.mirror.id, numbers) if numbers else ():
            self.remember(row)
        for row in self.tx.keyed(self.mirror.id, keys) if keys else ():
            self.remember(row)
        for request in self.requests:
            try:
                request.answer = request.action(self)
                request.reason = None
            except Error as reason:
                request.reason = reason
        self.write()

    def remember(self, row: TaskRow) -> None:
        self.rows[row.task] = row
        if row.key is not None:
            self.keys[row.key] = row

    def write(self) -> None:
        mirror, rows = self.mirror, self.rows
        if mirror.added or self.new or self.changed or self.entries:
            new = [rows[task] for task in self.new] if self.new else []
            changed = [rows[task] for task in self.changed] if self.changed else []
            self.tx.add(mirror.id, mirror.added, new, changed, self.entries)
            mirror.added = []
        if mirror.fold.position - mirror.saved >= SNAPSHOT_EVERY:
            self.save_snapshot()

    def save_snapshot(self) -> None:
        """Shorten the next start."""
        self.tx.save(self.mirror.id, self.mirror.fold.snapshot())
        self.mirror.saved = self.mirror.fold.position

    def running(self, kind: int) -> dict[int, int]:
        """Running tasks of a kind by option, those decided in this batch included."""
        if kind not in self.counts:
            known = self.mirror.kinds.number
            asked = {known[request.kind] for request in self.requests if request.kind in known}
            missing = [each for each in asked | {kind} if each not in self.counts]
            self.counts |= {each: {} for each in missing}
            for each, option, count in self.tx.running(self.mirror.id, missing, self.header.now):
                self.counts[each][option] = count
            for task in self.changed:
                if self.rows[task].kind in missing:
                    self.leave(self.rows[task])
        return self.counts[kind]

    def decide(self, kind: str, options: Sequence[Any], key: str | None, lease: float) -> TaskRow:
        """Choose an option; the task of the same key if there is one."""
        mirror, fold, now = self.mirror, self.mirror.fold, self.header.now
        if key is not None and key in self.keys:
            return self.same_kind(self.keys[key], kind)
        offer = mirror.offer(kind, options)
        running = self.running(offer.kind)
        pending, pending_text = fold.idle, offer.idle
        if running:
            pending = np.zeros_like(fold.idle)
            for each, count in running.items():
                pending[each] = count
            pending_text = ",".join(map(str, pending[offer.array].tolist()))
        task = self.header.tasks + len(self.new) + 1
        made = self.choose(offer, pending, task)
        option = int(made.option)
        row = TaskRow(
            task,
            offer.kind,
            option,
            offer.text,
            pending_text,
            float(made.reward_estimate) + 0.0,
            float(made.cost_estimate) + 0.0,
            fold.ratio,
            fold.position,
            fold.number,
            key,
            now,
            now + lease,
            mirror.settings.overhead,
        )
        self.remember(row)
        self.new.append(task)
        running[option] = running.get(option, 0) + 1
        return row

    def choose(self, offer: Offer, pending: Indices, task: int) -> Decision:
        """The policy's decision, which may be anything if the policy is the user's own."""
        fold = self.mirror.fold
        try:
            made = fold.engine.choose(offer, pending, task)
        except Exception as reason:
            name = type(fold.policy).__name__
            shown = f"{name} raised {type(reason).__name__}: {reason}"
            raise BrokenRule(f"{shown}; worthwhile.testing.check_policy finds out more") from reason
        if made.option not in offer.numbers:
            raise BrokenRule(f"{type(fold.policy).__name__} chose an option that is not on offer")
        return made

    def same_kind(self, row: TaskRow, kind: str) -> TaskRow:
        """A key that is used again must mean the same task."""
        its = self.mirror.kinds.texts[row.kind]
        if its != kind:
            raise BadTask(f"key {row.key!r} belongs to task {row.task} of kind {its!r}, not {kind!r}; use another key")
        return row

    def task(self, number: int) -> TaskRow:
        if number not in self.rows:
            raise UnknownTask(f"no task {number} in this scheduler; an id is what decide gave, as task.id")
        return self.rows[number]

    def update(self, row: TaskRow) -> None:
        """A task has changed; if it stopped running, it no longer counts."""
        self.remember(row)
        if row.task not in self.new:
            self.changed.add(row.task)
        if row.kind in self.counts:
            self.leave(row)

    def leave(self, row: TaskRow) -> None:
        """Count a task no longer that has stopped running in this batch."""
        if (row.report is not None or row.cancelled) and row.lease_end > self.header.now:
            self.counts[row.kind][row.option] -= 1

    def report(self, number: int, reward: Any, cost: Any) -> TaskRow:
        """Reward, cost or both; learned from when both are there."""
        if reward is None and cost is None:
            raise BadFeedback(f"task {number}: neither a reward nor a cost; report at least one")
        row = self.task(number)
        values = [
            self.part(row, "reward", row.reward, reward),
            self.part(row, "cost", row.cost, cost),
        ]
        if row.cancelled:
            raise AlreadyCancelled(f"task {number} was cancelled; it takes no report")
        if values == [row.reward, row.cost]:
            return row
        number_in_log = None
        if values[0] is not None and values[1] is not None:
            number_in_log = self.enter(row, OWN, row.option, values[0], values[1])
        row = TaskRow._make((*row[:REWARD], *values, number_in_log, row.cancelled))
        self.update(row)
        return row

    def part(self, row: TaskRow, what: str, before: float | None, given: Any) -> float | None:
        """A reward or cost that is new, the same as before, or not given."""
        if given is None:
            return before
        value = feedback(what, given)
        if before is not None and value != before:
            told = ", ".join(
                f"{name} {known:g}" for name, known in (("reward", row.reward), ("cost", row.cost)) if known is not None
            )
            raise AlreadyReported(f"task {row.task} already has feedback ({told}), now {what} {value:g}; {COUNTS_ONCE}")
        return value

    def enter(self, row: TaskRow, observed: int, option: int, reward: float, cost: float) -> int:
        """A new entry of the log, learned from at once."""
        number = self.header.reports + len(self.entries) + 1
        made = row.reward_estimate, row.cost_estimate, row.policy
        if observed != OWN:
            made = 0.0, 0.0, NO_POLICY
        entry = LogRow(number, row.task, observed, row.kind, option, reward, cost, row.overhead, *made)
        self.entries.append(entry)
        self.mirror.fold.learn(entry)
        return number

    def report_all(self, number: int, reward: Any, cost: Any, observed: Mapping[Any, tuple[Any, Any]]) -> TaskRow:
        """A report with its side observations: all of them or, if one is refused, none."""
        found = [self.observation(number, option, *values) for option, values in observed.items()]
        row = self.report(number, reward, cost)
        for place, values, known in found:
            if not known:
                self.enter(row, place, place, *values)
        return row

    def observe(self, number: int, option: Any, reward: Any, cost: Any) -> None:
        """A side observation of another option of the same task."""
        place, values, known = self.observation(number, option, reward, cost)
        if not known:
            self.enter(self.rows[number], place, place, *values)

    def observation(self, number: int, option: Any, reward: Any, cost: Any) -> tuple[int, tuple[float, float], bool]:
        """The option's number, the values, and whether they are in the log already; refused if they cannot be."""
        row, text = self.task(number), option_text(option)
        place = self.mirror.options.number.get(text, -1)
        if str(place) not in row.options.split(","):
            raise BadFeedback(f"task {number}: option {text} was not on offer; observe one that was")
        if place == row.option:
            raise BadFeedback(f"task {number}: option {text} is the one that was chosen; report it")
        values = feedback("reward", reward), feedback("cost", cost)
        stored = self.tx.observations(self.mirror.id, [number])
        for entry in (*stored, *self.entries):
            if entry.task == number and entry.observed == place:
                if values == (entry.reward, entry.cost):
                    return place, values, True
                before = f"reward {entry.reward:g}, cost {entry.cost:g}"
                raise AlreadyReported(f"task {number}, option {text}: already observed ({before}); {COUNTS_ONCE}")
        return place, values, False

    def cancel(self, number: int) -> None:
        """The task will not report, and no longer counts as running."""
        row = self.task(number)
        if row.report is not None:
            raise AlreadyReported(f"task {number} has reported already; it cannot be cancelled")
        if not row.cancelled:
            self.update(row._replace(cancelled=1))

    def announce(self, kinds: Sequence[str], options: Sequence[str]) -> None:
        """Give names their numbers."""
        for role, texts in (("kind", kinds), ("option", options)):
            for text in texts:
                self.mirror.name(role, text)

    def retire(self, kind: str | None, option: str) -> None:
        if (kind, option) not in self.mirror.settings.retired:
            self.set(self.mirror.settings._replace(retired=(*self.mirror.settings.retired, (kind, option))))

    def restore(self, kind: str | None, option: str) -> None:
        retired = self.mirror.settings.retired
        if (kind, option) not in retired:
            where = f" for kind {kind!r}" if kind is not None else ""
            raise BadTask(f"option {option} is not retired{where}; retired are {retired or 'none'}")
        self.set(self.mirror.settings._replace(retired=tuple(one for one in retired if one != (kind, option))))

    def change(self, policy: str | None, overhead: float | None) -> None:
        settings = self.mirror.settings
        if policy is not None:
            settings = settings._replace(policy=self.mirror.name("policy", policy))
        if overhead is not None:
            settings = settings._replace(overhead=overhead)
        if settings != self.mirror.settings:
            self.set(settings)

    def set(self, settings: Settings) -> None:
        """Write the settings; every process, this one too, reads them before its next batch."""
        self.tx.change(self.mirror.id, settings.text())
        self.mirror.settings = settings
        self.mirror.offers.clear()

    def lines(self, entries: Sequence[LogRow]) -> list[Line]:
        """Sound entries of the log as rows of a table."""
        kinds, options = len(self.mirror.kinds.texts), len(self.mirror.options.texts)
        return [line_of(entry, self.mirror) for entry in entries if not fault(entry, kinds, options)]

    def take_in(self, rows: Sequence[Recorded]) -> int:
        """History from elsewhere, what is there already left out; how many rows were new."""
        for row in self.tx.keyed(self.mirror.id, list({one.key for one in rows})):
            self.remember(row)
        known = {row.task for row in self.rows.values()}
        stored = {(entry.task, entry.observed) for entry in self.tx.observations(self.mirror.id, list(known))}
        before = len(self.entries)
        for one in rows:
            kind, option = self.mirror.name("kind", one.kind), self.mirror.name("option", one.option)
            row = self.keys.get(one.key) or self.recorded(one, kind, option)
            if one.observed and (row.task, option) not in stored:
                stored.add((row.task, option))
                self.enter(row, option, option, one.reward, one.cost)
            elif not one.observed and row.report is None:
                row = row._replace(option=option, overhead=one.overhead, reward=one.reward, cost=one.cost, cancelled=0)
                self.update(row._replace(report=self.enter(row, OWN, option, one.reward, one.cost)))
        return len(self.entries) - before

    def recorded(self, one: Recorded, kind: int, option: int) -> TaskRow:
        """A task that was decided elsewhere; it never counts as running."""
        task, now = self.header.tasks + len(self.new) + 1, self.header.now
        estimates = 0.0, 0.0, None
        seen = self.mirror.fold.position
        row = TaskRow(
            task, kind, option, str(option), "0", *estimates, seen, NO_POLICY, one.key, now, now, one.overhead,
            cancelled=1,
        )  # fmt: skip
        self.remember(row)
        self.new.append(task)
        return row
