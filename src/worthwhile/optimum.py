"""The best there is when everything is known: θ*, its policy, its rivals, and the bounds of θ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from worthwhile.errors import BadProblem
from worthwhile.goals.frontier import Choice, Means, plan_of
from worthwhile.goals.goal import Goal, goal_of
from worthwhile.goals.suggestions import Suggestion, suggestions_of, suggestions_text
from worthwhile.problem import Problem
from worthwhile.state import Floats


@dataclass(frozen=True)
class Optimum:
    """What is best under a goal, by default the ratio: what to take for every kind, beside the obvious rivals."""

    ratio: float  # θ*, unless a floor or a budget is in its way
    best: Choice  # the option that each kind takes, or takes most often
    reward: float  # per task, under the optimum
    cost: float
    gaps: Floats  # (kinds, options): pseudo-regret of one task against θ*, in units of reward
    greedy: Choice
    greedy_ratio: float
    cheapest_ratio: float
    single: int | None  # the best option that every kind with a choice offers
    single_ratio: float | None
    degenerate: bool
    goal: Goal
    best_ratio: float  # what the ratio would be without floor and budget
    shares: Floats  # (kinds, options): how often a kind takes an option, two in turn where a limit lies between them
    prices: Floats  # (kinds,): options are judged by reward − price·cost; infinite: by cost alone
    means: Means  # as floors and budgets count them
    infeasible: tuple[str, ...] = ()  # what of the goal cannot be kept, in words; empty if all of it can

    @property
    def suggestions(self) -> list[Suggestion]:
        """Floors and costs per task that make more of a degenerate problem, with what they lead to."""
        return suggestions_of(self.means) if self.degenerate and not self.goal.constrained else []

    @property
    def advice(self) -> list[str]:
        """What to change in a problem or goal that does not mean what its owner wants."""
        words = [f"infeasible: {missed}" for missed in self.infeasible]
        if self.degenerate and not self.goal.constrained:
            words.append(
                "degenerate: the cheapest option is best for every kind, so there is nothing to learn but prices. "
                "Add the cost that a task has whatever option it takes (set-up, review, a worker's idle time), or set "
                f"another goal: a floor or a budget.{suggestions_text(self.suggestions)}"
            )
        if self.goal.goal == "ratio" and self.ratio <= 0.0:
            name = "the ratio" if self.goal.constrained else "θ*"
            words.append(
                f"{name} = {self.ratio:g} is not positive: dear options then look good, because they dilute a loss. "
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


def solve(
    problem: Problem,
    goal: str | Goal | None = None,
    floor: float | Mapping[str, float] | None = None,
    budget: float | None = None,
) -> Optimum:
    """The best there is under a goal: by default the problem's own, which is the best ratio unless it says otherwise.

    >>> from worthwhile.problem import two_kinds
    >>> best = solve(two_kinds(0.8))
    >>> round(best.ratio, 6), round(best.greedy_ratio, 6)
    (2.6, 2.5)
    >>> best = solve(two_kinds(0.75), floor=2.625)
    >>> best.cost, best.prices.tolist(), best.shares.tolist()
    (1.0625, [2.0, 2.0], [[1.0, 0.0], [0.25, 0.75]])
    """
    if not isinstance(problem, Problem):
        raise BadProblem(f"{problem!r} is no Problem; read_problem(name or file) gives one")
    nothing_said = goal is None and floor is None and budget is None
    wanted = problem.goal if nothing_said else goal_of(goal, floor, budget)
    best = solve_ratio(problem)
    return under(best, wanted) if wanted.constrained else best


def solve_ratio(problem: Problem) -> Optimum:
    """θ* by Dinkelbach's iteration: it solves Σ p·max(r − θc) = 0 in a handful of steps, c per completed task."""
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
    degenerate = bool(completing.sum(axis=1).max() > 1 and cheapest_ratio >= ratio * (1.0 - 1e-12))
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
        degenerate=degenerate,
        goal=Goal(),
        best_ratio=ratio,
        shares=(np.arange(len(problem.options)) == best[:, None]).astype(float),
        prices=np.full(len(problem.kinds), ratio),
        means=means_of(problem),
    )


def under(best: Optimum, goal: Goal) -> Optimum:
    """What is best of the same problem with a floor or a budget to keep."""
    plan = plan_of(best.means, goal)
    return replace(
        best,
        goal=goal,
        best=np.argmax(plan.shares, axis=1),
        best_ratio=plan_of(best.means, Goal()).ratio,
        ratio=plan.ratio,
        reward=plan.reward,
        cost=plan.cost,
        shares=plan.shares,
        prices=plan.prices,
        infeasible=plan.infeasible,
    )


def means_of(problem: Problem) -> Means:
    """Per task, as floors and budgets count them: one that fails brings 0; what always fails is not on offer."""
    reward, cost = (np.where(problem.completing, means, np.nan) for means in problem.means_per_attempt)
    return Means(problem.kinds, problem.options, problem.arrival, reward, cost)


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
