"""Second opinions: the paper's formulas and brute force, written from the text alone, slow and obvious."""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from worthwhile.problem import Noise, Problem
from worthwhile.rng import Rng
from worthwhile.simulation.environments import synthetic

Floats = npt.NDArray[np.float64]
SILENT = {"reward_noise": Noise(sd=0.0), "cost_noise": Noise(sd=0.0)}


class Tasks(NamedTuple):
    """A sequence of tasks, and what every option would bring and cost in each of them."""

    kinds: npt.NDArray[np.int64]  # (tasks,)
    offered: npt.NDArray[np.bool_]  # (kinds, options)
    reward: Floats  # (tasks, options)
    cost: Floats


def algorithm_1(
    tasks: Tasks, T: int, r_max: float, c_min: float, price_min: float, price_max: float, anytime: bool, noise: float
) -> tuple[list[int], list[float]]:
    """DOL-RM as printed: every decision, and θ after every task."""
    N = np.zeros(tasks.offered.shape)
    R_bar, C_bar = np.zeros_like(N), np.zeros_like(N)
    price = price_min
    decisions, prices = [], []
    for t, S in enumerate(tasks.kinds, 1):
        A = np.flatnonzero(tasks.offered[S])
        with np.errstate(divide="ignore"):  # no pulls: infinite width, so the bounds themselves
            width = noise * np.sqrt(math.log(T) / N[S, A])
        r_hat = np.minimum(r_max, R_bar[S, A] + width)  # (2)
        c_check = np.maximum(c_min, C_bar[S, A] - width)  # (3)
        best = np.argmax(r_hat - price * c_check)  # (7)
        a = A[best]
        eta = 1.0 / (c_min * (t + 1)) if anytime else 1.0 / (c_min * np.sqrt(T))
        price = np.clip(price + eta * (r_hat[best] - price * c_check[best]), price_min, price_max)  # (8)
        R_bar[S, a] = (R_bar[S, a] * N[S, a] + tasks.reward[t - 1, a]) / (N[S, a] + 1)  # (5)
        C_bar[S, a] = (C_bar[S, a] * N[S, a] + tasks.cost[t - 1, a]) / (N[S, a] + 1)  # (6)
        N[S, a] += 1  # (4)
        decisions.append(int(a))
        prices.append(float(price))
    return decisions, prices


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


def least_gamma_evidence_on_a_grid(delta: float, nu: float, kappa: float) -> float:
    """The least evidence for any share y of the cost saved, the reward making up the rest, by looking everywhere.

    The reward takes ½ ln(1 + (δ−y)²/ν), the saving κ(ln(1−y) + 1/(1−y) − 1).
    """

    def gamma(y: Floats) -> Floats:
        exact = np.log1p(-y) + y / (1.0 - y)
        series = 0.5 * y * y + 2.0 / 3.0 * y**3  # near 0 the exact form is a difference of equal numbers
        return kappa * np.where(y < 1e-4, series, exact)

    def evidence(y: Floats) -> Floats:
        value: Floats = 0.5 * np.log1p((delta - y) ** 2 / nu) + gamma(y)
        return value

    top = min(delta, 1.0 - 1e-12)
    share = np.concatenate([np.geomspace(1e-16, 0.5, 4000), 1.0 - np.geomspace(0.5, 1e-12, 4000)])
    points = np.unique(np.concatenate([[0.0], top * share, [top]]))
    for _ in range(4):  # look closer around the best point
        place = int(np.argmin(evidence(points)))
        low, high = points[max(0, place - 1)], points[min(len(points) - 1, place + 1)]
        points = np.unique(np.concatenate([points, np.linspace(low, high, 200)]))
    return float(evidence(points).min())


def least_gaussian_evidence_on_a_grid(behind: float, ratio: float, cost: float, covariance: Floats) -> float:
    """½ ln(1 + s' Σ⁻¹ s), least over the shifts s of reward and cost that make up `behind` and leave a cost ≥ 0."""
    inverse, size = np.linalg.inv(covariance), behind / ratio
    saved = np.concatenate([-np.geomspace(1e-6, 1e6, 20_000) * size, np.geomspace(1e-6, 1e6, 20_000) * size, [0.0]])
    saved = np.append(saved[saved <= max(cost, 0.0)], max(cost, 0.0))
    for _ in range(3):  # look closer around the best point
        shift = np.stack([behind - ratio * saved, -saved])
        squares = np.einsum("in,ij,jn->n", shift, inverse, shift)
        best = saved[np.argmin(squares)]
        closer = best + np.linspace(-1e-3, 1e-3, 4001) * abs(best)
        saved = np.append(closer[closer <= max(cost, 0.0)], best)
    return 0.5 * float(np.log1p(squares.min()))


def drive(
    policy: Any, problem: Problem, tasks: int, seed: int = 3, units: tuple[float, float] = (1.0, 1.0), extra: int = 0
) -> tuple[Any, Floats]:
    """The state and the pulls of every (kind, option) after some tasks, interpreted.

    Rewards and costs are multiplied by `units`; `extra` kinds are announced that never arrive.
    """
    world, (rows, columns) = synthetic(problem).world, problem.reward.shape
    kinds, latents = world.draw(np.random.default_rng(seed), tasks)
    offers = [np.flatnonzero(row).astype(np.uint32) for row in problem.offered]
    state, pulls, pending = policy.init(rows + extra, columns), np.zeros((rows, columns)), np.zeros(columns, np.uint32)
    for place, kind in enumerate(kinds):
        made = policy.choose(state, kind, offers[kind], pending, Rng(1, place + 1))
        assert math.isfinite(made.reward_estimate)
        assert math.isfinite(made.cost_estimate)
        reward, cost = world.feedback(kind, made.option, latents[place])
        policy.learn(state, kind, made, reward * units[0], cost * units[1], Rng(1, place + 1))
        pulls[kind, made.option] += 1
    return state, pulls


def same_for_all(pairs: dict[str, tuple[float, float]], kinds: int = 2, **settings: Any) -> Problem:
    """Every kind offers the same."""
    return Problem.of({f"s{kind}": (1.0 / kinds, pairs) for kind in range(kinds)}, **settings)


def least_shared_evidence_on_a_grid(
    behind: float, unit: float, reward_variance: float, log_cost_variance: float
) -> float:
    """The least g²/(2 Var R) + l²/(2 Var ln C) with which a higher reward g, and a cost of e⁻ˡ times θC = `unit`, make
    up for d = `behind`: g + θC (1 − e⁻ˡ) = d, by looking everywhere."""
    near = np.geomspace(1e-12, 0.5, 10_001)
    share = np.concatenate([[0.0], near, 1.0 - near[::-1], [1.0 - 1e-15]]) * min(1.0, behind / unit)
    for _ in range(3):
        gained, saved = behind - unit * share, np.log1p(-share)
        evidence = 0.5 * gained**2 / reward_variance + 0.5 * saved**2 / log_cost_variance
        best = int(np.argmin(evidence))
        share = np.linspace(share[max(best - 1, 0)], share[min(best + 1, len(share) - 1)], 20_001)
    return float(evidence.min())
