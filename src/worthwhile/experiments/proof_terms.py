"""The two errors in the theorem's proof and what bounds them, measured lemma by lemma; how θ converges."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from worthwhile.experiments.base import Columns, Outcome, Scale
from worthwhile.experiments.growth import Power, fitted_power
from worthwhile.experiments.lyapunov import drift_table
from worthwhile.experiments.proof_claims import convergence, lemma, lemma_3, lemma_4
from worthwhile.experiments.proof_figures import draw_drift, draw_errors, draw_price
from worthwhile.experiments.proof_measures import (
    ORDERS,
    Term,
    mean_and_spread,
    ratios,
    sample_of,
    statistics,
    terms,
    times,
)
from worthwhile.experiments.theorem import COVERED, FIT_FROM, PROBLEMS, TASKS
from worthwhile.simulation.results import Results

DRAWN_TASKS, MOST_RUNS = 40_000_000, 400
QUICK_LAST, QUICK_DRAWN_TASKS, QUICK_MOST_RUNS = 10_000, 500_000, 50
OTHER = "seven kinds"  # θ is shown here too
POLICIES = ("dol-rm", "dol-rm-anytime", "sample-rm")
STEPS = POLICIES[:2]  # the theorem's, and beside it that of the paper's figures, which has no proof
EVERY_TASK, MARKS_PER_DECADE = 30, 20  # marks: all of the first tasks, then so many per decade


def run(scale: Scale) -> Outcome:
    """Simulate every T on the problem that the proof covers; the longest on another one too."""
    horizons = [tasks for tasks in TASKS if tasks <= scale.pick(QUICK_LAST, TASKS[-1])]
    simulations = [measure(scale, COVERED, tasks) for tasks in horizons]
    longest = {COVERED: simulations[-1], OTHER: measure(scale, OTHER, horizons[-1])}
    rows = [term for results in simulations for policy in STEPS for term in terms(results, policy, scale.seed)]
    drift = drift_table(simulations[-1])
    powers = {name: fit(simulations, "dol-rm", name, scale.seed) for name in ORDERS}
    settling = {policy: fit(simulations, policy, "last_distance", scale.seed) for policy in POLICIES}
    return Outcome(
        words=words(rows),
        data={
            "proof-terms": dict(zip(Term._fields, zip(*rows, strict=True), strict=True)),
            "proof-powers": power_table(powers, settling),
            "proof-drift": drift,
            "proof-price": price_table(longest),
        },
        figures={
            "proof-terms": draw_errors(rows),
            "proof-drift": draw_drift(rows, drift),
            "proof-price": draw_price(longest),
        },
        claims=[
            lemma(1, "the double-optimistic learning error is O(T^−½)", "learning_error", rows, powers),
            lemma(2, "the Robbins–Monro gap is O(T^−¼)", "robbins_monro_gap", rows, powers),
            lemma_3(rows),
            lemma_4(drift),
            lemma(5, "Σ √E(θ − θ*)² is O(T^¾)", "distance_sum", rows, powers),
            convergence(longest, settling),
        ],
    )


def measure(scale: Scale, name: str, tasks: int) -> Results:
    """Runs with marks so dense that θ can be integrated between them."""
    drawn, most = scale.pick(QUICK_DRAWN_TASKS, DRAWN_TASKS), scale.pick(QUICK_MOST_RUNS, MOST_RUNS)
    count = int(np.log10(tasks / EVERY_TASK) * MARKS_PER_DECADE) + 1
    marks = [*range(1, EVERY_TASK), *np.geomspace(EVERY_TASK, tasks, count).round().astype(int).tolist()]
    runs = min(most, drawn // tasks)
    return scale.simulate(PROBLEMS[name], POLICIES, tasks, runs, marks=marks, seed=scale.seed + tasks)


def fit(simulations: Sequence[Results], policy: str, name: str, seed: int) -> Power:
    """The power of T in one quantity, from FIT_FROM on."""
    chosen = [results for results in simulations if results.marks[-1] >= FIT_FROM]
    ends, samples = [int(results.marks[-1]) for results in chosen], [sample_of(results, policy) for results in chosen]
    return fitted_power(ends, samples, [statistics(results)[name] for results in chosen], seed)


def power_table(powers: Mapping[str, Power], settling: Mapping[str, Power]) -> Columns:
    """One row per fitted power; the paper states no order for the distance of the last θ."""
    rows = [("dol-rm", name, *power, ORDERS[name]) for name, power in powers.items()]
    more = [(policy, "last_distance", *power, math.nan) for policy, power in settling.items()]
    names = ("policy", "quantity", "exponent", "exponent_error", "exponent_of_the_paper")
    return dict(zip(names, zip(*rows, *more, strict=True), strict=True))


def price_table(longest: Mapping[str, Results]) -> Columns:
    """Mean and spread of θ over runs: one row per problem, policy and mark."""
    rows = [
        (problem, policy, int(task), float(mean), float(spread), results.best.ratio)
        for problem, results in longest.items()
        for policy in POLICIES
        for task, mean, spread in zip(times(results), *mean_and_spread(ratios(results, policy)), strict=True)
    ]
    names = ("problem", "policy", "tasks", "price", "price_spread", "best_ratio")
    return dict(zip(names, zip(*rows, strict=True), strict=True))


def words(rows: Sequence[Term]) -> str:
    """What is measured where."""
    end = rows[-1].tasks
    found = {row.quantity: f"{row.value:.2g}" for row in rows if row.tasks == end and row.policy == "dol-rm"}
    return (
        "The proof splits Gap(T) into the double-optimistic learning error |Σr̂/Σč − Σr/Σc| ≤ ε(T) + κ(T) and the "
        f"Robbins–Monro gap |θ* − Σr̂/Σč|. At T = {end:,} the first is {found['learning_error']} (ε = "
        f"{found['epsilon']} from rewards, κ = {found['kappa']} from costs) and the second "
        f"{found['robbins_monro_gap']}; the gap itself is {found['gap']}, because optimism raises Σr̂/Σč above both "
        f"ends and the two errors nearly cancel. Measured on {COVERED}, which the proof covers. Sums over θ are "
        f"integrals between marks: every task up to {EVERY_TASK}, then {MARKS_PER_DECADE} per decade. Bands around θ: "
        "± one standard deviation over runs."
    )
