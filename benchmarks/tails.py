"""The mean regret of the default against its bad runs, as its caution varies: `python benchmarks/tails.py`.

Less caution explores less: most runs lose less, and more of them settle on the wrong option. T = 3·10⁴, N(0, 1) noise,
told nothing. The figure goes to results/tails.png.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from regret import PAPER, wilson
from table import command_line
from worthwhile import simulate
from worthwhile.policies.registry import DEFAULT
from worthwhile.state import Floats

TASKS = 30_000
CAUTION = (0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0)
COLOURS = ("#0072b2", "#d55e00", "#009e73")


def regrets(problem: Any, runs: int, seed: int) -> Floats:
    """(runs, cautions): pseudo-regret at the end."""
    policies = [f"{DEFAULT},caution={caution:g}" for caution in CAUTION]
    return simulate(problem, policies, TASKS, runs, seed, marks=[], progress=False).measure("regret")[:, :, -1]


def draw(found: dict[str, Floats], path: Path) -> None:
    """Mean regret and 99th percentile over caution; the share of stuck runs beside them."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for (name, regret), colour in zip(found.items(), COLOURS, strict=True):
        left.plot(CAUTION, regret.mean(axis=0), "o-", color=colour, label=f"{name}, mean")
        left.plot(CAUTION, np.percentile(regret, 99, axis=0), "o--", color=colour, label="99th percentile")
        stuck = np.array([share_stuck(column) for column in regret.T])
        spread = np.abs(stuck[:, 1:].T - stuck[:, 0])
        right.errorbar(CAUTION, stuck[:, 0], spread, fmt="o-", color=colour, capsize=2, label=name)
    left.set(xscale="log", yscale="log", ylabel=f"pseudo-regret after {TASKS:,} tasks")
    right.set(xscale="log", ylabel="% of the runs above ten times the median")
    for one in (left, right):
        one.set_xlabel("caution (1 is the default)")
        one.set_xticks(CAUTION, [f"{caution:g}" for caution in CAUTION])
        one.set_xticks([], minor=True)
        one.axvline(1.0, color="0.8", zorder=0)
        one.spines[["top", "right"]].set_visible(False)
        one.legend(frameon=False, fontsize=8.5)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def share_stuck(regret: Floats) -> tuple[float, float, float]:
    """% of the runs above ten times the median, with a 95 % interval."""
    hits = int((regret > 10.0 * np.median(regret)).sum())
    return (100.0 * hits / len(regret), *wilson(hits, len(regret)))


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--runs", type=int, default=4000)
    parser.add_argument("--out", type=Path, default=Path("results/tails.png"))
    options = parser.parse_args()
    print(f"{'':10} {'caution':>8} {'mean':>14} {'median':>8} {'99th %':>8}   stuck, % (95 % interval)")
    found = {}
    for name, problem in PAPER.items():
        found[name] = regrets(problem, options.runs, options.seed)
        for caution, column in zip(CAUTION, found[name].T, strict=True):
            share, low, high = share_stuck(column)
            error = column.std(ddof=1) / math.sqrt(len(column))
            middle, bad = np.percentile(column, (50, 99))
            numbers = f"{column.mean():8.1f} ± {error:<4.1f} {middle:8.0f} {bad:8.0f}"
            print(f"{name:10} {caution:8g} {numbers}   {share:.2f} ({low:.2f} to {high:.2f})", flush=True)
    draw(found, options.out)
    print(f"the figure is {options.out}")


if __name__ == "__main__":
    main()
