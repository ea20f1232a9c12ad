"""One transaction's work: decisions, reports, observations and cancellations, on rows read and written together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import repeat
from math import isfinite
from typing import Any

from worthwhile.errors import AlreadyCancelled, AlreadyReported, BadFeedback, BadTask, Error, StoreError, UnknownTask
from worthwhile.live.group_commit import IN_THE_MIDDLE, Request
from worthwhile.live.replica import Replica
from worthwhile.live.settings import Settings
from worthwhile.live.stores.base import MOST_TASKS, NO_POLICY, Header, LogRow, TaskRow, Transaction
from worthwhile.live.validation import both, feedback, option_text

COUNTS_ONCE = "a report counts once"
FINDS_OUT = "worthwhile.testing.check_policy finds out more"


class Spoiled(Exception):
    """A request that failed when it had changed something: the batch is done again without it."""

    def __init__(self, request: Request) -> None:
        self.request = request


class Batch:
    """What is asked at the same time. Everything is read at once, worked out here, and written at once."""

    fetched = False  # all that the requests name
    touched = False  # whether the request that is being answered has changed anything

    def __init__(self, replica: Replica, tx: Transaction, header: Header, requests: Sequence[Request]) -> None:
        self.replica, self.tx, self.header, self.requests = replica, tx, header, requests
        self.rows: dict[int, TaskRow] = {}
        self.new: list[TaskRow] = []
        self.changed: dict[int, TaskRow] = {}
        self.entries: list[LogRow] = []
        self.counts: dict[int, dict[int, int]] = {}  # running tasks by kind and option

    @cached_property  # as is `observed`: most batches need neither
    def keys(self) -> dict[str, int]:
        """Tasks by key."""
        return {}

    @cached_property
    def observed(self) -> dict[int, dict[int, tuple[float, float]]]:
        """Reward and cost by task and option."""
        return {}

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

    def fetch(self) -> None:
        """Read every task that is asked about, by number or by key."""
        numbers, keys = [], []
        for request in self.requests:
            if request.task is not None:
                numbers.append(request.task)
            elif request.key is not None:
                keys.append(request.key)
        if numbers:
            for row in self.tx.tasks(self.replica.id, numbers):
                self.rows.setdefault(row.task, self.replica.check_task(row, self.header.tasks))
        if keys:
            self.keep_keyed(self.tx.keyed(self.replica.id, keys))
        self.fetched = True

    def keep_keyed(self, stored: Iterable[TaskRow]) -> None:
        """Tasks that have keys, as they are stored unless this batch has changed them."""
        for row in stored:
            self.rows.setdefault(row.task, self.replica.check_task(row, self.header.tasks))
            if row.key is not None:
                self.keys[row.key] = row.task

    def running(self, kind: int) -> dict[int, int]:
        """Running tasks of a kind by option, those decided in this batch included."""
        counts = self.counts
        if kind not in counts:
            kinds = [kind] if len(self.requests) == 1 else self.kinds_asked(kind)
            for asked in kinds:
                counts[asked] = {}
            for asked, option, count in self.tx.running(self.replica.id, kinds, self.header.now):
                counts[asked][option] = count
            for row in self.changed.values():
                if row.kind in kinds:
                    self.discount(row)
        return counts[kind]

    def kinds_asked(self, kind: int) -> list[int]:
        """That kind, and all others that are asked for and not counted yet."""
        known = self.replica.kinds.number
        asked = {known[request.kind] for request in self.requests if request.kind in known}
        return list(asked - self.counts.keys() | {kind})

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

    def add(self, row: TaskRow) -> TaskRow:
        """A new task that was decided elsewhere."""
        self.touched = True
        self.rows[row.task] = row
        if row.key is not None:
            self.keys[row.key] = row.task
        self.new.append(row)
        return row

    def same_kind(self, row: TaskRow, kind: str) -> TaskRow:
        """A key that is used again must mean the same task."""
        earlier = self.replica.kinds.texts[row.kind]
        if earlier != kind:
            task = f"task {row.task} of kind {earlier!r}"
            raise BadTask(f"key {row.key!r} belongs to {task}, not {kind!r}; use another key")
        return row

    def keyed(self, key: str) -> TaskRow | None:
        """The task of that key, if there is one; the key is that of one of the requests."""
        if not self.fetched:
            self.fetch()
        return self.by_key(key)

    def by_key(self, key: str) -> TaskRow | None:
        """The task of that key, if this batch has read or made it."""
        return self.rows[self.keys[key]] if key in self.keys else None

    def task(self, number: int) -> TaskRow:
        """A task by its number, which one of the requests names."""
        if not self.fetched:
            self.fetch()
        row = self.rows.get(number)
        if row is None:
            raise UnknownTask(f"no task {number} in this scheduler; an id is what decide gave, as task.id")
        return row

    def update(self, row: TaskRow) -> None:
        """A task has changed; if it stopped running, it no longer counts."""
        self.touched = True
        task, earlier = row.task, self.header.tasks
        self.rows[task] = row
        if task > earlier:
            self.new[task - earlier - 1] = row
        else:
            self.changed[task] = row
        if row.kind in self.counts:
            self.discount(row)

    def discount(self, row: TaskRow) -> None:
        """Count a task no longer that has stopped running in this batch."""
        if row.ended() and row.lease_end > self.header.now:
            self.counts[row.kind][row.option] -= 1

    def report(self, number: int, reward: Any, cost: Any) -> TaskRow:
        """Reward, cost or both; learned from when both are there."""
        if reward is None and cost is None:
            raise BadFeedback(f"task {number}: neither a reward nor a cost; report at least one")
        row, entry = self.task(number), None
        reward, cost = both(reward, cost)
        if row.reward is not None or row.cost is not None or row.cancelled:
            reward, cost = self.completed(row, reward, cost)
            if (reward, cost) == (row.reward, row.cost):
                return row
        if reward is not None and cost is not None:
            entry = self.log_report(row, reward, cost)
        row = row.with_report(reward, cost, entry)
        self.update(row)
        return row

    def completed(self, row: TaskRow, reward: float | None, cost: float | None) -> tuple[float | None, float | None]:
        """A report and what was reported before, if they do not contradict."""
        parts = [("reward", row.reward, reward), ("cost", row.cost, cost)]
        before = ", ".join(f"{name} {known:g}" for name, known, _ in parts if known is not None)
        for name, known, value in parts:
            if known is not None and value is not None and known != value:
                now = f"now {name} {value:g}"
                raise AlreadyReported(f"task {row.task} already has feedback ({before}), {now}; {COUNTS_ONCE}")
        if row.cancelled:
            raise AlreadyCancelled(f"task {row.task} was cancelled; it takes no report")
        return row.reward if reward is None else reward, row.cost if cost is None else cost

    def log_report(self, row: TaskRow, reward: float, cost: float) -> int:
        """A task's own report, as an entry of the log; its number."""
        number = self.header.reports + len(self.entries) + 1
        entry = row.log_row(number, reward, cost)
        self.touched = True
        self.entries.append(entry)
        self.replica.fold.learn(entry)
        return number

    def report_all(self, number: int, reward: Any, cost: Any, observed: Mapping[Any, tuple[Any, Any]]) -> TaskRow:
        """A report with its side observations: all of them or, if one is refused, none."""
        observations = [self.observation(number, option, *values) for option, values in observed.items()]
        row = self.report(number, reward, cost)
        for new in filter(None, observations):
            self.log_observation(row, *new)
        return row

    def observe(self, number: int, option: Any, reward: Any, cost: Any) -> None:
        """A side observation of another option of the same task."""
        new = self.observation(number, option, reward, cost)
        if new is not None:
            self.log_observation(self.rows[number], *new)

    def log_observation(self, row: TaskRow, option: int, reward: float, cost: float) -> None:
        """A side observation that is new, as an entry of the log."""
        number = self.header.reports + len(self.entries) + 1
        entry = row.log_row(number, reward, cost)._replace(
            observed=option, option=option, reward_estimate=0.0, cost_estimate=0.0, policy=NO_POLICY
        )
        self.touched = True
        self.entries.append(entry)
        self.replica.fold.learn(entry)
        self.observed[row.task][option] = reward, cost

    def observation(self, task: int, option: Any, reward: Any, cost: Any) -> tuple[int, float, float] | None:
        """The option's number and the values, checked; None if the log has them already."""
        row, text = self.task(task), option_text(option)
        number = self.replica.options.number.get(text, -1)
        if str(number) not in row.options.split(","):
            raise BadFeedback(f"task {task}: option {text} was not on offer; observe one that was")
        if number == row.option:
            raise BadFeedback(f"task {task}: option {text} is the one that was chosen; report it")
        reward, cost = feedback("reward", reward), feedback("cost", cost)
        known = self.observations(task).get(number)
        if known is not None and known != (reward, cost):
            before = "reward {:g}, cost {:g}".format(*known)
            raise AlreadyReported(f"task {task}, option {text}: already observed ({before}); {COUNTS_ONCE}")
        return (number, reward, cost) if known is None else None

    def observations(self, number: int) -> dict[int, tuple[float, float]]:
        """What is known of a task's other options; read once, for all tasks that this batch knows."""
        if number not in self.observed:
            missing = self.rows.keys() - self.observed.keys()
            self.observed |= {task: {} for task in missing}
            for entry in self.tx.observations(self.replica.id, list(missing)):
                self.observed[entry.task][entry.observed] = entry.reward, entry.cost
        return self.observed[number]

    def cancel(self, number: int) -> None:
        """The task will not report, and no longer counts as running."""
        row = self.task(number)
        if row.report is not None:
            raise AlreadyReported(f"task {number} has reported already; it cannot be cancelled")
        if not row.cancelled:
            self.update(row._replace(cancelled=1))

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

    def change(self, policy: str | None, overhead: float | None) -> None:
        settings = self.replica.settings
        if policy is not None:
            settings = settings._replace(policy=self.replica.name("policy", policy))
        if overhead is not None:
            settings = settings._replace(overhead=overhead)
        if settings != self.replica.settings:
            self.set(settings)

    def set(self, settings: Settings) -> None:
        """Write the settings; every process, this one too, reads them before its next batch."""
        self.touched = True
        self.tx.change(self.replica.id, settings.text())
        self.replica.settings = settings
        self.replica.offers.clear()
