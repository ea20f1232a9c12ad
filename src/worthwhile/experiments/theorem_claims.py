"""What the paper says of DOL-RM's regret, and what the measured growth says of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from worthwhile.experiments.base import (
    DEPENDS,
    NOT_REPRODUCED,
    OURS,
    REPRODUCED,
    Claim,
    plus_minus,
    together,
    verdict,
)
from worthwhile.experiments.growth import Power, Regret
from worthwhile.policies.registry import DEFAULT
from worthwhile.problem import Problem

THEOREM_STEP, FIGURES_STEP = "dol-rm", "dol-rm-anytime"
ORDER, ORDER_OF_GAP = 0.75, -0.25  # the theorem's powers of T, of the regret and of the gap
NEAR = 2.0  # times the lower bound per ln T: what may still be called near-optimal
Slopes = Mapping[tuple[str, str], tuple[Power, Power]]  # by problem and policy: from `first` on, in the last decade


class Growth(NamedTuple):
    """Everything that was measured of how regret grows."""

    problems: Mapping[str, Problem]
    rows: Sequence[Regret]
    slopes: Slopes
    lower: Mapping[str, float]  # R(T) per ln T that no consistent policy stays below
    first: int  # T from which on powers are fitted

    def of(self, problem: str, policy: str) -> list[Regret]:
        """The rows of a policy on a problem, by T."""
        return [row for row in self.rows if (row.problem, row.policy) == (problem, policy)]

    def per_log(self, problem: str, policy: str) -> tuple[float, float]:
        """How much R(T) grows per ln T in the last decade, and its standard error."""
        last, before = self.of(problem, policy)[-1], self.of(problem, policy)[-3]
        log = float(np.log(last.tasks / before.tasks))
        return (last.regret - before.regret) / log, float(np.hypot(last.regret_error, before.regret_error)) / log

    @property
    def last(self) -> int:
        """The largest T."""
        return max(row.tasks for row in self.rows)

    @property
    def runs(self) -> str:
        """How many there were, at the least."""
        return f"{min(row.runs for row in self.rows):,} runs or more"


def order(growth: Growth, problem: str, covered: bool) -> Claim:
    """R(T) = O(T^¾): what is measured, and what would have refuted it."""
    rows, (fitted, last) = growth.of(problem, THEOREM_STEP), growth.slopes[problem, THEOREM_STEP]
    margin = min(row.bound / max(row.regret + 2.0 * row.regret_error, row.tasks * row.gap) for row in rows)
    start = next(row for row in rows if row.tasks >= growth.first)
    needed = start.regret * (rows[-1].tasks / start.tasks) ** ORDER
    proof = "" if covered else "; the proof of the bound does not cover N(0, 1)"
    return Claim(
        f"{problem}: DOL-RM's regret is O(T^¾)",
        verdict(fitted.at_most(ORDER) and margin > 1.0),
        f"grows as T^({fitted}) from T = {growth.first:,} on, as T^({last}) in the last decade to {rows[-1].tasks:,}, "
        f"over {growth.runs}; it would be refuted by a power above 0.75 by two errors, with a regret "
        f"of some {needed:,.0f} there, {needed / rows[-1].regret:.2g} times what it is, and no run of finite length "
        f"can prove it; the explicit bound is at least {margin:.3g} times the measurement{proof}",
    )


def fast_convergence(growth: Growth) -> Claim:
    """The rate at which the gap falls, beside that of the oracle, which knows all means."""
    verdicts, parts = [], []
    for problem in growth.problems:
        ours, oracle = (growth.slopes[problem, policy][0] for policy in (FIGURES_STEP, "oracle"))
        difference = ours.exponent - oracle.exponent - 2.0 * float(np.hypot(ours.error, oracle.error))
        as_fast, faster_than_proved = difference <= 0.0, ours.exponent - 1.0 + 2.0 * ours.error < ORDER_OF_GAP
        verdicts.append(REPRODUCED if as_fast else DEPENDS if faster_than_proved else NOT_REPRODUCED)
        gaps = [growth.of(problem, policy)[-1] for policy in (FIGURES_STEP, "oracle")]
        ends = " against ".join(f"{row.regret / row.tasks:.2g}" for row in gaps)
        rates = " against ".join(f"T^({power.exponent - 1.0:.2f} ± {power.error:.2f})" for power in (ours, oracle))
        parts.append(f"{problem}: {rates}, {ends} at T = {gaps[0].tasks:,}")
    return Claim(
        "Compared with the oracle, DOL-RM converges fast",
        together(verdicts),
        f"how Gap(T) falls with the step of the figures, against the oracle's: {'; '.join(parts)}; reproduced would "
        "be: as fast as the oracle, within two errors; it depends on what fast means if it is slower than that and "
        f"faster than the theorem's T^−¼ ({growth.runs})",
    )


def near_optimal(growth: Growth) -> Claim:
    """Growth per ln T in the last decade, over what no consistent policy can stay below."""
    verdicts, parts = [], []
    for problem, lower in growth.lower.items():
        times = {}
        for policy in (THEOREM_STEP, FIGURES_STEP, DEFAULT):
            slope, error = growth.per_log(problem, policy)
            times[policy] = plus_minus(slope / lower, error / lower, 2)
            if policy != DEFAULT:
                verdicts.append(verdict(slope + 2.0 * error <= NEAR * lower))
        shown = ", ".join(f"{policy} {value}" for policy, value in times.items())
        parts.append(f"{problem} ({lower:.3g} per ln T): {shown}")
    return Claim(
        "DOL-RM's regret is near-optimal",
        together(verdicts),
        f"R(T) per ln T in the decade to T = {growth.last:,}, over the lower bound, {growth.runs}: {'; '.join(parts)}; "
        f"near-optimal is at most {NEAR:g} times the bound, two errors included; with the theorem's step it is of "
        "order √T in the end (docs/theory.md)",
    )


def oracle_claim(growth: Growth) -> Claim:
    """With the means known, only θ is left to learn."""
    fitted = {problem: growth.slopes[problem, "oracle"][0] for problem in growth.problems}
    powers = "; ".join(f"{problem}: T^({power})" for problem, power in fitted.items())
    holds = all(power.at_most(0.5) for power in fitted.values())
    return Claim(
        "with the means known (Neely's oracle) the regret is O(√T)",
        verdict(holds),
        f"from T = {growth.first:,} to {growth.last:,} R(T) grows as {powers}; it would be refuted by a power above ½ "
        f"by two errors ({growth.runs})",
    )


def other(growth: Growth, claim: str, policy: str) -> Claim:
    """A variant beside DOL-RM with the theorem's step, at the last T."""
    parts = []
    for problem in growth.problems:
        ours, theirs = (growth.of(problem, name)[-1] for name in (policy, THEOREM_STEP))
        shown = " against ".join(plus_minus(row.regret, row.regret_error) for row in (ours, theirs))
        parts.append(f"{problem}: T^({growth.slopes[problem, policy][0]}), {shown}")
    evidence = f"growth, and regret at T = {growth.last:,} against that of dol-rm, {growth.runs}: {'; '.join(parts)}"
    return Claim(claim, OURS, evidence)
