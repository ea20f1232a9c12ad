"""What is best under a goal, as a linear programme over the shares of options, solved by SciPy's HiGHS."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linprog

from worthwhile.goals.frontier import Means
from worthwhile.goals.goal import Goal

INFEASIBLE = 2  # linprog's status
EXACT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


class Programme(NamedTuple):
    """Σ share = 1 for every kind, and rows · shares ≤ limits."""

    reward: Any  # (shares,) per task of all kinds
    cost: Any
    kinds: Any  # (kinds, shares)
    rows: Any
    limits: Any


def programme_of(means: Means, goal: Goal) -> Programme:
    """A share for every option on offer."""
    kind, option = np.nonzero(np.isfinite(means.reward))
    own_reward = means.reward[kind, option]
    reward, cost = means.arrival[kind] * own_reward, means.arrival[kind] * means.cost[kind, option]
    kinds = np.array([kind == row for row in range(len(means.kinds))], float)
    rows, limits = [], []
    if goal.total_floor is not None:
        rows, limits = [-reward], [-goal.total_floor]
    for name, floor in goal.floors.items():
        rows.append(-own_reward * kinds[means.kinds.index(name)])
        limits.append(-floor)
    if goal.budget is not None:
        rows.append(cost)
        limits.append(goal.budget)
    return Programme(reward, cost, kinds, np.array(rows).reshape(-1, len(reward)), np.array(limits))


def best_value(means: Means, goal: Goal) -> float | None:
    """The best ratio, the least cost or the most reward per task; None if the goal cannot be kept."""
    programme = programme_of(means, goal)
    if goal.goal == "ratio":
        return best_ratio(programme)
    objective = programme.cost if goal.goal == "cost" else -programme.reward
    ones = np.ones(len(programme.kinds))
    found = linprog(objective, programme.rows, programme.limits, programme.kinds, ones, options=EXACT)
    return value_of(found, 1.0 if goal.goal == "cost" else -1.0)


def best_ratio(programme: Programme) -> float | None:
    """Charnes and Cooper (1962): shares are divided by the mean cost, whose inverse is one more variable."""
    reward, cost, kinds, rows, limits = programme
    objective = np.append(-reward, 0.0)
    equal = np.vstack([np.column_stack([kinds, -np.ones(len(kinds))]), np.append(cost, 0.0)])
    right = np.append(np.zeros(len(kinds)), 1.0)
    within = np.column_stack([rows, -limits])
    return value_of(linprog(objective, within, np.zeros(len(limits)), equal, right, options=EXACT), -1.0)


def value_of(found: Any, sign: float) -> float | None:
    if found.status == INFEASIBLE:
        return None
    assert found.status == 0, found.message
    return sign * float(found.fun)
