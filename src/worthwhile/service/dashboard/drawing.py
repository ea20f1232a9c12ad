"""Where lines, dots and labels go: numbers for the templates, which draw them as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from worthwhile.live.curve import Point
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

    across = [Tick(x(count), f"{round(count):,}") for count in steps(0.0, last, 4 if width > 500 else 3) if count >= 1]
    up = [Tick(y(value), f"{value:.6g}") for value in steps(low, high, 4)] if points else []
    ratio = line([(x(point.reports), y(point.ratio)) for point in points if point.ratio is not None])
    price = line([(x(point.reports), y(point.price)) for point in points if point.price is not None])
    return Chart(width, height, left, right, top, bottom, across, up, *spread(ratio, price))


def line(corners: Sequence[tuple[float, float]]) -> Line | None:
    """A curve through these, labelled at its end."""
    path = "M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in corners)
    return Line(path, *corners[-1], corners[-1][1]) if corners else None


def spread(ratio: Line | None, price: Line | None) -> tuple[Line | None, Line | None]:
    """Both, their labels moved apart if they would lie upon each other."""
    if ratio is None or price is None or abs(ratio.end_y - price.end_y) >= LABEL_GAP:
        return ratio, price
    middle = (ratio.end_y + price.end_y) / 2.0
    shift = LABEL_GAP / 2.0 if ratio.end_y > price.end_y else -LABEL_GAP / 2.0
    return ratio._replace(label_y=middle + shift), price._replace(label_y=middle - shift)


def intervals(options: Sequence[OptionSummary]) -> list[Interval | None]:
    """The scores of a kind's options on one scale."""
    scores = [(option.score, option.error or 0.0) for option in options if option.score is not None]
    low = min((score - error for score, error in scores), default=0.0)
    high = max((score + error for score, error in scores), default=0.0)
    width = high - low or 1.0

    def x(value: float) -> float:
        return EDGE + (INTERVAL - 2 * EDGE) * (value - low) / width

    zero = x(0.0) if low <= 0.0 <= high else None
    drawn = iter([Interval(x(score - error), x(score), x(score + error), zero) for score, error in scores])
    return [None if option.score is None else next(drawn) for option in options]
