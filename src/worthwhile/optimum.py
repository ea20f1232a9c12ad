"""The best there is when everything is known: θ*, its policy, its rivals, and what the paper's theorem promises."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from worthwhile.errors import BadParameter, BadProblem
from worthwhile.problem import Problem
from worthwhile.state import Floats

Choice = npt.NDArray[np.int64]  # (kinds,) an option for every kind


@dataclass(frozen=True)
class Optimum:
    """θ* and the option it takes for every kind, beside the obvious rivals."""

    ratio: float  # θ*
    best: Choice
    reward: float  # per task, under the optimum
    cost: float
    gaps: Floats  # (kinds, options): pseudo-regret of one task, in units of reward
    greedy: Choice
    greedy_ratio: float
    cheapest_ratio: float
    single: int | None  # the best option that every kind with a choice offers
    single_ratio: float | None
    degenerate: bool

    @property
    def advice(self) -> list[str]:
        """What to change in a problem whose objective does not mean what its owner wants."""
        words = []
        if self.degenerate:
            words.append(
                "degenerate: the cheapest option is best for every kind, so there is nothing to learn but prices. "
                "Add the cost that a task has whatever option it takes (set-up, review, a worker's idle time)."
            )
        if self.ratio <= 0.0:
            words.append(
                f"θ* = {self.ratio:g} is not positive: dear options then look good, because they dilute a loss. "
                "Shift the rewards so that doing nothing is worth 0."
            )
        return words


def value(problem: Problem, choice: Choice) -> tuple[float, float]:
    """Mean reward and cost per completed task when every kind always takes its chosen option."""
    rows = np.arange(len(problem.kinds))
    reward, cost = problem.reward[rows, choice], problem.cost_per_completion[rows, choice]
    return float(problem.arrival @ reward), float(problem.arrival @ cost)


def ratio_of(problem: Problem, choice: Choice) -> float:
    """The long-run reward per cost of a choice."""
    reward, cost = value(problem, choice)
    return reward / cost


def solve(problem: Problem) -> Optimum:
    """θ* by Dinkelbach's iteration: it solves Σ p·max(r − θc) = 0 in a handful of steps, c per completed task.

    >>> from worthwhile.problem import two_kinds
    >>> best = solve(two_kinds(0.8))
    >>> round(best.ratio, 6), round(best.greedy_ratio, 6)
    (2.6, 2.5)
    """
    if not isinstance(problem, Problem):
        raise BadProblem(f"{problem!r} is no Problem; read_problem(name or file) gives one")
    completing = problem.completing
    never = np.where(completing, 0.0, -np.inf)
    reward, cost = (
        np.where(completing, problem.reward, 0.0),
        np.where(completing, problem.cost_per_completion, 1.0),
    )
    cheapest = np.argmin(np.where(completing, cost, np.inf), axis=1)
    best = cheapest
    ratio = ratio_of(problem, best)
    while True:
        better = np.argmax(reward - ratio * cost + never, axis=1)
        higher = ratio_of(problem, better)
        if higher <= ratio:
            break
        best, ratio = better, higher
    top = (reward - ratio * cost + never).max(axis=1, keepdims=True)  # z*
    greedy = np.argmax(reward / cost + never, axis=1)
    single, single_ratio = best_single(problem)
    cheapest_ratio = ratio_of(problem, cheapest)
    mean_reward, mean_cost = value(problem, best)
    return Optimum(
        ratio=ratio,
        best=best,
        reward=mean_reward,
        cost=mean_cost,
        gaps=regret_per_attempt(problem, ratio, top),
        greedy=greedy,
        greedy_ratio=ratio_of(problem, greedy),
        cheapest_ratio=cheapest_ratio,
        single=single,
        single_ratio=single_ratio,
        degenerate=bool(completing.sum(axis=1).max() > 1 and cheapest_ratio >= ratio * (1.0 - 1e-12)),
    )


def regret_per_attempt(problem: Problem, ratio: float, top: Floats) -> Floats:
    """(1 − f)(z* − r + θ*c) + f·θ*·c_f: z* is forgone with every task completed, a failure only costs."""
    rate, failure_cost = problem.failures
    completed = top - (problem.reward - ratio * problem.cost)
    lost = (1.0 - rate) * completed + rate * ratio * failure_cost
    return np.where(problem.offered, np.maximum(lost, 0.0), 0.0)


def best_single(problem: Problem) -> tuple[int | None, float | None]:
    """The best option that every kind with a choice offers, and its value; kinds with one option take that one."""
    completing = problem.completing
    only_one = completing.sum(axis=1) == 1
    values = {
        option: ratio_of(problem, np.where(only_one, np.argmax(completing, axis=1), option))
        for option in range(len(problem.options))
        if (completing[:, option] | only_one).all()
    }
    if not values or only_one.all():
        return None, None
    best = max(values, key=values.__getitem__)
    return best, values[best]


def loss(best_ratio: Any, ratio: Any) -> Any:
    """The share of the best ratio that is lost, 1 − ratio/best_ratio where rewards are positive; comparable anywhere.

    >>> round(loss(2.6, 2.5), 4)
    0.0385
    """
    return (best_ratio - ratio) / abs(best_ratio)


def gap(best_ratio: float, rewards: Floats, costs: Floats) -> Floats:
    """The paper's Gap(T) = |θ* − E ΣR / E ΣC|, from sums of several runs (first axis)."""
    difference: Floats = best_ratio - rewards.mean(axis=0) / costs.mean(axis=0)
    return np.abs(difference)


def regret(best_ratio: float, rewards: Floats, costs: Floats, tasks: Floats) -> Floats:
    """The paper's R(T) = T·Gap(T)."""
    return tasks * gap(best_ratio, rewards, costs)


class Bounds(NamedTuple):
    """The smallest and largest mean reward and cost, and the interval that θ lives in."""

    reward_min: float
    reward_max: float
    cost_min: float
    cost_max: float
    price_min: float
    price_max: float


def bounds_of(problem: Problem) -> Bounds:
    """r_min … c_max of all that is on offer; θ_min = r_min/c_max, θ_max = r_max/c_min where rewards are positive."""
    rewards, costs = (means[problem.offered] for means in problem.means_per_attempt)
    r_min, r_max, c_min, c_max = (float(x) for x in (rewards.min(), rewards.max(), costs.min(), costs.max()))
    price_min = r_min / (c_max if r_min >= 0.0 else c_min)
    price_max = r_max / (c_min if r_max >= 0.0 else c_max)
    return Bounds(r_min, r_max, c_min, c_max, price_min, price_max)


def drift_constant(problem: Problem) -> float:
    """b ≥ ½E(r̂ − θč)², of Lemma 4."""
    r_min, r_max, c_min, c_max, price_min, price_max = bounds_of(problem)
    return 0.5 * max(r_max - price_min * c_min, price_max * c_max - r_min) ** 2


@dataclass(frozen=True)
class TheoremBound:
    """The paper's theorem with corrected constants, piece by piece; docs/theory.md derives it."""

    learning_error: float  # Lemma 1
    ratio_error: float  # Σ E V_t, Lemmas 4 and 5
    robbins_monro_gap: float  # Lemma 2
    gap: float
    regret: float


def theorem_bound(problem: Problem, horizon: int) -> TheoremBound:
    """An upper bound on Gap(T) and R(T) of DOL-RM with step 1/(c_min √T), for noise with σ ≤ ½."""
    if horizon < 2:
        raise BadParameter(f"horizon = {horizon}; the bound needs at least 2 tasks")
    r_min, _, c_min, c_max, price_min, price_max = bounds_of(problem)
    if r_min < 0.0:
        raise BadParameter(f"a mean reward of {r_min:g}; the proof needs rewards of 0 or more (θ ≥ 0): shift them")
    pairs, root = int(problem.offered.sum()), math.sqrt(horizon)
    width = 4.0 * math.sqrt(pairs * horizon * math.log(horizon))  # B ≥ Σ(r̂−r), Σ(c−č)
    weight = 1.0 + price_max
    learning_error = weight * width / (horizon * c_min)
    drift = drift_constant(problem)
    span = price_max - price_min
    ratio_error = root * (span**2 / 4.0 + drift / (2.0 * c_min**2)) + span * weight * width / (2.0 * c_min)
    robbins_monro_gap = max(
        learning_error, (c_max - c_min) / (horizon * c_min) * math.sqrt(2.0 * horizon * ratio_error)
    )
    total = learning_error + robbins_monro_gap
    return TheoremBound(learning_error, ratio_error, robbins_monro_gap, total, horizon * total)
