"""The pages: how a scheduler stands, why a task got its option, what the API takes, and where a token is entered."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from functools import wraps
from importlib.resources import files
from typing import Annotated, Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from msgspec import Meta
from msgspec.structs import asdict

from worthwhile import __version__, errors
from worthwhile.errors import AccessDenied, Error, StoreError, UnknownScheduler
from worthwhile.formatting import rounded, shown
from worthwhile.live.gain import OF, signed, span
from worthwhile.live.summary import MOST_FEATURES, advantage_text, counted, gain_text, more, own_tasks
from worthwhile.service.auth import COOKIE, session_in
from worthwhile.service.dashboard.drawing import INTERVAL, chart, intervals
from worthwhile.service.dispatcher import Dispatcher
from worthwhile.service.endpoint import Call, Endpoint, Reply
from worthwhile.service.problems import HttpError, status_of, status_of_class
from worthwhile.service.routes import explain, read_task
from worthwhile.service.schemas import Message, Nothing, Text
from worthwhile.service.tokens import SESSION, hash_of, keep_session, new_session

HTML = b"text/html; charset=utf-8"
RECENT = 15  # tasks
OPTIONS = 8  # of a kind, on a page of several
POINTS = 200
CONTENT_TYPES = {"css": b"text/css; charset=utf-8", "js": b"text/javascript; charset=utf-8", "svg": b"image/svg+xml"}
STATIC = {
    file.name: Reply(file.read_bytes(), CONTENT_TYPES[suffix])
    for file in (files(__package__) / "static").iterdir()
    if (suffix := file.name.rpartition(".")[2]) in CONTENT_TYPES
}


class View(Message):
    """Which kinds a page shows: so many after so many, those with the most reports first, or one of them in full."""

    kinds: Annotated[int, Meta(ge=1, le=100)] = 10
    skip: Annotated[int, Meta(ge=0, lt=2**31)] = 0
    kind: Text | None = None


class Login(Message):
    """A token; the browser gets a session for it, in a cookie that scripts cannot read."""

    token: Text


def ago(moment: float) -> str:
    """How long since, in words."""
    seconds = max(0.0, time.time() - moment)
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit} ago"
    return f"{seconds:.0f} s ago"


def number(value: float | None) -> str:
    """Four digits, or all of them before the point."""
    if value is None:
        return "–"
    if value == 0.0:
        return "0"
    if 1000.0 <= abs(value) < 1e15:
        text = f"{value:,.0f}"
    elif value and not 1e-3 <= abs(value) < 1e15:
        text = f"{value:.3g}"
    else:
        text = f"{value:#.4g}".rstrip(".")
    return text.replace("-", "−")


def give_or_take(value: float, error: float) -> tuple[str, str]:
    """A score to the digits that its error leaves, and that error."""
    score, margin = rounded(value, error)
    return score.replace("-", "−"), margin


templates = Environment(
    loader=PackageLoader(__package__), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
)
templates.filters |= {
    filter.__name__: filter
    for filter in (ago, number, shown, more, counted, gain_text, own_tasks, advantage_text, signed)
}
templates.globals |= {"version": __version__, "link": lambda text: quote(text, safe=""), "intervals": intervals}
templates.globals |= {"span": span, "gain_of": OF}
templates.globals |= {"interval_width": INTERVAL, "give_or_take": give_or_take, "most_features": MOST_FEATURES}

Page = Callable[[Call], Awaitable[Reply]]


def render(template: str, status: int = 200, **variables: Any) -> Reply:
    return Reply(templates.get_template(template).render(**variables).encode(), HTML, status)


def guarded(page: Page) -> Page:
    """People see a form for their token, or what is wrong, as a page."""

    @wraps(page)
    async def answer(call: Call) -> Reply:
        session = bool(session_in(call.headers))
        try:
            caller = await call.service.admit(call.headers, "read", False, call.path.get("scheduler"))
        except AccessDenied as error:
            return render("login.html", status_of(error), problem=str(error) if session else "")
        try:
            return await page(call._replace(caller=caller))
        except Error as error:
            headers = ((b"retry-after", b"2"),) if status_of(error) == 503 else ()
            away = isinstance(error, StoreError) and headers
            words = "The store cannot be reached at the moment." if away else str(error)
            return render("error.html", status_of(error), words=words, signed_in=session)._replace(headers=headers)

    return answer


@guarded
async def home(call: Call) -> Reply:
    """The first scheduler, or an invitation to make one."""
    names = await names_for(call)
    if not names:
        raise UnknownScheduler("there is no scheduler here for you yet")
    return await scheduler_page(call, "default" if "default" in names else names[0], names)


@guarded
async def scheduler(call: Call) -> Reply:
    return await scheduler_page(call, call.path["scheduler"], await names_for(call))


async def names_for(call: Call) -> list[str]:
    """The schedulers that a caller may see."""
    return [name for name in await call.service.dispatchers.all_names() if call.caller.may_use(name)]


async def scheduler_page(call: Call, name: str, names: list[str]) -> Reply:
    dispatcher = await call.service.dispatchers.find(name)
    return await call.read(draw, "scheduler.html", dispatcher, call.query, address(call), names, signed_in(call))


@guarded
async def live(call: Call) -> Reply:
    """What has changed on a scheduler's page since."""
    return await call.read(draw, "sections.html", await call.dispatcher(), call.query, address(call))


def address(call: Call) -> str:
    """Where this service is, as the browser sees it."""
    scheme = "https" if behind_tls(call) else "http"
    return f"{scheme}://{call.headers.get(b'host', b'localhost').decode('latin-1')}"


def behind_tls(call: Call) -> bool:
    return call.headers.get(b"x-forwarded-proto") == b"https"


def signed_in(call: Call) -> bool:
    """Whether there is a session to end."""
    return bool(call.caller.token and session_in(call.headers))


def draw(
    template: str, dispatcher: Dispatcher, view: View, address: str, names: Sequence[str] = (), signed_in: bool = False
) -> Reply:
    """A scheduler's page, or its sections; it takes a while, so a thread does it."""
    summary = dispatcher.summary()
    kinds = [kind for kind in summary.kinds if view.kind in (None, kind.kind)]
    kinds.sort(key=lambda kind: -(kind.reports + kind.failed + kind.expired))
    points = dispatcher.scheduler._transactor.statistics.series(POINTS)
    return render(
        template,
        summary=summary,
        kinds=kinds[view.skip : view.skip + view.kinds],
        wide=chart(points, 760, 480),
        narrow=chart(points, 350, 240),
        recent=dispatcher.scheduler.latest(RECENT),
        view=view,
        most_options=OPTIONS if view.kind is None else None,
        query=urlencode({name: value for name, value in asdict(view).items() if value is not None}),
        address=address,
        names=names,
        signed_in=signed_in,
    )


@guarded
async def why(call: Call) -> Reply:
    task, name = await read_task(call), call.path["scheduler"]
    return render("task.html", explanation=await explain(call), task=task, name=name, signed_in=signed_in(call))


async def static(call: Call) -> Reply:
    """Style sheets, scripts and the icon: these and no other files."""
    name = call.path["file"]
    if name not in STATIC:
        raise HttpError(f"no file {name!r}; / is the dashboard, /docs the API", 404)
    return STATIC[name]


async def log_in(call: Call) -> Reply:
    """Open a session, for reading only, on this site only; the browser never keeps the token."""
    auth, dispatchers = call.service.auth, call.service.dispatchers
    caller = auth.check({b"authorization": b"Bearer " + call.body.token.encode()}, "read", changes=False)
    secret, session = new_session(caller.token)
    await dispatchers.ask_store(dispatchers.transact, lambda tx: keep_session(tx, session))
    auth.sessions[session.hash] = session
    return with_cookie(call, secret, int(SESSION))


async def log_out(call: Call) -> Reply:
    """End the browser's session, here and wherever else its cookie may be."""
    auth, dispatchers = call.service.auth, call.service.dispatchers
    ended = hash_of(session_in(call.headers))
    if ended in auth.sessions:
        await dispatchers.ask_store(dispatchers.transact, lambda tx: tx.end_sessions([ended]))
        auth.sessions.pop(ended, None)
    return with_cookie(call, "", 0)


def with_cookie(call: Call, value: str, seconds: int) -> Reply:
    secure = "; Secure" if behind_tls(call) else ""
    cookie = f"{COOKIE}={value}; HttpOnly; SameSite=Strict; Path=/; Max-Age={seconds}{secure}"
    return Reply(b"{}", b"application/json", headers=((b"set-cookie", cookie.encode()),))


async def docs(call: Call) -> Reply:
    classes = [error for error in vars(errors).values() if isinstance(error, type) and issubclass(error, Error)]
    rows = [(status_of_class(error), error.__name__, (error.__doc__ or "").splitlines()[0]) for error in classes]
    return render("docs.html", errors=sorted(rows, key=lambda row: row[0]))


PAGES = (
    Endpoint("GET", "/", "none", home, "The dashboard", query=View),
    Endpoint("GET", "/schedulers/{scheduler}", "none", scheduler, "A scheduler", query=View),
    Endpoint("GET", "/schedulers/{scheduler}/live", "none", live, "Its sections", query=View),
    Endpoint("GET", "/schedulers/{scheduler}/tasks/{task}", "none", why, "Why this option"),
    Endpoint("GET", "/static/{file}", "none", static, "Style sheets and scripts"),
    Endpoint("GET", "/docs", "none", docs, "The API for people"),
    Endpoint("POST", "/login", "none", log_in, "Open a session", Login),
    Endpoint("POST", "/logout", "none", log_out, "End it", Nothing),
)
