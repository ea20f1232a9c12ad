"""The two errors in the theorem's proof and what bounds them, measured lemma by lemma; how θ converges."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from worthwhile.experiments.base import CLEAR, Claim, Columns, Outcome, Scale, by_column, plus_minus, verdict
from worthwhile.experiments.figures import add_legend, curve, panels, reference
from worthwhile.experiments.growth import Power, fitted_power
from worthwhile.experiments.proof_drift import carried_on, drift_table, lemma_4, neely
from worthwhile.experiments.proof_measures import (
    HIDDEN_LOGS,
    ORDERS,
    Term,
    mean_and_spread,
    prices,
    sample_of,
    terms,
    times,
    without_log,
)
from worthwhile.experiments.theorem import COVERED, FIT_FROM, PROBLEMS, TASKS
from worthwhile.optimum import bounds_of
from worthwhile.simulation.results import Results

DRAWN_TASKS, MOST_RUNS = 12_000_000, 400  # per problem and T
QUICK_LAST, QUICK_DRAWN_TASKS, QUICK_MOST_RUNS = 10_000, 500_000, 50
OTHER = "seven kinds"  # θ is shown here too
STEPWISE_TASKS, STEPWISE_RUNS, QUICK_STEPWISE_RUNS = 10_000, 200, 50  # the drift is measured at every task
DRAWN_POINTS = 80  # of a curve that is known at every task
Powers = Mapping[tuple[str, str], Power]  # by problem and quantity
POLICIES = ("dol-rm", "dol-rm-anytime", "sample-rm")
STEPS = POLICIES[:2]  # the theorem's, and beside it that of the paper's figures, which has no proof
EVERY_TASK, MARKS_PER_DECADE = 30, 20  # marks: all of the first tasks, then so many per decade
POWERS = {-0.5: "$T^{-1/2}$", -0.25: "$T^{-1/4}$", 0.5: "$T^{1/2}$", 0.75: "$T^{3/4}$"}
PARTS = {"epsilon": "dol-rm: ε(T), of rewards", "kappa": "dol-rm: κ(T), of costs"}


def run(scale: Scale) -> Outcome:
    """Simulate every T on every problem; one T again with a mark at every task, for the lemmas on single tasks."""
    horizons = [tasks for tasks in TASKS if tasks <= scale.pick(QUICK_LAST, TASKS[-1])]
    simulations = {name: [measure(scale, name, tasks) for tasks in horizons] for name in PROBLEMS}
    stepwise = {name: every_task(scale, name) for name in PROBLEMS}
    longest = {name: simulations[name][-1] for name in (COVERED, OTHER)}
    rows = [
        term
        for name, of_problem in simulations.items()
        for results in of_problem
        for policy in STEPS
        for term in terms(name, results, policy, scale.seed)
    ]
    powers = {
        (name, quantity): fit(simulations[name], "dol-rm", quantity, scale.seed)
        for name in PROBLEMS
        for quantity in ORDERS
    }
    settling = {policy: fit(simulations[COVERED], policy, "last_distance", scale.seed) for policy in POLICIES}
    drift, covered = drift_table(stepwise), [row for row in rows if row.problem == COVERED]
    return Outcome(
        words=words(covered),
        data={
            "proof-terms": by_column(Term._fields, rows),
            "proof-powers": power_table(powers, settling),
            "proof-drift": drift,
            "proof-price": price_table(longest),
        },
        figures={
            "proof-terms": draw_errors(covered),
            "proof-drift": draw_drift(covered, stepwise[COVERED]),
            "proof-price": draw_price(longest),
        },
        claims=[
            lemma("Lemma 1: the optimistic learning error is O(T^−½) but for √log T", "learning_error", rows, powers),
            lemma("Lemma 2: the Robbins–Monro gap is O(T^−¼)", "robbins_monro_gap", rows, powers),
            lemma_3(rows),
            neely(drift),
            lemma_4(drift),
            lemma("Lemma 5: Σ √E(θ − θ*)² is O(T^¾)", "distance_sum", rows, powers),
            convergence(longest, settling),
        ],
    )


def every_task(scale: Scale, name: str) -> Results:
    """DOL-RM with a mark at every task."""
    marks, runs = list(range(1, STEPWISE_TASKS + 1)), scale.pick(QUICK_STEPWISE_RUNS, STEPWISE_RUNS)
    return scale.simulate(PROBLEMS[name], ["dol-rm"], STEPWISE_TASKS, runs, marks=marks)


def measure(scale: Scale, name: str, tasks: int) -> Results:
    """Runs with marks so dense that θ can be integrated between them."""
    drawn, most = scale.pick(QUICK_DRAWN_TASKS, DRAWN_TASKS), scale.pick(QUICK_MOST_RUNS, MOST_RUNS)
    count = int(np.log10(tasks / EVERY_TASK) * MARKS_PER_DECADE) + 1
    marks = [*range(1, EVERY_TASK), *np.geomspace(EVERY_TASK, tasks, count).round().astype(int).tolist()]
    runs = min(most, drawn // tasks)
    return scale.simulate(PROBLEMS[name], POLICIES, tasks, runs, marks=marks, seed=scale.seed + tasks)


def fit(simulations: Sequence[Results], policy: str, name: str, seed: int) -> Power:
    """The power of T in one quantity, from FIT_FROM on, without the logarithm that its order hides."""
    chosen = [results for results in simulations if results.marks[-1] >= FIT_FROM]
    ends, samples = [int(results.marks[-1]) for results in chosen], [sample_of(results, policy) for results in chosen]
    return fitted_power(ends, samples, [without_log(results, name) for results in chosen], seed)


def power_table(powers: Powers, settling: Mapping[str, Power]) -> Columns:
    """One row per problem and quantity of dol-rm, then the distance of θ after the last task for every policy."""
    rows = [(problem, "dol-rm", name, *power, ORDERS[name]) for (problem, name), power in powers.items()]
    more = [(COVERED, policy, "last_distance", *power, None) for policy, power in settling.items()]
    names = ("problem", "policy", "quantity", "exponent", "exponent_error", "exponent_of_the_paper")
    return by_column(names, [*rows, *more])


def price_table(longest: Mapping[str, Results]) -> Columns:
    """Mean and spread of θ over runs: one row per problem, policy and mark."""
    rows = [
        (problem, policy, int(task), float(mean), float(spread), results.best.ratio)
        for problem, results in longest.items()
        for policy in POLICIES
        for task, mean, spread in zip(times(results), *mean_and_spread(prices(results, policy)), strict=True)
    ]
    names = ("problem", "policy", "tasks", "price", "price_spread", "best_ratio")
    return by_column(names, rows)


def draw_errors(rows: Sequence[Term]) -> Any:
    """Learning error with its two parts, Robbins–Monro gap."""
    titles = ("double-optimistic learning error", "Robbins–Monro gap")
    figure, axes = panels(titles, "T, tasks", "error of the ratio")
    draw_quantity(axes[0], rows, "learning_error")
    draw_quantity(axes[1], rows, "robbins_monro_gap")
    for quantity, name in PARTS.items():
        tasks, value, _, _ = columns_of(rows, "dol-rm", quantity)
        curve(axes[0], tasks, value, f"its part {quantity}", label=name)
    add_legend(figure)
    return figure


def draw_drift(rows: Sequence[Term], stepwise: Results) -> Any:
    """The sum of distances over T; V over the tasks of one T, and the lemma carried on from task to task."""
    lyapunov, limit = carried_on(stepwise)
    tasks = np.unique(np.geomspace(1, len(lyapunov), DRAWN_POINTS).round().astype(int))
    titles = ("Σ √E(θ − θ*)²", f"V = ½ E(θ − θ*)² over {len(lyapunov):,} tasks")
    figure, axes = panels(titles, "T, tasks", "sum over tasks")
    draw_quantity(axes[0], rows, "distance_sum")
    curve(axes[1], tasks, lyapunov[tasks - 1], "dol-rm")
    reference(axes[1], tasks, limit[tasks - 1], "bound for dol-rm")
    axes[1].set(xscale="log", yscale="log", xlabel="tasks", ylabel="V")
    add_legend(figure)
    return figure


def draw_price(longest: Mapping[str, Results]) -> Any:
    """Mean and spread of θ over runs."""
    figure, axes = panels(list(longest), "tasks", "price θ")
    for panel, results in zip(axes, longest.values(), strict=True):
        at = times(results)[1:]
        for policy in results.policies:
            mean, spread = mean_and_spread(prices(results, policy)[:, 1:])
            curve(panel, at, mean, policy, (mean - spread, mean + spread))
        reference(panel, at, np.full(len(at), results.best.ratio), "optimum θ*")
        panel.set_xscale("log")
    add_legend(figure)
    return figure


def draw_quantity(panel: Any, rows: Sequence[Term], quantity: str) -> None:
    """Both steps' measurements, the explicit bound, and a line of the paper's order above the measurements."""
    for policy in ("dol-rm-anytime", "dol-rm"):  # dashes on top, where lines coincide
        tasks, value, error, bound = columns_of(rows, policy, quantity)
        curve(panel, tasks, value, policy, (np.maximum(value - 2.0 * error, 0.01 * value), value + 2.0 * error))
        if policy == "dol-rm":
            order, name = ORDERS[quantity], POWERS[ORDERS[quantity]]
            reference(panel, tasks, bound, "bound for dol-rm")
            guide = 2.0 * value[0] * (tasks / tasks[0]) ** order
            reference(panel, tasks, guide, "_order")
            panel.annotate(f" {name}", (tasks[-1], guide[-1]), fontsize=9, va="center", annotation_clip=False)
    panel.set(xscale="log", yscale="log")


def columns_of(rows: Sequence[Term], policy: str, quantity: str) -> list[Any]:
    """Tasks, values, errors and bounds of one quantity."""
    chosen = [row for row in rows if (row.policy, row.quantity) == (policy, quantity)]
    return [np.array([getattr(row, name) for row in chosen], float) for name in ("tasks", "value", "error", "bound")]


def lemma(claim: str, quantity: str, rows: Sequence[Term], powers: Powers) -> Claim:
    """An order and an explicit bound, on every problem."""
    holds, parts = [], []
    for problem in dict.fromkeys(row.problem for row in rows):
        chosen = [row for row in rows if (row.problem, row.policy, row.quantity) == (problem, "dol-rm", quantity)]
        margin = min(row.bound / (row.value + 2.0 * row.error) for row in chosen)
        power, last = powers[problem, quantity], chosen[-1]
        holds.append(power.at_most(ORDERS[quantity]) and margin > 1.0)
        measured = f"{plus_minus(last.value, last.error)} at T = {last.tasks:,} ({last.runs} runs)"
        parts.append(f"{problem}: T^({power}), {measured}, the explicit bound at least {margin:.3g} times that")
    logs = f" but for (log T)^{HIDDEN_LOGS[quantity]:g}" if quantity in HIDDEN_LOGS else ""
    return Claim(claim, verdict(all(holds)), f"from T = {FIT_FROM:,} on it goes{logs} as {'; '.join(parts)}")


def lemma_3(rows: Sequence[Term]) -> Claim:
    """The Robbins–Monro gap, bounded by what is measured and not by constants."""
    holds, parts = [], []
    for problem in dict.fromkeys(row.problem for row in rows):
        mine = [row for row in rows if (row.problem, row.policy) == (problem, "dol-rm")]
        shares = gap_shares(problem, {(row.tasks, row.quantity): row for row in mine})
        holds.append(all(share <= 1.0 + CLEAR * error for share, error in shares))
        parts.append(f"{problem}: {' to '.join(percent(*share) for share in (min(shares), max(shares)))}")
    ends, runs = sorted({row.tasks for row in rows}), min(row.runs for row in rows)
    return Claim(
        "Lemma 3: the Robbins–Monro gap is at most the learning error or the mean distance of θ from θ*",
        verdict(all(holds)),
        f"it is so much of the larger of the two, for T from {ends[0]:,} to {ends[-1]:,} ({runs:,} runs or more): "
        f"{'; '.join(parts)}",
    )


def percent(share: float, error: float) -> str:
    """A share with its standard error."""
    return f"{100 * share:.2g} ± {100 * error:.1g} %"


def gap_shares(problem: str, term: Mapping[tuple[int, str], Term]) -> list[tuple[float, float]]:
    """For every T: the Robbins–Monro gap over the larger of what Lemma 3 bounds it by, and the standard error."""
    b, shares = bounds_of(PROBLEMS[problem]), []
    for end in sorted({tasks for tasks, _ in term}):
        gap, learning, distance = (term[end, name] for name in ("robbins_monro_gap", "learning_error", "distance_sum"))
        scale = (b.cost_max - b.cost_min) / (end * b.cost_min)
        larger, error = max((learning.value, learning.error), (scale * distance.value, scale * distance.error))
        shares.append((gap.value / larger, math.hypot(gap.error, error * gap.value / larger) / larger))
    return shares


def convergence(longest: Mapping[str, Results], settling: Mapping[str, Power]) -> Claim:
    """The distance of θ from θ* after the last task shrinks as T grows; where θ ends in the longest runs."""
    powers = ", ".join(f"{policy} T^({power})" for policy, power in settling.items())
    parts = []
    for problem, results in longest.items():
        ends = []
        for policy in results.policies:
            mean, spread = (float(values[-1]) for values in mean_and_spread(prices(results, policy)))
            ends.append(f"{policy} {mean:.4g} (spread {spread:.2g})")
        settled = f"θ* = {results.best.ratio:.4g}, after {results.marks[-1]:,} tasks {', '.join(ends)}"
        parts.append(f"{problem}: {settled} ({len(results.runs)} runs)")
    return Claim(
        "θ converges to θ*",
        verdict(all(power.exponent + 2.0 * power.error < 0.0 for power in settling.values())),
        f"√E(θ − θ*)² after T tasks on {COVERED}: {powers}; {'; '.join(parts)}",
    )


def words(rows: Sequence[Term]) -> str:
    """What is measured where."""
    end = rows[-1].tasks
    value = {row.quantity: f"{row.value:.2g}" for row in rows if row.tasks == end and row.policy == "dol-rm"}
    return (
        "The proof splits Gap(T) into the double-optimistic learning error |Σr̂/Σč − Σr/Σc| ≤ ε(T) + κ(T) and the "
        f"Robbins–Monro gap |θ* − Σr̂/Σč|. At T = {end:,} the first is {value['learning_error']} (ε = "
        f"{value['epsilon']} from rewards, κ = {value['kappa']} from costs) and the second "
        f"{value['robbins_monro_gap']}; the gap itself is {value['gap']}, because optimism raises Σr̂/Σč above both "
        f"ends and the two errors nearly cancel. Measured on {COVERED}, which the proof covers. Sums over θ are "
        f"integrals between marks: every task up to {EVERY_TASK}, then {MARKS_PER_DECADE} per decade. Bands around θ: "
        "± one standard deviation over runs."
    )
