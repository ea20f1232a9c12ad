"""The modules that one task passes through, and how often: python benchmarks/walk.py

A module counts when one of its functions is entered. A border is crossed when a function is called from a function of
another module of worthwhile, whatever of other packages lies between the two; returning is not counted, nor is being
called from outside. Walked are one `decide` and `report` after ten others, so that nothing happens for the first time,
and one simulated run of four tasks, in all its threads. Works on older trees as well: PYTHONPATH=older/src.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from worthwhile import Scheduler, seven_kinds, simulate

PAIRS_BEFORE = 10
TASKS = 4


class Walk(NamedTuple):
    """The modules in the order of their first entry, and the number of borders crossed."""

    modules: list[str]
    crossings: int


def module_of(frame: FrameType | None) -> str:
    """The module of worthwhile that a function belongs to, or of the nearest one that called it; empty outside."""
    while frame is not None:
        package, _, module = frame.f_globals.get("__name__", "").partition(".")
        if package == "worthwhile":
            return str(module)
        frame = frame.f_back
    return ""


def walk(action: Callable[[], object]) -> Walk:
    """Do something and watch."""
    entered: dict[str, None] = {}
    crossed = []

    def watch(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_globals.get("__name__", "").startswith("worthwhile."):
            module, caller = module_of(frame), module_of(frame.f_back)
            entered.setdefault(module)
            if caller and caller != module:
                crossed.append(module)

    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        action()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return Walk(list(entered), len(crossed))


def pair(url: str | None = None) -> Walk:
    """One decision and its report."""
    scheduler = Scheduler(url, seed=1)

    def decide_and_report() -> None:
        task = scheduler.decide("weather", [1, 5, 10])
        scheduler.report(task.id, 0.9, 3.2)

    for _ in range(PAIRS_BEFORE):
        decide_and_report()
    found = walk(decide_and_report)
    scheduler.close()
    return found


def run() -> Walk:
    """A simulated run, interpreted."""
    problem = seven_kinds()
    return walk(lambda: simulate(problem, tasks=TASKS, runs=1, engine="python", progress=False))


def main() -> None:
    """Print the three walks."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'tasks.db'}"
        walks = {"one pair in memory": pair(), "one pair in a SQLite file": pair(url), f"a run of {TASKS} tasks": run()}
    for name, (modules, crossings) in walks.items():
        print(f"{name}: {len(modules)} modules, {crossings} crossings")
        print(f"  {' → '.join(modules)}")


if __name__ == "__main__":
    main()
