"""The theorem: gap and regret of DOL-RM over the number of tasks, beside T^¾, √T, log T and bounds from both sides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from worthwhile.experiments.base import Columns, Outcome, Scale, by_column, plus_minus
from worthwhile.experiments.figures import add_legend, curve, panels, reference
from worthwhile.experiments.growth import Power, Regret, fitted_power, regret_from, regret_sample, regrets
from worthwhile.experiments.theorem_claims import (
    Growth,
    Slopes,
    fast_convergence,
    near_optimal,
    oracle_claim,
    order,
    other,
)
from worthwhile.optimum import solve
from worthwhile.plots import DASH_DOTS, INK, THIN
from worthwhile.policies.registry import DEFAULT
from worthwhile.problem import Noise, seven_kinds, two_kinds
from worthwhile.simulation.results import Results
from worthwhile.theory import lower_bound

TASKS = tuple(round(10 ** (half / 2)) for half in range(4, 13))  # 10² … 10⁶, each a simulation of its own
FIT_FROM = 1_000  # before, DOL-RM has hardly begun to learn and loses as much with every task
DRAWN_TASKS, MOST_RUNS = 60_000_000, 1_500  # per problem and T
QUICK_LAST, QUICK_DRAWN_TASKS, QUICK_MOST_RUNS = 10_000, 1_000_000, 200
HALF = Noise(sd=0.5)  # up to here the width √(log T/N) holds with high probability
COVERED = "two kinds, p = 0.8, noise ½"  # by the proof: N(0, 1) is too wide for it
PROBLEMS = {
    "two kinds, p = 0.8": two_kinds(0.8),
    "two kinds, p = 0.6": two_kinds(0.6),
    "seven kinds": seven_kinds(),
    COVERED: replace(two_kinds(0.8), reward_noise=HALF, cost_noise=HALF),
}
POLICIES = ("dol-rm-anytime", "dol-rm", "solved-dol", "sample-rm", DEFAULT, "oracle")
LOWER = DASH_DOTS
PANEL = (4.6, 4.6)  # inches: six policies and five lines to compare with need room
STEP = "dol-rm-anytime"
GUIDES: dict[str, Callable[[Any], Any]] = {
    "$T^{3/4}$": lambda tasks: tasks**0.75,
    "$\\sqrt{T}$": np.sqrt,
    "$\\log T$": np.log,
}


def run(scale: Scale) -> Outcome:
    """Simulate every T for itself, because the policies are told T."""
    horizons = [tasks for tasks in TASKS if tasks <= scale.pick(QUICK_LAST, TASKS[-1])]
    measured = {name: [measure(scale, name, tasks) for tasks in horizons] for name in PROBLEMS}
    rows = [row for name, simulations in measured.items() for results in simulations for row in regrets(name, results)]
    slopes = {(name, policy): fit(measured[name], policy, scale.seed) for name in PROBLEMS for policy in POLICIES}
    names, growth = list(PROBLEMS), Growth(PROBLEMS, rows, slopes, lower_bounds(), FIT_FROM)
    return Outcome(
        words=words(rows),
        data={"theorem": by_column(Regret._fields, rows), "theorem-slopes": slope_table(slopes)},
        figures={"theorem": draw(rows, names[:2]), "theorem-more": draw(rows, names[2:])},
        claims=[
            *(order(growth, name, covered=name == COVERED) for name in names),
            oracle_claim(growth),
            fast_convergence(growth),
            near_optimal(growth),
            other(growth, "the step of the paper's figures, 1/(c_min (t+1)): O(√T log T) by docs/theory.md", STEP),
            other(growth, "θ solved exactly after every task: O(√(T log T)) by docs/theory.md", "solved-dol"),
            other(growth, "classical Robbins–Monro: Eq. 8 with the samples R, C", "sample-rm"),
            other(growth, "the default, told nothing", DEFAULT),
        ],
    )


def lower_bounds() -> dict[str, float]:
    """R(T) per ln T that no consistent policy stays below: pseudo-regret over the optimum's cost per task."""
    return {name: lower_bound(problem) / solve(problem).cost for name, problem in PROBLEMS.items()}


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
    figure, axes = panels(problems, "T, tasks", "regret R(T) = T · Gap(T)", size=PANEL)
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
                floor = lower_bounds()[problem] * np.log(tasks)
                panel.plot(tasks, floor, color=INK, linestyle=LOWER, linewidth=THIN, label="lower bound, its ln T term")
        panel.set(xscale="log", yscale="log", ylim=(0.03, None))
    add_legend(figure)
    return figure


def guide(panel: Any, tasks: Any, regret: Any) -> None:
    """T^¾, √T and log T through DOL-RM's regret at FIT_FROM, named at their ends."""
    start = int(np.searchsorted(tasks, FIT_FROM))
    for name, growth in GUIDES.items():
        line = regret[start] * growth(tasks[start:]) / growth(tasks[start])
        reference(panel, tasks[start:], line, "_" + name)
        beside = {"xytext": (6, 0), "textcoords": "offset points", "annotation_clip": False}
        panel.annotate(name, (tasks[-1], line[-1]), fontsize=8.5, va="center", **beside)


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
        f"its constants written out, and T^¾, √T and log T through DOL-RM's regret at T = {FIT_FROM:,}. Dash-dotted: "
        "the lower bound's leading term, gap/KL per ln T summed over the options that are not optimal; before T is "
        "very large, a policy may be below it."
    )
