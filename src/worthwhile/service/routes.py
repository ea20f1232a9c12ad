"""What can be asked under /v1, in one table."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec

from worthwhile import __version__
from worthwhile.errors import BadFeedback, BadRequest, Error, Overloaded, StoreError, UnknownTask
from worthwhile.live.batch import Batch
from worthwhile.live.evaluate import Evaluation
from worthwhile.live.explain import Explanation, TaskLine
from worthwhile.live.group_commit import Request
from worthwhile.live.history import TYPES, Line, take_in
from worthwhile.live.local import Copy, Taken, TakingIn, copy_of
from worthwhile.live.recorded import Recorded, recorded
from worthwhile.live.requests import Deciding, Reporting, Retrying, cancelling, failing, observing
from worthwhile.live.scheduler import Scheduler
from worthwhile.live.summary import Summary
from worthwhile.live.task import Task
from worthwhile.policies.registry import check_importable
from worthwhile.service import schemas
from worthwhile.service.changes import (
    announce,
    audit,
    change_scheduler,
    create_scheduler,
    declare,
    forget,
    pause,
    promote,
    read_scheduler,
    restore,
    resume,
    retire,
)
from worthwhile.service.dispatcher import Dispatcher
from worthwhile.service.endpoint import Call, Endpoint, Reply
from worthwhile.service.openapi import HEADER_KEY
from worthwhile.service.problems import problem_of, status_of

ALL = "/v1/schedulers"
ONE = ALL + "/{scheduler}"
TASK = ONE + "/tasks/{task}"
LOG = ("application/x-ndjson", "text/csv")
EXPORTED_AT_ONCE = 1000  # entries of the log
FEW = 8  # of them take less than 128 KB, however long their names and features
ENOUGH = 1 << 17  # bytes for a portion


def header_key(call: Call) -> str | None:
    """The header Idempotency-Key stands for the field `key`."""
    key = call.headers.get(b"idempotency-key")
    if key is None:
        return None
    if not re.fullmatch(HEADER_KEY.encode(), key):
        raise BadRequest("header Idempotency-Key: from 1 to 190 letters, digits and signs of ASCII, without spaces")
    return key.decode("ascii")


async def list_schedulers(call: Call) -> schemas.SchedulerNames:
    names = await call.service.dispatchers.all_names()
    return schemas.SchedulerNames([name for name in names if call.caller.may_use(name)])


async def decide(call: Call) -> schemas.Decided:
    dispatcher, body, common_key = await call.dispatcher(), call.body, header_key(call)
    key = body.key or common_key
    deciding = Deciding(dispatcher.scheduler, body.kind, body.options, key, body.lease, body.features, body.usual)
    task = await dispatcher.do(deciding, call.service.dispatchers.patience)
    return decided(task)


def decided(task: Task) -> schemas.Decided:
    return schemas.Decided(task.id, task.kind, task.option, task.state, task.attempt)


async def decide_many(call: Call) -> schemas.DecidedMany:
    """Every task is decided, or has its own problem."""
    dispatcher, common_key = await call.dispatcher(), header_key(call)

    def deciding(index: int, task: schemas.Decide) -> Request:
        key = task.key or (None if common_key is None else f"{common_key}.{index}")
        return Deciding(dispatcher.scheduler, task.kind, task.options, key, task.lease, task.features, task.usual)

    answers = await ask_each(call, dispatcher, call.body.tasks, deciding)
    return schemas.DecidedMany(
        [
            schemas.DecidedOrNot(problem=problem_of(task))
            if isinstance(task, Error)
            else schemas.DecidedOrNot(task.id, task.kind, task.option, task.state, task.attempt)
            for task in answers
        ]
    )


async def copy(call: Call) -> Copy:
    """Everything that a decision is based on, for a client that decides itself."""
    found: Copy = await call.do(Request(copy_of))
    return found


async def take_in_decisions(call: Call) -> schemas.TakenIn:
    """Every decision is taken in as it was made, or has its own problem."""
    dispatcher = await call.dispatcher()

    def taking(_: int, taken: schemas.TakenDecision) -> Request:
        return TakingIn(Taken(**msgspec.structs.asdict(taken)))

    answers = await ask_each(call, dispatcher, call.body.decisions, taking)
    return schemas.TakenIn(
        [
            schemas.TakenOrNot(problem=problem_of(task)) if isinstance(task, Error) else schemas.TakenOrNot(task)
            for task in answers
        ]
    )


async def ask_each(
    call: Call, dispatcher: Dispatcher, bodies: Sequence[Any], request_of: Callable[[int, Any], Request]
) -> list[Any]:
    """Have a request done for each, in one transaction; its answer, or its error unless that is everyone's."""
    requests: list[Request | Error] = []
    for index, body in enumerate(bodies):
        try:
            requests.append(request_of(index, body))
        except Error as error:
            requests.append(error)
    sound = [request for request in requests if isinstance(request, Request)]
    await dispatcher.ask(sound, call.service.dispatchers.patience)
    for request in sound:
        everyones = not isinstance(request.error, Error) or status_of(request.error) == 503
        if request.error is not None and everyones:
            raise request.error
    return [request if isinstance(request, Error) else request.error or request.answer for request in requests]


async def latest(call: Call) -> list[TaskLine]:
    scheduler, query = (await call.dispatcher()).scheduler, call.query
    if query.ids is not None:
        return await call.read(scheduler.tasks, query.ids.split(","))
    return await call.read(scheduler.latest, query.count)


async def read_task(call: Call) -> TaskLine:
    scheduler, id = (await call.dispatcher()).scheduler, call.path["task"]
    tasks = await call.read(scheduler.tasks, [id])
    if not tasks:
        raise UnknownTask(f"no task {id} in scheduler {scheduler.name!r}; an id is what decide gave")
    return tasks[0]


async def explain(call: Call) -> Explanation:
    scheduler, id = (await call.dispatcher()).scheduler, call.path["task"]
    return await call.service.dispatchers.share(("explain", scheduler.name, id), scheduler.explain, id)


async def report(call: Call) -> schemas.Taken:
    dispatcher = await call.dispatcher()
    try:
        reporting = Reporting(call.path["task"], call.body.reward, call.body.cost, call.body.attempt)
        await dispatcher.do(reporting, call.service.dispatchers.patience)
    except Error as error:
        if status_of(error) < 500:
            dispatcher.refuse(call.path["task"], error)
        raise
    return schemas.Taken(1)


async def fail(call: Call) -> schemas.Taken:
    dispatcher = await call.dispatcher()
    try:
        await call.do(failing(call.path["task"], call.body.cost, call.body.reason, call.body.attempt))
    except Error as error:
        if status_of(error) < 500:
            dispatcher.refuse(call.path["task"], error)
        raise
    return schemas.Taken(1)


async def again(call: Call) -> schemas.Decided:
    """The same task with another option."""
    scheduler, body = (await call.dispatcher()).scheduler, call.body
    return decided(await call.do(Retrying(scheduler, call.path["task"], body.after, body.lease)))


async def report_many(call: Call) -> schemas.ReportedMany:
    """Every report is taken, or has its own problem."""
    dispatcher, reports = await call.dispatcher(), call.body.reports
    answers = await ask_each(call, dispatcher, reports, lambda _, report: result_or_failure(report))
    refused = []
    for index, answer in enumerate(answers):
        if isinstance(answer, Error):
            refused.append(schemas.RefusedReport(index, reports[index].task, problem_of(answer)))
            dispatcher.refuse(reports[index].task, answer)
    return schemas.ReportedMany(len(reports) - len(refused), refused)


def result_or_failure(report: schemas.ReportOf) -> Request:
    if not report.failed:
        return Reporting(report.task, report.reward, report.cost, report.attempt)
    if report.reward is not None:
        raise BadFeedback(f"task {report.task}: what has failed has no reward; leave it out")
    return failing(report.task, report.cost, report.reason, report.attempt)


async def observe(call: Call) -> schemas.Taken:
    await call.do(observing(call.path["task"], call.body.option, call.body.reward, call.body.cost))
    return schemas.Taken(1)


async def cancel(call: Call) -> schemas.Taken:
    await call.do(cancelling(call.path["task"], call.body.attempt))
    return schemas.Taken(1)


async def load(call: Call) -> schemas.Taken:
    rows = [checked(index, row) for index, row in enumerate(call.body.rows)]

    def take(batch: Batch) -> int:
        new = take_in(batch, rows)
        call.record(batch, "history imported", {"rows": len(rows), "new": new})
        return new

    return schemas.Taken(await call.do(Request(take)))


def checked(index: int, row: schemas.Past) -> Recorded:
    try:
        return recorded(**msgspec.structs.asdict(row), place=f"row {index}")
    except Error as error:
        raise type(error)(f"row {index}: {error}; nothing was taken in") from None


async def rebuild(call: Call) -> schemas.Rebuilt:
    scheduler = (await call.dispatcher()).scheduler
    return schemas.Rebuilt(await call.service.dispatchers.share(("rebuild", scheduler.name), scheduler.rebuild))


async def summary(call: Call) -> Summary:
    summary = await call.read((await call.dispatcher()).summary)
    if call.query.kinds is None:
        return summary
    most_reported = sorted(summary.kinds, key=lambda kind: -kind.reports)
    return replace(summary, kinds=most_reported[: call.query.kinds])


async def evaluation(call: Call) -> Evaluation:
    query = call.query
    path = (query.policy or "").partition(",")[0]
    if ":" in path:
        check_importable(path, call.service.allowed_policies)
    scheduler = (await call.dispatcher()).scheduler
    asked = "evaluate", scheduler.name, query.rule, query.policy
    return await call.service.dispatchers.share(asked, partial(scheduler.evaluate, policy=query.policy), query.rule)


async def series(call: Call) -> schemas.Series:
    statistics = (await call.dispatcher()).scheduler._transactor.statistics
    query = call.query
    return schemas.Series(await call.read(statistics.series, query.points, query.last, query.seconds))


async def export(call: Call) -> Reply:
    scheduler, format = (await call.dispatcher()).scheduler, call.query.format
    portions = in_portions(scheduler, format, call.query.after)
    with ExitStack() as room:
        room.enter_context(call.service.exports.take())
        first = await call.read(next, portions, None)

        async def stream() -> AsyncIterator[bytes]:
            portion = first
            while portion is not None:
                yield portion
                portion = await call.read(next, portions, None)

        content_type = b"text/csv; charset=utf-8" if format == "csv" else b"application/x-ndjson"
        return Reply(stream(), content_type, finish=room.pop_all().close)


def in_portions(scheduler: Scheduler, format: str, after: int) -> Iterator[bytes]:
    """The log as text, in portions of at most 256 KB: each waits in memory until it is read."""
    text = as_csv([dict(zip(TYPES, TYPES, strict=True))]) if format == "csv" else b""
    for lines in scheduler._transactor.lines(after, EXPORTED_AT_ONCE):
        for start in range(0, len(lines), FEW):
            few = lines[start : start + FEW]
            text += as_csv(few) if format == "csv" else b"".join(msgspec.json.encode(line) + b"\n" for line in few)
            if len(text) >= ENOUGH:
                yield text
                text = b""
    yield text


def as_csv(lines: Sequence[Line]) -> bytes:
    text = io.StringIO(newline="")
    csv.DictWriter(text, list(TYPES)).writerows(lines)
    return text.getvalue().encode()


async def health(call: Call) -> schemas.Health:
    return schemas.Health("ok", __version__)


async def ready(call: Call) -> schemas.Health:
    await call.service.dispatchers.all_names()
    return schemas.Health("ready", __version__)


async def metrics(call: Call) -> Reply:
    summaries = []
    with suppress(StoreError, Overloaded):  # a store that is away is no reason to be blind
        for name, dispatcher in list(call.service.dispatchers.open.items()):
            if call.caller.may_use(name):
                summaries.append(await call.read(dispatcher.summary))
    return Reply(call.service.metrics.text(summaries).encode(), b"text/plain; version=0.0.4; charset=utf-8")


ENDPOINTS = (
    Endpoint("GET", ALL, "read", list_schedulers, "All schedulers"),
    Endpoint("PUT", ONE, "admin", create_scheduler, "Make a scheduler", schemas.Create),
    Endpoint("GET", ONE, "read", read_scheduler, "A scheduler's settings"),
    Endpoint("PATCH", ONE, "admin", change_scheduler, "Change settings", schemas.Change),
    Endpoint("POST", ONE + "/tasks", "decide", decide, "Decide", schemas.Decide, takes_key=True),
    Endpoint("POST", ONE + "/decide", "decide", decide_many, "Decide many", schemas.DecideMany, takes_key=True),
    Endpoint("GET", ONE + "/copy", "decide", copy, "What it knows, to decide from"),
    Endpoint("POST", ONE + "/taken", "decide", take_in_decisions, "Decided from a copy", schemas.TakeIn),
    Endpoint("GET", ONE + "/tasks", "read", latest, "The latest tasks", query=schemas.Latest),
    Endpoint("GET", TASK, "read", read_task, "A task"),
    Endpoint("GET", TASK + "/explanation", "read", explain, "Why this option?"),
    Endpoint("POST", TASK + "/report", "report", report, "Report, also in two parts", schemas.Report),
    Endpoint("POST", TASK + "/fail", "report", fail, "It has failed", schemas.Fail),
    Endpoint("POST", TASK + "/again", "decide", again, "Another attempt, after it has failed", schemas.Again),
    Endpoint("POST", TASK + "/observations", "report", observe, "A side observation", schemas.Observe),
    Endpoint("POST", TASK + "/cancel", "report", cancel, "It will not report", schemas.Cancel),
    Endpoint("POST", ONE + "/reports", "report", report_many, "Report many", schemas.ReportMany),
    Endpoint("GET", ONE + "/summary", "read", summary, "How it stands", query=schemas.Kinds),
    Endpoint("GET", ONE + "/evaluation", "read", evaluation, "What a rule would have earned", query=schemas.Evaluate),
    Endpoint("POST", ONE + "/promote", "admin", promote, "What share to decide next", schemas.Promote),
    Endpoint("GET", ONE + "/series", "read", series, "The ratio over time", query=schemas.Points),
    Endpoint("GET", ONE + "/export", "read", export, "The log", query=schemas.Format, content_types=LOG),
    Endpoint("POST", ONE + "/retire", "admin", retire, "Never choose it again", schemas.Retire),
    Endpoint("POST", ONE + "/restore", "admin", restore, "Let it be chosen again", schemas.Retire),
    Endpoint("POST", ONE + "/pause", "admin", pause, "Let every task take the baseline", schemas.Nothing),
    Endpoint("POST", ONE + "/resume", "admin", resume, "Decide again", schemas.Nothing),
    Endpoint("POST", ONE + "/forget", "admin", forget, "Forget features and reasons of tasks", schemas.Forget),
    Endpoint("POST", ONE + "/announce", "admin", announce, "Number names", schemas.Announce),
    Endpoint("POST", ONE + "/declare", "admin", declare, "Refuse other names", schemas.Declare),
    Endpoint("POST", ONE + "/history", "admin", load, "Learn from history", schemas.History),
    Endpoint("POST", ONE + "/rebuild", "admin", rebuild, "Replay the log", schemas.Nothing),
    Endpoint("GET", "/v1/audit", "admin", audit, "Who changed what", query=schemas.Audit),
    Endpoint("GET", "/v1/health", "none", health, "Does it run?"),
    Endpoint("GET", "/v1/ready", "none", ready, "Can it reach its store?"),
    Endpoint("GET", "/metrics", "read", metrics, "For Prometheus", content_types=("text/plain",)),
)
