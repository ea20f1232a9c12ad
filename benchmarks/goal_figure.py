"""The figure of the goals: a floor and a budget along the way, ours and the rivals', and what keeping them costs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from goal_courses import BOUNDS, FIXED, MARKS, OURS, PARETO, WINDOW, Course
from worthwhile.plots import BLUE, FAINT, GREY, INK, PINK, RED
from worthwhile.state import Floats

SHOWN = ("routerbench_0shot_1pct", "floor at 80 %"), ("routerbench_0shot_1pct", "budget at 50 %")
COLOURS = {OURS: RED, PARETO: BLUE, BOUNDS: PINK, FIXED: GREY}
WORDS = {OURS: "the default, told nothing", FIXED: "fixed price, tuned in hindsight", BOUNDS: f"by {BOUNDS}"}
TICKS = {2_000: "2 000", 5_000: "5 000", 10_000: "10⁴", 20_000: "2·10⁴", 50_000: "5·10⁴", 100_000: "10⁵"}
FIRST_SHOWN = 1  # windows that are left out: everybody is learning


def draw(every: Sequence[Course], path: Path) -> None:
    """A column for a goal: above, what is to be kept, window by window; below, what is to be made the best of."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 6.4), layout="constrained")
    axes = figure.subplots(2, 2, sharex=True)
    for column, (world, goal) in enumerate(SHOWN):
        shown = [course for course in every if (course.case.world, course.case.name) == (world, goal)]
        for course in reversed(shown):  # ours on top
            draw_windows(axes[0, column], course)
            draw_aim(axes[1, column], course)
        finish(axes[0, column], axes[1, column], shown[0])
    axes[0, 1].legend(*legend(every), frameon=False, fontsize=9, loc="upper right")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


def draw_windows(one: Any, course: Course) -> None:
    """What is to be kept in every window, mean and spread of the runs."""
    tasks = np.array(MARKS)[FIRST_SHOWN:] - WINDOW / 2
    values = np.diff(course.came(), axis=1) / WINDOW
    line(one, tasks, values, course.who)


def draw_aim(one: Any, course: Course) -> None:
    """What is to be made the best of, so far."""
    tasks = np.array(MARKS)
    line(one, tasks, (course.cost if course.case.is_floor else course.reward) / tasks, course.who)


def line(one: Any, tasks: Floats, values: Floats, who: str) -> None:
    """The mean of the runs, between the least and the largest of them."""
    colour, width = COLOURS[who], 2.2 if who == OURS else 1.5
    one.fill_between(tasks, values.min(axis=0), values.max(axis=0), color=colour, alpha=0.13, linewidth=0)
    one.plot(tasks, values.mean(axis=0), color=colour, linewidth=width)


def finish(upper: Any, lower: Any, course: Course) -> None:
    """Titles, the limit and the optimum."""
    case, table = course.case, course.case.world.split("_")[0]
    kept, aim, best = ("reward", "cost", case.best.cost) if case.is_floor else ("cost", "reward", case.best.reward)
    limit = "the floor" if case.is_floor else "the budget"
    reference(upper, case.wanted, limit)
    reference(lower, best, "the optimum")
    upper.set_title(f"{case.name[0].upper()}{case.name[1:]} of the range ({table})", loc="left", fontsize=11, color=INK)
    upper.set_ylabel(f"mean {kept} of {WINDOW:,} tasks")
    lower.set_ylabel(f"mean {aim} per task so far")
    lower.set_xlabel("tasks")
    for one in (upper, lower):
        one.set_xscale("log")
        one.set_xticks([*TICKS], [*TICKS.values()])
        one.set_xticks([], minor=True)
        one.set_xlim(WINDOW, MARKS[-1])
        one.spines[["top", "right"]].set_visible(False)
        one.grid(axis="y", color="#EAEAEA")
        one.set_axisbelow(True)


def reference(one: Any, value: float, words: str) -> None:
    """A line to be compared with, and its name at the end."""
    one.axhline(value, color=INK, linestyle=(0, (4, 3)), linewidth=1.1)
    one.annotate(
        words, (1.0, value), xycoords=("axes fraction", "data"), xytext=(-2, 4), textcoords="offset points",
        ha="right", fontsize=8.5, color=FAINT,
    )  # fmt: skip


def legend(every: Sequence[Course]) -> tuple[list[Any], list[str]]:
    """Who is drawn how."""
    from matplotlib.lines import Line2D

    drawn = [who for who in COLOURS if any(course.who == who for course in every)]
    handles = [Line2D([], [], color=COLOURS[who], linewidth=2.2 if who == OURS else 1.5) for who in drawn]
    return handles, [WORDS.get(who, who) for who in drawn]
