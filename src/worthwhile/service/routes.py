"""What can be asked under /v1, in one table."""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

import msgspec

from worthwhile import __version__
from worthwhile.errors import BadTask, Error, Overloaded, StoreError, UnknownTask
from worthwhile.live.batch import Batch
from worthwhile.live.explain import Explanation, TaskLine
from worthwhile.live.group_commit import Request
from worthwhile.live.history import TYPES, Line, Recorded, recorded, take_in
from worthwhile.live.requests import Deciding, Reporting, cancelling, observing
from worthwhile.live.scheduler import Scheduler
from worthwhile.live.settings import policy_words
from worthwhile.live.summary import Summary
from worthwhile.live.validation import check_text, option_text
from worthwhile.service import schemas as m
from worthwhile.service.dispatcher import Desk, Wanted
from worthwhile.service.endpoint import Call, Endpoint, Reply
from worthwhile.service.problems import problem_of

ONE = "/v1/schedulers/{scheduler}"
TASK = ONE + "/tasks/{task}"
LOG = ("application/x-ndjson", "text/csv")


def keyed(call: Call) -> str | None:
    """The header Idempotency-Key stands for the field `key`."""
    given = call.headers.get(b"idempotency-key")
    return None if given is None else check_text("key", given.decode("latin-1"))


async def list_schedulers(call: Call) -> m.SchedulerNames:
    desks = call.service.desks
    return m.SchedulerNames(await desks.look(desks.names))


async def create_scheduler(call: Call) -> m.SchedulerFacts:
    given: m.Create = call.body
    settings = Wanted(given.policy, given.overhead, given.seed)
    desk = await call.service.desks.make(call.names["scheduler"], settings)
    return await facts_of(call, desk)


async def read_scheduler(call: Call) -> m.SchedulerFacts:
    return await facts_of(call, await call.desk())


async def change_scheduler(call: Call) -> m.SchedulerFacts:
    given: m.Change = call.body
    desk = await call.desk()
    await call.service.desks.read(desk.scheduler.change, given.policy, given.overhead)
    return await facts_of(call, desk)


async def facts_of(call: Call, desk: Desk) -> m.SchedulerFacts:
    """A scheduler's settings and counts."""

    def found(batch: Batch) -> m.SchedulerFacts:
        replica, header = batch.replica, batch.header
        retired = [m.RetiredOption(msgspec.json.decode(option), kind) for kind, option in replica.settings.retired]
        policy = policy_words(replica.policies.texts[replica.settings.policy])
        overhead = replica.settings.overhead
        return m.SchedulerFacts(desk.scheduler.name, policy, overhead, retired, header.tasks, header.reports)

    facts: m.SchedulerFacts = await call.service.desks.do(desk, Request(found))
    return facts


async def decide(call: Call) -> m.Decided:
    desk, given = await call.desk(), call.body
    request = Deciding(desk.scheduler, given.kind, given.options, given.key or keyed(call), given.lease)
    task = await call.service.desks.do(desk, request)
    return m.Decided(task.id, task.kind, task.option, task.state)


async def decide_many(call: Call) -> m.DecidedMany:
    """Every task is decided, or has its own problem."""
    desk, key = await call.desk(), keyed(call)
    asked: list[Request | Error] = []
    for place, one in enumerate(call.body.tasks):
        own = one.key or (None if key is None else f"{key}.{place}")
        try:
            asked.append(Deciding(desk.scheduler, one.kind, one.options, own, one.lease))
        except Error as reason:
            asked.append(reason)
    await ask(call, desk, asked)
    answers = []
    for one in asked:
        wrong = reason_of(one)
        if wrong is not None:
            answers.append(m.DecidedOrNot(problem=problem_of(wrong)))
        elif isinstance(one, Request):
            answers.append(m.DecidedOrNot(one.answer.id, one.answer.kind, one.answer.option, one.answer.state))
    return m.DecidedMany(answers)


async def ask(call: Call, desk: Desk, asked: Sequence[Request | Error]) -> None:
    """Have all requests done; if the store failed, it failed for all of them."""
    requests = [one for one in asked if isinstance(one, Request)]
    await desk.ask(requests, call.service.desks.patience)
    for one in requests:
        if one.reason is not None and not isinstance(one.reason, Error):
            raise one.reason
        if isinstance(one.reason, Error) and problem_of(one.reason).status == 503:
            raise one.reason


def reason_of(one: Request | Error) -> Error | None:
    if isinstance(one, Error):
        return one
    return one.reason if isinstance(one.reason, Error) else None


async def latest(call: Call) -> list[TaskLine]:
    desk, given = await call.desk(), call.query
    if given.ids is not None:
        return await call.service.desks.read(desk.scheduler.tasks, given.ids.split(","))
    return await call.service.desks.read(desk.scheduler.latest, given.count)


async def read_task(call: Call) -> TaskLine:
    desk, id = await call.desk(), call.names["task"]
    found = await call.service.desks.read(desk.scheduler.tasks, [id])
    if not found:
        raise UnknownTask(f"no task {id} in scheduler {desk.scheduler.name!r}; an id is what decide gave")
    return found[0]


async def explain(call: Call) -> Explanation:
    desk, id = await call.desk(), call.names["task"]
    return await call.service.desks.join(("explain", desk.scheduler.name, id), desk.scheduler.explain, id)


async def report(call: Call) -> m.Taken:
    desk = await call.desk()
    try:
        await call.service.desks.do(desk, Reporting(call.names["task"], call.body.reward, call.body.cost))
    except Error as reason:
        desk.refused += problem_of(reason).status < 500
        raise
    return m.Taken(1)


async def report_many(call: Call) -> m.ReportedMany:
    """Every report is taken, or has its own problem."""
    desk = await call.desk()
    asked: list[Request | Error] = []
    for one in call.body.reports:
        try:
            asked.append(Reporting(one.task, one.reward, one.cost))
        except Error as reason:
            asked.append(reason)
    await ask(call, desk, asked)
    refused: list[m.RefusedReport] = []
    for place, (request, one) in enumerate(zip(asked, call.body.reports, strict=True)):
        wrong = reason_of(request)
        if wrong is not None:
            refused.append(m.RefusedReport(place, one.task, problem_of(wrong)))
    desk.refused += len(refused)
    return m.ReportedMany(len(asked) - len(refused), refused)


async def observe(call: Call) -> m.Taken:
    desk, given = await call.desk(), call.body
    await call.service.desks.do(desk, observing(call.names["task"], given.option, given.reward, given.cost))
    return m.Taken(1)


async def cancel(call: Call) -> m.Taken:
    await call.service.desks.do(await call.desk(), cancelling(call.names["task"]))
    return m.Taken(1)


async def retire(call: Call) -> m.SchedulerFacts:
    desk, given = await call.desk(), call.body
    await call.service.desks.read(desk.scheduler.retire, given.option, given.kind)
    return await facts_of(call, desk)


async def restore(call: Call) -> m.SchedulerFacts:
    """Also if it was not retired: whoever asks twice gets what was asked for."""
    desk, given = await call.desk(), call.body
    option_text(given.option)
    with suppress(BadTask):
        await call.service.desks.read(desk.scheduler.restore, given.option, given.kind)
    return await facts_of(call, desk)


async def announce(call: Call) -> m.SchedulerFacts:
    desk, given = await call.desk(), call.body
    await call.service.desks.read(desk.scheduler.announce, given.kinds, given.options)
    return await facts_of(call, desk)


async def load(call: Call) -> m.Taken:
    rows = [checked(place, row) for place, row in enumerate(call.body.rows)]
    return m.Taken(await call.service.desks.do(await call.desk(), Request(partial(take_in, rows=rows))))


def checked(place: int, row: m.Past) -> Recorded:
    try:
        return recorded(**msgspec.structs.asdict(row))
    except Error as reason:
        raise type(reason)(f"row {place}: {reason}; nothing was taken in") from None


async def rebuild(call: Call) -> m.Rebuilt:
    desk = await call.desk()
    return m.Rebuilt(await call.service.desks.join(("rebuild", desk.scheduler.name), desk.scheduler.rebuild))


async def summary(call: Call) -> Summary:
    desk, kinds = await call.desk(), call.query.kinds
    summary = await call.service.desks.read(desk.summary)
    if kinds is None:
        return summary
    most_reported = sorted(summary.kinds, key=lambda kind: -kind.reports)
    return replace(summary, kinds=most_reported[:kinds])


async def series(call: Call) -> m.Series:
    desk = await call.desk()
    return m.Series(await call.service.desks.read(desk.scheduler._transactor.statistics.series, call.query.points))


async def export(call: Call) -> Reply:
    desk, format = await call.desk(), call.query.format
    portions = in_portions(desk.scheduler, format, call.query.after)
    first = await call.service.desks.read(next, portions, None)

    async def stream() -> AsyncIterator[bytes]:
        portion = first
        while portion is not None:
            yield portion
            portion = await call.service.desks.read(next, portions, None)

    return Reply(stream(), b"text/csv; charset=utf-8" if format == "csv" else b"application/x-ndjson")


def in_portions(scheduler: Scheduler, format: str, after: int) -> Iterator[bytes]:
    """The log as text, portion by portion."""
    if format == "csv":
        yield as_csv([dict(zip(TYPES, TYPES, strict=True))])
    for lines in scheduler._transactor.lines(after):
        yield as_csv(lines) if format == "csv" else b"".join(msgspec.json.encode(line) + b"\n" for line in lines)


def as_csv(lines: Sequence[Line]) -> bytes:
    text = io.StringIO(newline="")
    csv.DictWriter(text, list(TYPES)).writerows(lines)
    return text.getvalue().encode()


async def health(call: Call) -> m.Health:
    return m.Health("ok", __version__)


async def ready(call: Call) -> m.Health:
    await call.service.desks.look(call.service.desks.names)
    return m.Health("ready", __version__)


async def metrics(call: Call) -> Reply:
    desks, found = call.service.desks, []
    with suppress(StoreError, Overloaded):  # a store that is away is no reason to be blind
        for desk in list(desks.open.values()):
            found.append(await desks.read(desk.summary))
    return Reply(call.service.metrics.text(found).encode(), b"text/plain; version=0.0.4; charset=utf-8")


ENDPOINTS = (
    Endpoint("GET", "/v1/schedulers", "read", list_schedulers, "All schedulers", gives=m.SchedulerNames),
    Endpoint("PUT", ONE, "admin", create_scheduler, "Make a scheduler", m.Create, gives=m.SchedulerFacts),
    Endpoint("GET", ONE, "read", read_scheduler, "A scheduler's settings", gives=m.SchedulerFacts),
    Endpoint("PATCH", ONE, "admin", change_scheduler, "Change settings", m.Change, gives=m.SchedulerFacts),
    Endpoint("POST", ONE + "/tasks", "decide", decide, "Decide", m.Decide, gives=m.Decided),
    Endpoint("POST", ONE + "/decide", "decide", decide_many, "Decide many", m.DecideMany, gives=m.DecidedMany),
    Endpoint("GET", ONE + "/tasks", "read", latest, "The latest tasks", query=m.Latest, gives=list[TaskLine]),
    Endpoint("GET", TASK, "read", read_task, "A task", gives=TaskLine),
    Endpoint("GET", TASK + "/explanation", "read", explain, "Why this option?", gives=Explanation),
    Endpoint("POST", TASK + "/report", "report", report, "Report, also in two parts", m.Report, gives=m.Taken),
    Endpoint("POST", TASK + "/observations", "report", observe, "A side observation", m.Observe, gives=m.Taken),
    Endpoint("POST", TASK + "/cancel", "report", cancel, "It will not report", m.Nothing, gives=m.Taken),
    Endpoint("POST", ONE + "/reports", "report", report_many, "Report many", m.ReportMany, gives=m.ReportedMany),
    Endpoint("GET", ONE + "/summary", "read", summary, "How it stands", query=m.Kinds, gives=Summary),
    Endpoint("GET", ONE + "/series", "read", series, "The ratio over time", query=m.Points, gives=m.Series),
    Endpoint("GET", ONE + "/export", "read", export, "The log", query=m.Format, kinds=LOG),
    Endpoint("POST", ONE + "/retire", "admin", retire, "Never choose it again", m.Retire, gives=m.SchedulerFacts),
    Endpoint("POST", ONE + "/restore", "admin", restore, "Undo that", m.Retire, gives=m.SchedulerFacts),
    Endpoint("POST", ONE + "/announce", "admin", announce, "Number names", m.Announce, gives=m.SchedulerFacts),
    Endpoint("POST", ONE + "/history", "admin", load, "Learn from history", m.History, gives=m.Taken),
    Endpoint("POST", ONE + "/rebuild", "admin", rebuild, "Replay the log", m.Nothing, gives=m.Rebuilt),
    Endpoint("GET", "/v1/health", "none", health, "Does it run?", gives=m.Health),
    Endpoint("GET", "/v1/ready", "none", ready, "Can it reach its store?", gives=m.Health),
    Endpoint("GET", "/metrics", "read", metrics, "For Prometheus", kinds=("text/plain",)),
)
