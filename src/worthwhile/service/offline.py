"""A client whose service may be away: it decides from its latest copy, and tells the service later.

Every decision made here, and every report, is in the outbox before its caller goes on. One thread keeps the copy fresh
and delivers; whatever it sends may be sent again without harm, so that all of it arrives once.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as TookTooLong
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from worthwhile.errors import BadInput, BadParameter, BadTask, Error, ServiceError, UnknownTask
from worthwhile.live.local import LONGEST_AWAY, Copy, LocalScheduler, TakingHere, without_copy
from worthwhile.live.requests import Reporting, cancelling, failing, observing
from worthwhile.live.stores.base import LOCAL
from worthwhile.live.task import Task
from worthwhile.live.validation import Option, both, check_text, not_negative, task_number
from worthwhile.service import calls
from worthwhile.service.calls import Call, Saying
from worthwhile.service.outbox import Entry, Outbox
from worthwhile.service.schemas import Decided, Problem, ReportedMany, TakenIn

if TYPE_CHECKING:
    from worthwhile.service.client import Client

log = logging.getLogger(__name__)

DECIDE_WITHIN, REFRESH = 0.5, 5.0  # seconds
AT_ONCE = 500  # entries in a request
THREADS = 16  # that ask the service for decisions
GATHER = 0.05  # seconds, for more to come before it is told
SLOW = 15.0  # seconds for what nobody waits for
MOST_KEYS = 10_000  # of the user's, that are remembered
LEASE = 3600.0  # seconds
TOGETHER = "report", "fail"  # many of which go in one request
CHECKS: dict[str, Callable[..., object]] = {
    "report": lambda id, **body: (Reporting(id, **body), both(body["reward"], body["cost"])),
    "fail": failing,
    "observations": observing,
    "cancel": cancelling,
}


class Offline:
    """What stands between a client and its service."""

    def __init__(self, client: Client, file: str | Path, within: float, refresh: float, local: bool) -> None:
        self.client, self.within, self.refresh, self.local = client, within, refresh, local
        self.outbox, self.where = Outbox(file, client.name), str(client.http.base_url)
        self.keyed: dict[str, Task] = {}
        self.delivering = threading.Lock()
        self.scheduler: LocalScheduler | None = None  # of the latest copy
        self.up = True  # as far as is known
        self.asking = ThreadPoolExecutor(THREADS, "worthwhile-decide")
        self.wake, self.closed = threading.Event(), False
        self.thread = threading.Thread(target=self.work, name="worthwhile-deliver", daemon=True)
        self.fetch()
        self.thread.start()

    def decide(self, kind: str, options: Sequence[Option], known: dict[str, Any]) -> Task:
        """From the service if it answers in time, otherwise from the copy, otherwise the usual option."""
        key = known.pop("key")
        if key is not None and (earlier := self.keyed.get(key)) is not None:
            if earlier.kind != kind:
                belongs = f"key {key!r} belongs to task {earlier.id} of kind {earlier.kind!r}, not {kind!r}"
                raise BadTask(f"{belongs}; use another key")
            return earlier
        if self.up and not self.local:
            own = f"client-{uuid.uuid4().hex}" if key is None else check_text("key", key)
            call = calls.deciding(self.client.lease, kind, options, key=own, **known)
            try:
                return calls.task_of(self.client, self.ask(call, withdraw=key is None))
            except ServiceError as error:
                log.warning("decisions are made here until the service is back: %s", error)
                self.up = False
        lease = known.pop("lease")
        lease = (self.client.lease or LEASE) if lease is None else lease
        task = self.decide_here(TakingHere(self.client, kind, options, lease=lease, **known))
        if key is not None:
            self.remember(key, task)
        return task

    def decide_here(self, deciding: TakingHere) -> Task:
        """From the copy, or without one."""
        if self.scheduler is not None:
            task, taken = self.scheduler.decide(deciding)
        else:
            task, taken = without_copy(deciding, ServiceError(f"{self.where}: away, and no copy yet; give usual=…"))
        self.outbox.put("taken", task.id, taken._asdict() | {"decided": time.time()})
        self.wake.set()
        return task

    def remember(self, key: str, task: Task) -> None:
        """Asked for it again, it is the same task."""
        if len(self.keyed) >= MOST_KEYS:
            self.keyed.pop(next(iter(self.keyed)), None)
        self.keyed[key] = task

    def ask(self, call: Call, withdraw: bool) -> Decided:
        """A decision of the service, within the time limit; one that comes later is to be withdrawn."""
        asked = self.asking.submit(self.send, call, self.within)
        try:
            answer: Decided = asked.result(self.within)
            return answer
        except (ServiceError, TookTooLong) as error:
            if withdraw and not asked.cancel():
                self.outbox.put("withdraw", call.body["key"], call.body)
            says = str(error) or f"{self.where}: no decision within {self.within:g} s"
            raise ServiceError(says) from None

    def send(self, call: Call, timeout: float = SLOW) -> Any:
        """One try; `ServiceError` if another one may end otherwise."""
        answer = self.client._attempt(call, timeout=timeout)
        if isinstance(answer, Error):
            raise ServiceError(str(answer))
        return answer

    def say(self, saying: Saying) -> None:
        """Something about a task; it is checked here, and arrives in the order in which it was said."""
        what, task, body = saying
        CHECKS[what]("1", **body)
        self.outbox.put(what, str(task if is_local(task) else task_number(task)), body)
        self.wake.set()

    def known(self, id: str | int) -> str | int:
        """A task's id at the service, once that has been told of it."""
        if not is_local(id):
            return id
        self.deliver()
        if (known := self.id_of(str(id))) is None:
            raise UnknownTask(f"task {id} was refused by the service; its log says why")
        return known

    def work(self) -> None:
        """The thread: deliver what there is, and fetch a copy whenever it is time."""
        fetched = time.monotonic()
        while not self.closed:
            self.wake.wait(min(self.refresh, 1.0))
            self.wake.clear()
            time.sleep(GATHER)
            try:
                if time.monotonic() - fetched >= self.refresh or not self.up:
                    self.fetch()
                    fetched = time.monotonic()
                self.deliver()
            except Exception as error:  # the next round may do better
                log.warning("not delivered yet: %s", error)
                time.sleep(min(self.refresh, 1.0) / 2)

    def fetch(self) -> None:
        """A new copy, if the service gives one."""
        client = self.client
        try:
            self.scheduler = LocalScheduler(client.name, self.send(Call("GET", "/copy", Copy), max(self.within, 1.0)))
            self.up = True
        except ServiceError:
            self.up = False
        except Error as error:
            log.warning("no copy to decide from: %s", error)
            self.up = True

    @property
    def age(self) -> float | None:
        """Seconds since the copy was made; None without one."""
        return None if self.scheduler is None else time.monotonic() - self.scheduler.made

    def deliver(self) -> None:
        """Tell the service everything there is now, oldest first; raises if it does not answer."""
        with self.delivering:
            latest = self.outbox.latest()
            while entries := self.outbox.first(AT_ONCE, latest):
                taken = [entry for entry in entries if entry.what == "taken"]  # before what is said of them
                others = [entry for entry in entries if entry.what != "taken"]
                if taken:
                    self.send_group(self.send_taken, taken)
                for together, group in groupby(others, lambda entry: entry.what in TOGETHER):
                    self.send_group(self.send_reports if together else self.send_each, list(group))

    def send_group(self, send: Callable[[list[Entry]], None], entries: list[Entry]) -> None:
        """One that cannot be read does not keep the others."""
        try:
            send(entries)
        except BadInput as error:
            if len(entries) == 1:
                self.settle(entries, [], [(entries[0], str(error))])
            else:
                for entry in entries:
                    self.send_group(send, [entry])

    def send_taken(self, entries: Sequence[Entry]) -> None:
        now = time.time()
        bodies = []
        for entry in entries:
            body = dict(entry.body)
            body["age"] = min(max(0.0, now - body.pop("decided")), LONGEST_AWAY)  # clocks are set
            bodies.append(body)
        answer = self.send(Call("POST", "/taken", TakenIn, {"decisions": bodies}))
        ids, refused = [], []
        for entry, taken in zip(entries, answer.tasks, strict=True):
            if isinstance(taken.problem, Problem):
                refused.append((entry, taken.problem.detail))
            else:
                ids.append((entry.task, taken.task))
        self.settle(entries, ids, refused)

    def send_reports(self, entries: Sequence[Entry]) -> None:
        ids = [self.id_of(entry.task) for entry in entries]
        known = [(entry, id) for entry, id in zip(entries, ids, strict=True) if id is not None]
        refused = [(entry, "its decision was refused") for entry, id in zip(entries, ids, strict=True) if id is None]
        bodies = [entry.body | {"task": id, "failed": entry.what == "fail"} for entry, id in known]
        if bodies:
            answer = self.send(Call("POST", "/reports", ReportedMany, {"reports": bodies}))
            refused += [(known[report.place][0], report.problem.detail) for report in answer.refused]
        self.settle(entries, [], refused)

    def send_each(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            refused = []
            try:
                self.send_one(entry)
            except ServiceError:
                raise
            except Error as error:
                refused = [(entry, str(error))]
            self.settle([entry], [], refused)

    def send_one(self, entry: Entry) -> None:
        if entry.what == "withdraw":
            self.send(calls.cancelling(self.send(Call("POST", "/tasks", Decided, entry.body)).task).call)
            return
        id = self.id_of(entry.task)
        if id is None:
            raise UnknownTask("its decision was refused")
        self.send(Saying(entry.what, id, entry.body).call)

    def settle(
        self, entries: Sequence[Entry], ids: Sequence[tuple[str, str]], refused: Sequence[tuple[Entry, str]]
    ) -> None:
        for entry, why in refused:
            log.warning("refused, and kept in %s: %s of task %s: %s", self.outbox.path, entry.what, entry.task, why)
        self.outbox.done(entries, ids, refused)

    def id_of(self, task: str) -> str | None:
        """A task's id at the service."""
        return self.outbox.id_of(task) if is_local(task) else task

    def close(self) -> None:
        """Deliver what there is if the service takes it; the rest stays in the file. Again, it does nothing."""
        if self.closed:
            return
        self.closed = True
        self.wake.set()
        self.thread.join()
        try:
            self.deliver()
        except Error as error:
            log.warning("%d entries stay in %s: %s", self.outbox.waiting, self.outbox.path, error)
        self.asking.shutdown(wait=False, cancel_futures=True)
        self.outbox.close()


def is_local(id: object) -> bool:
    """Whether it is the id of a task that was decided here."""
    return isinstance(id, str) and id.startswith(LOCAL)


def check_offline(offline: str | None, file: str | Path | None, decisions: str) -> bool:
    """Whether all decisions are to be made here."""
    if offline not in (None, "last"):
        raise BadParameter(f"offline = {offline!r}; there is 'last': decide from the latest copy while it is away")
    if decisions not in ("central", "local"):
        raise BadParameter(f"decisions = {decisions!r}; there are 'central' and 'local'")
    if (offline is not None or decisions == "local") != (file is not None):
        raise BadParameter("offline='last' and decisions='local' need an offline_file, which nothing else does")
    return decisions == "local"


def positive(name: str, value: float) -> float:
    if not not_negative(name, value) > 0.0:
        raise BadParameter(f"{name} = {value!r}; it must be above 0")
    return value
