"""Min-max normalisation as in the paper's real-world experiment, with a floor below the costs.

The paper does not say over what: the outcomes of each kind, or those of all kinds together. The cheapest training would
cost 0 and any reward per cost would be infinite, so cost = f + (1 − f)·scaled. The bounds come from recorded outcomes:
whoever uses them knows something in advance that a scheduler cannot know.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from worthwhile.errors import BadParameter
from worthwhile.tables import Table


class Scaling(NamedTuple):
    """The bounds of one kind, or of all, and the floor f."""

    least_reward: float
    most_reward: float
    least_cost: float
    most_cost: float
    floor: float

    def reward(self, value: Any) -> Any:
        """0 to 1 between the bounds."""
        return (value - self.least_reward) / (self.most_reward - self.least_reward or 1.0)

    def cost(self, value: Any) -> Any:
        """f to 1 between the bounds, and never below f."""
        scaled = np.maximum(value - self.least_cost, 0.0) / (self.most_cost - self.least_cost or 1.0)
        return self.floor + (1.0 - self.floor) * scaled


def scalings(table: Table, floor: float, together: bool = False) -> dict[str, Scaling]:
    """The bounds of every kind: its own, or those of all kinds together."""
    if not 0.0 < floor < 1.0:
        raise BadParameter(f"floor = {floor:g}; a normalised cost's floor lies between 0 and 1, without them")
    by_kind = {}
    for number, kind in enumerate(table.kinds):
        rows = np.ones(len(table.kind), bool) if together else table.kind == number
        reward, cost = table.reward[rows], table.cost[rows]
        bounds = float(reward.min()), float(reward.max()), float(cost.min()), float(cost.max())
        by_kind[kind] = Scaling(*bounds, floor)
    return by_kind


def normalised(table: Table, floor: float, together: bool = False) -> Table:
    """The table with every reward and cost normalised."""
    reward, cost = table.reward.copy(), table.cost.copy()
    for number, scaling in enumerate(scalings(table, floor, together).values()):
        rows = table.kind == number
        reward[rows], cost[rows] = scaling.reward(table.reward[rows]), scaling.cost(table.cost[rows])
    return table._replace(reward=reward, cost=cost)
