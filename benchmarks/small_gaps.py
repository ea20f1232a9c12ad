"""Regret on the hardest problems of every length, whose gaps shrink as T^(−¼): `python benchmarks/small_gaps.py`.

The paper's two kinds with p = ½ + ½ g T^(−¼), so that the gap of the wrong option is g T^(−¼), and noise ½, which the
proofs cover. With the step of the paper's theorem θ fluctuates by just as much for ever: docs/theory.md conjectures a
regret of order T^¾, where the step of the paper's figures and θ solved exactly have √T, but for logarithms.
"""

from __future__ import annotations

import math
import sys
from dataclasses import replace

import numpy as np

from table import Report, command_line
from worthwhile import Noise, Problem, simulate, two_kinds

POLICIES = ("dol-rm", "dol-rm-anytime", "solved-dol")
LENGTHS = (1_000, 10_000, 100_000, 1_000_000)
GAPS = (0.5, 1.0)  # g


def hard_problem(gap: float, tasks: int) -> Problem:
    """Two kinds whose wrong option is behind by gap·T^(−¼)."""
    half = Noise(sd=0.5)
    problem = two_kinds(0.5 + 0.5 * gap * tasks**-0.25)
    return replace(problem, reward_noise=half, cost_noise=half)


def measured(gap: float, tasks: int, drawn: int, seed: int) -> dict[str, tuple[float, float]]:
    """Mean pseudo-regret and its standard error, per policy."""
    runs = max(12, min(200, drawn // tasks))
    results = simulate(hard_problem(gap, tasks), POLICIES, tasks, runs, seed, marks=[], progress=False)
    mean, error = results.mean("regret"), results.error("regret")
    return {policy: (mean[policy], error[policy]) for policy in POLICIES}


def last_power(found: list[dict[str, tuple[float, float]]], policy: str) -> tuple[float, float]:
    """The power of T in the last decade, and its standard error."""
    (before, error_before), (last, error) = (one[policy] for one in found[-2:])
    decade = math.log(LENGTHS[-1] / LENGTHS[-2])
    return math.log(last / before) / decade, float(np.hypot(error / last, error_before / before)) / decade


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--drawn", type=int, default=12_000_000, help="tasks per T, shared out among runs")
    options = parser.parse_args()
    print(f"{'g':>4} {'T':>10}" + "".join(f"{policy:>22}" for policy in POLICIES))
    powers = {}
    for gap in GAPS:
        found = [measured(gap, tasks, options.drawn, options.seed) for tasks in LENGTHS]
        for tasks, one in zip(LENGTHS, found, strict=True):
            cells = (f"{mean:,.0f} ± {error:.1f}" for mean, error in one.values())
            print(f"{gap:4g} {tasks:10,}" + "".join(f"{cell:>22}" for cell in cells), flush=True)
        powers[gap] = {policy: last_power(found, policy) for policy in POLICIES}
    report = Report()
    for (gap, policy), (power, error) in {(g, name): p for g, of in powers.items() for name, p in of.items()}.items():
        report.note(f"g = {gap:g}, {policy}: power of T, last decade", f"{power:.3f} ± {error:.3f}")
    worst = {policy: power for policy, (power, _) in powers[GAPS[0]].items()}
    report.at_least("g = 0.5: dol-rm, nearly T^¾", worst["dol-rm"], 0.65, "")
    for policy in POLICIES[1:]:
        report.at_most(f"g = 0.5: {policy}, nearly √T", worst[policy], 0.62, "")
    sys.exit(report.close() > 0)


if __name__ == "__main__":
    main()
