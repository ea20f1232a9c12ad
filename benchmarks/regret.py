"""Regret of the policies, with errors: `python benchmarks/regret.py [--tables DIR]`, ≤ 5 min.

`prototype` is what an independent implementation lost, which is not part of this repository: the default must be at or
below its own figure, a rival that is 3 combined standard errors off is named. All other limits are from measurements of
ours. Recorded tables are measured where a folder of them is given.
"""

from __future__ import annotations

import math
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from recorded import TABLES, recorded, shuffled
from table import command_line
from worthwhile import Problem, random_problem, seven_kinds, simulate, two_kinds
from worthwhile.optimum import Optimum
from worthwhile.random_problems import FAMILIES
from worthwhile.state import Floats

DEFAULT = "ratio-imed"
PAPER = {"two p=.8": two_kinds(0.8), "two p=.6": two_kinds(0.6), "seven": seven_kinds()}

PROTOTYPE_RIVALS = {  # pseudo-regret at T = 10⁵, 40 runs: (mean, standard error if it is known)
    "dol-rm": ((157, 15), (495, 40), (482, 23)),
    "dol-rm-anytime": ((143, 14), (213, 21), (322, 20)),
    "ratio-ucb": ((11_970, None), (7_990, None), (1_150, None)),
    "ratio-ts": ((11_970, None), (8_000, None), (1_120, None)),
    "omega-ucb": ((11_860, None), (7_950, None), (1_160, None)),
    "oracle": ((0.3, None), (1.5, None), (0.2, None)),
}
PROTOTYPE_BREAK_EVEN = {  # seven kinds, 400 runs: at T = 10⁴ and at 3·10⁴
    "dol-rm": ((171, 3), (None, None)),
    "dol-rm-anytime": ((160, 4), (245, None)),
    "reward-ucb": ((118, None), (338, None)),
}
PROTOTYPE_DEFAULT = {"two p=.8": (101, 2), "two p=.6": (201, 5), "seven": (212, 2)}  # Gaussian form, T = 3·10⁴
STEEPEST = 0.35  # slope of log regret over log tasks
STUCK_LIMIT = {"two p=.8": 0.3, "two p=.6": 0.8}  # %, upper end of the 95 % interval
LOSS_LIMIT = {"unit": 1.8, "train": 0.45, "big": 0.35, "dollars": 2.3}  # %, of the default at T = 3·10⁴
DELAYS = (0, 10, 100, 1000)


class Row(NamedTuple):
    """One measured figure beside the prototype's."""

    what: str
    mean: float
    error: float
    prototype: float | None = None
    prototype_error: float = 0.0
    ours: bool = False  # the default: may be below

    @property
    def verdict(self) -> str:
        if self.prototype is None:
            return ""
        spread = math.hypot(self.error, self.prototype_error)
        off = (self.mean - self.prototype) / spread if spread else 0.0
        if self.ours:
            return f"at or below ({off:+.1f} se)" if off <= 3.0 else f"ABOVE ({off:+.1f} se)"
        return f"agrees ({off:+.1f} se)" if abs(off) <= 3.0 else f"DIFFERS ({off:+.1f} se)"


rows: list[Row] = []
missed: list[str] = []


def show(row: Row) -> None:
    """Print a row and keep it for the summary."""
    rows.append(row)
    known = "" if row.prototype is None else f"{row.prototype:,.4g}"
    known += f" ± {row.prototype_error:.3g}" if row.prototype_error else ""
    print(f"  {row.what:<42} {row.mean:>11,.4g} ± {row.error:<9.2g} {known:>16}   {row.verdict}", flush=True)


def rivals(runs: int, seed: int) -> None:
    """The paper's problems at T = 10⁵: everyone but the default is told the truth."""
    print(f"\nPseudo-regret, T = 10⁵, {runs} runs, rivals told bounds and horizon       prototype")
    for column, (name, problem) in enumerate(PAPER.items()):
        result = simulate(
            problem, [*PROTOTYPE_RIVALS, DEFAULT], tasks=100_000, runs=runs, seed=seed, marks=[], progress=False
        )
        mean, error = result.mean("regret"), result.error("regret")
        for policy, figures in PROTOTYPE_RIVALS.items():
            figure, spread = figures[column]
            spread = spread or error[policy] * math.sqrt(runs / 40)  # as ours would be with as few runs
            show(Row(f"{name}: {policy}", mean[policy], error[policy], figure, spread))
        show(Row(f"{name}: {DEFAULT}, told nothing", mean[DEFAULT], error[DEFAULT]))


def break_even(runs: int, seed: int) -> None:
    """Where DOL-RM overtakes reward UCB on seven kinds."""
    for column, tasks in enumerate((10_000, 30_000)):
        print(f"\nPseudo-regret, seven kinds, T = {tasks:,}, {runs} runs")
        result = simulate(
            seven_kinds(), list(PROTOTYPE_BREAK_EVEN), tasks=tasks, runs=runs, seed=seed, marks=[], progress=False
        )
        mean, error = result.mean("regret"), result.error("regret")
        for policy, figures in PROTOTYPE_BREAK_EVEN.items():
            figure, spread = figures[column]
            spread = spread or error[policy] * math.sqrt(runs / 400)
            show(Row(f"seven: {policy}", mean[policy], error[policy], figure, spread if figure else 0.0))


def default_on_paper(runs: int, seed: int) -> None:
    """The default, told nothing, at T = 3·10⁴: its mean, and how often it gets stuck."""
    print(f"\nPseudo-regret, T = 3·10⁴, {DEFAULT} told nothing; stuck = above ten times the median, 95 % interval")
    for name, problem in PAPER.items():
        count = runs if name in STUCK_LIMIT else max(100, runs // 5)
        result = simulate(problem, [DEFAULT], tasks=30_000, runs=count, marks=[], progress=False, seed=seed + 1)
        regret = result.measure("regret")[:, 0, -1]
        error = result.error("regret")[DEFAULT]
        show(Row(f"{name}: {DEFAULT}, {count} runs", regret.mean(), error, *PROTOTYPE_DEFAULT[name], True))
        stuck = int((regret > 10.0 * np.median(regret)).sum())
        low, high = wilson(stuck, count)
        limit = STUCK_LIMIT.get(name)
        verdict = "" if limit is None else f"limit {limit} %: " + ("holds" if high <= limit else "MISSED")
        if "MISSED" in verdict:
            missed.append(f"{name}: stuck {high:.2f} %")
        print(f"    stuck: {stuck} of {count} runs, {low:.2f} to {high:.2f} %   {verdict}")


def flattening(runs: int, seed: int) -> None:
    """How fast the default's regret still grows between 10⁵ and 10⁶ tasks, and how it stands to the asymptote.

    With Gaussian noise no policy that works on every problem can in the long run lose less than
    Σ 2 Var(R − θ*C) / Δ · ln T over the options that are Δ behind the best of their kind.
    """
    print(f"\n{DEFAULT} told nothing, {runs} runs: growth from T = 10⁵ to 10⁶; asymptote: Σ 2 Var/Δ · ln T")
    for name, problem in PAPER.items():
        result = simulate(
            problem, [DEFAULT], tasks=1_000_000, runs=runs, marks=[100_000], progress=False, seed=seed + 2
        )
        early, late = result.measure("regret")[:, 0, :].mean(axis=0)
        slope = math.log10(late / early)
        verdict = "holds" if slope < STEEPEST else "MISSED"
        if verdict == "MISSED":
            missed.append(f"{name}: slope {slope:.2f}")
        ratio, gaps = result.best.ratio, gap_of(problem, result.best)
        least = sum(2.0 * (1.0 + ratio * ratio) / gap for gap in gaps) * math.log(1e6)  # N(0, 1) noise on both
        print(
            f"  {name:<10} {early:7.0f} → {late:7.0f}   slope on log-log axes {slope:.2f}, limit {STEEPEST}: {verdict}"
            f"   asymptote {least:,.0f}",
            flush=True,
        )


def gap_of(problem: Problem, best: Optimum) -> list[float]:
    """How far each option that is not the best of its kind is behind it, at the best ratio."""
    score = problem.reward - best.ratio * problem.cost
    behind = np.nanmax(score, axis=1, keepdims=True) - score
    return [float(gap) for gap in behind[problem.offered] if gap > 0.0]


def wilson(hits: int, trials: int, z: float = 1.96) -> tuple[float, float]:
    """A 95 % interval for a share, in %."""
    share, spread = hits / trials, z * z / trials
    middle = (share + spread / 2.0) / (1.0 + spread)
    half = z * math.sqrt(share * (1.0 - share) / trials + spread / (4.0 * trials)) / (1.0 + spread)
    return 100.0 * max(0.0, middle - half), 100.0 * (middle + half)


def family_losses(family: str, policy: str, problems: range, tasks: int, runs: int = 2) -> tuple[float, float]:
    """Mean loss in % over random problems, and its error over problems."""
    losses = [
        simulate(random_problem(family, seed), [policy], tasks=tasks, runs=runs, seed=seed, marks=[], progress=False)
        .measure("loss")[:, 0, -1]
        .mean()
        for seed in problems
    ]
    return 100.0 * float(np.mean(losses)), 100.0 * float(np.std(losses, ddof=1)) / math.sqrt(len(problems))


def families(problems: range) -> None:
    """Random problems whose scales differ."""
    print(f"\nShare of the optimum lost, %, {len(problems)} random problems per family")
    for family in FAMILIES:
        mean, error = family_losses(family, DEFAULT, problems, 30_000)
        show(Row(f"{family}: {DEFAULT}, T = 3·10⁴", mean, error))
        if mean > LOSS_LIMIT[family]:
            missed.append(f"{family}: {mean:.3g} %, limit {LOSS_LIMIT[family]} %")
        mean, error = family_losses(family, "dol-rm-anytime", problems, 100_000)
        show(Row(f"{family}: dol-rm-anytime, T = 10⁵", mean, error))


def delayed(policies: list[str], delay: int, seed: int) -> tuple[Floats, Floats]:
    """What the policies lose on one problem with late feedback, and what they spend."""
    problem = shuffled(random_problem("train", seed), seed)
    result = simulate(problem, policies, 100_000, 1, seed, delay, marks=[], progress=False)
    return result.measure("loss")[0, :, -1], result.measure("expected_cost")[0, :, -1]


def delays(problems: range) -> None:
    """Late feedback, on the train family with the options shuffled (in order, the first is often the best)."""
    print(f"\nShare of the optimum lost, %, family train, T = 10⁵, feedback late by D tasks, {len(problems)} problems")
    policies = [DEFAULT, "dol-rm-anytime", "random-option"]
    for delay in DELAYS:
        found = [delayed(policies, delay, seed) for seed in problems]
        losses, cost = np.array([loss for loss, _ in found]), np.array([spent for _, spent in found])
        mean, error = 100.0 * losses.mean(axis=0), 100.0 * losses.std(axis=0, ddof=1) / math.sqrt(len(problems))
        if delay == 0:
            undelayed = mean[0]
        # D tasks at random are the price of knowing nothing for D tasks; they cost more than well-chosen ones
        limit = 1.3 * undelayed + 100.0 * (losses[:, 2] * cost[:, 2] / cost[:, 0]).mean() * delay / 100_000
        verdict = "holds" if mean[0] <= limit else "MISSED"
        if verdict == "MISSED":
            missed.append(f"delay {delay}: {mean[0]:.3g} %")
        print(
            f"  D = {delay:<5} {DEFAULT} {mean[0]:.3f} ± {error[0]:.3f}   dol-rm-anytime {mean[1]:.3f} ± {error[1]:.3f}"
            f"   limit 1.3 × undelayed + D random tasks = {limit:.3f}: {verdict}",
            flush=True,
        )


def tables(folder: Path, runs: int, seed: int) -> None:
    """Recorded tables, cells resampled or items replayed."""
    print(f"\nShare of the optimum lost, %, recorded tables in {folder}, T = 10⁵, {runs} runs")
    policies = ("dol-rm-anytime", "omega-ucb", DEFAULT)
    for name, added in TABLES.items():
        if not (folder / f"{name}.parquet").is_file():
            print(f"  {name}: not there")
            continue
        world = recorded(folder, name, added)
        result = simulate(world, policies, tasks=100_000, runs=runs, seed=seed, marks=[], progress=False)
        mean, error = result.mean("loss"), result.error("loss")
        for policy in policies:
            show(Row(f"{name}: {policy}", 100 * mean[policy], 100 * error[policy]))


def main() -> int:
    """Print everything; exit code 1 if the default is above the prototype or a limit is missed."""
    parser = command_line(__doc__)
    parser.add_argument("--tables", type=Path, help="a folder of recorded tables (.parquet)")
    parser.add_argument("--quick", action="store_true", help="a tenth of the runs: wide errors, half a minute")
    options = parser.parse_args()
    share, seed = 10 if options.quick else 1, options.seed
    first = 1000 * seed
    begin = time.perf_counter()
    rivals(400 // share, seed)
    break_even(1000 // share, seed)
    default_on_paper(10_000 // share, seed)
    flattening(40 // share, seed)
    families(range(first, first + 100 // share))
    delays(range(first, first + 40 // share))
    if options.tables:
        tables(options.tables, 8, seed)
    above = [row.what for row in rows if "ABOVE" in row.verdict]
    differ = [row.what for row in rows if "DIFFERS" in row.verdict]
    print(f"\n{len(rows)} figures in {time.perf_counter() - begin:.0f} s")
    print(f"default above the prototype, which is not in this repository: {', '.join(above) or 'nowhere'}")
    print(f"limits missed: {', '.join(missed) or 'none'}")
    print(f"rivals off the prototype: {', '.join(differ) or 'none'}")
    return 1 if above or missed else 0


if __name__ == "__main__":
    sys.exit(main())
