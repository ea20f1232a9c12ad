"""Take: the tasks to come, from a stream that may pause, break or be interrupted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from worthwhile.errors import BadTask
from worthwhile.live.validation import Option
from worthwhile.policies.features import Feature


class Arrival(NamedTuple):
    """A task to do. One with a key is done once, however often the stream is worked through."""

    kind: str
    options: Iterable[Option]
    payload: Any = None
    key: str | None = None
    features: Mapping[str, Feature] | None = None  # what is known of it beside its kind


def as_arrival(task: Any) -> Arrival:
    """A task as a stream gives it: an `Arrival`, or its first two to five parts."""
    if isinstance(task, Arrival):
        return task
    if not isinstance(task, tuple | list) or not 2 <= len(task) <= len(Arrival._fields):
        shape = "Arrival(kind, options, payload, key, features), or a tuple of the first two to five of these"
        raise BadTask(f"{task!r} is no task; give {shape}")
    return Arrival(*task)


class Stream:
    """Where tasks are taken from; what breaks it is kept until the tasks that run have been reported."""

    def __init__(self, tasks: Iterable[Arrival | tuple[Any, ...] | None]) -> None:
        self.tasks = iter(tasks)
        self.ended = False  # nothing more is taken from it
        self.paused = False  # it had nothing when it was last asked
        self.asking = False
        self.error: Exception | None = None  # why it ended too soon

    @property
    def open(self) -> bool:
        """Whether it may have a task right now."""
        return not self.ended and not self.paused

    def take(self, room: int) -> list[Arrival]:
        """As many tasks as there is room for, if the stream has them now."""
        arrivals: list[Arrival] = []
        self.paused = False
        while self.open and len(arrivals) < room:
            if (arrival := self.next()) is not None:
                arrivals.append(arrival)
        return arrivals

    def next(self) -> Arrival | None:
        try:
            self.asking = True
            try:
                arrival = None if self.ended else next(self.tasks)
            finally:
                self.asking = False
            self.paused = arrival is None
            return None if arrival is None else as_arrival(arrival)
        except (StopIteration, KeyboardInterrupt):
            self.end()
        except Exception as error:  # the stream is broken; the tasks that run are still worth reporting
            self.end(error)
        return None

    def end(self, error: Exception | None = None) -> None:
        """Take nothing more; the first error is the one to raise."""
        self.ended, self.error = True, self.error or error

    def interrupt(self) -> None:
        """End it from a signal handler, even while it waits for its next task."""
        self.end()
        if self.asking:  # only an exception gets us out of somebody else's `next`
            raise KeyboardInterrupt
