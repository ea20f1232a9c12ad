"""The Lyapunov drift of DOL-RM's ratio: V = ½E(θ−θ*)² over time, beside what the drift lemma says of it."""

from __future__ import annotations

import math

import numpy as np

from worthwhile.experiments.proof_measures import ratios, times
from worthwhile.optimum import bounds_of
from worthwhile.problem import Problem
from worthwhile.simulation.results import Results
from worthwhile.state import Floats


def drift_constant(problem: Problem) -> float:
    """b ≥ ½E(r̂ − θč)²."""
    r_min, r_max, c_min, c_max, price_min, price_max = bounds_of(problem)
    return 0.5 * max(r_max - price_min * c_min, price_max * c_max - r_min) ** 2


def optimism(results: Results, policy: str) -> Floats:
    """(times,): E Σ(r̂−r) + θ*·Σ(c−č) so far."""
    place = results.policies.index(policy)
    reward, cost, reward_estimate, cost_estimate = (
        results.measure(name)[:, place].mean(axis=0)
        for name in ("expected_reward", "expected_cost", "estimated_reward", "estimated_cost")
    )
    return np.concatenate([[0.0], reward_estimate - reward + results.best.ratio * (cost - cost_estimate)])


def drift_table(results: Results) -> dict[str, list[float]]:
    """V at the marks of dol-rm; its drift from mark to mark, and the lemma's bound on both.

    The bound on V is the lemma's inequality, started from V_1 and carried on from mark to mark.
    """
    low, high = bounds_of(results.problem)[4:]
    at, c_min, b = times(results), bounds_of(results.problem).cost_min, drift_constant(results.problem)
    step = 1.0 / (c_min * math.sqrt(results.marks[-1]))  # η
    squares = 0.5 * ((ratios(results, "dol-rm") - results.best.ratio) ** 2).mean(axis=0)
    gained, length = np.diff(optimism(results, "dol-rm")), np.diff(at)
    pushed = length * step**2 * b + step * (high - low) * gained  # what the lemma adds between two marks
    pulled = c_min * step * length * (squares[1:] + squares[:-1])  # … and takes away
    limit = [squares[0]]
    for push, tasks in zip(pushed / length, length, strict=True):
        kept = (1.0 - 2.0 * c_min * step) ** tasks
        limit.append(kept * limit[-1] + push * (1.0 - kept) / (2.0 * c_min * step))
    return {
        "tasks": at.tolist(),
        "lyapunov": squares.tolist(),
        "lyapunov_bound": [float(value) for value in limit],
        "drift": [0.0, *np.diff(squares).tolist()],
        "drift_bound": [0.0, *(pushed - pulled).tolist()],
    }
