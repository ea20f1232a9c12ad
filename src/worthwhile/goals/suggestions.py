"""Suggestions for who finds that the cheapest option always wins: floors and costs per task, and what each leads to."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from worthwhile.goals.frontier import ROUNDING, Frontier, Means, frontier_of, plan_of
from worthwhile.goals.goal import Goal, goal_of, quantity

LEVELS = (0.5, 0.8, 0.95)  # of the way from the reward of the cheapest options to that of the best
ENOUGH = 0.8  # of that way, for the cost per task


class Suggestion(NamedTuple):
    """A floor, or a cost added to every task whatever its option, and the mean reward and cost that it leads to."""

    floor: float | None
    added_cost: float | None
    reward: float  # per task
    cost: float  # per task, without what was added

    def words(self, reward_unit: str = "", cost_unit: str = "") -> str:
        """As one would say it."""
        what = (
            f"floor {quantity(self.floor, reward_unit)}"
            if self.floor is not None
            else f"{quantity(self.added_cost or 0.0, cost_unit)} added to every task's cost"
        )
        return f"with {what}: {self.reward:.3g} at {quantity(float(f'{self.cost:.3g}'), cost_unit)} per task"


def suggestions_of(means: Means) -> list[Suggestion]:
    """What would lead away from the cheapest options, a little and a lot; nothing if no other brings more.

    Every kind needs an option whose means are known; leave out those that have none.
    """
    frontier = frontier_of(means)
    return [*floors_worth_trying(means, frontier), *added_costs_worth_trying(means, frontier)]


def suggestions_text(suggestions: Sequence[Suggestion]) -> str:
    """All of them as one more sentence, or nothing."""
    return f" Here: {'; '.join(suggestion.words() for suggestion in suggestions)}." if suggestions else ""


def floors_worth_trying(means: Means, frontier: Frontier) -> Iterator[Suggestion]:
    """Round numbers between the reward of the cheapest options and that of the best."""
    low, high = float(frontier.reward[0]), float(frontier.reward[-1])
    if high <= low:
        return
    decimals = 1 - math.floor(math.log10(high - low))
    for floor in dict.fromkeys(round(low + level * (high - low), decimals) for level in LEVELS):
        if low < floor <= high:
            plan = plan_of(means, goal_of(floor=floor))
            yield Suggestion(floor, None, plan.reward, plan.cost)


def added_costs_worth_trying(means: Means, frontier: Frontier) -> Iterator[Suggestion]:
    """The smallest round number that makes the best ratio go most of the way."""
    low, high = float(frontier.reward[0]), float(frontier.reward[-1])
    far = int((frontier.reward >= low + ENOUGH * (high - low)).argmax())
    if far == 0:
        return
    reward, cost, price = float(frontier.reward[far - 1]), float(frontier.cost[far - 1]), float(frontier.price[far])
    turning = reward / price - cost  # from here on, the last bend before is not the best any more
    if turning <= 0.0:
        return
    decimals = 1 - math.floor(math.log10(turning))
    added = round((math.floor(turning * (1.0 + ROUNDING) * 10.0**decimals) + 1) / 10.0**decimals, decimals)
    plan = plan_of(means._replace(cost=means.cost + added), Goal())
    if plan.reward > low:
        yield Suggestion(None, added, plan.reward, plan.cost - added)
