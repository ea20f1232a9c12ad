"""Between an event loop, which must not block, and a scheduler, which does: a queue and a thread.

The thread hands over whatever has come in meanwhile as one batch, so that one transaction stores all of it.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import NamedTuple

from worthwhile.live.group_commit import GroupCommit, Request

log = logging.getLogger(__name__)


class Job(NamedTuple):
    """Requests of one caller, and whom to wake when they are done."""

    requests: Sequence[Request]
    done: asyncio.Future[None]


class RequestThread:
    """Does what an event loop asks of one scheduler, in the order in which it was asked."""

    def __init__(self, scheduler: GroupCommit, name: str, loop: asyncio.AbstractEventLoop, most: int) -> None:
        self.scheduler, self.name, self.loop, self.most = scheduler, name, loop, most  # requests in a batch
        self.jobs: SimpleQueue[Job | None] = SimpleQueue()
        self.queued = 0  # requests
        self.thread = threading.Thread(target=self.work, name=f"requests of {name}", daemon=True)
        self.thread.start()

    def put(self, requests: Sequence[Request]) -> asyncio.Future[None]:
        """Have them done together, whether or not anybody waits until they are."""
        done: asyncio.Future[None] = self.loop.create_future()
        self.queued += len(requests)
        self.jobs.put(Job(requests, done))
        return done

    def work(self) -> None:
        """The thread: batch after batch, until a None comes."""
        while (job := self.jobs.get()) is not None:
            batch, last = [job], False
            count = len(job.requests)
            try:
                while count < self.most:
                    following = self.jobs.get_nowait()
                    if following is None:
                        last = True
                        break
                    batch.append(following)
                    count += len(following.requests)
            except Empty:
                pass
            try:
                self.scheduler.ask_all([request for job in batch for request in job.requests])
            except BaseException as error:  # the requests have it; whoever comes next must be served
                log.error("scheduler %r: %r", self.name, error)
            with suppress(RuntimeError):  # the loop is closed: what was asked for is done, and nobody waits
                self.loop.call_soon_threadsafe(self.wake, batch)
            if last:
                return

    def wake(self, batch: Sequence[Job]) -> None:
        """Back in the event loop: those who wait go on."""
        for requests, done in batch:
            self.queued -= len(requests)
            if not done.done():
                done.set_result(None)

    def close(self) -> None:
        """Do what is queued, then end."""
        self.jobs.put(None)
        self.thread.join()
