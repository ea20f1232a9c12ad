"""Replay of recorded tables: columns task_type, item_id, option, reward, cost.

Each task is a recorded item of its kind. Where every item has one row for every option of its kind (fully crossed), the
choice is answered with that very item's row; elsewhere with a random row of the (kind, option).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from worthwhile.errors import BadTable, did_you_mean
from worthwhile.problem import Noise, Problem
from worthwhile.simulation.environments.base import Environment, cumulative, draw_kinds
from worthwhile.state import Floats, Indices
from worthwhile.tables import Table, read_table


class ReplayWorld(NamedTuple):
    """Recorded rewards (NaN where a task has failed) and costs, sorted by kind, option and item."""

    shares: Floats
    first: npt.NDArray[np.int64]  # (kinds, options): first row of the cell
    rows: npt.NDArray[np.int64]  # (kinds, options): rows of the cell
    reward: Floats
    cost: Floats

    def draw(self, generator: np.random.Generator, count: int) -> tuple[Indices, Floats]:
        return draw_kinds(self.shares, generator, count), generator.random((count, 1))

    def feedback(self, kind: int, option: int, latent: Floats) -> tuple[float, float]:
        row = self.first[kind, option] + int(latent[0] * self.rows[kind, option])
        return self.reward[row], self.cost[row]


def replay(
    table: Table | str | Path,
    added_cost: float = 0.0,
    arrival: Mapping[str, float] | None = None,
    reward_unit: str = "",
    cost_unit: str = "",
) -> Environment:
    """An environment that answers from a recorded table; kinds arrive as their share of items, or as told."""
    if not isinstance(table, Table):
        table = read_table(table)
    size = len(table.kinds), len(table.options)
    cell = table.kind * size[1] + table.option
    order = np.lexsort((table.item, cell))
    rows = np.bincount(cell, minlength=size[0] * size[1]).reshape(size)
    first = (np.cumsum(rows) - rows.ravel()).reshape(size)
    cost = check_added(table, added_cost)
    failed = np.isnan(table.reward)
    succeeded = np.bincount(cell[~failed], minlength=size[0] * size[1]).reshape(size)
    completed = np.where(succeeded > 0, succeeded, rows)  # what failures cost is paid by the tasks that succeed
    with np.errstate(invalid="ignore"):
        reward = np.where(failed, 0.0, table.reward)
        mean_reward = np.bincount(cell, reward, size[0] * size[1]).reshape(size) / completed
        mean_cost = np.bincount(cell, cost, size[0] * size[1]).reshape(size) / completed
    names, silent = (table.name, table.kinds, table.options), Noise(sd=0.0)  # the noise is in the rows
    problem = Problem(*names, shares(table, arrival), mean_reward, mean_cost, silent, silent)
    problem = replace(problem, reward_unit=reward_unit, cost_unit=cost_unit)
    world = ReplayWorld(cumulative(problem.arrival), first, rows, table.reward[order], cost[order])
    return Environment(problem, world)


def check_added(table: Table, added_cost: float) -> Floats:
    """The costs with the added cost per task; still positive."""
    if not math.isfinite(added_cost):
        raise BadTable(f"{table.name}: added cost {added_cost:g}; it must be a finite number")
    if float(table.cost.min()) + added_cost <= 0.0:
        raise BadTable(
            f"{table.name}: added cost {added_cost:g} leaves costs at or below 0; every cost must be above 0"
        )
    return table.cost + added_cost


def shares(table: Table, arrival: Mapping[str, float] | None) -> Floats:
    """Arrival of every kind: as given, or its share of the distinct items."""
    if arrival is not None:
        for kind in arrival:
            if kind not in table.kinds:
                raise BadTable(f"{table.name}: no kind {kind!r}; {did_you_mean(kind, table.kinds)}")
        return np.array([float(arrival.get(kind, 0.0)) for kind in table.kinds])
    span = int(table.item.max()) + 1
    items = np.unique(table.kind * span + table.item) // span
    return np.bincount(items, minlength=len(table.kinds)) / len(items)
