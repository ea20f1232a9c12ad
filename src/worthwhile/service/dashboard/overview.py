"""The page of a scheduler, and the list of all."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Literal, NamedTuple

from msgspec import Meta
from msgspec.structs import asdict

from worthwhile.errors import Error, UnknownScheduler
from worthwhile.live.batch import Batch
from worthwhile.live.summary import Summary
from worthwhile.live.trials import TrialSettings
from worthwhile.service.changes import facts
from worthwhile.service.dashboard.answers import answers
from worthwhile.service.dashboard.drawing import DAY, HOUR, chart, sparkline
from worthwhile.service.dashboard.rendering import query, render, words_of
from worthwhile.service.dashboard.sessions import behind_tls, guarded, signed_in
from worthwhile.service.dispatcher import Dispatcher
from worthwhile.service.endpoint import Call, Reply
from worthwhile.service.schemas import Message, SchedulerFacts, Text

RECENT = 10  # tasks
OPTIONS = 8  # of a kind, on a page of several
POINTS, FEW_POINTS = 200, 40
LISTED = 20  # schedulers on a page
SPANS: dict[str, dict[str, Any]] = {
    "100": {"last": 100},
    "1000": {"last": 1000},
    "tasks": {},
    "hour": {"seconds": HOUR},
    "day": {"seconds": DAY},
    "time": {},
}  # what is shown of the curve


class View(Message):
    """Which kinds a page shows, those with the most reports first, or one of them in full; and what of the curve."""

    kinds: Annotated[int, Meta(ge=1, le=100)] = 10
    skip: Annotated[int, Meta(ge=0, lt=2**31)] = 0
    kind: Text | None = None
    range: Literal["100", "1000", "tasks", "hour", "day", "time"] = "tasks"


class Listing(Message):
    """Which schedulers are listed."""

    skip: Annotated[int, Meta(ge=0, lt=2**31)] = 0


class Row(NamedTuple):
    """A scheduler in the list; without a summary, why there is none."""

    name: str
    summary: Summary | None = None
    paused: bool = False
    spark: str = ""
    problem: str = ""


@guarded
async def home(call: Call) -> Reply:
    """The only scheduler, or the list of all."""
    names = await names_for(call)
    if not names:
        raise UnknownScheduler("there is no scheduler here for you yet")
    if len(names) > 1:
        return await listing(call, Listing())
    return await scheduler_page(call, names[0])


@guarded
async def scheduler(call: Call) -> Reply:
    return await scheduler_page(call, call.path["scheduler"])


@guarded
async def live(call: Call) -> Reply:
    """What has changed on a scheduler's page since."""
    return await call.read(draw, "sections.html", await call.dispatcher(), call.query, address(call), common(call))


@guarded
async def schedulers(call: Call) -> Reply:
    return await listing(call, call.query)


@guarded
async def live_schedulers(call: Call) -> Reply:
    """What has changed on the list since."""
    return await listing(call, call.query, "rows.html")


async def names_for(call: Call) -> list[str]:
    """The schedulers that a caller may see."""
    return [name for name in await call.service.dispatchers.all_names() if call.caller.may_use(name)]


async def scheduler_page(call: Call, name: str) -> Reply:
    dispatcher = await call.service.dispatchers.find(name)
    view = call.query if isinstance(call.query, View) else View()
    return await call.read(draw, "scheduler.html", dispatcher, view, address(call), common(call))


def common(call: Call) -> dict[str, Any]:
    """What every page has to know of who looks at it."""
    return {"signed_in": signed_in(call), "admin": call.caller.admin}


def address(call: Call) -> str:
    """Where this service is, as the browser sees it."""
    scheme = "https" if behind_tls(call) else "http"
    return f"{scheme}://{call.headers.get(b'host', b'localhost').decode('latin-1')}"


def draw(template: str, dispatcher: Dispatcher, view: View, address: str, more: dict[str, Any]) -> Reply:
    """A scheduler's page, or its sections; it takes a while, so a thread does it."""
    summary, transactor = dispatcher.summary(), dispatcher.scheduler._transactor
    settings, trial = transactor.do(partial(settings_of, dispatcher.scheduler.name))
    kinds = [kind for kind in summary.kinds if view.kind in (None, kind.kind)]
    kinds.sort(key=lambda kind: -(kind.reports + kind.failed + kind.expired))
    points, by_time = transactor.statistics.series(POINTS, **SPANS[view.range]), view.range in ("hour", "day", "time")
    return render(
        template,
        scheduler=summary.scheduler,
        tab="overview",
        summary=summary,
        answers=answers(summary),
        settings=settings,
        trial=trial,
        kinds=kinds[view.skip : view.skip + view.kinds],
        wide=chart(points, 760, 480, by_time),
        narrow=chart(points, 350, 260, by_time),
        recent=dispatcher.scheduler.latest(RECENT),
        view=view,
        shown={name: value for name, value in asdict(view).items() if value != getattr(View(), name)},
        most_options=OPTIONS if view.kind is None else None,
        address=address,
        units=(summary.reward_unit, summary.cost_unit),
        **more,
    )


def settings_of(name: str, batch: Batch) -> tuple[SchedulerFacts, TrialSettings]:
    return facts(name, batch), batch.replica.settings.trial


async def listing(call: Call, view: Listing, template: str = "schedulers.html") -> Reply:
    """All schedulers, those that need a look included."""
    names = await names_for(call)
    rows = [await row(call, name) for name in names[view.skip : view.skip + LISTED]]
    page: dict[str, Any] = {
        "names": names,
        "rows": rows,
        "view": view,
        "listed": LISTED,
        "here": query(skip=view.skip or None),
    }
    return render(template, **page, **common(call))


async def row(call: Call, name: str) -> Row:
    try:
        return await call.read(row_of, await call.service.dispatchers.find(name))
    except Error as error:
        return Row(name, problem=words_of(error))


def row_of(dispatcher: Dispatcher) -> Row:
    summary, transactor = dispatcher.summary(), dispatcher.scheduler._transactor
    paused = transactor.do(lambda batch: batch.replica.settings.trial.paused)
    return Row(dispatcher.scheduler.name, summary, paused, sparkline(transactor.statistics.series(FEW_POINTS)))
