"""`Decided`: a Celery task whose option is chosen when it is sent, and reported by the worker. Extra `celery`.

The scheduler's key is Celery's task id: whatever is sent or delivered twice is one task.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from worthwhile.errors import BadParameter, Error, MissingExtra
from worthwhile.live.task import Task, in_words
from worthwhile.live.validation import Option
from worthwhile.policies.features import Feature

try:
    from celery import Task as CeleryTask
    from celery import uuid
except ImportError:
    raise MissingExtra("a Celery task", "celery") from None

if TYPE_CHECKING:
    from worthwhile.live.scheduler import Scheduler
    from worthwhile.service.client import Client

log = logging.getLogger(__name__)
HEADER = "worthwhile"  # of the message: the id of our task and which attempt it is
opened: dict[tuple[int, Callable[[], Any]], Scheduler | Client] = {}  # by process: workers are forked


class Decided(CeleryTask):  # type: ignore[misc]
    """The base of a task that takes `option` as an argument by name, and returns its reward, or (reward, cost).

    `@app.task(base=Decided, options=[1, 5, 10], scheduler=open_scheduler)`: `open_scheduler()` is called once in each
    process. Without a cost, it is the seconds that the task ran. `kind` is the task's name unless told.
    """

    abstract = True
    options: Sequence[Option] = ()
    scheduler: Callable[[], Scheduler | Client] | None = None
    kind: str | None = None
    lease: float | None = None
    usual: Option = None  # what is sent if the scheduler does not answer; None lets sending fail

    def features(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Mapping[str, Feature] | None:
        """What is known of a task from its arguments; nothing unless overridden."""
        return None

    def apply_async(
        self, args: Any = None, kwargs: Any = None, task_id: str | None = None, headers: Any = None, **more: Any
    ) -> Any:
        """Send it with the option that was chosen; whoever gives it an option of their own has chosen."""
        id, given = task_id or uuid(), dict(kwargs or {})
        sent = {name: value for name, value in (headers or {}).items() if name != HEADER}
        tried_again = self.request.id is not None and self.request.id == task_id
        if tried_again or "option" not in given:
            task = self._another() if tried_again else self._decide(id, args or (), given)
            if task is not None:
                given["option"], sent[HEADER] = task.option, {"task": task.id, "attempt": task.attempt}
            elif not tried_again:
                given["option"] = self.usual
        return super().apply_async(args, given, task_id=id, headers=sent, **more)

    def _open(self) -> Scheduler | Client:
        """This process's own."""
        open_scheduler = type(self).scheduler
        if open_scheduler is None or not self.options:
            raise BadParameter(f"task {self.name}: it needs options= and scheduler=, a function that opens one")
        scheduler = opened.get((os.getpid(), open_scheduler))
        if scheduler is None:
            scheduler = opened[os.getpid(), open_scheduler] = open_scheduler()
        return scheduler

    def _decide(self, key: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Task | None:
        """The task in our books; None if the scheduler does not answer and there is a usual option."""
        scheduler, features = self._open(), self.features(args, kwargs)
        try:
            return scheduler.decide(
                self.kind or self.name, self.options, features=features, key=key, lease=self.lease, usual=self.usual
            )
        except Error as error:
            if self.usual is None:
                raise
            log.warning("task %s takes its usual option: %s", key, error)
            return None

    def _another(self) -> Task | None:
        """After `self.retry()`: this attempt has failed, and the next takes what has not; None if nothing is left."""
        record = self._record()
        if record is None:
            return None
        self._failed(record, sys.exc_info()[1])
        try:
            return self._open().again(record["task"], record["attempt"])
        except Error as error:
            log.warning("task %s goes on with its option, unreported: %s", self.request.id, error)
            return None

    def _record(self) -> dict[str, Any] | None:
        """Which of our tasks this message is."""
        record: dict[str, Any] | None = (self.request.headers or {}).get(HEADER)
        return record

    def before_start(self, task_id: str, args: Any, kwargs: Any) -> None:
        self.request.began = time.perf_counter()
        super().before_start(task_id, args, kwargs)

    def _seconds(self) -> float:
        return max(time.perf_counter() - float(self.request.began), 1e-9)

    def on_success(self, retval: Any, task_id: str, args: Any, kwargs: Any) -> None:
        """Report what it returned."""
        record = self._record()
        if record is not None:
            reward, cost = retval if isinstance(retval, tuple | list) else (retval, self._seconds())
            self._tell(self._open().report, record, reward, cost)
        super().on_success(retval, task_id, args, kwargs)

    def on_failure(self, exc: Any, task_id: str, args: Any, kwargs: Any, einfo: Any) -> None:
        """It has raised."""
        record = self._record()
        if record is not None:
            self._failed(record, exc)
        super().on_failure(exc, task_id, args, kwargs, einfo)

    def _failed(self, record: Mapping[str, Any], error: BaseException | None) -> None:
        reason = in_words(error) if isinstance(error, Exception) else ""
        self._tell(self._open().fail, record, self._seconds(), reason)

    def _tell(self, method: Callable[..., None], record: Mapping[str, Any], *values: Any) -> None:
        """Celery's task has ended as it has, whatever becomes of the report."""
        try:
            method(record["task"], *values, attempt=record["attempt"])
        except Error as error:
            log.error("task %s: what came of it could not be stored: %s", record["task"], error)
