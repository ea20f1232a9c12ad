"""What the benchmarks share: their command line, the table they print, and how they take time."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np


def command_line(about: str | None) -> argparse.ArgumentParser:
    """The options that every benchmark has."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0, help="of all that is random (0)")
    return parser


class Report:
    """The table, printed row by row as things are measured."""

    def __init__(self) -> None:
        self.rows = 0
        self.missed: list[str] = []
        self.began = time.perf_counter()
        print(f"{'what':<66} {'measured':>12} {'limit':>12}  verdict\n{'-' * 101}")

    def note(self, what: str, measured: str) -> None:
        """A figure without a limit."""
        print(f"{what:<66} {measured:>12}", flush=True)

    def at_most(self, what: str, value: float, limit: float, unit: str) -> None:
        self.judge(what, f"{value:.3g} {unit}", f"≤ {limit:g} {unit}", value <= limit)

    def at_least(self, what: str, value: float, limit: float, unit: str) -> None:
        self.judge(what, f"{value:.3g} {unit}", f"≥ {limit:g} {unit}", value >= limit)

    def judge(self, what: str, measured: str, limit: str, kept: bool) -> None:
        self.rows += 1
        if not kept:
            self.missed.append(what)
        print(f"{what:<66} {measured:>12} {limit:>12}  {'ok' if kept else 'MISSED'}", flush=True)

    def close(self) -> int:
        """The counts; how many limits were missed."""
        seconds = time.perf_counter() - self.began
        kept = self.rows - len(self.missed)
        print(f"{kept} of {self.rows} limits kept, {len(self.missed)} missed, in {seconds:.0f} s")
        return len(self.missed)


def best_times(contestants: Mapping[Any, Callable[[], float | list[float]]], rounds: int) -> dict[Any, float]:
    """The best time of each contestant, piece by piece if it gives the times of its pieces; they take turns."""
    best: dict[Any, Any] = dict.fromkeys(contestants, np.inf)
    for _ in range(rounds):
        for name, run in contestants.items():
            best[name] = np.minimum(best[name], run())
    return {name: float(np.sum(times)) for name, times in best.items()}


def pieces(steps: Iterable[Any]) -> list[float]:
    """Seconds that each step takes: a long run is rarely left alone by other processes, a short piece often is."""
    times = [time.perf_counter()]
    for _ in steps:
        times.append(time.perf_counter())
    return [end - start for start, end in pairwise(times)]


def clocked(run: Callable[..., Any], *arguments: Any) -> float:
    """Seconds that a call takes."""
    start = time.perf_counter()
    run(*arguments)
    return time.perf_counter() - start
