"""Pages from templates, and how numbers and times are written on them."""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import quote, urlencode

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined

from worthwhile import __version__
from worthwhile.errors import Error, StoreError
from worthwhile.formatting import counted, rounded, shown, titled
from worthwhile.live.summary_text import MOST_FEATURES, advantage_text, gain_text, more, own_tasks
from worthwhile.live.validation import option_text
from worthwhile.service.dashboard.drawing import INTERVAL, SPARK, intervals
from worthwhile.service.endpoint import Reply
from worthwhile.service.problems import status_of

HTML = b"text/html; charset=utf-8"
TITLES = {403: "This is not for you", 404: "There is nothing here", 503: "Not now"}


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


def link(text: str) -> str:
    return quote(text, safe="")


def query(**parameters: Any) -> str:
    """What follows a page's address; what is None or empty is left out."""
    given = {name: value for name, value in parameters.items() if value not in (None, "")}
    return f"?{urlencode(given)}" if given else ""


def as_json(content: Any) -> str:
    return msgspec.json.encode(content).decode()


templates = Environment(
    loader=PackageLoader(__package__), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
)
templates.filters |= {
    filter.__name__: filter
    for filter in (ago, number, shown, more, counted, gain_text, own_tasks, advantage_text, option_text, as_json)
}
functions = (link, query, intervals, give_or_take, titled)
templates.globals |= {function.__name__: function for function in functions}
templates.globals |= {
    "version": __version__,
    "interval_width": INTERVAL,
    "spark": SPARK,
    "most_features": MOST_FEATURES,
}
templates.globals |= {"scheduler": "", "tab": "", "signed_in": False, "admin": False}  # of pages that know no better


def render(template: str, status: int = 200, **variables: Any) -> Reply:
    return Reply(templates.get_template(template).render(**variables).encode(), HTML, status)


def error_page(error: Error, signed_in: bool = False) -> Reply:
    """What is wrong, for people."""
    status = status_of(error)
    headers = ((b"retry-after", b"2"),) if status == 503 else ()
    title = TITLES.get(status, "That did not work")
    return render("error.html", status, title=title, words=words_of(error), signed_in=signed_in)._replace(
        headers=headers
    )


def words_of(error: Error) -> str:
    """An error, without where the store is."""
    away = isinstance(error, StoreError) and status_of(error) == 503
    return "The store cannot be reached at the moment." if away else str(error)
