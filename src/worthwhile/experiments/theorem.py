"""The theorem: gap and regret of DOL-RM over the number of tasks, beside T^¾, √T, log T and the explicit bound."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from worthwhile.experiments.base import OURS, Claim, Columns, Outcome, Scale, by_column, plus_minus, verdict
from worthwhile.experiments.figures import add_legend, curve, panels, reference
from worthwhile.experiments.growth import Power, Regret, fitted_power, regret_from, regret_sample, regrets
from worthwhile.problem import Noise, seven_kinds, two_kinds
from worthwhile.simulation.results import Results

TASKS = tuple(round(10 ** (half / 2)) for half in range(4, 13))  # 10² … 10⁶, each a simulation of its own
FIT_FROM = 1_000  # before, DOL-RM has hardly begun to learn and loses as much with every task
DRAWN_TASKS, MOST_RUNS = 30_000_000, 1_500  # per problem and T
QUICK_LAST, QUICK_DRAWN_TASKS, QUICK_MOST_RUNS = 10_000, 1_000_000, 200
HALF = Noise(sd=0.5)  # up to here the width √(log T/N) holds with high probability
COVERED = "two kinds, p = 0.8, noise ½"  # by the proof: N(0, 1) is too wide for it
PROBLEMS = {
    "two kinds, p = 0.8": two_kinds(0.8),
    "two kinds, p = 0.6": two_kinds(0.6),
    "seven kinds": seven_kinds(),
    COVERED: replace(two_kinds(0.8), reward_noise=HALF, cost_noise=HALF),
}
POLICIES = ("dol-rm", "dol-rm-anytime", "sample-rm", "oracle")
GUIDES: dict[str, Callable[[Any], Any]] = {
    "$T^{3/4}$": lambda tasks: tasks**0.75,
    "$\\sqrt{T}$": np.sqrt,
    "$\\log T$": np.log,
}
Slopes = Mapping[tuple[str, str], tuple[Power, Power]]  # by problem and policy: from FIT_FROM on, in the last decade


def run(scale: Scale) -> Outcome:
    """Simulate every T for itself, because the policies are told T."""
    horizons = [tasks for tasks in TASKS if tasks <= scale.pick(QUICK_LAST, TASKS[-1])]
    measured = {name: [measure(scale, name, tasks) for tasks in horizons] for name in PROBLEMS}
    rows = [row for name, simulations in measured.items() for results in simulations for row in regrets(name, results)]
    slopes = {(name, policy): fit(measured[name], policy, scale.seed) for name in PROBLEMS for policy in POLICIES}
    names = list(PROBLEMS)
    return Outcome(
        words=words(rows),
        data={"theorem": by_column(Regret._fields, rows), "theorem-slopes": slope_table(slopes)},
        figures={"theorem": draw(rows, names[:2]), "theorem-more": draw(rows, names[2:])},
        claims=[
            *(order(name, rows, slopes) for name in names),
            oracle(slopes),
            other("the step of the paper's figures, 1/(c_min (t+1)), has no proof", "dol-rm-anytime", rows, slopes),
            other("classical Robbins–Monro: Eq. 8 with the samples R, C", "sample-rm", rows, slopes),
        ],
    )


def measure(scale: Scale, name: str, tasks: int) -> Results:
    """All policies on one problem; as many runs as the work allows, others for every T."""
    drawn, most = scale.pick(QUICK_DRAWN_TASKS, DRAWN_TASKS), scale.pick(QUICK_MOST_RUNS, MOST_RUNS)
    runs = min(most, drawn // tasks)
    return scale.simulate(PROBLEMS[name], POLICIES, tasks, runs, marks=[tasks], seed=scale.seed + tasks)


def fit(simulations: Sequence[Results], policy: str, seed: int) -> tuple[Power, Power]:
    """The power of T in the regret: from FIT_FROM on, and in the last decade alone."""
    ends = [int(results.marks[-1]) for results in simulations]
    powers = []
    for first in (FIT_FROM, ends[-1] // 10):
        chosen = [results for results, end in zip(simulations, ends, strict=True) if end >= first]
        samples = [regret_sample(results, policy) for results in chosen]
        powers.append(fitted_power(ends[-len(chosen) :], samples, [regret_from] * len(chosen), seed))
    return powers[0], powers[1]


def slope_table(slopes: Slopes) -> Columns:
    """One row per problem and policy."""
    names = ("problem", "policy", "exponent", "exponent_error", "last_decade_exponent", "last_decade_exponent_error")
    return by_column(names, ((*key, *fitted, *last) for key, (fitted, last) in slopes.items()))


def draw(rows: Sequence[Regret], problems: Sequence[str]) -> Any:
    """Regret over T, log-log; lines by pseudo-regret, circles as the paper defines it."""
    figure, axes = panels(problems, "T, tasks", "regret R(T) = T · Gap(T)")
    for panel, problem in zip(axes, problems, strict=True):
        for policy in POLICIES:
            chosen = [row for row in rows if (row.problem, row.policy) == (problem, policy)]
            tasks, regret = (np.array([getattr(row, name) for row in chosen], float) for name in ("tasks", "regret"))
            error = np.array([2.0 * row.regret_error for row in chosen])
            curve(panel, tasks, regret, policy, (np.maximum(regret - error, 0.01 * regret), regret + error))
            circles = {
                "color": panel.lines[-1].get_color(),
                "label": "T · |θ* − ΣR/ΣC|" if policy == POLICIES[0] else None,
            }
            panel.plot(tasks, [row.tasks * row.gap for row in chosen], "o", markersize=3.5, fillstyle="none", **circles)
            if policy == "dol-rm":
                reference(panel, tasks, np.array([row.bound for row in chosen]), "bound for dol-rm")
                guide(panel, tasks, regret)
        panel.set(xscale="log", yscale="log", ylim=(0.03, None))
    add_legend(figure)
    return figure


def guide(panel: Any, tasks: Any, regret: Any) -> None:
    """T^¾, √T and log T through DOL-RM's regret at FIT_FROM, named at their ends."""
    start = int(np.searchsorted(tasks, FIT_FROM))
    for name, growth in GUIDES.items():
        line = regret[start] * growth(tasks[start:]) / growth(tasks[start])
        reference(panel, tasks[start:], line, "_" + name)
        panel.annotate(f" {name}", (tasks[-1], line[-1]), fontsize=8.5, va="center", annotation_clip=False)


def order(problem: str, rows: Sequence[Regret], slopes: Slopes) -> Claim:
    """R(T) = O(T^¾), and the explicit bound above every measurement."""
    chosen = [row for row in rows if (row.problem, row.policy) == (problem, "dol-rm")]
    fitted, last = slopes[problem, "dol-rm"]
    margin = min(row.bound / max(row.regret + 2.0 * row.regret_error, row.tasks * row.gap) for row in chosen)
    proof = "" if problem == COVERED else "; the proof of the bound does not cover N(0, 1)"
    return Claim(
        f"{problem}: DOL-RM's regret is O(T^¾)",
        verdict(fitted.at_most(0.75) and margin > 1.0),
        f"grows as T^({fitted}) from T = {FIT_FROM:,} on, as T^({last}) in the last decade to {chosen[-1].tasks:,}; "
        f"the explicit bound is at least {margin:.3g} times the measurement{proof}",
    )


def oracle(slopes: Slopes) -> Claim:
    """With the means known, only θ is left to learn."""
    fitted = [slopes[problem, "oracle"][0] for problem in PROBLEMS]
    powers = "; ".join(f"{problem}: T^({power})" for problem, power in zip(PROBLEMS, fitted, strict=True))
    holds = all(power.at_most(0.5) for power in fitted)
    return Claim("with the means known (Neely's oracle) the regret is O(√T)", verdict(holds), powers)


def other(claim: str, policy: str, rows: Sequence[Regret], slopes: Slopes) -> Claim:
    """A variant beside DOL-RM with the theorem's step, at the last T."""
    end = max(row.tasks for row in rows)
    regret = {(row.problem, row.policy): plus_minus(row.regret, row.regret_error) for row in rows if row.tasks == end}
    parts = [
        f"{problem}: T^({slopes[problem, policy][0]}), {regret[problem, policy]} against {regret[problem, 'dol-rm']}"
        for problem in PROBLEMS
    ]
    return Claim(claim, OURS, f"growth, and regret at T = {end:,} against that of dol-rm: {'; '.join(parts)}")


def words(rows: Sequence[Regret]) -> str:
    """What is drawn, and why the lines are not the circles."""
    last = max(row.tasks for row in rows)
    row = next(row for row in rows if row.tasks == last and row.policy == "dol-rm")
    direct, by_pseudo = plus_minus(row.gap, row.gap_error), plus_minus(row.regret / last, row.regret_error / last)
    return (
        "Every T is a simulation of its own, because DOL-RM is told T. Gap(T) = |θ* − E ΣR / E ΣC| is a small "
        f"difference of large sums, and so is lost in chance near 0: on {row.problem} at T = {last:,} it is {direct} "
        f"over {row.runs} runs (circles). In expectation it equals mean pseudo-regret over mean cost, {by_pseudo}, "
        "which is free of the chance in arrivals (lines; bands: ± two standard errors). Grey: the theorem's bound with "
        f"its constants written out, and T^¾, √T and log T through DOL-RM's regret at T = {FIT_FROM:,}."
    )
