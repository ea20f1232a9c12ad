"""Regret of the policies beside reference figures, with errors: `python benchmarks/regret.py [--tables DIR]`, ≤ 5 min.

Reference figures come from an independent prototype. A rival must agree with its figure within 3 combined standard
errors; the default must be at or below its own. Recorded tables are measured where a folder of them is given.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from recorded import TABLES, recorded, shuffled
from worthwhile import Problem, random_problem, seven_kinds, simulate, two_kinds
from worthwhile.optimum import Optimum
from worthwhile.random_problems import FAMILIES

DEFAULT = "ratio-imed"
PAPER = {"two p=.8": two_kinds(0.8), "two p=.6": two_kinds(0.6), "seven": seven_kinds()}

RIVALS = {  # pseudo-regret at T = 10⁵, 40 runs: (mean, standard error if it is known)
    "dol-rm": ((157, 15), (495, 40), (482, 23)),
    "dol-rm-anytime": ((143, 14), (213, 21), (322, 20)),
    "ratio-ucb": ((11_970, None), (7_990, None), (1_150, None)),
    "ratio-ts": ((11_970, None), (8_000, None), (1_120, None)),
    "omega-ucb": ((11_860, None), (7_950, None), (1_160, None)),
    "oracle": ((0.3, None), (1.5, None), (0.2, None)),
}
BREAK_EVEN = {  # seven kinds, 400 runs: at T = 10⁴ and at 3·10⁴
    "dol-rm": ((171, 3), (None, None)),
    "dol-rm-anytime": ((160, 4), (245, None)),
    "reward-ucb": ((118, None), (338, None)),
}
DEFAULT_PAPER = {"two p=.8": (101, 2), "two p=.6": (201, 5), "seven": (212, 2)}  # Gaussian form, T = 3·10⁴
STEEPEST = 0.35  # slope of log regret over log tasks
STUCK_LIMIT = {"two p=.8": 0.3, "two p=.6": 0.8}  # %, upper end of the 95 % interval
LOSS_DEFAULT = {"unit": 1.73, "train": 0.49, "big": 0.51, "dollars": 2.0}  # %, T = 3·10⁴, form for the family's costs
LOSS_DOL_RM = {"unit": 4.5, "train": 4.5, "big": 0.8, "dollars": 234}  # %, T = 10⁵
DELAYS = (0, 10, 100, 1000)


class Row(NamedTuple):
    """One measured figure beside its reference."""

    what: str
    mean: float
    error: float
    reference: float | None = None
    reference_error: float = 0.0
    ours: bool = False  # the default: may be below its reference

    @property
    def verdict(self) -> str:
        if self.reference is None:
            return ""
        spread = math.hypot(self.error, self.reference_error)
        off = (self.mean - self.reference) / spread if spread else 0.0
        if self.ours:
            return f"at or below ({off:+.1f} se)" if off <= 3.0 else f"ABOVE ({off:+.1f} se)"
        return f"agrees ({off:+.1f} se)" if abs(off) <= 3.0 else f"DIFFERS ({off:+.1f} se)"


rows: list[Row] = []
missed: list[str] = []


def show(row: Row) -> None:
    """Print a row and keep it for the summary."""
    rows.append(row)
    known = "" if row.reference is None else f"{row.reference:,.4g}"
    known += f" ± {row.reference_error:.3g}" if row.reference_error else ""
    print(f"  {row.what:<42} {row.mean:>11,.4g} ± {row.error:<9.2g} {known:>16}   {row.verdict}", flush=True)


def rivals(runs: int) -> None:
    """The paper's problems at T = 10⁵: everyone but the default is told the truth."""
    print(f"\nPseudo-regret, T = 10⁵, {runs} runs, rivals told bounds and horizon       reference")
    for column, (name, problem) in enumerate(PAPER.items()):
        result = simulate(problem, [*RIVALS, DEFAULT], tasks=100_000, runs=runs, marks=[], progress=False)
        mean, error = result.mean("regret"), result.error("regret")
        for policy, references in RIVALS.items():
            reference, spread = references[column]
            spread = spread or error[policy] * math.sqrt(runs / 40)  # as ours would be with as few runs
            show(Row(f"{name}: {policy}", mean[policy], error[policy], reference, spread))
        show(Row(f"{name}: {DEFAULT}, told nothing", mean[DEFAULT], error[DEFAULT]))


def break_even(runs: int) -> None:
    """Where DOL-RM overtakes reward UCB on seven kinds."""
    for column, tasks in enumerate((10_000, 30_000)):
        print(f"\nPseudo-regret, seven kinds, T = {tasks:,}, {runs} runs")
        result = simulate(seven_kinds(), list(BREAK_EVEN), tasks=tasks, runs=runs, marks=[], progress=False)
        mean, error = result.mean("regret"), result.error("regret")
        for policy, references in BREAK_EVEN.items():
            reference, spread = references[column]
            spread = spread or error[policy] * math.sqrt(runs / 400)
            show(Row(f"seven: {policy}", mean[policy], error[policy], reference, spread if reference else 0.0))


def default_on_paper(runs: int) -> None:
    """The default, told nothing, at T = 3·10⁴: its mean, and how often it gets stuck."""
    print(f"\nPseudo-regret, T = 3·10⁴, {DEFAULT} told nothing; stuck = above ten times the median, 95 % interval")
    for name, problem in PAPER.items():
        count = runs if name in STUCK_LIMIT else max(100, runs // 5)
        result = simulate(problem, [DEFAULT], tasks=30_000, runs=count, marks=[], progress=False, seed=1)
        regret = result.measure("regret")[:, 0, -1]
        error = result.error("regret")[DEFAULT]
        show(Row(f"{name}: {DEFAULT}, {count} runs", regret.mean(), error, *DEFAULT_PAPER[name], True))
        stuck = int((regret > 10.0 * np.median(regret)).sum())
        low, high = wilson(stuck, count)
        limit = STUCK_LIMIT.get(name)
        verdict = "" if limit is None else f"limit {limit} %: " + ("holds" if high <= limit else "MISSED")
        if "MISSED" in verdict:
            missed.append(f"{name}: stuck {high:.2f} %")
        print(f"    stuck: {stuck} of {count} runs, {low:.2f} to {high:.2f} %   {verdict}")


def flattening(runs: int) -> None:
    """How fast the default's regret still grows between 10⁵ and 10⁶ tasks, and how it stands to the asymptote.

    With Gaussian noise no policy that works on every problem can in the long run lose less than
    Σ 2 Var(R − θ*C) / Δ · ln T over the options that are Δ behind the best of their kind.
    """
    print(f"\n{DEFAULT} told nothing, {runs} runs: growth from T = 10⁵ to 10⁶; asymptote: Σ 2 Var/Δ · ln T")
    for name, problem in PAPER.items():
        result = simulate(problem, [DEFAULT], tasks=1_000_000, runs=runs, marks=[100_000], progress=False, seed=2)
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


def family_losses(family: str, policy: str, problems: int, tasks: int, runs: int = 2) -> tuple[float, float]:
    """Mean loss in % over random problems, and its error over problems."""
    losses = [
        simulate(random_problem(family, seed), [policy], tasks=tasks, runs=runs, seed=seed, marks=[], progress=False)
        .measure("loss")[:, 0, -1]
        .mean()
        for seed in range(problems)
    ]
    return 100.0 * float(np.mean(losses)), 100.0 * float(np.std(losses, ddof=1)) / math.sqrt(problems)


def families(problems: int) -> None:
    """Random problems whose scales differ."""
    print(f"\nShare of the optimum lost, %, {problems} random problems per family (the reference drew others)")
    for family in FAMILIES:
        mean, error = family_losses(family, DEFAULT, problems, 30_000)
        show(
            Row(f"{family}: {DEFAULT}, T = 3·10⁴", mean, error, LOSS_DEFAULT[family], 0.1 * LOSS_DEFAULT[family], True)
        )
        mean, error = family_losses(family, "dol-rm-anytime", problems, 100_000)
        show(Row(f"{family}: dol-rm-anytime, T = 10⁵", mean, error, LOSS_DOL_RM[family], 0.1 * LOSS_DOL_RM[family]))


def delays(problems: int) -> None:
    """Late feedback, on the train family with the options shuffled (in order, the first is often the best)."""
    print(f"\nShare of the optimum lost, %, family train, T = 10⁵, feedback late by D tasks, {problems} problems")
    policies = [DEFAULT, "dol-rm-anytime", "random-option"]
    for delay in DELAYS:
        losses = np.array(
            [
                simulate(
                    shuffled(random_problem("train", seed), seed),
                    policies,
                    tasks=100_000,
                    runs=1,
                    seed=seed,
                    delay=delay,
                    marks=[],
                    progress=False,
                ).measure("loss")[0, :, -1]
                for seed in range(problems)
            ]
        )
        mean, error = 100.0 * losses.mean(axis=0), 100.0 * losses.std(axis=0, ddof=1) / math.sqrt(problems)
        if delay == 0:
            undelayed = mean[0]
        # D tasks at random are the price of knowing nothing for D tasks
        limit = 1.3 * undelayed + mean[2] * delay / 100_000
        verdict = "holds" if mean[0] <= limit else "MISSED"
        if verdict == "MISSED":
            missed.append(f"delay {delay}: {mean[0]:.3g} %")
        print(
            f"  D = {delay:<5} {DEFAULT} {mean[0]:.3f} ± {error[0]:.3f}   dol-rm-anytime {mean[1]:.3f} ± {error[1]:.3f}"
            f"   limit 1.3 × undelayed + D random tasks = {limit:.3f}: {verdict}",
            flush=True,
        )


def tables(folder: Path, runs: int) -> None:
    """Recorded tables, cells resampled or items replayed."""
    print(f"\nShare of the optimum lost, %, recorded tables in {folder}, T = 10⁵, {runs} runs")
    policies = ("dol-rm-anytime", "omega-ucb", DEFAULT)
    for name, (added, references) in TABLES.items():
        if not (folder / f"{name}.parquet").is_file():
            print(f"  {name}: not there")
            continue
        result = simulate(recorded(folder, name, added), policies, tasks=100_000, runs=runs, marks=[], progress=False)
        mean, error = result.mean("loss"), result.error("loss")
        for policy, reference in zip(policies, references, strict=True):
            ours = policy == DEFAULT
            show(Row(f"{name}: {policy}", 100 * mean[policy], 100 * error[policy], reference, 0.05 * reference, ours))


def main() -> int:
    """Print everything; exit code 1 if the default is above a reference or a limit is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=Path, help="a folder of recorded tables (.parquet)")
    parser.add_argument("--quick", action="store_true", help="a tenth of the runs: wide errors, half a minute")
    options = parser.parse_args()
    share = 10 if options.quick else 1
    begin = time.perf_counter()
    rivals(400 // share)
    break_even(1000 // share)
    default_on_paper(10_000 // share)
    flattening(40 // share)
    families(100 // share)
    delays(40 // share)
    if options.tables:
        tables(options.tables, 8)
    above = [row.what for row in rows if "ABOVE" in row.verdict]
    differ = [row.what for row in rows if "DIFFERS" in row.verdict]
    print(f"\n{len(rows)} figures in {time.perf_counter() - begin:.0f} s")
    print(f"default above its reference: {', '.join(above) or 'nowhere'}")
    print(f"limits missed: {', '.join(missed) or 'none'}")
    print(f"rivals off their reference: {', '.join(differ) or 'none'}")
    return 1 if above or missed else 0


if __name__ == "__main__":
    sys.exit(main())
