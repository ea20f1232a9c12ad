"""A task as its user holds it: the option chosen for it, and where to say what came of it."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Protocol

from worthwhile.errors import BadFeedback
from worthwhile.live.validation import Option


class Feedback(Protocol):
    """Where a task's reports go: a scheduler in this process, or a client of one elsewhere."""

    def report(self, id: str | int, reward: float | None = None, cost: float | None = None) -> None: ...

    def observe(self, id: str | int, option: Option, reward: float, cost: float) -> None: ...

    def cancel(self, id: str | int) -> None: ...


class Task:
    """A task and the option chosen for it. As a context manager it reports by itself, with the time as its cost."""

    reward: float | None = None
    cost: float | None = None

    def __init__(self, scheduler: Feedback, id: str, kind: str, option: Option, state: str = "running") -> None:
        self.scheduler, self.id, self.kind, self.option = scheduler, id, kind, option
        self.state = state  # when it was decided; one that was given before, by its key, may be reported or cancelled

    def report(self, reward: float | None = None, cost: float | None = None) -> None:
        """What came of it: both at once, or one now and the other later."""
        self.scheduler.report(self.id, reward, cost)

    def observe(self, option: Option, reward: float, cost: float) -> None:
        """What another option on offer would have brought, if this task showed it on the side."""
        self.scheduler.observe(self.id, option, reward, cost)

    def cancel(self) -> None:
        """It will not report."""
        self.scheduler.cancel(self.id)

    def __enter__(self) -> Task:
        self.began = time.perf_counter()  # never goes back, unlike the time of day
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.cancel()
            return
        if self.reward is None:
            self.cancel()
            raise BadFeedback(f"task {self.id} has no reward; set task.reward before the block ends")
        took = max(time.perf_counter() - self.began, 1e-9)
        self.report(self.reward, took if self.cost is None else self.cost)

    def __repr__(self) -> str:
        return f"Task(id={self.id!r}, kind={self.kind!r}, option={self.option!r})"
