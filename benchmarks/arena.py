"""The default beside its rivals on problems of every sort, and beside itself as it was.

    python benchmarks/arena.py                                   T = 10³ and 10⁴, under half an hour
    python benchmarks/arena.py --full --against 23fda6b --keep results/rivals.npz      all that is judged, but for stuck
        runs; hours, but minutes once the rivals are in that file: then only the default is measured
    python benchmarks/arena.py --alone --tasks 100000 --runs 1000            stuck runs of every row
    python benchmarks/arena.py --alone --rows "fair coin*" --tasks 10000 --runs 300      one row
    python benchmarks/arena.py --list                            the rows

All policies of a row meet the same random worlds. The default is told nothing; each rival is shown in the best of its
settings (benchmarks/entrants.py), chosen for every row after the fact. Loss is 1 − ratio/θ* without the luck of
arrivals, in %; where options fail, what counts is the completed task. A run is stuck if its regret at T is more than
6 × that at T/10. Random problems have two halves, one to report and one to develop on (--develop). Every limit about
what was measured is judged (benchmarks/judging.py); a missed one is exit code 1. All numbers, of every setting, go to
results/arena.csv.
"""

from __future__ import annotations

import argparse
import fnmatch
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from earlier import commit_of, earlier_default
from entrants import RIVALS, entrants, policy_of
from judging import geometric, judge, print_verdicts, rivals_of
from keeping import Kept, Key
from measuring import STUCK, Measured, save
from suites import APART, DEVELOP, REPORT, Row, rows
from table import command_line
from worthwhile import Environment
from worthwhile.policies.registry import DEFAULT
from worthwhile.simulation.progress import Progress

NAME = 34  # letters of a row
REFERENCE = "reference"  # the label of the default of an earlier commit


def best_settings(one: Measured) -> tuple[Measured, dict[str, str]]:
    """Every rival in the setting in which it lost least in this row, under its own name; and which setting that was."""
    labels: dict[str, list[str]] = {}
    for label in one.policies:
        labels.setdefault(policy_of(label), []).append(label)
    chosen = {name: one.best(settings) for name, settings in labels.items()}
    columns = [one.policies.index(label) for label in chosen.values()]
    values = (one.loss[:, columns], one.regret[:, columns], one.worst[columns], one.stuck[columns])
    return Measured(one.row, one.new, one.tasks, tuple(chosen), one.runs, *values), chosen


def print_table(found: Sequence[Measured], ours: str) -> None:
    """A line per row; the least loss has a star, and ours one if it ties with it."""
    names = [*dict.fromkeys(name for one in found for name in one.policies)]
    print(f"\nT = {found[0].tasks:,}: loss in % of the optimum; * least, or tied with the least (ours)")
    print(" " * NAME + "".join(f"{short(name):>11}" for name in names))
    for one in found:
        best = one.best(names)
        cells = []
        for name in names:
            star = name == best or (name == ours and one.ties(ours, best))
            cells.append(f"{one.mean(name):.3g}{'*' if star else ' '}" if name in one.policies else "– ")
        print(f"{one.row:<{NAME}}" + "".join(f"{cell:>11}" for cell in cells))


def print_stuck(found: Sequence[Measured]) -> None:
    """How many runs of each policy were stuck, where any was."""
    names = [*dict.fromkeys(name for one in found for name in one.policies)]
    print(f"\nT = {found[0].tasks:,}: % of the runs whose regret is above {STUCK:g} × that at T/10")
    print(" " * NAME + "".join(f"{short(name):>11}" for name in names))
    for one in found:
        shares = [f"{one.stuck_runs(name):.3g}" if name in one.policies else "–" for name in names]
        if any(share not in ("0", "–") for share in shares):
            print(f"{one.row:<{NAME}}" + "".join(f"{share:>11}" for share in shares) + f"  of {one.runs}")


def short(name: str) -> str:
    """A name that fits into a column."""
    name = name.rpartition(":")[2]
    for long, brief in (("anytime", "any"), ("omega-star", "ω*"), ("omega", "ω"), (DEFAULT, "default")):
        name = name.replace(long, brief)
    return name[:10]


def summarise(found: Sequence[Measured], ours: str) -> None:
    """Where ours is behind the best rival, and what everybody loses over all rows."""
    for one in found:
        rivals = rivals_of(one, ours, REFERENCE)
        best = one.best(rivals) if rivals else ours
        if one.mean(best) < one.mean(ours) and not one.ties(ours, best):
            by, error = one.behind(ours, best)
            times = one.mean(ours) / max(one.mean(best), 1e-300)
            print(f"  behind on {one.row}: {times:.2f} × {best}, {by:.3g} ± {error:.2g} % more")
    everywhere = [name for name in found[0].policies if all(name in one.policies for one in found)]
    means = {name: geometric([one.mean(name) for one in found]) for name in everywhere}
    print("  geometric mean of the loss: " + ", ".join(f"{name} {value:.3g} %" for name, value in means.items()))


def print_settings(chosen: Sequence[dict[str, str]]) -> None:
    """How often each setting of a rival was its best."""
    counts = Counter(label for one in chosen for name, label in one.items() if label != name)
    if counts:
        print("  best settings: " + ", ".join(f"{label} {count}" for label, count in sorted(counts.items())))


def run(options: argparse.Namespace, chosen: Sequence[Row], horizons: Sequence[int], reference: str | None) -> bool:
    """Measure, print, judge; whether every limit is kept."""
    seed = APART * options.seed + (DEVELOP if options.develop else REPORT)
    rivals = () if options.alone else tuple(name for name in RIVALS if fnmatch.fnmatch(name, options.rivals))
    others = {f"{REFERENCE} [{options.against}]": reference} if reference else {}  # kept under its commit
    runs = options.runs or (60 if options.full else 20)

    def everybody(row: Row, world: Environment) -> dict[str, str]:
        return {**entrants(row, world, rivals), **others, options.policy: options.policy}

    found, kept = list[Measured](), Kept(options.keep)
    with Progress(len(horizons) * len(chosen), None, " rows") as bar:
        for tasks in horizons:
            for row in chosen:
                found.append(kept.measure(row, everybody, options.policy, Key(row.name, tasks, runs, seed)))
                save(options.out, found)
                bar.add(1)
            show([best_settings(one) for one in found if one.tasks == tasks], options.policy)
    print("\nlimits:")
    return print_verdicts([*judge([best_settings(one)[0] for one in found], options.policy, REFERENCE)])


def show(best: Sequence[tuple[Measured, dict[str, str]]], ours: str) -> None:
    """All that there is to say of one horizon."""
    found = [one for one, _ in best]
    print_table(found, ours)
    summarise(found, ours)
    print_settings([settings for _, settings in best])
    print_stuck(found)
    sys.stdout.flush()


def main() -> int:
    """Print the tables; exit code 1 if a limit is missed."""
    parser = command_line(__doc__)
    parser.add_argument("--full", action="store_true", help="T = 10³, 10⁴ and 10⁵, three times the runs")
    parser.add_argument("--against", metavar="COMMIT", help="add the default of an earlier commit")
    parser.add_argument("--alone", action="store_true", help="without rivals, which is quicker")
    parser.add_argument("--rivals", default="*", metavar="PATTERN", help='only rivals like this, e.g. "dol*"')
    parser.add_argument("--rows", default="*", metavar="PATTERN", help='only rows like this, e.g. "*options"')
    parser.add_argument("--tasks", type=int, nargs="+", metavar="T", help="other horizons, such as 100 300")
    parser.add_argument("--runs", type=int, metavar="N", help="of a row: of its one problem, or of all its random ones")
    parser.add_argument("--develop", action="store_true", help="the half of the random problems to develop on")
    parser.add_argument("--tables", type=Path, metavar="DIR", help="add the recorded tables (.parquet) of a folder")
    parser.add_argument("--policy", default=DEFAULT, help="judge this policy instead (a name or package.module:Class)")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="do not measure again who is in this file (.npz)")
    parser.add_argument("--out", type=Path, default=Path("results/arena.csv"), help="where the numbers go")
    parser.add_argument("--list", action="store_true", help="print the names of the rows, and stop")
    options = parser.parse_args()
    suites = rows(APART * options.seed + (DEVELOP if options.develop else REPORT), options.tables)
    chosen = [row for row in suites if fnmatch.fnmatch(row.name, options.rows)]
    if not chosen:
        parser.error(f"no row is like {options.rows!r}")
    if options.list:
        print("\n".join(row.name for row in chosen))
        return 0
    options.against = commit_of(options.against) if options.against else None
    begin, horizons = time.perf_counter(), options.tasks or [1_000, 10_000, *([100_000] if options.full else [])]
    with earlier_default(options.against) if options.against else nullcontext() as reference:
        kept = run(options, chosen, horizons, reference)
    seconds = time.perf_counter() - begin
    print(f"\n{len(chosen)} rows in {seconds:.0f} s; the numbers are in {options.out}")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
