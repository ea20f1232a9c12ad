"""A task as its user holds it: the option chosen for it, and where to say what came of it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from worthwhile.errors import AlreadyCancelled, AlreadyFailed, AlreadyReported, BadFeedback, Error
from worthwhile.live.validation import Option

if TYPE_CHECKING:
    from worthwhile.live.steps import Steps


class Feedback(Protocol):
    """Where a task's reports go: a scheduler in this process, or a client of one elsewhere."""

    def report(
        self, id: str | int, reward: float | None = None, cost: float | None = None, attempt: int | None = None
    ) -> None: ...

    def fail(self, id: str | int, cost: float | None = None, reason: str = "", attempt: int | None = None) -> None: ...

    def observe(self, id: str | int, option: Option, reward: float, cost: float) -> None: ...

    def cancel(self, id: str | int, attempt: int | None = None) -> None: ...

    def again(self, id: str | int, after: int | None = None) -> Task: ...


class AnyTask:
    """A task and the option chosen for it, whichever way its reports are sent."""

    reward: float | None = None
    cost: float | None = None
    attempt = 0  # at this task; the first is 0
    made: Steps | None = None  # by a task whose options are lengths
    over = False  # whether it was failed or cancelled through this object
    id: str
    kind: str
    option: Option
    began: float  # of its block

    def ending(self, error: BaseException | None) -> tuple[str, tuple[Any, ...]] | None:
        """What the end of its block says of it: a method's name and arguments; None if that was said already.

        A failure if the block has raised, unless somebody has stopped it.
        """
        took = max(time.perf_counter() - self.began, 1e-9)
        cost = took if self.cost is None else self.cost
        if self.over:
            return None
        if isinstance(error, Exception):
            return "fail", (cost, in_words(error))
        if error is not None or self.reward is None:  # KeyboardInterrupt, GeneratorExit, asyncio.CancelledError …
            return "cancel", ()
        return "report", (self.reward, cost if self.made is None else self.cost)  # steps have measured their own

    def note(self, trouble: Error, error: BaseException | None) -> None:
        """It could not be stored how the task has ended; what the block has raised goes on in any case."""
        if error is None:
            raise trouble
        if not isinstance(trouble, AlreadyReported | AlreadyFailed | AlreadyCancelled):  # by the block itself
            error.add_note(f"worthwhile could not store that task {self.id} has ended: {trouble}")

    def check_reward(self, error: BaseException | None) -> None:
        """Refuse a block that has ended without one."""
        if error is None and self.reward is None:
            raise BadFeedback(f"task {self.id} has no reward; set task.reward before the block ends, or call task.fail")

    def __repr__(self) -> str:
        return f"{type(self).__name__}(id={self.id!r}, kind={self.kind!r}, option={self.option!r})"


class Task(AnyTask):
    """A task and the option chosen for it.

    As a context manager it reports by itself, with the time as its cost; a block that raises has failed.
    """

    def __init__(self, scheduler: Feedback, id: str, kind: str, option: Option, state: str = "running") -> None:
        self.scheduler, self.id, self.kind, self.option = scheduler, id, kind, option
        self.state = state  # when it was decided; one that was given before, by its key, may have ended

    def report(self, reward: float | None = None, cost: float | None = None) -> None:
        """What came of it: both at once, or one now and the other later."""
        if self.made is not None:
            self.made.report(reward, cost)
        else:
            self.scheduler.report(self.id, reward, cost, self.attempt)

    def fail(self, cost: float | None = None, reason: str = "") -> None:
        """It has failed: at this cost or, if nobody knows, at what such tasks cost on average."""
        self.scheduler.fail(self.id, cost, reason, self.attempt)
        self.over = True

    def steps(self, lengths: Sequence[Option]) -> Steps:
        """For a task whose options are lengths: go on while the next steps are worth their cost, at most to the last.

        Every step ends with `progress`; the task reports the length at which it stops.
        """
        from worthwhile.live.steps import Steps

        self.made = Steps(self, lengths)
        return self.made

    def progress(self, reward: float, cost: float | None = None) -> None:
        """After a step: what the task would bring if it ended here, and what it has cost so far (the time)."""
        if self.made is None:
            raise BadFeedback(f"task {self.id} makes no steps; write `for length in task.steps(lengths)`")
        self.made.progress(reward, cost)

    def observe(self, option: Option, reward: float, cost: float) -> None:
        """What another option on offer would have brought, if this task showed it on the side."""
        self.scheduler.observe(self.id, option, reward, cost)

    def cancel(self) -> None:
        """It will not report."""
        self.scheduler.cancel(self.id, self.attempt)
        self.over = True

    def again(self) -> Task:
        """The same task with another option, after it has failed; `BadTask` if none is left that has not."""
        return self.scheduler.again(self.id, self.attempt)

    def __enter__(self) -> Task:
        self.began = time.perf_counter()  # never goes back, unlike the time of day
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if (ending := self.ending(error)) is None:
            return
        method, arguments = ending
        try:
            getattr(self, method)(*arguments)
        except Error as trouble:
            self.note(trouble, error)
        self.check_reward(error)


def in_words(error: Exception) -> str:
    """What was raised and why; an error of the user's own may not even say that."""
    try:
        return f"{type(error).__name__}: {error}"
    except KeyboardInterrupt:  # somebody's, not the error's
        raise
    except BaseException:
        return type(error).__name__
