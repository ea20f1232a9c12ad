"""Where lines, dots and labels go: numbers for the templates, which draw them as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import NamedTuple

from worthwhile.live.ratio_curve import Point
from worthwhile.live.summary import OptionSummary

LEFT, RIGHT, TOP, BOTTOM = 52.0, 66.0, 14.0, 34.0  # margins of a chart
LABEL_GAP = 15.0
INTERVAL = 150.0  # width of an error bar's plot
EDGE = 8.0
FAR = 1000.0  # times the ratio: a price beyond is not drawn
SPARK = 120.0, 28.0  # width and height of a sparkline
CONTENDERS = 2  # whose intervals set the scale
MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0
TIME_STEPS = (1, 2, 5, 10, 15, 30, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR,
              2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY, 30 * DAY, 90 * DAY)  # fmt: skip


class Tick(NamedTuple):
    at: float
    text: str


class Line(NamedTuple):
    """A curve: what it shows, its path, where it ends, and where its name stands."""

    name: str
    style: str
    path: str
    end_x: float
    end_y: float
    label_y: float


class Chart(NamedTuple):
    """The ratio over time, of all reports and of the latest ones, and θ."""

    width: float
    height: float
    left: float
    right: float
    bottom: float
    across: list[Tick]
    up: list[Tick]
    axis: str
    lines: list[Line]


class Interval(NamedTuple):
    """A score with its error, on the scale of its kind's contenders; what lies beyond has no dot there."""

    low: float
    middle: float | None
    high: float
    zero: float | None
    beyond: str  # "left" or "right"


def steps(low: float, high: float, count: int) -> list[float]:
    """Round numbers from low to high, about so many."""
    if not high > low:
        return [low]
    raw = (high - low) / count
    size = 10.0 ** math.floor(math.log10(raw))
    step = next((size * nice for nice in (1, 2, 5, 10) if size * nice >= raw), size * 10)
    first = math.ceil(low / step - 1e-9)
    return [number * step for number in range(first, math.floor(high / step + 1e-9) + 1)]


def chart(points: Sequence[Point], width: float, height: float, by_time: bool = False) -> Chart:
    """A chart of so many pixels, over reports or over time; everything that is drawn is inside."""
    right, bottom = width - RIGHT, height - BOTTOM
    drawn = without_far_prices(settled(points))
    xs = times(drawn) if by_time else [float(point.reports) for point in drawn]
    start, end = (xs[0], xs[-1]) if xs else (0.0, 1.0)
    if not by_time and drawn and drawn[0].reports < 0.1 * end:
        start = 0.0
    low, high = scale([value for point in drawn for value in values(point) if value is not None])

    def x(value: float) -> float:
        return LEFT + (right - LEFT) * ((value - start) / (end - start) if end > start else 1.0)

    def y(value: float) -> float:
        return bottom - (bottom - TOP) * (value - low) / (high - low)

    across = [Tick(x(value), text) for value, text in ticks(start, end, by_time, 4 if width > 500 else 3)]
    up = [Tick(y(value), f"{value:,.6g}") for value in steps(low, high, 4)] if drawn else []
    lines = []
    for at, (name, style) in enumerate((("lately", "recent"), ("overall", "ratio"), ("price θ", "price"))):
        shown = [(where, values(point)[at]) for where, point in zip(xs, drawn, strict=True)]
        lines.append(line(name, style, [(x(where), y(value)) for where, value in shown if value is not None]))
    axis = "when the task was decided" if by_time else "reports"
    return Chart(
        width, height, LEFT, right, bottom, across, up, axis, spread([curve for curve in lines if curve], bottom)
    )


def without_far_prices(points: Sequence[Point]) -> list[Point]:
    """Where a floor is kept whatever is chosen, its price is as good as infinite: drawn, nothing else could be seen.

    If that is so by now, no price is drawn: its name stands at the end.
    """
    most = FAR * max((abs(point.ratio) for point in points if point.ratio is not None), default=math.inf) or math.inf
    far = [abs(point.price or 0.0) > most for point in points]
    return [
        replace(point, price=None) if is_far or far[-1] else point for point, is_far in zip(points, far, strict=True)
    ]


def values(point: Point) -> tuple[float | None, float | None, float | None]:
    return point.recent, point.ratio, point.price


def settled(points: Sequence[Point]) -> Sequence[Point]:
    """Without the first reports, which are all over the place, if there are enough of others."""
    later = [point for point in points if point.recent is not None]
    return later if len(later) > 1 else points


def scale(shown: Sequence[float]) -> tuple[float, float]:
    """From where to where an axis goes: from 0, unless that would squeeze what is shown."""
    low, high = (min(shown), max(shown)) if shown else (0.0, 1.0)
    low = min(low, 0.0) if low < 0.3 * high else low
    room = 0.08 * (high - low) or 0.1 * abs(high) or 1.0
    return (low - room if low != 0.0 else low), high + room


def times(points: Sequence[Point]) -> list[float]:
    """When each task was decided, or a later one before it: reports come in any order."""
    return list(accumulate((point.decided or 0.0 for point in points), max))


def ticks(start: float, end: float, by_time: bool, count: int) -> list[tuple[float, str]]:
    """Round numbers of reports, or round times before the end."""
    if not by_time:
        return [(value, f"{round(value):,}") for value in steps(start, end, count) if value >= 1]
    step = next((step for step in TIME_STEPS if (end - start) / step <= count), (end - start) / count or 1.0)
    return [(end - back * step, before(back * step)) for back in range(int((end - start) / step) + 1)]


def before(seconds: float) -> str:
    """So long before the last one."""
    for size, unit in ((DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (1.0, "s")):
        if seconds >= size:
            return f"−{seconds / size:.3g} {unit}"
    return "latest"


def line(name: str, style: str, corners: Sequence[tuple[float, float]]) -> Line | None:
    """A curve through these, labelled at its end."""
    path = "M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in corners)
    return Line(name, style, path, *corners[-1], corners[-1][1]) if corners else None


def spread(lines: Sequence[Line], bottom: float) -> list[Line]:
    """Their labels moved apart where they would lie upon each other."""
    at, placed, by_end = -math.inf, [], sorted(lines, key=lambda curve: curve.end_y)
    for curve in by_end:
        at = max(curve.end_y, at + LABEL_GAP)
        placed.append(at)
    over = max(0.0, placed[-1] - bottom) if placed else 0.0
    moved = dict(zip(by_end, (where - over for where in placed), strict=True))
    return [curve._replace(label_y=moved[curve]) for curve in lines]


def sparkline(points: Sequence[Point]) -> str:
    """The recent ratio as a path, as high as it goes."""
    shown = [value for point in points if (value := point.ratio if point.recent is None else point.recent) is not None]
    if len(shown) < 2:
        return ""
    (width, height), (low, high) = SPARK, scale(shown)
    corners = [
        (width * place / (len(shown) - 1), height * (high - value) / (high - low)) for place, value in enumerate(shown)
    ]
    return "M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in corners)


def intervals(options: Sequence[OptionSummary]) -> list[Interval | None]:
    """The scores of a kind's options on the scale of its contenders: the best two, which have to be told apart."""
    scored = [option for option in options if option.score is not None]
    contenders = sorted((option for option in scored if works(option)), key=score, reverse=True)[:CONTENDERS] or scored
    low = min((score(option) - (option.error or 0.0) for option in contenders), default=0.0)
    high = max((score(option) + (option.error or 0.0) for option in contenders), default=0.0)
    room = 0.25 * (high - low) or 0.1 * abs(high) or 1.0
    low, high = low - room, high + room

    def x(value: float) -> float:
        return EDGE + (INTERVAL - 2 * EDGE) * (min(max(value, low), high) - low) / (high - low)

    def drawn(option: OptionSummary) -> Interval:
        middle, error = score(option), option.error or 0.0
        beyond = "left" if middle < low else "right" if middle > high else ""
        return Interval(x(middle - error), None if beyond else x(middle), x(middle + error), zero, beyond)

    zero = x(0.0) if low <= 0.0 <= high else None
    return [None if option.score is None else drawn(option) for option in options]


def works(option: OptionSummary) -> bool:
    return not (option.benched or option.retired)


def score(option: OptionSummary) -> float:
    return -math.inf if option.score is None else option.score
