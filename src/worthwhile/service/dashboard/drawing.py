"""Where lines, dots and labels go: numbers for the templates, which draw them as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from worthwhile.live.log_statistics import Point
from worthwhile.live.summary import OptionSummary

LEFT, RIGHT, TOP, BOTTOM = 46.0, 64.0, 14.0, 34.0  # margins of a chart
LABEL_GAP = 15.0
INTERVAL = 150.0  # width of an error bar's plot
EDGE = 6.0


class Tick(NamedTuple):
    at: float
    text: str


class Line(NamedTuple):
    """A curve: its path, where it ends, and its name there."""

    path: str
    end_x: float
    end_y: float
    label_y: float


class Chart(NamedTuple):
    """The ratio over time, and θ."""

    width: float
    height: float
    left: float
    right: float
    top: float
    bottom: float
    across: list[Tick]
    up: list[Tick]
    ratio: Line | None
    price: Line | None


class Interval(NamedTuple):
    """A score with its error, on the scale of its kind."""

    low: float
    middle: float
    high: float
    zero: float | None


def steps(low: float, high: float, count: int) -> list[float]:
    """Round numbers from low to high, about so many."""
    if not high > low:
        return [low]
    raw = (high - low) / count
    size = 10.0 ** math.floor(math.log10(raw))
    step = next((size * nice for nice in (1, 2, 5, 10) if size * nice >= raw), size * 10)
    first = math.ceil(low / step - 1e-9)
    return [number * step for number in range(first, math.floor(high / step + 1e-9) + 1)]


def chart(points: Sequence[Point], width: float, height: float) -> Chart:
    """A chart of so many pixels."""
    left, right, top, bottom = LEFT, width - RIGHT, TOP, height - BOTTOM
    values = [value for point in points for value in (point.ratio, point.price) if value is not None]
    late = [value for point in points[len(points) // 10 :] for value in (point.ratio, point.price) if value is not None]
    low, high = (min(late), max(late)) if late else (0.0, 1.0)
    low = min(low, 0.0) if low < 0.3 * high else low
    room = 0.08 * (high - low) or 0.1 * abs(high) or 1.0
    low, high = (low - room if low != 0.0 else low), high + room
    last = max((point.reports for point in points), default=1)

    def x(reports: float) -> float:
        return left + (right - left) * (reports / max(1, last))

    def y(value: float) -> float:
        return bottom - (bottom - top) * min(2.0, max(-1.0, (value - low) / (high - low)))  # cut off when drawn

    ends = spread(
        [y(found) if found is not None else None for found in (last_of(points, "ratio"), last_of(points, "price"))]
    )
    across = [Tick(x(one), f"{round(one):,}") for one in steps(0.0, float(last), 4 if width > 500 else 2) if one >= 1]
    up = [Tick(y(one), f"{one:.6g}") for one in steps(low, high, 4)] if values else []
    ratio = line([(x(one.reports), y(one.ratio)) for one in points if one.ratio is not None], ends[0])
    price = line([(x(one.reports), y(one.price)) for one in points if one.price is not None], ends[1])
    return Chart(width, height, left, right, top, bottom, across, up, ratio, price)


def last_of(points: Sequence[Point], what: str) -> float | None:
    return next((value for point in reversed(points) if (value := getattr(point, what)) is not None), None)


def line(places: Sequence[tuple[float, float]], label: float | None) -> Line | None:
    if not places or label is None:
        return None
    path = "M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    return Line(path, *places[-1], label)


def spread(ends: list[float | None]) -> list[float | None]:
    """Two labels, moved apart if they would lie upon each other."""
    one, two = ends
    if one is None or two is None or abs(one - two) >= LABEL_GAP:
        return ends
    middle, sign = (one + two) / 2.0, 1.0 if one > two else -1.0
    return [middle + sign * LABEL_GAP / 2.0, middle - sign * LABEL_GAP / 2.0]


def intervals(options: Sequence[OptionSummary]) -> list[Interval | None]:
    """The scores of a kind's options on one scale."""
    judged = [one for one in options if one.score is not None]
    ends = [(one.score or 0.0) + sign * (one.error or 0.0) for one in judged for sign in (-1.0, 1.0)]
    low, high = min(ends, default=0.0), max(ends, default=0.0)
    width = high - low or 1.0

    def place(value: float) -> float:
        return EDGE + (INTERVAL - 2 * EDGE) * (value - low) / width

    zero = place(0.0) if low <= 0.0 <= high else None
    return [
        None
        if one.score is None
        else Interval(
            place(one.score - (one.error or 0.0)), place(one.score), place(one.score + (one.error or 0.0)), zero
        )
        for one in options
    ]
