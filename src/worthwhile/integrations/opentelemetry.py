"""`Traced`: a scheduler or a client that tells OpenTelemetry of every task. Extra `otel`."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from worthwhile.errors import MissingExtra
from worthwhile.live.task import Task

try:
    from opentelemetry import metrics, trace
    from opentelemetry.trace import Status, StatusCode
except ImportError:
    raise MissingExtra("telling OpenTelemetry", "otel") from None

if TYPE_CHECKING:
    from worthwhile.live.scheduler import Scheduler
    from worthwhile.service.client import Client

MOST_OPEN = 10_000  # spans of running tasks; beyond that, the oldest ends without a result


class Traced:
    """In place of the scheduler: the same methods, and a span from every task's decision to its end.

    The span of a task that ends in another process ends here when this is closed, without an outcome.
    """

    def __init__(self, scheduler: Scheduler | Client) -> None:
        self._scheduler, self._lock = scheduler, threading.Lock()
        self._open: OrderedDict[str, tuple[Any, dict[str, Any]]] = OrderedDict()  # by task: its span, what is known
        self._tracer, meter = trace.get_tracer("worthwhile"), metrics.get_meter("worthwhile")
        self._tasks = meter.create_counter("worthwhile.tasks", description="attempts that have ended, by their outcome")
        self._rewards = meter.create_histogram("worthwhile.reward", description="of completed tasks")
        self._costs = meter.create_histogram("worthwhile.cost", description="of attempts whose cost was reported")

    def __getattr__(self, name: str) -> Any:
        """What is not traced."""
        return getattr(self._scheduler, name)

    def __enter__(self) -> Traced:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def decide(self, *arguments: Any, **named: Any) -> Task:
        """As the scheduler's."""
        return self._begin(self._scheduler.decide(*arguments, **named))

    task = decide

    def again(self, id: str | int, after: int | None = None) -> Task:
        """As the scheduler's; another attempt has another span."""
        return self._begin(self._scheduler.again(id, after))

    def report(
        self, id: str | int, reward: float | None = None, cost: float | None = None, attempt: int | None = None
    ) -> None:
        """As the scheduler's; the span ends when both parts are there."""
        self._scheduler.report(id, reward, cost, attempt)
        self._told(id, reward=reward, cost=cost)

    def fail(self, id: str | int, cost: float | None = None, reason: str = "", attempt: int | None = None) -> None:
        """As the scheduler's."""
        self._scheduler.fail(id, cost, reason, attempt)
        self._told(id, outcome="failed", cost=cost, reason=reason or None)

    def cancel(self, id: str | int, attempt: int | None = None) -> None:
        """As the scheduler's."""
        self._scheduler.cancel(id, attempt)
        self._told(id, outcome="cancelled")

    def close(self) -> None:
        """End what is open, and close the scheduler."""
        with self._lock:
            spans, self._open = list(self._open.values()), OrderedDict()
        for span, _ in spans:
            span.end()
        self._scheduler.close()

    def _begin(self, task: Task) -> Task:
        task.scheduler = self  # what is said to the task is said here
        if task.state != "running":  # by its key, one that has ended
            return task
        known = {"kind": task.kind, "option": task.option, "task": task.id, "attempt": task.attempt}
        attributes = {f"worthwhile.{name}": attribute(value) for name, value in known.items()}
        with self._lock:
            if task.id not in self._open:
                self._open[task.id] = self._tracer.start_span(task.kind, attributes=attributes), known
            oldest = self._open.popitem(last=False) if len(self._open) > MOST_OPEN else None
        if oldest is not None:
            oldest[1][0].end()
        return task

    def _told(self, id: str | int, outcome: str = "", **more: Any) -> None:
        """Of a task that was decided here."""
        with self._lock:
            span, known = self._open.get(str(id), (None, {}))
            known.update({name: value for name, value in more.items() if value is not None})
            outcome = outcome or ("reported" if {"reward", "cost"} <= known.keys() else "")
            if span is None or not outcome:
                return
            del self._open[str(id)]
        self._end(span, outcome, known)

    def _end(self, span: Any, outcome: str, known: dict[str, Any]) -> None:
        results = {name: known[name] for name in ("reward", "cost", "reason") if name in known}
        span.set_attributes({f"worthwhile.{name}": value for name, value in (results | {"outcome": outcome}).items()})
        if outcome == "failed":
            span.set_status(Status(StatusCode.ERROR, known.get("reason")))
        span.end()
        labels = {"kind": known["kind"], "option": attribute(known["option"])}
        self._tasks.add(1, labels | {"outcome": outcome})
        if "cost" in known:
            self._costs.record(known["cost"], labels)
        if outcome == "reported":
            self._rewards.record(known["reward"], labels)


def attribute(value: Any) -> Any:
    """Attributes have no null; an option may."""
    return "null" if value is None else value
