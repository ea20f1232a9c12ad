"""The frontier: the most reward that every mean cost can buy, by mixing options; and how far a goal goes along it.

Of every kind only the options on the upper hull of its (cost, reward) points can be best, at some price. From one of
them to the next dearer one is a *step*, whose slope is the price at which both are worth the same. The steps of all
kinds, steepest first, lead from the cheapest choices to those of most reward: that is the frontier.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from worthwhile.goals.goal import Goal
from worthwhile.state import Floats

Choice = npt.NDArray[np.int64]  # (kinds,) an option for every kind
MOST_NAMED = 10  # floors that cannot be reached
ROUNDING = 1e-12  # relative: sums of the same numbers in another order differ by less


class Means(NamedTuple):
    """Kinds and their shares of the tasks, and what every option brings and costs; NaN where it is not on offer."""

    kinds: tuple[str, ...]
    options: tuple[str, ...]
    arrival: Floats  # (kinds,)
    reward: Floats  # (kinds, options)
    cost: Floats  # (kinds, options), above 0


class Step(NamedTuple):
    """From an option of a kind to the next dearer one that is best at some price."""

    price: float  # at which both are worth the same: reward gained per cost added
    kind: int
    cheaper: int
    dearer: int
    reward: float  # gained, per task of the kind; below 0 where only a loss is diluted
    cost: float  # added, above 0


class Frontier(NamedTuple):
    """Where the frontier bends, cheapest first: mean cost and reward per task, and the price of the way there."""

    cost: Floats
    reward: Floats
    price: Floats  # infinite at the start, then falling


@dataclass(frozen=True)
class Plan:
    """What is best under a goal: how often every kind takes which option, at which price, and what that brings."""

    shares: Floats  # (kinds, options), each row adds up to 1
    prices: Floats  # (kinds,): options are judged by reward − price·cost; infinite: by cost alone
    reward: float  # per task
    cost: float
    infeasible: tuple[str, ...]  # what cannot be kept, and by how much; empty if all is

    @property
    def ratio(self) -> float:
        return self.reward / self.cost


def plan_of(means: Means, goal: Goal) -> Plan:
    """The best mix of options under a goal: exactly that of the linear programme over kinds and options.

    First every floor is reached at the least cost; then the goal goes on from there, within the budget. So a floor
    comes first where not everything can be kept.
    """
    goal.check_kinds(means.kinds)
    walk = Walk.from_cheapest(means)
    floor_prices = reach_floors(walk, goal)
    infeasible = [*missed_floors(walk, goal), *missed_budget(walk, goal)]
    price = pursue(walk, goal)
    prices = np.where(np.isnan(walk.stopped), np.minimum(price, floor_prices), walk.stopped)
    return Plan(walk.shares(), prices, walk.reward, walk.cost, tuple(infeasible))


def frontier_of(means: Means) -> Frontier:
    """The mean cost and the best mean reward that it can buy, from the cheapest choices to those of most reward."""
    walk = Walk.from_cheapest(means)
    points = [(walk.cost, walk.reward, math.inf)]
    for index, step in enumerate(walk.steps):
        if step.price > 0.0 and means.arrival[step.kind] > 0.0:
            walk.take(index, 1.0)
            points.append((walk.cost, walk.reward, step.price))
    return Frontier(*np.array(points).T)


def cheapest_of(means: Means) -> Choice:
    """The cheapest option of every kind, the best of them where several are."""
    cost = np.where(np.isnan(means.cost), np.inf, means.cost)
    cheapest = cost == cost.min(axis=1, keepdims=True)
    best: Choice = np.argmax(np.where(cheapest, means.reward, -np.inf), axis=1)
    return best


def steps_of(means: Means, kind: int, option: int) -> Iterator[Step]:
    """The way of one kind along the hull of its options, from its cheapest one."""
    reward, cost, price = means.reward[kind], means.cost[kind], math.inf
    while (dearer := np.flatnonzero(cost > cost[option])).size:
        slopes = (reward[dearer] - reward[option]) / (cost[dearer] - cost[option])
        steepest = dearer[slopes == slopes.max()]
        next_option = int(steepest[np.argmin(cost[steepest])])
        price = min(price, float(slopes.max()))  # of options in line, rounding may make the later slope the steeper
        gained, added = float(reward[next_option] - reward[option]), float(cost[next_option] - cost[option])
        yield Step(price, kind, option, next_option, gained, added)
        option = next_option


@dataclass
class Walk:
    """Choices on their way along the frontier."""

    means: Means
    start: Choice
    steps: list[Step]  # steepest first
    taken: Floats  # (steps,) the share of every step that has been taken
    rewards: Floats  # (kinds,) per task of the kind
    costs: Floats
    lowest: Floats  # (kinds,) the price of its last step down, 0 where there was none
    stopped: Floats  # (kinds,) the price at which a floor stopped a kind on its way down; NaN where none did
    rounding: Floats  # (kinds,) what a reward of the kind may be off by

    @classmethod
    def from_cheapest(cls, means: Means) -> Walk:
        """Every kind takes its cheapest option."""
        start, rows = cheapest_of(means), np.arange(len(means.kinds))
        ways = (step for kind, option in enumerate(start.tolist()) for step in steps_of(means, kind, option))
        steps = sorted(ways, key=lambda step: -step.price)  # stable: each kind's own way stays in order
        rewards, costs = means.reward[rows, start], means.cost[rows, start]
        rounding = ROUNDING * np.nanmax(np.abs(means.reward), axis=1)
        lowest, stopped = np.zeros(len(rows)), np.full(len(rows), np.nan)
        return cls(means, start, steps, np.zeros(len(steps)), rewards, costs, lowest, stopped, rounding)

    @property
    def reward(self) -> float:
        """Per task."""
        return float(self.means.arrival @ self.rewards)

    @property
    def cost(self) -> float:
        return float(self.means.arrival @ self.costs)

    def take(self, index: int, share: float) -> None:
        """Go so much of a step."""
        step = self.steps[index]
        self.taken[index] += share
        self.rewards[step.kind] += share * step.reward
        self.costs[step.kind] += share * step.cost
        if share > 0.0 and step.price < 0.0:
            self.lowest[step.kind] = step.price

    def shares(self) -> Floats:
        """How often every kind takes each option by now."""
        shares = np.zeros(self.means.reward.shape)
        shares[np.arange(len(self.start)), self.start] = 1.0
        for step, share in zip(self.steps, self.taken.tolist(), strict=True):
            shares[step.kind, step.cheaper] -= share
            shares[step.kind, step.dearer] += share
        return np.where(shares < ROUNDING, 0.0, np.where(shares > 1.0 - ROUNDING, 1.0, shares))


def reach_floors(walk: Walk, goal: Goal) -> Floats:
    """Go up to every floor at the least cost; the price of each kind there, infinite where it has no floor."""
    prices = np.full(len(walk.means.kinds), math.inf)
    if goal.total_floor is not None:
        prices[:] = reach(walk, range(len(walk.steps)), walk.means.arrival, goal.total_floor)
    if goal.floors:
        ways: list[list[int]] = [[] for _ in walk.means.kinds]
        for index, step in enumerate(walk.steps):
            ways[step.kind].append(index)
        for kind, floor in floors_of(walk.means, goal):
            prices[kind] = reach(walk, ways[kind], weights_of(walk.means, kind), floor)
    return prices


def reach(walk: Walk, way: Iterable[int], weights: Floats, floor: float) -> float:
    """Go on until the weighted mean reward is at a floor; the price there, infinite if at once and 0 if never."""
    price, rounding = math.inf, float(weights @ walk.rounding)
    for index in way:
        step, missing = walk.steps[index], floor - float(weights @ walk.rewards)
        if missing <= rounding or step.price <= 0.0:
            break
        gained = float(weights[step.kind]) * step.reward
        walk.take(index, min(1.0, missing / gained) if gained > 0.0 else 1.0)
        price = step.price
    return price if floor - float(weights @ walk.rewards) <= rounding else 0.0


def pursue(walk: Walk, goal: Goal) -> float:
    """Go on while that helps what the goal aims at, within the budget; the price there."""
    budget = math.inf if goal.budget is None else goal.budget
    if goal.goal == "cost" or walk.cost > budget * (1.0 + ROUNDING):
        return math.inf
    for index, step in enumerate(walk.steps):
        least = worth_taking(walk, goal)
        if step.price <= least:
            return least
        left = 1.0 - float(walk.taken[index])
        affordable = share_of(budget - walk.cost, float(walk.means.arrival[step.kind]) * step.cost)
        bearable = bearable_share(walk, goal, step)
        walk.take(index, min(left, affordable, bearable))
        if affordable < left:
            return step.price
        if bearable < left:
            together = stopped_kinds(goal, step)
            walk.stopped[together] = walk.lowest[together].min()
    return worth_taking(walk, goal)


def worth_taking(walk: Walk, goal: Goal) -> float:
    """The price that a step must be above to bring the goal nearer: the ratio so far, or nothing."""
    return walk.reward / walk.cost if goal.goal == "ratio" else 0.0


def share_of(room: float, whole: float) -> float:
    """The share of something for which there is room; no limit if that is all of it, but for rounding."""
    return math.inf if whole == 0.0 or room >= whole * (1.0 - ROUNDING) else max(0.0, room) / whole


def bearable_share(walk: Walk, goal: Goal, step: Step) -> float:
    """The share of a step down that no floor forbids."""
    if step.reward >= 0.0:
        return math.inf
    floor, weights = goal.total_floor, walk.means.arrival
    if goal.floors:
        floor, weights = goal.floors.get(walk.means.kinds[step.kind]), weights_of(walk.means, step.kind)
    if floor is None:
        return math.inf
    return share_of(float(weights @ walk.rewards) - floor, -step.reward * float(weights[step.kind]))


def stopped_kinds(goal: Goal, step: Step) -> slice:
    """Those that share a floor with the kind of a step."""
    return slice(step.kind, step.kind + 1) if goal.floors else slice(None)


def floors_of(means: Means, goal: Goal) -> Iterator[tuple[int, float]]:
    """The kinds that have a floor of their own."""
    floors = goal.floors
    for kind, name in enumerate(means.kinds):
        if name in floors:
            yield kind, floors[name]


def weights_of(means: Means, kind: int) -> Floats:
    """Weights that look at one kind alone."""
    weights = np.zeros(len(means.kinds))
    weights[kind] = 1.0
    return weights


def missed_floors(walk: Walk, goal: Goal) -> Iterator[str]:
    """Floors that the best options do not reach."""
    means = walk.means
    if goal.total_floor is not None and goal.total_floor - walk.reward > means.arrival @ walk.rounding:
        yield (
            f"floor {goal.total_floor:g} cannot be reached: the best option of every kind brings "
            f"{walk.reward:.5g} per task. Lower the floor, or offer better options."
        )
    missed = [pair for pair in floors_of(means, goal) if pair[1] - walk.rewards[pair[0]] > walk.rounding[pair[0]]]
    taken = np.argmax(walk.shares(), axis=1)
    for kind, floor in missed[:MOST_NAMED]:
        yield (
            f"floor {floor:g} of kind {means.kinds[kind]!r} cannot be reached: its best option, "
            f"{means.options[taken[kind]]!r}, brings {walk.rewards[kind]:.5g}. "
            "Lower the floor, or offer a better option."
        )
    if len(missed) > MOST_NAMED:
        yield f"the floors of {len(missed) - MOST_NAMED} more kinds cannot be reached; those kinds have price 0."


def missed_budget(walk: Walk, goal: Goal) -> Iterator[str]:
    """A budget that is exceeded before there is anything to choose."""
    if goal.budget is None or walk.cost <= goal.budget * (1.0 + ROUNDING):
        return
    if goal.floor is None:
        takes = "the cheapest options take"
        remedy = "Raise the budget, or offer cheaper options."
    else:
        takes = "keeping the floor, which comes first, takes"
        remedy = "Raise the budget, or lower the floor."
    yield f"budget {goal.budget:g} cannot be kept: {takes} {walk.cost:.5g} per task. {remedy}"
