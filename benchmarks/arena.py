"""The default beside its rivals on problems of every sort: `python benchmarks/arena.py [--full] [--tables DIR]`.

Same random worlds for all. The default is told nothing; the rivals are told the true bounds and the horizon. Loss is
1 − ratio/θ* without the luck of arrivals, in %. As it stands: T = 10³ and 10⁴, under ten minutes; `--full` adds 10⁵ and
takes as long as it takes. All that is measured goes to results/arena.csv: losses and pseudo-regrets, their standard
errors and 99th percentiles.
"""

from __future__ import annotations

import csv
import fnmatch
import math
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from suites import APART, DEVELOP, REPORT, Row, rows
from table import command_line
from worthwhile import simulate
from worthwhile.policies.registry import DEFAULT
from worthwhile.simulation.progress import Progress
from worthwhile.state import Floats

RANGED = ("omega-ucb", "omega-star-ucb", "m-ucb", "bts")  # told a range of the observations
RIVALS = ("dol-rm", "dol-rm-anytime", *RANGED, "ratio-ts")
ONE_KIND = ("ratio-ucb",)  # at home where there is one kind
DOL_RM = RIVALS[:2]
TIE_LOSS, TIE_ERRORS = 0.1, 2.0  # %, standard errors: a smaller difference is a tie
NAME = 34  # letters of a row
LEAST = 0.01  # %: smaller losses count as this in a geometric mean
SHARE_BEST, TIMES_BEST, GEOMETRIC, GEOMETRIC_DOL_RM = 0.8, 2.0, 0.6, 0.2  # the targets
JUDGED = 100_000  # tasks from which on they count


class Measured(NamedTuple):
    """What every policy lost in one row: (samples, policies), a sample being a run or a random problem."""

    row: str
    tasks: int
    policies: tuple[str, ...]
    loss: Floats  # %
    regret: Floats
    worst: Floats  # (policies,): 99th percentile of the loss over single runs

    def mean(self, policy: str) -> float:
        return float(self.loss[:, self.policies.index(policy)].mean())

    def behind(self, policy: str, rival: str) -> tuple[float, float]:
        """How much more than a rival a policy loses, and the standard error of that."""
        more = self.loss[:, self.policies.index(policy)] - self.loss[:, self.policies.index(rival)]
        return float(more.mean()), float(more.std(ddof=1) / math.sqrt(len(more)))

    def best(self, policies: Sequence[str]) -> str:
        return min((name for name in policies if name in self.policies), key=self.mean)

    def ties(self, policy: str, rival: str) -> bool:
        by, error = self.behind(policy, rival)
        return abs(by) <= max(TIE_LOSS, TIE_ERRORS * error)


def measure(row: Row, policies: Sequence[str], tasks: int, runs: int, seed: int) -> Measured:
    """Play a row: one world many times, or each of many worlds a few times."""
    asked = {name: f"{name},{row.told}" if row.told and name in RANGED else name for name in policies}
    several = max(1, runs // len(row.worlds))

    def one(number: int) -> tuple[Floats, Floats]:
        world, count = row.worlds[number % len(row.worlds)], 1 if len(row.worlds) == 1 else several
        alike: dict[str, Any] = {"tasks": tasks, "runs": count, "delay": row.delay, "marks": [], "threads": 1}
        result = simulate(world, asked, seed=seed + number, progress=False, **alike)
        with np.errstate(invalid="ignore"):
            loss = 100.0 * result.measure("loss")[:, :, -1]
        return loss, result.measure("regret")[:, :, -1]

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        pairs = list(pool.map(one, range(runs if len(row.worlds) == 1 else len(row.worlds))))
    single = np.concatenate([loss for loss, _ in pairs])
    loss, regret = (np.stack([pair[place].mean(axis=0) for pair in pairs]) for place in (0, 1))
    return Measured(row.name, tasks, tuple(asked), loss, regret, np.percentile(single, 99, axis=0))


def print_table(found: Sequence[Measured], policies: Sequence[str], ours: str) -> None:
    """A line per row; the least loss has a star, and ours one if it ties with it."""
    names = [*dict.fromkeys([*policies, *ONE_KIND])]
    print(f"\nT = {found[0].tasks:,}: loss in % of the optimum; * least, or tied with the least (ours)")
    print(" " * NAME + "".join(f"{short(name):>11}" for name in names))
    for one in found:
        best = one.best(names)
        cells = []
        for name in names:
            star = name == best or (name == ours and one.ties(ours, best))
            cells.append(f"{one.mean(name):.3g}{'*' if star else ' '}" if name in one.policies else "– ")
        print(f"{one.row:<{NAME}}" + "".join(f"{cell:>11}" for cell in cells))


def short(name: str) -> str:
    """A name that fits into a column."""
    name = name.rpartition(":")[2]
    for long, brief in (("anytime", "any"), ("omega-star", "ω*"), ("omega", "ω"), ("ratio-imed", "default")):
        name = name.replace(long, brief)
    return name[:10]


def summarise(found: Sequence[Measured], ours: str) -> bool:
    """Where ours stands beside the best rival of every row, and beside each rival over all rows."""
    best = {one.row: one.best([name for name in one.policies if name not in (ours, DEFAULT)]) for one in found}
    good = [one for one in found if one.mean(ours) <= one.mean(best[one.row]) or one.ties(ours, best[one.row])]
    print(f"\n{ours} at T = {found[0].tasks:,}: best or tied on {len(good)} of {len(found)} rows")
    far = [one for one in found if one not in good and one.mean(ours) > TIMES_BEST * one.mean(best[one.row])]
    for one in found:
        if one not in good:
            by, error = one.behind(ours, best[one.row])
            times = one.mean(ours) / max(one.mean(best[one.row]), 1e-300)
            print(f"  behind on {one.row}: {times:.2f} × {best[one.row]}, {by:.3g} ± {error:.2g} % more")
    everywhere = [name for name in found[0].policies if all(name in one.policies for one in found)]
    means = {name: geometric([one.mean(name) for one in found]) for name in everywhere}
    rivals = {name: value for name, value in means.items() if name not in (ours, DEFAULT)}
    print("  geometric mean of the loss: " + ", ".join(f"{name} {value:.3g} %" for name, value in means.items()))
    if not rivals:
        return True
    against, dol_rm = means[ours] / min(rivals.values()), means[ours] / min(means[name] for name in DOL_RM)
    print(f"  ours is {against:.2f} × the best single rival's, {dol_rm:.2f} × DOL-RM's (the better of its two steps)")
    if found[0].tasks < JUDGED:
        return True
    targets = {
        f"best or tied on ≥ {SHARE_BEST:.0%} of the rows": len(good) >= SHARE_BEST * len(found),
        f"nowhere above {TIMES_BEST:g} × the best rival": not far,
        f"geometric mean ≤ {GEOMETRIC} × the best single rival's": against <= GEOMETRIC,
        f"geometric mean ≤ {GEOMETRIC_DOL_RM} × DOL-RM's": dol_rm <= GEOMETRIC_DOL_RM,
    }
    for target, kept in targets.items():
        print(f"  {'kept  ' if kept else 'MISSED'} {target}")
    return all(targets.values())


def geometric(losses: Sequence[float]) -> float:
    return math.exp(sum(math.log(max(loss, LEAST)) for loss in losses) / len(losses))


def save(path: Path, found: Sequence[Measured]) -> None:
    """One line per row, T and policy."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        heads = ("loss_percent", "loss_error", "loss_99th_percentile", "regret", "regret_error")
        writer.writerow(("row", "tasks", "policy", "samples", *heads))
        for one in found:
            root = math.sqrt(len(one.loss))
            loss, regret = ((v.mean(axis=0), v.std(axis=0, ddof=1) / root) for v in (one.loss, one.regret))
            for place, name in enumerate(one.policies):
                numbers = (loss[0], loss[1], one.worst, regret[0], regret[1])
                cells = [f"{values[place]:.6g}" for values in numbers]
                writer.writerow((one.row, one.tasks, name, len(one.loss), *cells))


def main() -> int:
    """Print the tables; exit code 1 if a target is missed at T = 10⁵."""
    parser = command_line(__doc__)
    parser.add_argument("--full", action="store_true", help="T up to 10⁵, three times the runs")
    parser.add_argument("--tables", type=Path, metavar="DIR", help="add the recorded tables (.parquet) of a folder")
    parser.add_argument("--develop", action="store_true", help="the half of the random problems to develop on")
    parser.add_argument("--rows", default="*", metavar="PATTERN", help='only rows like this, e.g. "*options"')
    parser.add_argument("--policy", default=DEFAULT, help="judge this policy instead (a name or package.module:Class)")
    parser.add_argument("--tasks", type=int, nargs="+", metavar="T", help="other horizons")
    parser.add_argument("--out", type=Path, default=Path("results/arena.csv"), help="where the numbers go")
    options = parser.parse_args()
    horizons = options.tasks or [1_000, 10_000, *([100_000] if options.full else [])]
    runs = 60 if options.full else 20
    begin = time.perf_counter()
    seed = APART * options.seed
    suites = rows(seed + (DEVELOP if options.develop else REPORT), options.tables)
    chosen = [row for row in suites if fnmatch.fnmatch(row.name, options.rows)]
    if not chosen:
        parser.error(f"no row is like {options.rows!r}")
    policies = [*dict.fromkeys([*RIVALS, DEFAULT, options.policy])]
    found: list[Measured] = []
    with Progress(len(horizons) * len(chosen), None, " rows") as bar:
        for tasks in horizons:
            for row in chosen:
                found.append(measure(row, [*policies, *(ONE_KIND if row.one_kind else ())], tasks, runs, seed))
                bar.add(1)
    kept = True
    for tasks in horizons:
        there = [one for one in found if one.tasks == tasks]
        print_table(there, policies, options.policy)
        kept = summarise(there, options.policy)
    save(options.out, found)
    print(f"\n{len(found)} rows in {time.perf_counter() - begin:.0f} s; the numbers are in {options.out}")
    return 0 if kept or not options.full else 1


if __name__ == "__main__":
    sys.exit(main())
