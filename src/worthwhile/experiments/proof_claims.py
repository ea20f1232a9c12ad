"""What the measured terms of the proof say of its lemmas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from worthwhile.experiments.base import NOT_REPRODUCED, REPRODUCED, Claim, Columns, plus_minus
from worthwhile.experiments.growth import Power
from worthwhile.experiments.proof_measures import ORDERS, Term, mean_and_spread, ratios
from worthwhile.experiments.theorem import COVERED, FIT_FROM, PROBLEMS
from worthwhile.optimum import bounds_of
from worthwhile.simulation.results import Results


def lemma(number: int, claim: str, quantity: str, rows: Sequence[Term], powers: Mapping[str, Power]) -> Claim:
    """An order and an explicit bound."""
    chosen = [row for row in rows if (row.policy, row.quantity) == ("dol-rm", quantity)]
    margin = min(row.bound / (row.value + 2.0 * row.error) for row in chosen)
    power, last = powers[quantity], chosen[-1]
    return Claim(
        f"Lemma {number}: {claim}",
        REPRODUCED if power.at_most(ORDERS[quantity]) and margin > 1.0 else NOT_REPRODUCED,
        f"goes as T^({power}) from T = {FIT_FROM:,} on, {plus_minus(last.value, last.error)} at T = {last.tasks:,}; "
        f"the explicit bound is at least {margin:.3g} times the measurement",
    )


def lemma_3(rows: Sequence[Term]) -> Claim:
    """The Robbins–Monro gap, bounded by what is measured and not by constants."""
    b = bounds_of(PROBLEMS[COVERED])
    found = {(row.tasks, row.quantity): row.value for row in rows if row.policy == "dol-rm"}
    ends = sorted({row.tasks for row in rows})
    limits = [
        max(found[end, "learning_error"], (b.cost_max - b.cost_min) / (end * b.cost_min) * found[end, "distance_sum"])
        for end in ends
    ]
    shares = [found[end, "robbins_monro_gap"] / limit for end, limit in zip(ends, limits, strict=True)]
    return Claim(
        "Lemma 3: the Robbins–Monro gap is at most the learning error or the mean distance of θ from θ*",
        REPRODUCED if max(shares) <= 1.0 else NOT_REPRODUCED,
        f"it is between {100 * min(shares):.2g} and {100 * max(shares):.2g} % of the larger of the two, for T from "
        f"{ends[0]:,} to {ends[-1]:,}",
    )


def lemma_4(drift: Columns) -> Claim:
    """The drift from mark to mark, with the measured V and the measured optimism on the right side."""
    left, right = np.array(drift["drift"][1:]), np.array(drift["drift_bound"][1:])
    holds, margin = int((left <= right).sum()), np.array(drift["lyapunov_bound"]) / np.array(drift["lyapunov"])
    return Claim(
        "Lemma 4: the Lyapunov drift is at most −2 c_min η E V + η² b + θ_gap η E[optimism]",
        REPRODUCED if holds == len(left) else NOT_REPRODUCED,
        f"holds between {holds} of {len(left)} pairs of marks; carried on from mark to mark it bounds E V by "
        f"{margin[-1]:.2g} times what is measured after {drift['tasks'][-1]:,.0f} tasks",
    )


def convergence(longest: Mapping[str, Results], settling: Mapping[str, Power]) -> Claim:
    """The distance of θ from θ* after the last task shrinks as T grows; where θ ends in the longest runs."""
    powers = ", ".join(f"{policy} T^({power})" for policy, power in settling.items())
    parts = []
    for problem, results in longest.items():
        ends = []
        for policy in results.policies:
            mean, spread = (float(values[-1]) for values in mean_and_spread(ratios(results, policy)))
            ends.append(f"{policy} {mean:.4g} (spread {spread:.2g})")
        parts.append(f"{problem}: θ* = {results.best.ratio:.4g}, after {results.marks[-1]:,} tasks {', '.join(ends)}")
    return Claim(
        "θ converges to θ*",
        REPRODUCED if all(power.exponent + 2.0 * power.error < 0.0 for power in settling.values()) else NOT_REPRODUCED,
        f"√E(θ − θ*)² after T tasks on {COVERED}: {powers}; {'; '.join(parts)}",
    )
