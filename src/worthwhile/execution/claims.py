"""Claim: keep what this process runs from being run elsewhere, and notice when a claim is lost."""

from __future__ import annotations

import logging
import os
import secrets
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import NamedTuple

from worthwhile.errors import Error
from worthwhile.execution.arrivals import Arrival
from worthwhile.live.claims import Claiming, Releasing, Renewing
from worthwhile.live.scheduler import Scheduler

log = logging.getLogger(__name__)

LEASE = 60.0  # seconds
RENEWALS = 3  # per lease: two may fail


class Claims:
    """The tasks that one call of `work` holds; a thread renews their leases, all in one transaction."""

    def __init__(self, scheduler: Scheduler, lease: float, wake: Callable[[], None]) -> None:
        self.scheduler, self.lease, self.holder = scheduler, lease, str(new_holder())
        self.wake = wake  # called when tasks are lost
        self.tasks: dict[str, None] = {}  # a set of ids
        self.lost: SimpleQueue[str] = SimpleQueue()  # ids, for whoever runs them to stop
        self.closing = threading.Event()
        self.thread = threading.Thread(target=self.renew_regularly, daemon=True)

    def request(self, arrival: Arrival, instead_of: str | None) -> Claiming:
        """Asks for a task to run."""
        kind, options, _, key, features = arrival
        held = key, self.lease, self.holder, instead_of
        return Claiming(self.scheduler, kind, options, *held, features=features)  # type: ignore[arg-type]

    def renew_regularly(self) -> None:
        while not self.closing.wait(self.lease / RENEWALS):
            self.renew()

    def renew(self) -> None:
        """Note which tasks are lost: this process was stopped, asleep or cut off for longer than the lease."""
        if not (tasks := list(self.tasks)):
            return
        try:
            for id in self.scheduler._transactor.ask(Renewing(self.holder, tasks, self.lease)):
                self.lost.put(id)
                self.wake()
        except Error as error:  # the next one may succeed; if none does, the tasks are run elsewhere and reported once
            log.warning("the leases of %d running tasks could not be renewed: %s", len(tasks), error)

    def take_lost(self) -> list[str]:
        """Tasks that were lost since the last time, each once."""
        ids: dict[str, None] = {}
        with suppress(Empty):
            while True:
                ids[self.lost.get_nowait()] = None
        return list(ids)

    def __enter__(self) -> Claims:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self.thread.join()
        if self.tasks:  # interrupted: whoever works through the stream next need not wait for the leases to end
            with suppress(Error):
                self.scheduler._transactor.ask(Releasing(self.holder, self.tasks))


class Holder(NamedTuple):
    """Who runs a task, in words that are stored with it."""

    host: str
    machine: str  # where process numbers mean the same; empty if that is not known
    pid: str
    began: str  # a process of that number which began at another time is another one
    call: str  # of `work`

    def __str__(self) -> str:
        return " ".join(part or "-" for part in self)


def new_holder() -> Holder:
    """A call of `work` in this process."""
    pid = str(os.getpid())
    return Holder(socket.gethostname().replace(" ", "_"), machine(), pid, beginning(pid), secrets.token_hex(4))


def is_gone(holder: str) -> bool:
    """Whether it was a process of this very machine and has ended; its lease tells about all others."""
    parts = holder.split(" ")
    if len(parts) != len(Holder._fields):
        return False
    other = Holder._make(parts)
    return machine() != "" and other.machine == machine() and beginning(other.pid) != other.began


@cache
def machine() -> str:
    """On Linux: since when it runs, and which of its processes are seen from here."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
        return f"{boot}/{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return ""


def beginning(pid: str) -> str:
    """When a process has begun, in ticks since the machine has; empty if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]
