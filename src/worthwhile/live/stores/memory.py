"""Everything in this process, gone when it ends: for trying things out, and where speed is all that counts."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from worthwhile.errors import StoreError
from worthwhile.live.stores.base import (
    OWN,
    Answer,
    AuditRow,
    Header,
    LogRow,
    NameRow,
    SessionRow,
    Snapshot,
    TaskRow,
    TokenRow,
    Transaction,
)
from worthwhile.live.stores.forking import Forkable


class Rows:
    """One scheduler's rows."""

    def __init__(self, id: int, seed_key: int, settings: str) -> None:
        self.header = Header(id, seed_key, 0, 0, 0, 0, 0.0)
        self.settings = settings
        self.names: list[NameRow] = []
        self.tasks: dict[int, TaskRow] = {}
        self.keys: dict[str, int] = {}
        self.running: dict[int, dict[int, TaskRow]] = defaultdict(dict)  # by kind and task
        self.log: list[LogRow] = []
        self.further: dict[int, list[LogRow]] = {}  # entries by task, but for results of first attempts
        self.snapshot: Snapshot | None = None


class MemoryStore(Forkable):
    """Store and transaction in one: a lock, and a way back for every change."""

    def __init__(self) -> None:
        super().__init__()
        self.gone = ""  # why it cannot be used any more
        self.by_name: dict[str, Rows] = {}
        self.by_id: list[Rows] = []
        self.kept_tokens: dict[str, TokenRow] = {}
        self.kept_sessions: list[SessionRow] = []
        self.kept_audit: list[AuditRow] = []
        self.undo: list[tuple[Any, ...]] = []  # functions and what they are to be called with

    def read(self, work: Callable[[Transaction], Answer]) -> Answer:
        return self.transact(work)

    def transact(self, work: Callable[[Transaction], Answer]) -> Answer:
        with self.in_use:
            if self.gone:
                raise StoreError(self.gone)
            if self.undo:
                self.roll_back()  # what Ctrl-C may have left
            try:
                answer = work(self)
                self.undo.clear()
                return answer
            except BaseException:
                self.roll_back()
                raise

    def roll_back(self) -> None:
        """Take back the latest change first; each may be taken back twice, if an interrupt comes in between."""
        while self.undo:
            step, *values = self.undo[-1]
            step(*values)
            self.undo.pop()

    def begin_anew(self) -> None:
        super().begin_anew()
        self.gone = "this scheduler is in the memory of the process that was forked; use a SQLite file instead"

    def close(self) -> None:
        self.gone = "this scheduler was closed, and it was in memory only; use a SQLite file to open it again"

    def schedulers(self) -> list[str]:
        return sorted(self.by_name)

    def create(self, name: str, seed_key: int, settings: str) -> None:
        if name not in self.by_name:
            count = len(self.by_id)
            self.undo += [(self.by_name.pop, name, None), (self.by_id.__delitem__, slice(count, None))]
            self.by_name[name] = Rows(count, seed_key, settings)
            self.by_id.append(self.by_name[name])

    def open(self, name: str) -> Header | None:
        kept = self.by_name.get(name)
        if kept is None:
            return None
        header = kept.header
        header.tasks, header.reports, header.now = len(kept.tasks), len(kept.log), time.time()
        return header

    def settings(self, id: int) -> str:
        return self.by_id[id].settings

    def change(self, id: int, settings: str) -> None:
        kept = self.by_id[id]
        header = kept.header
        self.undo += [(setattr, kept, "settings", kept.settings), (setattr, header, "generation", header.generation)]
        kept.settings, header.generation = settings, header.generation + 1

    def names(self, id: int, after: int) -> list[NameRow]:
        return self.by_id[id].names[after:]

    def running(self, id: int, kinds: Sequence[int], now: float) -> list[tuple[int, int, int]]:
        by_kind, rows = self.by_id[id].running, []
        for kind in kinds:
            for row in by_kind[kind].values():
                if row.lease_end > now:
                    rows.append(row)
        return counted(rows) if rows else []

    def in_flight(self, id: int, now: float) -> list[tuple[int, int, float, float]]:
        sums = []
        for kind, running in sorted(self.by_id[id].running.items()):
            rows = [row for row in running.values() if row.lease_end > now]
            if rows:
                reward, cost = sum(row.reward_estimate for row in rows), sum(row.cost_estimate for row in rows)
                sums.append((kind, len(rows), reward, cost))
        return sums

    def expired(self, id: int, now: float) -> list[tuple[int, int, int]]:
        by_kind = self.by_id[id].running.values()
        return counted([row for rows in by_kind for row in rows.values() if row.lease_end <= now])

    def lost(self, id: int, now: float, count: int) -> list[TaskRow]:
        rows = [row for kind in self.by_id[id].running.values() for row in kind.values() if row.lease_end <= now]
        return sorted(row for row in rows if row.holder != "")[:count]

    def renew(self, id: int, now: float) -> None:
        kept = self.by_id[id]
        late = [row for rows in kept.running.values() for row in rows.values() if now < row.decided < row.lease_end]
        self.undo.append((put_running, kept, late))
        put_running(kept, [row._replace(lease_end=now + (row.lease_end - row.decided)) for row in late])

    def tasks(self, id: int, numbers: Sequence[int]) -> list[TaskRow]:
        tasks = self.by_id[id].tasks
        return list(filter(None, map(tasks.get, numbers)))

    def keyed(self, id: int, keys: Sequence[str]) -> list[TaskRow]:
        kept = self.by_id[id]
        return [kept.tasks[kept.keys[key]] for key in keys if key in kept.keys]

    def latest(self, id: int, count: int) -> list[TaskRow]:
        tasks = self.by_id[id].tasks
        return [tasks[number] for number in range(len(tasks), max(0, len(tasks) - count), -1)]

    def observations(self, id: int, tasks: Sequence[int]) -> list[LogRow]:
        return [row for task in tasks for row in self.by_id[id].further.get(task, []) if row.observed > OWN]

    def outcomes(self, id: int, tasks: Sequence[int]) -> list[LogRow]:
        kept = self.by_id[id]
        rows = {row for task in tasks for row in kept.further.get(task, []) if row.observed <= OWN}
        numbers = [row.report for row in self.tasks(id, tasks) if row.report is not None]
        return sorted(rows | {kept.log[number - 1] for number in numbers})

    def reports(self, id: int, after: int, count: int) -> list[LogRow]:
        return self.by_id[id].log[after : after + count]

    def snapshot(self, id: int) -> Snapshot | None:
        return self.by_id[id].snapshot

    def add(
        self,
        id: int,
        names: Sequence[NameRow],
        tasks: Sequence[TaskRow],
        changed: Sequence[TaskRow],
        reports: Sequence[LogRow],
    ) -> None:
        kept = self.by_id[id]
        stored, running = kept.tasks, kept.running
        before: list[TaskRow] = []
        # first of all, and filled as it goes: Ctrl-C may come anywhere below
        self.undo.append((take_back, kept, len(kept.names), len(kept.log), tasks, before, reports))
        if names:
            kept.names += names
            kept.header.names = len(kept.names)
        for row in tasks:
            task = row.task
            stored[task] = row
            if row.key is not None:
                kept.keys[row.key] = task
            if not row.ended():
                running[row.kind][task] = row
        for row in changed:
            task = row.task
            before.append(stored[task])
            stored[task] = row
            if row.ended():
                running[row.kind].pop(task, None)
            else:
                running[row.kind][task] = row
        for entry in reports:
            kept.log.append(entry)
            if entry.observed != OWN or entry.outcome:
                kept.further.setdefault(entry.task, []).append(entry)

    def forget(self, id: int, entries: Sequence[LogRow]) -> None:
        kept = self.by_id[id]
        before = [kept.log[entry.number - 1] for entry in entries]
        self.undo += [(put_entries, kept, before), (setattr, kept, "snapshot", kept.snapshot)]
        put_entries(kept, entries)
        kept.snapshot = None

    def save(self, id: int, snapshot: Snapshot) -> None:
        kept = self.by_id[id]
        self.undo.append((setattr, kept, "snapshot", kept.snapshot))
        kept.snapshot = snapshot._replace(parts=tuple(snapshot.parts))

    def tokens(self) -> list[TokenRow]:
        return list(self.kept_tokens.values())

    def add_token(self, token: TokenRow) -> None:
        self.put_token(token.name, token)

    def revoke_token(self, name: str, now: float) -> None:
        before = self.kept_tokens.get(name)
        if before is not None and before.revoked is None:
            self.put_token(name, before._replace(revoked=now))

    def put_token(self, name: str, token: TokenRow) -> None:
        self.undo.append((setattr, self, "kept_tokens", dict(self.kept_tokens)))
        self.kept_tokens[name] = token

    def sessions(self) -> list[SessionRow]:
        return self.kept_sessions

    def add_session(self, session: SessionRow) -> None:
        self.put("kept_sessions", [*self.kept_sessions, session])

    def end_sessions(self, hashes: Sequence[str]) -> None:
        self.put("kept_sessions", [row for row in self.kept_sessions if row.hash not in hashes])

    def audit(self, count: int) -> list[AuditRow]:
        return self.kept_audit[: -count - 1 : -1]

    def add_audit(self, entry: AuditRow) -> None:
        self.put("kept_audit", [*self.kept_audit, entry])

    def put(self, name: str, rows: list[Any]) -> None:
        self.undo.append((setattr, self, name, getattr(self, name)))
        setattr(self, name, rows)


def counted(rows: list[TaskRow]) -> list[tuple[int, int, int]]:
    """Tasks by kind and option."""
    counts = Counter((row.kind, row.option) for row in rows)
    return [(kind, option, count) for (kind, option), count in sorted(counts.items())]


def put_running(kept: Rows, rows: Sequence[TaskRow]) -> None:
    """Put tasks that run in the place of what is known of them."""
    for row in rows:
        kept.tasks[row.task] = kept.running[row.kind][row.task] = row


def put_entries(kept: Rows, entries: Sequence[LogRow]) -> None:
    """Put entries of the log in the place of those with their numbers."""
    for entry in entries:
        kept.log[entry.number - 1] = entry
        further = kept.further.get(entry.task, [])
        further[:] = [entry if other.number == entry.number else other for other in further]


def take_back(
    kept: Rows, names: int, log: int, tasks: Sequence[TaskRow], before: Sequence[TaskRow], reports: Sequence[LogRow]
) -> None:
    """Undo `add`."""
    del kept.names[names:], kept.log[log:]
    kept.header.names = names
    for row in tasks:
        kept.tasks.pop(row.task, None)
        kept.keys.pop(row.key or "", None)
        kept.running.get(row.kind, {}).pop(row.task, None)
    for row in before:
        kept.tasks[row.task] = row
        if not row.ended():
            kept.running[row.kind][row.task] = row
    for entry in reports:
        further = kept.further.get(entry.task, [])
        if entry in further:
            further.remove(entry)
