"""The figure of a goal: reward against cost, the frontier, and where the best ratio, a floor and a budget lie on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from worthwhile.formatting import printable, titled
from worthwhile.goals.frontier import Plan, frontier_of, plan_of
from worthwhile.goals.goal import Goal, goal_of, quantity
from worthwhile.optimum import Optimum
from worthwhile.plots import BLUE, FAINT, GREEN, GRID, INK, ORANGE, RED, SIZE, THICK, THIN, save
from worthwhile.problem import Problem
from worthwhile.tables import provenance

MOST_SINGLE = 8  # options that are named in the figure
TANGENT = 0.22  # of the figure's width, to either side
THIS = "this goal"
FRONTIER = "the frontier: the most reward for every cost"
DASHED, DOTTED = (0, (5, 3)), (0, (1, 1.6))


class Mark(NamedTuple):
    """A point of the figure, and what is said of it in the legend."""

    text: str
    plan: Plan
    look: dict[str, Any]


def plot_frontier(problem: Problem, best: Optimum, path: str | Path) -> Path:
    """Save what the means allow and what a goal makes of it, as .png or .svg."""
    return save(lambda: draw_frontier(problem, best), path, problem.name, provenance({"goal": best.goal.to_json()}))


def draw_frontier(problem: Problem, best: Optimum) -> Any:
    """The frontier with everything below it, single options, and the points and lines of the goal."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=SIZE)
    axes = figure.add_axes((0.09, 0.11, 0.88, 0.80))
    scale(axes, best)
    bends = frontier_of(best.means)
    axes.fill_between(bends.cost, bends.reward, axes.get_ylim()[0], color=BLUE, alpha=0.05, linewidth=0)
    axes.plot(bends.cost, bends.reward, "o-", color=BLUE, linewidth=1.5 * THICK, markersize=4.5, label=FRONTIER)
    draw_single_options(axes, best)
    draw_best_ratio(axes, problem, plan_of(best.means, Goal()))
    draw_limits(axes, problem, best.goal)
    for mark in marks_of(problem, best):
        draw_mark(axes, mark)
    dress(axes, problem, best)
    return figure


def scale(axes: Any, best: Optimum) -> None:
    """Axes that hold the frontier, the limits and the answer; and the origin, unless it is far from them."""
    bends, goal, ratio = frontier_of(best.means), best.goal, plan_of(best.means, Goal())
    costs = [*bends.cost, best.cost, ratio.cost, *([goal.budget] if goal.budget else [])]
    rewards = [*bends.reward, best.reward, ratio.reward, *([] if goal.total_floor is None else [goal.total_floor])]
    if min(costs) < 0.5 * max(costs):
        costs, rewards = [0.0, *costs], [0.0, *rewards]
    wide, high = max(costs) - min(costs) or max(costs), max(rewards) - min(rewards) or abs(max(rewards)) or 1.0
    axes.set_xlim(min(costs) - 0.08 * wide * (min(costs) > 0.0), max(costs) + 0.08 * wide)
    axes.set_ylim(min(rewards) - 0.7 * high * (min(rewards) != 0.0), max(rewards) + 0.1 * high)  # room for the legend


def draw_single_options(axes: Any, best: Optimum) -> None:
    """What each option would bring and cost if every kind took it; those that not every kind has are left out."""
    means = best.means
    everywhere = np.flatnonzero(np.isfinite(means.reward).all(axis=0))[:MOST_SINGLE]
    for option in everywhere.tolist():
        cost, reward = (float(means.arrival @ values[:, option]) for values in (means.cost, means.reward))
        axes.plot(cost, reward, "o", markersize=5.5, color="white", markeredgecolor=FAINT, zorder=3)
        left, right = axes.get_xlim()
        far = cost > left + 0.8 * (right - left)
        settings = {"textcoords": "offset points", "ha": "right" if far else "left", "fontsize": 9, "color": FAINT}
        name = f"always {printable(means.options[option])}"
        axes.annotate(name, (cost, reward), (-2 if far else 7, -14 if far else -11), **settings)


def draw_best_ratio(axes: Any, problem: Problem, plan: Plan) -> None:
    """The ratio is the slope of the way from nothing at all; no point of the frontier lies above that line."""
    ratio = quantity(float(f"{plan.ratio:.3g}"), problem.ratio_unit)
    words = f"best ratio {ratio}: {earned(plan)}"
    axes.plot(plan.cost, plan.reward, linestyle="none", color=INK, marker="D", markersize=7, zorder=4, label=words)
    axes.axline((0.0, 0.0), (plan.cost, plan.reward), color=INK, linewidth=THIN, linestyle=DOTTED, zorder=1.5)


def draw_limits(axes: Any, problem: Problem, goal: Goal) -> None:
    """A floor is a line across, a budget one upwards."""
    words = {"textcoords": "offset points", "fontsize": 9.5, "ha": "right"}
    if (floor := goal.total_floor) is not None:
        axes.axhline(floor, color=ORANGE, linewidth=THIN, linestyle=DASHED, zorder=2)
        end = axes.get_xlim()[1], floor
        axes.annotate(f"floor {quantity(floor, problem.reward_unit)}", end, (-4, -12), color=ORANGE, **words)
    if goal.budget is not None:
        axes.axvline(goal.budget, color=GREEN, linewidth=THIN, linestyle=DASHED, zorder=2)
        middle = goal.budget, np.mean(axes.get_ylim())
        text = f"budget {quantity(goal.budget, problem.cost_unit)}"
        axes.annotate(text, middle, (-4, 0), color=GREEN, rotation=90, va="center", **words)


def marks_of(problem: Problem, best: Optimum) -> Iterator[Mark]:
    """Where floor and budget meet the frontier, and the answer to the goal."""
    means, goal = best.means, best.goal
    if goal.total_floor is not None:
        look = {"marker": "s", "markersize": 8, "color": ORANGE}
        plan = plan_of(means, goal_of(floor=goal.total_floor))
        yield Mark("out of reach, most reward" if plan.infeasible else "least cost above the floor", plan, look)
    if goal.budget is not None:
        look = {"marker": "^", "markersize": 9, "color": GREEN}
        plan = plan_of(means, goal_of(budget=goal.budget))
        yield Mark("out of reach, least cost" if plan.infeasible else "most reward within the budget", plan, look)
    if goal.constrained:
        plan = Plan(best.shares, best.prices, best.reward, best.cost, best.infeasible)
        look = {"marker": "o", "markersize": 15, "color": RED, "markerfacecolor": "none", "markeredgewidth": 1.8}
        yield Mark(THIS, plan, look)


def draw_mark(axes: Any, mark: Mark) -> None:
    """A point, its price as the slope of a line where it lies on the frontier, and its numbers in the legend."""
    plan, price = mark.plan, float(mark.plan.prices[0])
    one_price = bool((plan.prices == price).all()) and np.isfinite(price)
    words = f"{mark.text}: {earned(plan)}" + (f", price {price:.3g}" if one_price else "")
    axes.plot(plan.cost, plan.reward, linestyle="none", zorder=5, label=words, **mark.look)
    if one_price and price > 0.0 and mark.text != THIS:
        reach = tangent_reach(axes, price)
        line = (plan.cost - reach, plan.cost + reach), (plan.reward - price * reach, plan.reward + price * reach)
        axes.plot(*line, color=mark.look["color"], linewidth=THIN, zorder=2.5)


def earned(plan: Plan) -> str:
    return f"{plan.reward:.3g} for {plan.cost:.3g}"


def tangent_reach(axes: Any, price: float) -> float:
    """How far a line of this slope goes to either side, so that all such lines look equally long."""
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    return float(TANGENT * (right - left) / np.hypot(1.0, price * (right - left) / (high - low)))


def dress(axes: Any, problem: Problem, best: Optimum) -> None:
    """Titles, units, grid and legend; below the frontier, to the right, there is always room."""
    axes.set_xlabel(titled("mean cost per task", problem.cost_unit))
    axes.set_ylabel(titled("mean reward per task", problem.reward_unit))
    axes.set_title(printable(problem.name), loc="left", fontweight="bold", color=INK)
    words = best.goal.words(problem.reward_unit, problem.cost_unit)
    axes.set_title(words, loc="right", fontsize="small", color=FAINT)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(True, color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    legend = axes.legend(loc="lower right", fontsize=9.5, labelspacing=0.75, framealpha=0.9, edgecolor="none")
    legend.set_zorder(6)
