"""Is this tree as fast as an earlier commit? `python benchmarks/against_commit.py [COMMIT] [--limit 1.0]`, 5 minutes.

Both trees take turns of a few milliseconds, so that a busy machine hurts them alike, in new processes for every round.
For each figure: the median of new / old over the rounds, with its 95 % interval. It fails where even the lower end is
above the limit.
Only the public API is used, since other names may have changed in between.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from table import Report, clocked, command_line

ROOT = Path(__file__).parents[1]
REFERENCE = "23fda6b"
OPTIONS = [1, 5, 10, 15, 20]
PAIRS = 100  # that are timed together
SIMULATED = {"ratio-imed": 20_000, "dol-rm": 100_000}  # tasks
COPIES = 8  # of the policy, which see the same tasks: drawing those is a small part of the time
TURNS = 10  # of each tree in a round


def answer(seed: int) -> None:
    """In a process of its own: for every figure that is asked for, seconds per pair or per task."""
    from worthwhile import Scheduler, seven_kinds, simulate

    how: Any = {"runs": 1, "seed": seed, "marks": [], "threads": 1, "engine": "compiled", "progress": False}

    def simulated(name: str, tasks: int) -> float:
        policies: Any = {str(number): name for number in range(COPIES)}
        return clocked(lambda: simulate(seven_kinds(), policies, tasks, **how)) / tasks / COPIES

    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        figures: dict[str, Callable[[], float]] = {}
        for engine in ("python", "compiled"):
            for store, url in (("in memory", None), ("SQLite", f"sqlite:///{folder}/{engine}.db")):
                scheduler = stack.enter_context(Scheduler(url, engine=engine, seed=seed))
                figures[f"{store}, {engine}: decide + report"] = partial(pairs, scheduler)
        for name, tasks in SIMULATED.items():
            figures[f"simulated, compiled: {name}"] = partial(simulated, name, tasks)
        for figure in figures.values():
            figure()  # warm
        print(json.dumps(list(figures)), flush=True)
        for line in sys.stdin:
            print(figures[line.strip()](), flush=True)


def pairs(scheduler: Any) -> float:
    """Seconds per pair of decide and report."""

    def some() -> None:
        for number in range(PAIRS):
            task = scheduler.decide(f"kind {number % 3}", OPTIONS)
            task.report(reward=task.option / 10 + number * 7919 % 13 / 13, cost=1.0 + task.option / 7)

    return clocked(some) / PAIRS


class Tree:
    """A new process that imports the package of a tree, and measures what it is asked for."""

    def __init__(self, tree: Path, seed: int) -> None:
        command = [sys.executable, __file__, "--answer", "--seed", str(seed)]
        environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.figures: list[str] = json.loads(self.line())

    def line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("a process has ended; its error is above")
        return line

    def seconds(self, figure: str) -> float:
        print(figure, file=self.process.stdin, flush=True)
        return float(self.line())

    def close(self) -> None:
        self.process.communicate()


def one_round(trees: Sequence[Path], seed: int) -> dict[str, list[float]]:
    """The best time of every figure in each tree; they take turns, one waits while the other works."""
    running = [Tree(tree, seed) for tree in trees]
    best = {figure: [math.inf] * len(trees) for figure in running[0].figures}
    for figure, times in best.items():
        for _ in range(TURNS):
            for place, tree in enumerate(running):
                times[place] = min(times[place], tree.seconds(figure))
    for tree in running:
        tree.close()
    return best


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """A tree of an earlier commit."""
    git = ["git", "-C", str(ROOT), "worktree"]
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        subprocess.run([*git, "add", "--quiet", "--detach", tree, commit], check=True)
        try:
            yield tree
        finally:
            subprocess.run([*git, "remove", "--force", tree], check=True)


def interval(values: Sequence[float]) -> tuple[float, float]:
    """A 95 % interval of the median: as many values are below it as there are heads in so many tosses."""
    count, rank, below = len(values), 0, 1
    while (below + math.comb(count, rank + 1)) / 2**count <= 0.025:
        rank += 1
        below += math.comb(count, rank)
    ordered = sorted(values)
    return ordered[rank], ordered[-1 - rank]


def main() -> int:
    parser = command_line(__doc__)
    parser.add_argument("commit", nargs="?", default=REFERENCE, help=f"to compare with ({REFERENCE})")
    parser.add_argument("--rounds", type=int, default=20, help="turns of each tree (20)")
    parser.add_argument("--limit", type=float, default=1.0, help="of new / old (1.0: no slower)")
    parser.add_argument("--answer", action="store_true", help="measure what standard input asks for")
    chosen = parser.parse_args()
    if chosen.answer:
        answer(chosen.seed)
        return 0
    if chosen.rounds < 6:
        parser.error("--rounds: fewer than 6 have no 95 % interval")
    report, rounds = Report(), []
    with checked_out(chosen.commit) as old:
        one_round([old, ROOT], chosen.seed)  # compiles
        for number in range(chosen.rounds):
            if number % 2:  # neither is always the first
                rounds.append(one_round([old, ROOT], chosen.seed))
            else:
                rounds.append({name: times[::-1] for name, times in one_round([ROOT, old], chosen.seed).items()})
    for figure in rounds[0]:
        ratios = [one[figure][1] / one[figure][0] for one in rounds]
        low, high = interval(ratios)
        report.note(f"{figure}, old", f"{1e6 * median(one[figure][0] for one in rounds):.4g} µs")
        shown = f"{median(ratios):.3f} ({low:.3f} to {high:.3f})"
        report.judge(f"{figure}, new / old", shown, f"≤ {chosen.limit:g} ×", low <= chosen.limit)
    return int(report.close() > 0)


if __name__ == "__main__":
    sys.exit(main())
