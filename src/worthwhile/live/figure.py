"""A figure of a live scheduler: its ratio and its price over time, and what every option of every kind is worth."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from worthwhile.errors import BadParameter, MissingExtra
from worthwhile.formatting import printable, shown, titled
from worthwhile.live.ratio_curve import Point
from worthwhile.live.summary import KindSummary, OptionSummary, Summary
from worthwhile.tables import replace_file

FORMATS = (".png", ".svg", ".pdf")
POINTS = 200
MOST_KINDS = 12  # those with the most reports
MOST_NAME = 24  # letters
RED, BLUE, GREY, FAINT = "#D55E00", "#0072B2", "#8C8C8C", "#EAEAEA"
WIDTH, BAR, DOTS_PER_INCH = 10.0, 0.3, 150  # inches


def plot(summary: Summary, points: Sequence[Point], path: str | Path | None) -> Any:
    """The figure, or the path that it was written to."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("a figure", "plot") from None
    file = None if path is None else Path(path)
    if file is not None and file.suffix not in FORMATS:
        raise BadParameter(f"{file}: a figure ends in {', '.join(FORMATS)}, not {file.suffix!r}")
    kinds = sorted(summary.kinds, key=lambda kind: -kind.reports)[:MOST_KINDS]
    rows = [(kind, option) for kind in kinds for option in kind.options if option.score is not None]
    figure = Figure(figsize=(WIDTH, max(4.0, 1.5 + BAR * len(rows))), layout="constrained")
    left, right = figure.subplots(1, 2)
    figure.suptitle(printable(summary.scheduler), fontweight="bold")
    draw_ratio(left, summary, points)
    draw_options(right, summary, rows)
    for axes in (left, right):
        axes.grid(color=FAINT)
        axes.spines[["top", "right"]].set_visible(False)
    if file is None:
        return figure
    replace_file(file, lambda new: figure.savefig(new, format=file.suffix[1:], dpi=DOTS_PER_INCH))
    return file


def draw_ratio(axes: Any, summary: Summary, points: Sequence[Point]) -> None:
    """Reward per cost so far, and the price as it was then."""
    axes.set(xlabel="reports", ylabel=titled("reward / cost", summary.ratio_unit), title="earned so far")
    for name, colour, style in (("ratio", RED, "-"), ("price", BLUE, "--")):
        known = [(point.reports, value) for point in points if (value := getattr(point, name)) is not None]
        if known:
            label = "reward / cost" if name == "ratio" else "price θ"
            axes.plot(*zip(*known, strict=True), color=colour, linestyle=style, label=label)
    if points:
        axes.legend(frameon=False)


def draw_options(axes: Any, summary: Summary, rows: Sequence[tuple[KindSummary, OptionSummary]]) -> None:
    """The score of every option, give or take two standard errors; winners stand out, as do those that keep failing."""
    axes.set(xlabel=titled("reward − θ·cost", summary.reward_unit), title="what options are worth (★ wins)")
    for place, (_, option) in enumerate(rows):
        usable = not option.benched and not option.retired
        colour = RED if option.winning else BLUE if usable else GREY
        axes.errorbar(
            option.score, -place, xerr=option.error or 0.0, fmt="o" if usable else "x", color=colour, capsize=3
        )
    axes.set_yticks([-place for place in range(len(rows))], [name_of(kind, option) for kind, option in rows])
    if not rows:
        axes.text(0.5, 0.5, "no results yet", transform=axes.transAxes, ha="center")


def name_of(kind: KindSummary, option: OptionSummary) -> str:
    """Whose score it is; $ would begin a formula."""
    names = (printable(kind.kind), shown(option.option))
    short = (name if len(name) <= MOST_NAME else f"{name[: MOST_NAME - 1]}…" for name in names)
    return " / ".join(short).replace("$", r"\$") + " ★" * option.winning
