"""What running tasks costs beyond the tasks: overhead of the loop, throughput of many workers, learning in flight."""

from __future__ import annotations

import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from live import bare_sqlite
from table import Report, best_times, clocked, command_line
from worthwhile import Arrival, LocalExecutor, Outcome, Problem, Scheduler, seven_kinds, solve, work

OPTIONS = [1, 5, 10, 15, 20]


def nothing(kind: str, option: Any, payload: Any) -> float:
    return 1.0


def sleep(kind: str, option: Any, payload: float) -> float:
    time.sleep(payload)
    return 1.0


def overhead(report: Report, folder: Path, tasks: int, rounds: int, seed: int) -> None:
    """One slot: decide, submit and report durably, against a bare round trip and two bare commits."""
    stream = [Arrival(f"kind {number % 3}", OPTIONS) for number in range(tasks)]
    with Scheduler(f"sqlite:///{folder}/ours.db", seed=seed) as scheduler, LocalExecutor(1) as executor:

        def bare_trips() -> None:
            for number in range(tasks):
                executor.submit(nothing, "x", number, None).result()

        def bare_commits() -> None:
            for _ in bare_sqlite(folder / "bare.db", tasks):
                pass

        best = best_times(
            {
                "ours": lambda: clocked(partial(work, scheduler, stream, nothing, executor=executor)),
                "trips": lambda: clocked(bare_trips),
                "commits": lambda: clocked(bare_commits),
            },
            rounds,
        )
    each = {name: 1e6 * seconds / tasks for name, seconds in best.items()}
    report.note("a bare round trip of the local executor", f"{each['trips']:.0f} µs")
    report.note("two bare durable commits (SQLite)", f"{each['commits']:.0f} µs")
    report.note("a task in the loop: decide, submit, run nothing, report", f"{each['ours']:.0f} µs")
    report.at_most("loop / (round trip + two commits)", each["ours"] / (each["trips"] + each["commits"]), 1.5, "×")


def throughput(report: Report, folder: Path, workers: int, seconds: float, each: int, seed: int) -> None:
    """Many workers that sleep."""
    stream = [Arrival(f"kind {number % 3}", OPTIONS, seconds) for number in range(workers * each)]
    with Scheduler(f"sqlite:///{folder}/many.db", seed=seed) as scheduler, LocalExecutor(workers) as executor:
        while not all(process is not None and process.started for process in executor.processes):
            time.sleep(0.1)
        took = clocked(partial(work, scheduler, stream, sleep, executor=executor))
    report.at_least(f"{workers} workers, tasks of {1000 * seconds:g} ms: of the ideal", each * seconds / took, 0.9, "×")


def lost(problem: Problem, workers: int, tasks: int, seed: int) -> float:
    """Pseudo-regret of the default, tasks of random length really in flight."""
    luck = np.random.default_rng(seed)
    kinds = luck.choice(len(problem.kinds), tasks, p=problem.arrival).tolist()
    best, place = solve(problem), {option: number for number, option in enumerate(problem.options)}
    noise = iter(luck.normal(0.0, 0.1, (10 * tasks, 2)).tolist())
    pauses = iter((0.002 * luck.random(10 * tasks)).tolist())
    regret = []

    def run(kind: str, option: str, number: int) -> Any:
        if workers > 1:
            time.sleep(next(pauses))
        where, (up, down) = (number, place[option]), next(noise)
        regret.append(float(best.gaps[where]))
        return Outcome(float(problem.reward[where]) + up, max(0.05, float(problem.cost[where]) + down))

    offered = [[problem.options[one] for one in np.flatnonzero(row)] for row in problem.offered]
    stream = [Arrival(problem.kinds[kind], offered[kind], kind) for kind in kinds]
    with Scheduler(seed=seed) as scheduler, ThreadPoolExecutor(workers) as executor:
        work(scheduler, stream, run, executor=executor)
    return sum(regret)


def in_flight(report: Report, tasks: int, seeds: range) -> None:
    """Eight at once against one at a time."""
    problem = seven_kinds()
    runs = [np.array([lost(problem, workers, tasks, seed) for seed in seeds]) for workers in (1, 8)]
    runs = [run / (tasks * solve(problem).reward) for run in runs]
    (one, eight), errors = (run.mean() for run in runs), [run.std(ddof=1) / np.sqrt(len(seeds)) for run in runs]
    report.note(f"lost with one in flight, {tasks:,} tasks × {len(seeds)}", f"{one:.3%} ± {errors[0]:.3%}")
    report.note("lost with eight in flight", f"{eight:.3%} ± {errors[1]:.3%}")
    ratio = eight / one
    error = ratio * np.hypot(errors[0] / one, errors[1] / eight)
    report.judge("eight in flight / one", f"{ratio:.2f} ± {error:.2f} ×", "≤ 1.2 ×", bool(ratio <= 1.2))


def main() -> int:
    parser = command_line(__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer tasks and workers")
    arguments = parser.parse_args()
    quick, report = arguments.quick, Report()
    with tempfile.TemporaryDirectory() as folder:
        overhead(report, Path(folder), 20, 5 if quick else 60, arguments.seed)
        throughput(report, Path(folder), 8 if quick else 64, 0.05, 20 if quick else 60, arguments.seed)
    first = 1000 * arguments.seed
    in_flight(report, 500 if quick else 2000, range(first, first + (3 if quick else 100)))
    return int(report.close() > 0)


if __name__ == "__main__":
    sys.exit(main())
