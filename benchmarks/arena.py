"""The default beside its rivals on problems of every sort: `python benchmarks/arena.py [--full] [--tables DIR]`.

Same random worlds for all. The default is told nothing; the rivals are told the true bounds and the horizon. Loss is
1 − ratio/θ* without the luck of arrivals, in %. As it stands: T = 10³ and 10⁴, under ten minutes; `--full` adds 10⁵ and
takes as long as it takes. All that is measured goes to results/arena.csv: losses and pseudo-regrets, their standard
errors and 99th percentiles.
"""

from __future__ import annotations

import fnmatch
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from measuring import STUCK, Measured, measure, save
from suites import APART, DEVELOP, REPORT, Row, rows
from table import command_line
from worthwhile import Environment
from worthwhile.policies.registry import DEFAULT
from worthwhile.simulation.progress import Progress

RANGED = ("omega-ucb", "omega-star-ucb", "m-ucb", "bts")  # told a range of the observations
RIVALS = ("dol-rm", "dol-rm-anytime", *RANGED, "ratio-ts")
ONE_KIND = ("ratio-ucb",)  # at home where there is one kind
DOL_RM = RIVALS[:2]
NAME = 34  # letters of a row
LEAST = 0.01  # %: smaller losses count as this in a geometric mean
SHARE_BEST, TIMES_BEST, GEOMETRIC, GEOMETRIC_DOL_RM = 0.8, 2.0, 0.6, 0.2  # the targets
JUDGED = 100_000  # tasks from which on they count


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
    print_stuck(found, ours)


def print_stuck(found: Sequence[Measured], ours: str) -> None:
    """How many runs of ours were stuck, where any was."""
    stuck = [(one.stuck_runs(ours), one) for one in found if one.stuck_runs(ours) > 0.0]
    print(f"stuck runs of {ours} (regret at T above {STUCK:g} × that at T/10): {'' if stuck else 'none'}")
    for share, one in sorted(stuck, key=lambda pair: -pair[0]):
        print(f"  {one.row:<{NAME}} {share:.3g} % of {one.runs}")


def short(name: str) -> str:
    """A name that fits into a column."""
    name = name.rpartition(":")[2]
    for long, brief in (("anytime", "any"), ("omega-star", "ω*"), ("omega", "ω"), ("ratio-imed", "default")):
        name = name.replace(long, brief)
    return name[:10]


def summarise(found: Sequence[Measured], ours: str) -> bool:
    """Where ours stands beside the best rival of every row, and beside each rival over all rows."""
    if set(found[0].policies) <= {ours, DEFAULT}:
        return True
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


def main() -> int:
    """Print the tables; exit code 1 if a target is missed at T = 10⁵."""
    parser = command_line(__doc__)
    parser.add_argument("--full", action="store_true", help="T up to 10⁵, three times the runs")
    parser.add_argument("--tables", type=Path, metavar="DIR", help="add the recorded tables (.parquet) of a folder")
    parser.add_argument("--develop", action="store_true", help="the half of the random problems to develop on")
    parser.add_argument("--rows", default="*", metavar="PATTERN", help='only rows like this, e.g. "*options"')
    parser.add_argument("--policy", default=DEFAULT, help="judge this policy instead (a name or package.module:Class)")
    parser.add_argument("--tasks", type=int, nargs="+", metavar="T", help="other horizons")
    parser.add_argument("--runs", type=int, metavar="N", help="of a row: of its one problem, or of all its random ones")
    parser.add_argument("--alone", action="store_true", help="without rivals, which is quicker")
    parser.add_argument("--out", type=Path, default=Path("results/arena.csv"), help="where the numbers go")
    options = parser.parse_args()
    horizons = options.tasks or [1_000, 10_000, *([100_000] if options.full else [])]
    runs = options.runs or (60 if options.full else 20)
    begin = time.perf_counter()
    seed = APART * options.seed + (DEVELOP if options.develop else REPORT)
    suites = rows(seed, options.tables)
    chosen = [row for row in suites if fnmatch.fnmatch(row.name, options.rows)]
    if not chosen:
        parser.error(f"no row is like {options.rows!r}")
    policies = [*dict.fromkeys([*([] if options.alone else RIVALS), DEFAULT, options.policy])]
    found: list[Measured] = []

    def entrants(row: Row, world: Environment, tasks: int) -> dict[str, str]:
        asked = [*policies, *(ONE_KIND if row.one_kind and not options.alone else ())]
        return {name: f"{name},{row.told}" if row.told and name in RANGED else name for name in asked}

    with Progress(len(horizons) * len(chosen), None, " rows") as bar:
        for tasks in horizons:
            for row in chosen:
                found.append(measure(row, entrants, tasks, runs, seed))
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
