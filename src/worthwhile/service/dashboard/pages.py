"""All pages in one table, with style sheets, scripts and the description of the API."""

from __future__ import annotations

from importlib.resources import files

from worthwhile import errors
from worthwhile.errors import Error
from worthwhile.service.dashboard.overview import Listing, View, home, live, live_schedulers, scheduler, schedulers
from worthwhile.service.dashboard.rendering import render
from worthwhile.service.dashboard.sessions import Login, log_in, log_out
from worthwhile.service.dashboard.settings import settings
from worthwhile.service.dashboard.tasks import Search, download, tasks, why
from worthwhile.service.endpoint import Call, Endpoint, Reply
from worthwhile.service.problems import HttpError, status_of_class
from worthwhile.service.schemas import Nothing

CONTENT_TYPES = {"css": b"text/css; charset=utf-8", "js": b"text/javascript; charset=utf-8", "svg": b"image/svg+xml"}
STATIC = {
    file.name: Reply(file.read_bytes(), CONTENT_TYPES[suffix])
    for file in (files(__package__) / "static").iterdir()
    if (suffix := file.name.rpartition(".")[2]) in CONTENT_TYPES
}
ONE = "/schedulers/{scheduler}"


async def static(call: Call) -> Reply:
    """Style sheets, scripts and the icon: these and no other files."""
    name = call.path["file"]
    if name not in STATIC:
        raise HttpError(f"no file {name!r}; / is the dashboard, /docs the API", 404)
    return STATIC[name]


async def docs(call: Call) -> Reply:
    classes = [error for error in vars(errors).values() if isinstance(error, type) and issubclass(error, Error)]
    rows = [(status_of_class(error), error.__name__, (error.__doc__ or "").splitlines()[0]) for error in classes]
    return render("docs.html", errors=sorted(rows, key=lambda row: row[0]))


PAGES = (
    Endpoint("GET", "/", "none", home, "The dashboard", query=View),
    Endpoint("GET", "/schedulers", "none", schedulers, "All schedulers", query=Listing),
    Endpoint("GET", "/live", "none", live_schedulers, "Their list", query=Listing),
    Endpoint("GET", ONE, "none", scheduler, "A scheduler", query=View),
    Endpoint("GET", ONE + "/live", "none", live, "Its sections", query=View),
    Endpoint("GET", ONE + "/settings", "none", settings, "Its settings"),
    Endpoint("GET", ONE + "/tasks", "none", tasks, "Its tasks", query=Search),
    Endpoint("GET", ONE + "/tasks.csv", "none", download, "Its tasks as a file", query=Search),
    Endpoint("GET", ONE + "/tasks/{task}", "none", why, "Why this option"),
    Endpoint("GET", "/static/{file}", "none", static, "Style sheets and scripts"),
    Endpoint("GET", "/docs", "none", docs, "The API for people"),
    Endpoint("POST", "/login", "none", log_in, "Open a session", Login),
    Endpoint("POST", "/logout", "none", log_out, "End it", Nothing),
)
