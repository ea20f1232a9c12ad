"""What recorded history saves: a live scheduler in its first tasks, cold and with rows to begin with.

    python benchmarks/history.py --tables DIR                    every recorded table (.parquet) of a folder, a minute
    python benchmarks/history.py --tables DIR --against HEAD~1 --runs 60

Every run draws new tasks and a new history; all entrants of a run meet the same tasks. Loss is 1 − ratio/θ* without the
luck of arrivals, in %, over the first 300 tasks. The entrants: the default of an earlier commit and that of this tree,
both knowing nothing; this tree's with one and with three imported rows for every cell (kind and option), each of a
random item; and with the 300 rows that a greedy rule has logged on other tasks of the same kinds. History goes through
a file and `Scheduler(history=…)`, as a user's does. A missed limit is exit code 1.
"""

from __future__ import annotations

import csv
import math
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from earlier import commit_of, earlier_default
from judging import LEAST, Verdict, geometric, print_verdicts
from recorded import TABLES, recorded
from table import command_line
from worthwhile import Environment, Scheduler
from worthwhile.optimum import Optimum, solve
from worthwhile.state import Floats

REFERENCE, COLD, ONE, THREE, GREEDY = "reference", "cold", "1 row/cell", "3 rows/cell", "greedy log"
ENTRANTS = (REFERENCE, COLD, ONE, THREE, GREEDY)
LOGGED = 300  # tasks of the greedy rule
MEAN, MOST = 0.25, 0.45  # × the reference's loss with one row per cell: geometric mean, and any table
WIDTH = 18  # of a column
BLOCK = 4096  # tasks drawn at once to find some of every kind

Row = tuple[int, int, float, float]  # kind, option, reward (NaN if it failed) and cost
Losses = Mapping[str, Floats]  # % by entrant, one for every run


class World(NamedTuple):
    """A recorded table, with what would be best there."""

    environment: Environment
    best: Optimum

    @property
    def cells(self) -> list[tuple[int, int]]:
        """Every kind that arrives, with every option on offer to it."""
        problem = self.environment.problem
        return [(kind, option) for kind, option in np.argwhere(problem.offered).tolist() if problem.arrival[kind] > 0.0]

    def options(self, kind: int) -> list[int]:
        found: list[int] = np.flatnonzero(self.environment.problem.offered[kind]).tolist()
        return found


def play(world: World, scheduler: Scheduler, tasks: int, generator: np.random.Generator) -> tuple[float, list[Row]]:
    """What a scheduler loses, in %, and the rows that it leaves behind."""
    environment, rows, regret, spent = world.environment, list[Row](), 0.0, 0.0
    expected = environment.problem.means_per_attempt[1]
    for kind, latent in zip(*environment.world.draw(generator, tasks), strict=True):
        task = scheduler.decide(str(kind), world.options(kind))
        option = int(str(task.option))
        reward, cost = environment.world.feedback(kind, option, latent)
        if math.isnan(reward):
            task.fail(cost=cost)
        else:
            task.report(reward, cost)
        rows.append((int(kind), option, float(reward), float(cost)))
        regret, spent = regret + world.best.gaps[kind, option], spent + expected[kind, option]
    return 100.0 * regret / (world.best.ratio * spent), rows


def rows_per_cell(world: World, count: int, generator: np.random.Generator) -> list[Row]:
    """So many rows for every kind and option, each of a random item, in random order."""
    latents: dict[int, list[Floats]] = {kind: [] for kind, _ in world.cells}
    wanted = {kind: count * len(world.options(kind)) for kind in latents}
    while any(len(found) < wanted[kind] for kind, found in latents.items()):
        for kind, latent in zip(*world.environment.world.draw(generator, BLOCK), strict=True):
            latents[int(kind)].append(latent)
    feedback = world.environment.world.feedback
    rows = [(kind, option, *feedback(kind, option, latents[kind].pop())) for kind, option in world.cells * count]
    generator.shuffle(rows)  # type: ignore[arg-type]
    return rows


def write(path: Path, rows: Sequence[Row]) -> Path:
    """History as a user has it, with column names of its own."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("task", "model", "score", "usd", "failed"))
        for kind, option, reward, cost in rows:
            writer.writerow((kind, option, "" if math.isnan(reward) else reward, cost, math.isnan(reward)))
    return path


COLUMNS = {"kind": "task", "option": "model", "reward": "score", "cost": "usd"}


def greedy_log(world: World, seed: Sequence[int]) -> list[Row]:
    """What a rule that looks at each kind alone has logged."""
    with Scheduler(policy="kind-greedy", seed=0) as scheduler:
        return play(world, scheduler, LOGGED, np.random.default_rng(seed))[1]


def one_run(world: World, reference: str, tasks: int, seed: int, folder: Path) -> Iterator[tuple[str, float]]:
    """What each entrant loses, all with the same tasks."""
    histories = {
        ONE: rows_per_cell(world, 1, np.random.default_rng((seed, 1))),
        THREE: rows_per_cell(world, 3, np.random.default_rng((seed, 3))),
        GREEDY: greedy_log(world, (seed, 2)),
    }
    for name in ENTRANTS:
        rows = histories.get(name)
        history = None if rows is None else write(folder / "old.csv", rows)
        policy, columns = (reference if name == REFERENCE else None), (COLUMNS if history else None)
        with Scheduler(policy=policy, seed=seed, history=history, history_columns=columns) as scheduler:
            yield name, play(world, scheduler, tasks, np.random.default_rng((seed, 0)))[0]


def measure(world: World, reference: str, tasks: int, runs: int, seed: int) -> Losses:
    """Every entrant in every run."""
    with tempfile.TemporaryDirectory() as folder:
        found = [dict(one_run(world, reference, tasks, seed + run, Path(folder))) for run in range(runs)]
    return {name: np.array([one[name] for one in found]) for name in ENTRANTS}


def error(values: Floats) -> float:
    return float(values.std(ddof=1) / math.sqrt(len(values)))


def print_row(name: str, losses: Losses) -> None:
    cells = [f"{values.mean():.2f} ± {error(values):.2f}" for values in losses.values()]
    print(f"{name:<26}" + "".join(f"{cell:>{WIDTH}}" for cell in cells), flush=True)


def judge(found: Mapping[str, Losses]) -> Iterator[Verdict]:
    """The limits, on all tables."""
    times = overall(found, ONE)
    yield Verdict(f"{ONE}: geometric mean at most {MEAN:g} × the reference's", f"{times:.3f} ×", times <= MEAN)
    ratios = {table: ratio(losses, ONE) for table, losses in found.items()}
    bad = ", ".join(f"{table} {times:.2f}" for table, times in ratios.items() if times > MOST)
    yield Verdict(f"{ONE}: no table above {MOST:g} × the reference's loss", bad or "none", not bad)
    worse = {table: losses[GREEDY] - losses[COLD] for table, losses in found.items()}
    bad = ", ".join(
        f"{table} by {more.mean():.2g} ± {error(more):.2g} %"
        for table, more in worse.items()
        if more.mean() > error(more)
    )
    yield Verdict(f"{GREEDY}: no table worse than {COLD}, by more than a standard error", bad or "none", not bad)


def overall(found: Mapping[str, Losses], name: str) -> float:
    """The geometric mean of an entrant's loss over the tables, in units of the reference's."""
    ours, reference = ([float(losses[one].mean()) for losses in found.values()] for one in (name, REFERENCE))
    return geometric(ours) / geometric(reference)


def ratio(losses: Losses, name: str) -> float:
    return max(float(losses[name].mean()), LEAST) / max(float(losses[REFERENCE].mean()), LEAST)


def main() -> int:
    """Print losses and verdicts; exit code 1 if a limit is missed."""
    parser = command_line(__doc__)
    parser.add_argument("--tables", type=Path, required=True, metavar="DIR", help="the recorded tables (.parquet)")
    parser.add_argument(
        "--against", default="23fda6b", metavar="COMMIT", help="whose default is the reference (23fda6b)"
    )
    parser.add_argument("--tasks", type=int, default=300, metavar="T", help="of a run (300)")
    parser.add_argument("--runs", type=int, default=20, metavar="N", help="of every table (20)")
    options = parser.parse_args()
    names = sorted(path.stem for path in options.tables.glob("*.parquet"))
    if not names or options.runs < 2:
        parser.error(f"no .parquet file in {options.tables}" if not names else "--runs: at least 2, for an error")
    began, found = time.perf_counter(), dict[str, Losses]()
    print(f"loss in % of the optimum in the first {options.tasks} tasks, ± standard error of {options.runs} runs")
    print(" " * 26 + "".join(f"{name:>{WIDTH}}" for name in ENTRANTS))
    with earlier_default(commit_of(options.against)) as reference:
        for name in names:
            environment = recorded(options.tables, name, TABLES.get(name, 0.0))
            world = World(environment, solve(environment.problem))
            found[name] = measure(world, reference, options.tasks, options.runs, 1000 * options.seed)
            print_row(name, found[name])
    print("geometric mean / reference" + "".join(f"{f'{overall(found, name):.3f} ×':>{WIDTH}}" for name in ENTRANTS))
    print("\nlimits:")
    kept = print_verdicts([*judge(found)])
    print(f"{len(names)} tables in {time.perf_counter() - began:.0f} s")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
