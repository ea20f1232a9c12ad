"""The tasks that a batch reads and changes: read at once, counted as running, and written at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

from worthwhile.errors import UnknownTask
from worthwhile.live.group_commit import Request
from worthwhile.live.replica import Replica
from worthwhile.live.stores.base import Header, LogRow, TaskRow, Transaction
from worthwhile.policies.base import NOTHING_RUNS, Running


class Rows:
    """Rows of one transaction, as this batch has left them so far."""

    fetched = False  # all that the requests name
    sums: dict[int, Running] | None = None  # by kind: what is running, and expected of it; if somebody asks
    touched = False  # whether the request that is being answered has changed anything

    def __init__(self, replica: Replica, tx: Transaction, header: Header, requests: Sequence[Request]) -> None:
        self.replica, self.tx, self.header, self.requests = replica, tx, header, requests
        self.rows: dict[int, TaskRow] = {}
        self.new: list[TaskRow] = []
        self.changed: dict[int, TaskRow] = {}
        self.entries: list[LogRow] = []
        self.counts: dict[int, dict[int, int]] = {}  # running tasks by kind and option
        self.stopped: set[int] = set()  # tasks that `update` was told of: they may have stopped running in this batch

    @cached_property  # as is `observed`: most batches need neither
    def keys(self) -> dict[str, int]:
        """Tasks by key."""
        return {}

    @cached_property
    def observed(self) -> dict[int, dict[int, tuple[float, float]]]:
        """Reward and cost by task and option."""
        return {}

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
                if row.kind in kinds and row.task in self.stopped:
                    self.discount(row)
        return counts[kind]

    def in_flight(self, kind: int) -> tuple[Running, Running]:
        """What is running, and expected of it: of all kinds, and of this one; those decided in this batch included."""
        if self.sums is None:
            stored = self.tx.in_flight(self.replica.id, self.header.now)
            self.sums = {kind: Running(float(tasks), reward, cost) for kind, tasks, reward, cost in stored}
            for row in self.changed.values():
                if row.task in self.stopped and row.ended() and row.lease_end > self.header.now:
                    self.count_in_flight(row, -1.0)
        tasks, reward, cost = map(sum, zip(*self.sums.values(), strict=True)) if self.sums else NOTHING_RUNS
        return Running(tasks, reward, cost), self.sums.get(kind, NOTHING_RUNS)

    def count_in_flight(self, row: TaskRow, sign: float) -> None:
        """A task has begun to run, or has stopped."""
        if self.sums is not None:
            tasks, reward, cost = self.sums.get(row.kind, NOTHING_RUNS)
            reward, cost = reward + sign * row.reward_estimate, cost + sign * row.cost_estimate
            self.sums[row.kind] = Running(tasks + sign, reward, cost) if tasks + sign > 0.0 else NOTHING_RUNS

    def kinds_asked(self, kind: int) -> list[int]:
        """That kind, and all others that are asked for and not counted yet."""
        known = self.replica.kinds.number
        asked = {known[request.kind] for request in self.requests if request.kind in known}
        return list(asked - self.counts.keys() | {kind})

    def add(self, row: TaskRow) -> TaskRow:
        """A new task that was decided elsewhere."""
        self.touched = True
        self.rows[row.task] = row
        if row.key is not None:
            self.keys[row.key] = row.task
        self.new.append(row)
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
        self.replace(row)
        self.stopped.add(row.task)
        if row.kind in self.counts:
            self.discount(row)
        if self.sums is not None and row.ended() and row.lease_end > self.header.now:
            self.count_in_flight(row, -1.0)

    def count_instead(self, row: TaskRow, option: int) -> None:
        """A running task goes on with another option than it was counted with."""
        if row.kind in self.counts and row.lease_end > self.header.now:
            counts = self.counts[row.kind]
            counts[row.option], counts[option] = counts[row.option] - 1, counts.get(option, 0) + 1

    def replace(self, row: TaskRow) -> None:
        """A task has changed, but runs or does not run as before."""
        self.touched = True
        task, earlier = row.task, self.header.tasks
        self.rows[task] = row
        if task > earlier:
            self.new[task - earlier - 1] = row
        else:
            self.changed[task] = row

    def discount(self, row: TaskRow) -> None:
        """Count a task no longer that has stopped running in this batch."""
        if row.ended() and row.lease_end > self.header.now:
            self.counts[row.kind][row.option] -= 1
