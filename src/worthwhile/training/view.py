"""What a person sees while tasks run: a few lines that are drawn again and again, or now and then a plain one."""

from __future__ import annotations

import time
from typing import TextIO

from worthwhile.live.explaining import KindSummary
from worthwhile.reports import percent
from worthwhile.reports_live import number, shown
from worthwhile.scheduler import Scheduler
from worthwhile.worker import Finished

UP, CLEAR = "\033[{}A", "\033[K"
BAR = 20  # letters


class View:
    """Called after every task."""

    def __init__(self, scheduler: Scheduler, total: int, out: TextIO) -> None:
        self.scheduler, self.total, self.out = scheduler, total, out
        self.drawn, self.failed, self.tasks = 0, 0, 0
        self.began = self.last = time.monotonic()
        self.every = 0.5 if out.isatty() else 5.0

    def __call__(self, finished: Finished) -> None:
        self.failed += finished.failure is not None
        self.tasks += 1
        if time.monotonic() - self.last >= self.every:
            self.draw()

    def draw(self) -> None:
        self.last = time.monotonic()
        summary = self.scheduler.summary()
        pace = self.tasks / max(self.last - self.began, 1e-9)
        facts = [f"{summary.reports:,} of {self.total:,} tasks", f"reward/cost {number(summary.ratio)}"]
        facts += [f"θ {number(summary.theta)}", f"{pace:.1f} tasks/s", *([f"{self.failed} failed"] * (self.failed > 0))]
        lines = ["   ".join(facts)]
        if self.out.isatty():
            lines += [kind_line(kind) for kind in summary.kinds]
            up = UP.format(self.drawn) if self.drawn else ""
            self.out.write(up + "".join(f"{line}{CLEAR}\n" for line in lines))
            self.drawn = len(lines)
        else:
            self.out.write(lines[0] + "\n")
        self.out.flush()


def kind_line(kind: KindSummary) -> str:
    """How often a kind took each option."""
    shares = (f"{shown(one.option)}: {percent(one.share)}" for one in kind.options if one.pulls)
    most = max(kind.options, key=lambda one: one.pulls, default=None)
    bar = "█" * round(BAR * (most.share if most else 0.0))
    return f"  {kind.kind:<12} {bar:<{BAR}} {', '.join(shares)}"
