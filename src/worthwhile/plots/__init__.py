"""Figures of a simulation: one line per policy with its spread, the optimum and per-kind greedy beside them."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from worthwhile.errors import BadParameter, MissingExtra
from worthwhile.optimum import loss
from worthwhile.simulation.results import Results
from worthwhile.state import Floats
from worthwhile.tables import replace_file

FORMATS = (".png", ".svg")
MEASURES = {"loss": "share of the best ratio lost so far", "ratio": "reward per cost so far"}
SIZE, DOTS_PER_INCH = (8.0, 5.0), 200
THICK, THIN = 1.8, 1.0
INK, FAINT, GRID = "#222222", "#808080", "#EAEAEA"
LABEL_GAP = 0.045  # of the axes' height
MOST_BANDS = 8  # with more policies the bands hide each other

# One colour per family of policies, most from Okabe and Ito's palette, which the colour-blind can tell apart.
RED, BLUE, GREEN, PINK, ORANGE, SKY, GREY = "#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C8C8C"
OCHRE, PURPLE, NAVY = "#7A5C00", "#5B2A86", "#00294D"  # dark enough to be told from the others in a dense figure
SOLID, DASHED, DOTTED = "-", (0, (4, 1.5)), (0, (1, 1.2))
DASH_DOT, DASH_DOTS = (0, (4, 1.5, 1, 1.5)), (0, (4, 1.5, 1, 1.5, 1, 1.5))


class Look(NamedTuple):
    """How a policy is drawn, in every figure."""

    colour: str
    dashes: Any


LOOKS = {
    "ratio-imed": Look(RED, SOLID),
    "goal-imed": Look(RED, DASHED),
    "dol-rm-anytime": Look(BLUE, SOLID),
    "dol-rm": Look(NAVY, DASHED),
    "sample-rm": Look(BLUE, DOTTED),
    "running-ratio-dol": Look(BLUE, DASH_DOT),
    "plug-in-dol": Look(BLUE, DASH_DOTS),
    "solved-dol": Look(PURPLE, SOLID),
    "reward-ucb": Look(SKY, SOLID),
    "ratio-ucb": Look(OCHRE, DASHED),
    "gap-ucb": Look(OCHRE, DOTTED),
    "m-ucb": Look(SKY, DOTTED),
    "ratio-ts": Look(GREEN, SOLID),
    "reward-ts": Look(GREEN, DASHED),
    "bts": Look(GREEN, DOTTED),
    "plug-ts": Look(GREEN, DASH_DOT),
    "linear-ts": Look(GREEN, DASH_DOTS),
    "omega-ucb": Look(PINK, SOLID),
    "omega-star-ucb": Look(PINK, DASHED),
    "kind-greedy": Look(ORANGE, SOLID),
    "b-greedy": Look(ORANGE, DASHED),
    "linear-greedy": Look(ORANGE, DASH_DOT),
    "fixed-option": Look(GREY, DASHED),
    "random-option": Look(GREY, DOTTED),
    "oracle": Look(INK, SOLID),
    "optimum": Look(INK, DOTTED),
}
REFERENCE = Look(INK, (0, (4, 3)))
# For policies that are not on the list: Tol's muted palette.
OTHERS = [
    Look(colour, dashes)
    for dashes in (SOLID, DASHED, DOTTED)
    for colour in ("#882255", "#332288", "#999933", "#44AA99", "#661100", "#AA4499")
]


def look_of(policy: str) -> Look:
    """A policy's colour and dashes; one that is not on the list keeps those that its name leads to."""
    return LOOKS.get(policy) or OTHERS[zlib.crc32(policy.encode()) % len(OTHERS)]


def plot(results: Results, path: str | Path, measure: str = "loss") -> Path:
    """Save the curves of all policies as .png or .svg; the same results make the same file, provenance inside."""
    if measure not in MEASURES:
        raise BadParameter(f"measure = {measure!r}; a figure shows one of {', '.join(MEASURES)}")
    if len(results.runs) == 0:
        raise BadParameter("no run is finished; there is nothing to draw")
    return save(lambda: draw(results, measure), path, results.problem.name, results.provenance)


def save(drawn: Callable[[], Any], path: str | Path, title: str, provenance: Mapping[str, Any]) -> Path:
    """Draw a figure and write it whole, with where it comes from inside."""
    path = Path(path)
    if path.suffix not in FORMATS:
        raise BadParameter(f"{path}: figures are saved as {' or '.join(FORMATS)}, not {path.suffix!r}")
    try:
        import matplotlib
    except ImportError:
        raise MissingExtra("a figure", "plot") from None
    metadata: dict[str, str | None] = {"Title": title, "Description": json.dumps(provenance)}
    if path.suffix == ".svg":
        metadata["Date"] = None  # matplotlib would write the time
    with matplotlib.rc_context({"svg.hashsalt": "worthwhile", "svg.fonttype": "none", "font.size": 10}):
        figure = drawn()
        settings = {"format": path.suffix[1:], "metadata": metadata, "bbox_inches": "tight", "dpi": DOTS_PER_INCH}
        replace_file(path, lambda new: figure.savefig(new, **settings))
    return path


def draw(results: Results, measure: str) -> Any:
    """The figure: lines and bands, two lines to compare with, and every line's name beside its end."""
    from matplotlib.figure import Figure

    if results.best.ratio == 0.0:  # no share of nothing can be lost
        measure = "ratio"
    figure = Figure(figsize=SIZE)
    axes = figure.add_axes((0.08, 0.11, 0.64, 0.81))
    values = 100.0 * results.measure("loss") if measure == "loss" else results.measure("expected_ratio")
    banded = len(results.runs) > 1 and len(results.policies) <= MOST_BANDS
    dress(axes, results, measure, banded)
    scale(axes, results, values, measure)
    names = []
    for index, policy in enumerate(results.policies):
        draw_policy(axes, results.marks, values[:, index], look_of(policy), banded)
        end = float(values[:, index, -1].mean())
        names.append(Name(f"{policy}  {shown(end, measure)}", end, look_of(policy)))
    for text, level in references(results, measure).items():
        axes.axhline(level, color=INK, linewidth=THIN, linestyle=REFERENCE.dashes, zorder=1.5)
        names.append(Name(text, level, REFERENCE))
    name_lines(axes, names)
    return figure


def draw_policy(axes: Any, tasks: Any, runs: Floats, look: Look, banded: bool) -> None:
    """The mean over runs, and a band that holds the middle half of them."""
    if banded:
        low, high = np.quantile(runs, (0.25, 0.75), axis=0)
        axes.fill_between(tasks, low, high, color=look.colour, alpha=0.14, linewidth=0)
    axes.plot(tasks, runs.mean(axis=0), color=look.colour, linestyle=look.dashes, linewidth=THICK)


def references(results: Results, measure: str) -> dict[str, float]:
    """The optimum and per-kind greedy by name, on the figure's scale."""
    problem, best = results.problem, results.best
    level, greedy = best.ratio, best.greedy_ratio
    if measure == "loss":
        level, greedy = 0.0, 100.0 * loss(best.ratio, best.greedy_ratio)
    optimum = f"optimum θ* = {best.ratio:#.4g} {problem.ratio_unit}".rstrip()
    return {optimum: level, f"per-kind greedy  {shown(greedy, measure)}": greedy}


def shown(value: float, measure: str) -> str:
    """A line's last value: a ratio to five digits, a loss in per cent to two."""
    if measure == "ratio":
        return f"{value:#.5g}"
    decimals = 1 - math.floor(math.log10(value)) if value >= 0.001 else 0
    return f"{value:.{max(0, decimals)}f} %"


def dress(axes: Any, results: Results, measure: str, banded: bool) -> None:
    """Titles, units and grid."""
    unit, runs = "%" if measure == "loss" else results.problem.ratio_unit, len(results.runs)
    axes.set_xlabel("tasks")
    axes.set_ylabel(f"{MEASURES[measure]} ({unit})" if unit else MEASURES[measure])
    axes.set_title(results.problem.name, loc="left", fontweight="bold", color=INK)
    words = (
        "one run" if runs == 1 else f"mean of {runs:,} runs" + ("; bands: the middle half of them" if banded else "")
    )
    axes.set_title(words, loc="right", fontsize="small", color=FAINT)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(True, color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)


def scale(axes: Any, results: Results, values: Floats, measure: str) -> None:
    """Axes that leave out the erratic first tasks; logarithmic upwards where losses differ by orders of magnitude."""
    tasks = float(results.marks[-1])
    start = tasks**0.4
    axes.set_xscale("log")
    axes.set_xlim(start, max(2.0, tasks))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.xaxis.set_minor_formatter("")
    means = values.mean(axis=0)
    later = means[:, results.marks >= start]
    levels = list(references(results, measure).values())
    low, high = min(float(later.min()), *levels), max(float(later.max()), *levels)
    margin = 0.06 * (high - low) or 0.1 * (abs(high) or 1.0)
    axes.set_ylim(0.0 if measure == "loss" else low - margin, high + margin)
    typical = float(np.median(means[:, -1]))
    if measure == "loss" and 0.0 < 30.0 * typical < high:
        axes.set_yscale("symlog", linthresh=typical)


class Name(NamedTuple):
    """What is written beside the end of a line."""

    text: str
    level: float
    look: Look


def name_lines(axes: Any, names: list[Name]) -> None:
    """Every line's name right of the axes, with a piece of the line; moved apart where lines end together."""
    ordered = sorted(names, key=lambda name: name.level)
    to_axes = axes.transData + axes.transAxes.inverted()
    ends = [float(np.clip(to_axes.transform((1.0, name.level))[1], 0.0, 1.0)) for name in ordered]
    outside = {"transform": axes.transAxes, "clip_on": False}
    for (text, _, look), end, height in zip(ordered, ends, spread_out(ends, LABEL_GAP), strict=True):
        width, style = (THIN, "italic") if look is REFERENCE else (THICK, "normal")
        axes.plot((1.0, 1.035), (end, height), color=look.colour, linewidth=0.6, **outside)
        axes.plot(
            (1.035, 1.085), (height, height), color=look.colour, linestyle=look.dashes, linewidth=width, **outside
        )
        axes.text(1.095, height, text, color=INK, fontsize=9, fontstyle=style, verticalalignment="center", **outside)


def spread_out(heights: list[float], gap: float) -> list[float]:
    """Rising heights from 0 to 1 moved as little as possible until they are a gap apart."""
    gap = min(gap, 1.0 / max(1, len(heights) - 1))
    groups: list[list[float]] = []
    for index, height in enumerate(heights):
        groups.append([height - gap * index])
        while len(groups) > 1 and np.mean(groups[-2]) > np.mean(groups[-1]):
            groups[-2:] = [groups[-2] + groups[-1]]
    level = np.concatenate([np.full(len(group), np.mean(group)) for group in groups])
    placed: list[float] = (np.clip(level, 0.0, 1.0 - gap * (len(heights) - 1)) + gap * np.arange(len(heights))).tolist()
    return placed
