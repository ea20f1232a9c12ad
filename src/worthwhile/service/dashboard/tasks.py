"""Pages about tasks: those somebody looks for, as a list or as a file, and one with the reason for its option."""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncIterator
from contextlib import ExitStack
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta
from msgspec.structs import asdict

from worthwhile.live.explain import TaskLine
from worthwhile.live.scheduler import Scheduler
from worthwhile.live.task_search import Wanted, page_of_tasks, portions
from worthwhile.live.validation import as_option, option_text
from worthwhile.service.dashboard.drawing import DAY, HOUR
from worthwhile.service.dashboard.overview import common
from worthwhile.service.dashboard.rendering import render
from worthwhile.service.dashboard.sessions import guarded
from worthwhile.service.endpoint import Call, Reply
from worthwhile.service.routes import explain, read_task
from worthwhile.service.schemas import Message

COUNT = 50  # tasks on a page
STATES = ("running", "reported", "failed", "expired", "cancelled")
TIMES = {"": "any time", f"{HOUR:g}": "last hour", f"{DAY:g}": "last day", f"{7 * DAY:g}": "last 7 days"}
MOST_CHOICES = 200  # kinds and options that a form proposes
FORMULA = ("=", "+", "-", "@", "\t", "\r")
COLUMNS = list(TaskLine.__dataclass_fields__)
Some = Annotated[str, Meta(max_length=200)]


class Search(Message):
    """Which tasks; what is empty does not matter."""

    kind: Some = ""
    option: Some = ""
    state: Literal["", "running", "reported", "failed", "expired", "cancelled"] = ""
    within: Annotated[str, Meta(pattern=r"^[0-9]{0,9}$", description="seconds since they were decided")] = ""
    before: Annotated[int, Meta(ge=1, lt=2**48)] | None = None

    def wanted(self) -> Wanted:
        option = option_text(as_option(self.option)) if self.option else None
        return Wanted(self.kind or None, option, self.state or None, float(self.within) if self.within else None)

    def filters(self) -> dict[str, Any]:
        """The same for an address, without the place in the list."""
        return {name: value for name, value in asdict(self).items() if value and name != "before"}


@guarded
async def tasks(call: Call) -> Reply:
    """A page of tasks, newest first."""
    scheduler, view = (await call.dispatcher()).scheduler, call.query
    found = await call.read(page_of_tasks, scheduler._transactor, view.wanted(), COUNT, view.before)
    kinds, options = await call.read(names, scheduler)
    filters, states = view.filters(), STATES
    return render(
        "tasks.html", scheduler=scheduler.name, tab="tasks", found=found, view=view, filters=filters, kinds=kinds,
        options=options, states=states, times=TIMES, **common(call),
    )  # fmt: skip


def names(scheduler: Scheduler) -> tuple[list[str], list[Any]]:
    """Kinds and options to choose from."""
    return scheduler._transactor.do(
        lambda batch: (
            [*batch.replica.kinds.texts[:MOST_CHOICES]],
            [batch.replica.option(number) for number in range(len(batch.replica.options.texts))][:MOST_CHOICES],
        )
    )


@guarded
async def download(call: Call) -> Reply:
    """All tasks that somebody looks for, as CSV; made as it is read."""
    scheduler, view = (await call.dispatcher()).scheduler, call.query
    with ExitStack() as room:
        room.enter_context(call.service.exports.take())
        found = portions(scheduler._transactor, view.wanted(), view.before)
        first = as_csv([dict(zip(COLUMNS, COLUMNS, strict=True))])

        async def stream() -> AsyncIterator[bytes]:
            yield first
            while (portion := await call.read(next, found, None)) is not None:
                yield as_csv([cells(line) for line in portion[0]])

        headers = ((b"content-disposition", b'attachment; filename="tasks.csv"'),)
        return Reply(stream(), b"text/csv; charset=utf-8", headers=headers, finish=room.pop_all().close)


def cells(line: TaskLine) -> dict[str, Any]:
    """A task as a row of a table; what is no number or text is JSON."""
    return {
        name: msgspec.json.encode(value).decode() if isinstance(value, dict | bool) else no_formula(value)
        for name in COLUMNS
        if (value := getattr(line, name)) is not None
    }


def no_formula(value: Any) -> Any:
    """Text that a spreadsheet would take for a formula, with the sign that says it is text."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


def as_csv(rows: list[dict[str, Any]]) -> bytes:
    text = io.StringIO(newline="")
    csv.DictWriter(text, COLUMNS).writerows(rows)
    return text.getvalue().encode()


@guarded
async def why(call: Call) -> Reply:
    task, name = await read_task(call), call.path["scheduler"]
    return render("task.html", scheduler=name, tab="tasks", explanation=await explain(call), task=task, **common(call))
