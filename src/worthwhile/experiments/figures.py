"""How the figures of all experiments look: one size, one grid, the same colour for the same policy everywhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from worthwhile.errors import MissingExtra
from worthwhile.plots import FAINT, GRID, INK, REFERENCE, THICK, THIN, look_of
from worthwhile.simulation.results import Results
from worthwhile.state import Floats

PANEL, LEGEND = (4.6, 3.0), 0.6  # inches: width and height of a panel, height of the legend
NAMES_PER_PANEL, MOST_NAMES = 3, 6  # in a row of the legend


def panels(
    titles: Sequence[str], x: str, y: str, columns: int | None = None, size: tuple[float, float] = PANEL
) -> tuple[Any, list[Any]]:
    """A figure with one panel per title, in rows of so many (all side by side), and the same labels on all axes."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("a figure", "plot") from None
    columns = columns or len(titles)
    rows = math.ceil(len(titles) / columns)
    figure = Figure(figsize=(size[0] * columns, size[1] * rows + LEGEND), layout="constrained")
    grid = figure.add_gridspec(rows, columns)
    for number, title in enumerate(titles):
        panel = figure.add_subplot(grid[number // columns, number % columns])
        panel.set_title(title, loc="left", fontsize=10, fontweight="bold", color=INK)
        panel.set(xlabel=x, ylabel=y if number % columns == 0 else "")
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(True, color=GRID, linewidth=0.7)
        panel.set_axisbelow(True)
    return figure, figure.axes


def curve(
    axes: Any, x: Any, y: Any, policy: str, band: tuple[Any, Any] | None = None, label: str | None = None
) -> None:
    """A policy's line in its own colour, with a band from low to high."""
    look = look_of(policy)
    if band is not None:
        axes.fill_between(x, *band, color=look.colour, alpha=0.14, linewidth=0)
    axes.plot(x, y, color=look.colour, linestyle=look.dashes, linewidth=THICK, label=label or policy)


def reference(axes: Any, x: Any, y: Any, label: str) -> None:
    """A thin dashed line to compare with: the optimum, a bound, a power of T."""
    axes.plot(x, y, color=FAINT, linestyle=REFERENCE.dashes, linewidth=THIN, label=label)


def ratio_curves(
    panel: Any, results: Results, first: int, banded: Sequence[str] = (), hidden: Sequence[str] = ()
) -> None:
    """Mean realised ratios over tasks from the first one on, bands of a standard deviation over runs, the optimum."""
    draw_ratios(panel, results, results.measure("ratio"), first, banded, hidden)


def chanceless_curves(panel: Any, results: Results, first: int) -> None:
    """The same as θ* − pseudo-regret/cost: without the chance in outcomes and arrivals, so that none exceeds θ*."""
    draw_ratios(panel, results, without_chance(results), first)


def without_chance(results: Results) -> Floats:
    """(runs, policies, marks): θ* − pseudo-regret/cost."""
    ratio: Floats = results.best.ratio - results.measure("regret") / results.measure("expected_cost")
    return ratio


def draw_ratios(
    panel: Any,
    results: Results,
    ratios: Floats,
    first: int,
    banded: Sequence[str] = (),
    hidden: Sequence[str] = (),
) -> None:
    """Mean ratios of all policies but the hidden ones, and the optimum."""
    later = results.marks >= first
    marks, values = results.marks[later], ratios[:, :, later]
    for policy, mean, spread in zip(results.policies, values.mean(axis=0), values.std(axis=0), strict=True):
        if policy in hidden:
            continue
        curve(panel, marks, mean, policy, (mean - spread, mean + spread) if policy in banded else None)
    reference(panel, marks, np.full(len(marks), results.best.ratio), "optimum θ*")
    panel.set_xscale("log")
    panel.xaxis.set_minor_formatter("")  # labels between powers of ten would run into each other


def add_legend(figure: Any) -> None:
    """One legend for all panels, below them."""
    lines: dict[str, Any] = {}
    for panel in figure.axes:
        for line, label in zip(*panel.get_legend_handles_labels(), strict=True):
            lines.setdefault(label, line)
    panels_side_by_side = figure.axes[0].get_gridspec().ncols
    rows = math.ceil(len(lines) / min(MOST_NAMES, NAMES_PER_PANEL * panels_side_by_side))
    columns = math.ceil(len(lines) / rows)
    figure.legend(lines.values(), lines.keys(), loc="outside lower center", ncols=columns, frameon=False, fontsize=8.5)
