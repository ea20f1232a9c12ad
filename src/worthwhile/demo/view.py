"""What a person sees while tasks run: a few lines that are drawn again and again, or now and then a plain one."""

from __future__ import annotations

import os
import time
from typing import TextIO

from worthwhile.execution.results import Finished, Worked, most_frequent
from worthwhile.formatting import number, shown
from worthwhile.live.scheduler import Scheduler
from worthwhile.live.summary import KindSummary, Summary

UP, CLEAR, CUT, WRAP = "\033[{}F", "\033[J", "\033[?7l", "\033[?7h"  # as terminals have understood since the VT100
USUAL = 80, 24  # columns and rows, if a terminal does not say
EIGHTHS = " ▏▎▍▌▋▊▉█"
BAR = 30  # letters at most
NAME, WIDEST = 14, 20  # letters of a kind, of a cell, at most


class View:
    """Called after every task."""

    def __init__(self, scheduler: Scheduler, total: int, out: TextIO) -> None:
        self.scheduler, self.total, self.out = scheduler, total, out
        self.drawn, self.tasks, self.done = 0, 0, Worked()
        self.began = self.last = time.monotonic()
        self.redraws = out.isatty() and os.environ.get("TERM") != "dumb"
        self.every = 0.5 if self.redraws else 5.0

    def __call__(self, finished: Finished) -> None:
        self.done.count(finished)
        self.tasks += 1
        if self.tasks == 1:  # starting processes is no part of the pace
            self.began = time.monotonic()
        if time.monotonic() - self.last >= self.every:
            self.draw()

    def draw(self) -> None:
        self.last = time.monotonic()
        summary = self.scheduler.summary()
        if self.redraws:
            columns, rows = os.get_terminal_size(self.out.fileno())
            columns, rows = columns or USUAL[0], rows or USUAL[1]
            lines = [line[:columns] for line in self.lines(summary, columns)][: rows - 1]
            up = UP.format(self.drawn) if self.drawn else ""
            self.out.write(CUT + up + CLEAR + "".join(f"{line}\n" for line in lines) + WRAP)
            self.drawn = len(lines)
        else:
            self.out.write("   ".join([*self.progress(summary), *self.worth(summary)]) + "\n")
        self.out.flush()

    def lines(self, summary: Summary, columns: int) -> list[str]:
        words = "   ".join(self.progress(summary))
        room = min(BAR, columns - len(words) - 2)
        done = f"{bar((summary.reports + summary.failed) / max(self.total, 1), room, '░')}  " if room > 4 else ""
        return [done + words, "   ".join(self.worth(summary)), "", *shares(summary.kinds, columns)]

    def progress(self, summary: Summary) -> list[str]:
        """How far it is, how fast, and how long it will take."""
        ended = summary.reports + summary.failed
        facts = [f"{ended:,} of {self.total:,} tasks"]
        if self.tasks > 1 and self.last > self.began:
            pace = (self.tasks - 1) / (self.last - self.began)
            facts += [f"{pace:.1f}/s", f"{max(self.total - ended, 0) / pace:.0f} s left"]
        return facts

    def worth(self, summary: Summary) -> list[str]:
        """What was earned so far, and what a unit of cost is worth."""
        if not summary.reports + summary.failed:
            return ["starting …"]
        why = f": {most_frequent(self.done.reasons)}" if self.done.reasons else ""
        failed = [f"{summary.failed:,} failed{why}"] if summary.failed else []
        return [f"reward/cost {number(summary.ratio)}", f"price θ {number(summary.price)}", *failed]


def shares(kinds: list[KindSummary], columns: int) -> list[str]:
    """How often every kind took each option: a row per kind, with bars where there is room for them."""
    options = sorted({shown(option.option) for kind in kinds for option in kind.options}, key=size)
    if not options:
        return []
    name = min(NAME, max(len(text) for text in ("option", *(kind.kind for kind in kinds))))
    cell = min(max((columns - name) // len(options), 5), WIDEST)
    heads = "".join(option[: cell - 1].rjust(6 if cell > 8 else cell).ljust(cell) for option in options)
    rows = [kind.kind[:name].ljust(name) + kind_cells(kind, options, cell) for kind in kinds]
    return ["option".ljust(name) + heads, *rows]


def size(option: str) -> tuple[float, str]:
    """Numbers by their size, then words."""
    try:
        return float(option), option
    except ValueError:
        return float("inf"), option


def kind_cells(kind: KindSummary, options: list[str], cell: int) -> str:
    taken = {shown(option.option): option.share for option in kind.options if option.pulls}
    return "".join(share_cell(taken.get(option), cell) for option in options)


def share_cell(share: float | None, cell: int) -> str:
    """A number and its bar; a point for what was never taken."""
    words = "·" if share is None else f"{share:.0%}"
    return words.rjust(6) + " " + bar(share or 0.0, cell - 7) if cell > 8 else words.rjust(cell)


def bar(share: float, room: int, empty: str = " ") -> str:
    """As much of the room as the share, to an eighth of a letter."""
    whole, rest = divmod(round(8 * room * min(max(share, 0.0), 1.0)), 8)
    return ("█" * whole + EIGHTHS[rest] * (rest > 0)).ljust(room, empty)
