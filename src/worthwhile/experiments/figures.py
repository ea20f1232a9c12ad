"""How the figures of all experiments look: one size, one grid, the same colour for the same policy everywhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from worthwhile.errors import MissingExtra
from worthwhile.plots import FAINT, GRID, INK, REFERENCE, THICK, THIN, look_of

PANEL = (4.6, 3.6)  # inches
NAMES_PER_PANEL, MOST_NAMES = 3, 6  # in a row of the legend


def panels(titles: Sequence[str], x: str, y: str) -> tuple[Any, list[Any]]:
    """A figure with one panel per title, side by side, and the same labels on all axes."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("a figure", "plot") from None
    figure = Figure(figsize=(PANEL[0] * len(titles), PANEL[1]), layout="constrained")
    axes = list(figure.subplots(1, len(titles), squeeze=False)[0])
    for one, title in zip(axes, titles, strict=True):
        one.set_title(title, loc="left", fontsize=10, fontweight="bold", color=INK)
        one.set_xlabel(x)
        one.spines[["top", "right"]].set_visible(False)
        one.grid(True, color=GRID, linewidth=0.7)
        one.set_axisbelow(True)
    axes[0].set_ylabel(y)
    return figure, axes


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


def name_lines(figure: Any, axes: Sequence[Any]) -> None:
    """One legend for all panels, below them."""
    found: dict[str, Any] = {}
    for one in axes:
        for handle, label in zip(*one.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    rows = math.ceil(len(found) / min(MOST_NAMES, NAMES_PER_PANEL * len(axes)))
    columns = math.ceil(len(found) / rows)
    figure.legend(found.values(), found.keys(), loc="outside lower center", ncols=columns, frameon=False, fontsize=8.5)
