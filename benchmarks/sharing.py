"""What the default gains where kinds are alike, and loses where they are not, beside itself before it learned to share.

    python benchmarks/sharing.py --tables DIR          minutes; without tables, only the random problems

Both meet the same random worlds. Recorded tables with several kinds: what share of the optimum is earned in the first
tasks, and no harm later. Random problems whose kinds have nothing in common: what looking for it costs. 300 Zipf kinds,
which are alike: what it saves. Every limit is judged; a missed one is exit code 1. All numbers go to
results/sharing.csv.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from earlier import commit_of, earlier_default
from judging import Verdict, geometric, print_verdicts
from measuring import Measured, measure, save
from recorded import TABLES, recorded
from suites import APART, DEVELOP, FEW, REPORT, Row, random_row, zipf
from table import command_line
from worthwhile import Environment, Problem, random_problem
from worthwhile.policies.registry import DEFAULT

BEFORE = "6710326"  # the last commit whose default learned every kind by itself
THEN = "before"  # its label
EARLY, LATER, LATE = (100, 300, 1_000), 10_000, 100_000  # tasks
RUNS, PROBLEMS = 20, 120
EARNED, EARNED_AT = 1.4, 1_000  # × what it earned before, at so many tasks
POINTS = 2.0  # % of the optimum that a table may earn less
LATE_LOSS, UNLIKE_LOSS, ALIKE_LOSS = 1.05, 1.05, 0.5  # × what it lost before
ALIKE = "300 Zipf kinds"


class Found(NamedTuple):
    """Everything measured: of the recorded tables, and of problems whose kinds are unlike or alike."""

    tables: Sequence[Measured]
    unlike: Sequence[Measured]
    alike: Sequence[Measured]


def unnamed(problem: Problem, seed: int) -> Problem:
    """The same problem with the options of every kind under each other's names: kinds have nothing in common."""
    rng, reward, cost = np.random.default_rng([seed, 10]), problem.reward.copy(), problem.cost.copy()
    for kind, offered in enumerate(problem.offered):
        places = np.flatnonzero(offered)
        order = rng.permutation(places)
        reward[kind, places], cost[kind, places] = reward[kind, order], cost[kind, order]
    return replace(problem, reward=reward, cost=cost)


def table_rows(folder: Path | None) -> list[Row]:
    """The recorded tables that have several kinds."""
    there = ((name, added) for name, added in TABLES.items() if folder and (folder / f"{name}.parquet").is_file())
    every = [Row(name, (recorded(folder, name, added),)) for name, added in there if folder]
    return [row for row in every if not row.one_kind]


def unlike_rows(first: int) -> Iterator[Row]:
    """Kinds that have nothing in common but the names of their options."""
    yield random_row("unit", lambda seed: random_problem("unit", seed), first, PROBLEMS)
    train = random_row("train", lambda seed: unnamed(random_problem("train", seed), seed), first, PROBLEMS)
    yield train._replace(name="train with shuffled names")


def measured(rows: Sequence[Row], horizons: Sequence[int], reference: str, runs: int, seed: int) -> list[Measured]:
    """Both defaults in every row, at every horizon."""

    def both(row: Row, world: Environment) -> Mapping[str, str]:
        return {THEN: reference, DEFAULT: DEFAULT}

    return [measure(row, both, tasks, runs, seed) for tasks in horizons for row in rows]


def earned(one: Measured, policy: str) -> float:
    """% of the optimum."""
    return 100.0 - one.mean(policy)


def ratio_of_losses(one: Measured) -> tuple[float, float]:
    """Today's mean loss in that of before, and the standard error of this, samples being paired."""
    now, then = (one.loss[:, one.policies.index(name)] for name in (DEFAULT, THEN))
    ratio = float(now.mean() / then.mean())
    return ratio, float((now - ratio * then).std(ddof=1) / math.sqrt(len(now)) / then.mean())


def judge(found: Found) -> Iterator[Verdict]:
    """Every limit about what was measured."""
    for tasks in dict.fromkeys(one.tasks for one in found.tables):
        yield from judge_tables([one for one in found.tables if one.tasks == tasks], tasks)
    for ones, most in ((found.unlike, UNLIKE_LOSS), (found.alike, ALIKE_LOSS)):
        for one in ones:
            ratio, error = ratio_of_losses(one)
            limit = f"{one.row}, T = {one.tasks:,}: at most {most:g} × the loss"
            yield Verdict(limit, f"{ratio:.3f} ± {error:.3f} × {one.mean(THEN):.3g} %", ratio <= most)


def judge_tables(ones: Sequence[Measured], tasks: int) -> Iterator[Verdict]:
    """One horizon."""
    where = f"{len(ones)} tables, T = {tasks:,}"
    if tasks == EARNED_AT:
        now, then = (geometric([earned(one, name) for one in ones]) for name in (DEFAULT, THEN))
        limit = f"{where}: at least {EARNED:g} × as much earned"
        yield Verdict(limit, f"{now / then:.3f} × {then:.3g} %", now >= EARNED * then)
    if tasks in (EARNED_AT, LATER):
        less = {one.row: earned(one, THEN) - earned(one, DEFAULT) for one in ones}
        bad = ", ".join(f"{row} {points:.2f}" for row, points in less.items() if points > POINTS)
        yield Verdict(f"{where}: none earns less by more than {POINTS:g} points", bad or "none", not bad)
    if tasks == LATE:
        ratio = geometric([one.mean(DEFAULT) for one in ones]) / geometric([one.mean(THEN) for one in ones])
        yield Verdict(f"{where}: at most {LATE_LOSS:g} × the loss", f"{ratio:.3f} ×", ratio <= LATE_LOSS)


def print_tables(ones: Sequence[Measured]) -> None:
    """What was earned before and is now, a line per table and a column per horizon."""
    horizons = [*dict.fromkeys(one.tasks for one in ones)]
    print(f"{'% of the optimum earned, before → now':<40}" + "".join(f"{tasks:>18,}" for tasks in horizons))
    for row in dict.fromkeys(one.row for one in ones):
        pairs = ((earned(one, THEN), earned(one, DEFAULT)) for one in ones if one.row == row)
        print(f"{row:<40}" + "".join(f"{f'{then:.2f} → {now:.2f}':>18}" for then, now in pairs))
    means = []
    for tasks in horizons:
        then, now = (geometric([earned(o, name) for o in ones if o.tasks == tasks]) for name in (THEN, DEFAULT))
        means.append(f"{f'{then:.2f} → {now:.2f}':>18}")
    print(f"{'geometric mean':<40}" + "".join(means), flush=True)


def run(options: argparse.Namespace, reference: str) -> Found:
    """Measure everything, the tables first."""
    seed = APART * options.seed + (DEVELOP if options.develop else REPORT)
    tables = measured(table_rows(options.tables), (*EARLY, LATER, LATE), reference, options.runs, seed)
    if tables:
        print_tables(tables)
    unlike = measured([*unlike_rows(seed)], (EARNED_AT, LATER), reference, PROBLEMS, seed)
    alike = measured([random_row(ALIKE, zipf, seed, FEW)], (EARNED_AT,), reference, options.runs, seed)
    return Found(tables, unlike, alike)


def main() -> int:
    """Print the tables; exit code 1 if a limit is missed."""
    parser = command_line(__doc__)
    parser.add_argument("--tables", type=Path, metavar="DIR", help="the recorded tables (.parquet) of a folder")
    parser.add_argument("--against", default=BEFORE, metavar="COMMIT", help=f"another reference than {BEFORE}")
    parser.add_argument("--runs", type=int, default=RUNS, metavar="N", help=f"of every table, and of {ALIKE}")
    parser.add_argument("--develop", action="store_true", help="the half of the random problems to develop on")
    parser.add_argument("--out", type=Path, default=Path("results/sharing.csv"), help="where the numbers go")
    options = parser.parse_args()
    begin = time.perf_counter()
    with earlier_default(commit_of(options.against)) as reference:
        found = run(options, reference)
    save(options.out, [*found.tables, *found.unlike, *found.alike])
    kept = print_verdicts([*judge(found)])
    print(f"\nin {time.perf_counter() - begin:.0f} s; the numbers are in {options.out}")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
