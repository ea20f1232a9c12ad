"""Second opinions: the paper's formulas and brute force, written from the text alone, slow and obvious."""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from worthwhile.problem import Problem

Floats = npt.NDArray[np.float64]


class Tasks(NamedTuple):
    """A sequence of tasks, and what every option would bring and cost in each of them."""

    kinds: npt.NDArray[np.int64]  # (tasks,)
    offered: npt.NDArray[np.bool_]  # (kinds, options)
    reward: Floats  # (tasks, options)
    cost: Floats


def algorithm_1(
    tasks: Tasks, T: int, r_max: float, c_min: float, theta_min: float, theta_max: float, anytime: bool, noise: float
) -> tuple[list[int], list[float]]:
    """DOL-RM as printed: every decision, and θ after every task."""
    N = np.zeros(tasks.offered.shape)
    R_bar, C_bar = np.zeros_like(N), np.zeros_like(N)
    theta = theta_min
    decisions, thetas = [], []
    for t, S in enumerate(tasks.kinds, 1):
        A = np.flatnonzero(tasks.offered[S])
        with np.errstate(divide="ignore"):  # no pulls: infinite width, so the bounds themselves
            width = noise * np.sqrt(math.log(T) / N[S, A])
        r_hat = np.minimum(r_max, R_bar[S, A] + width)  # (2)
        c_check = np.maximum(c_min, C_bar[S, A] - width)  # (3)
        best = np.argmax(r_hat - theta * c_check)  # (7)
        a = A[best]
        eta = 1.0 / (c_min * (t + 1)) if anytime else 1.0 / (c_min * np.sqrt(T))
        theta = np.clip(theta + eta * (r_hat[best] - theta * c_check[best]), theta_min, theta_max)  # (8)
        R_bar[S, a] = (R_bar[S, a] * N[S, a] + tasks.reward[t - 1, a]) / (N[S, a] + 1)  # (5)
        C_bar[S, a] = (C_bar[S, a] * N[S, a] + tasks.cost[t - 1, a]) / (N[S, a] + 1)  # (6)
        N[S, a] += 1  # (4)
        decisions.append(int(a))
        thetas.append(float(theta))
    return decisions, thetas


def every_policy(problem: Problem) -> list[tuple[float, tuple[int, ...]]]:
    """The ratio of every way to give each kind one of its options."""
    offers = [np.flatnonzero(row).tolist() for row in problem.offered]
    found = []
    for choice in itertools.product(*offers):
        reward = sum(
            p * problem.reward[kind, a] for kind, (p, a) in enumerate(zip(problem.arrival, choice, strict=True))
        )
        cost = sum(p * problem.cost[kind, a] for kind, (p, a) in enumerate(zip(problem.arrival, choice, strict=True)))
        found.append((float(reward / cost), choice))
    return found


def least_evidence_on_a_grid(delta: float, nu: float, kappa: float, positive: bool) -> float:
    """The least evidence for any share y of the cost saved, the reward making up the rest, by looking everywhere.

    The reward takes ½ ln(1 + (δ−y)²/ν). The saving takes κ(ln(1−y) + 1/(1−y) − 1) where costs are positive (Gamma),
    and ½ ln(1 + κy²) where they may be negative (Gaussian); a mean cost cannot be, so y is at most 1.
    """

    def gamma(y: Floats) -> Floats:
        exact = np.log1p(-y) + y / (1.0 - y)
        series = 0.5 * y * y + 2.0 / 3.0 * y**3  # near 0 the exact form is a difference of equal numbers
        return kappa * np.where(y < 1e-4, series, exact)

    def evidence(y: Floats) -> Floats:
        saving = gamma(y) if positive else 0.5 * np.log1p(kappa * y * y)
        value: Floats = 0.5 * np.log1p((delta - y) ** 2 / nu) + saving
        return value

    top = min(delta, 1.0 - 1e-12 if positive else 1.0)
    share = np.concatenate([np.geomspace(1e-16, 0.5, 4000), 1.0 - np.geomspace(0.5, 1e-12, 4000)])
    points = np.unique(np.concatenate([[0.0], top * share, [top]]))
    for _ in range(4):  # look closer around the best point
        place = int(np.argmin(evidence(points)))
        low, high = points[max(0, place - 1)], points[min(len(points) - 1, place + 1)]
        points = np.unique(np.concatenate([points, np.linspace(low, high, 200)]))
    return float(evidence(points).min())
