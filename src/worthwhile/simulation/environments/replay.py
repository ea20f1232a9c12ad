"""Replay of recorded tables: columns task_type, item_id, option, reward, cost.

Each task is a recorded item of its kind. Where every item has one row for every option of its kind (fully crossed), the
choice is answered with that very item's row; elsewhere with a random row of the (kind, option). Rows of tasks that have
failed answer with a failure.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from worthwhile.errors import BadParameter, BadTable, did_you_mean
from worthwhile.problem import Noise, Problem
from worthwhile.simulation.environments.base import Environment, cumulative, draw_kinds
from worthwhile.simulation.environments.item_features import NOT_CROSSED, item_features, items_of
from worthwhile.state import Floats, Indices
from worthwhile.tables import Table, read_table, scorable

log = logging.getLogger(__name__)


class ReplayWorld(NamedTuple):
    """Recorded rewards (NaN where a task has failed) and costs, sorted by kind, option and item."""

    shares: Floats
    first: npt.NDArray[np.int64]  # (kinds, options): first row of the cell
    rows: npt.NDArray[np.int64]  # (kinds, options): rows of the cell
    reward: Floats
    cost: Floats
    items: npt.NDArray[np.int64]  # (kinds,): how many
    known: Floats  # (items, features): of the items of the first kind, then those of the second, …
    first_item: npt.NDArray[np.int64]  # (kinds,)
    one_pass: bool  # every item comes once, in random order; else with replacement

    def draw(self, generator: np.random.Generator, count: int) -> tuple[Indices, Floats]:
        if self.one_pass:
            return draw_once(self.items, generator, count)
        return draw_kinds(self.shares, generator, count), generator.random((count, 1))

    def feedback(self, kind: int, option: int, latent: Floats) -> tuple[float, float]:
        row = self.first[kind, option] + int(latent[0] * self.rows[kind, option])
        return self.reward[row], self.cost[row]

    def features(self, kind: int, latent: Floats) -> Floats:
        return self.known[self.first_item[kind] + int(latent[0] * self.items[kind])]  # type: ignore[no-any-return]


def draw_once(items: npt.NDArray[np.int64], generator: np.random.Generator, count: int) -> tuple[Indices, Floats]:
    """The first of all items in random order: their kinds, and where they stand among those of their kind."""
    kinds = np.repeat(np.arange(len(items)), items)
    place = np.arange(len(kinds)) - np.repeat(np.cumsum(items) - items, items)
    order = generator.permutation(len(kinds))[:count]
    return kinds[order].astype(np.uint32), ((place + 0.5) / items[kinds])[order, None]


def replay(
    table: Table | str | Path,
    added_cost: float = 0.0,
    arrival: Mapping[str, float] | None = None,
    reward_unit: str = "",
    cost_unit: str = "",
    columns: Mapping[str, str] | None = None,
    features: str | Path | None = None,
    one_pass: bool = False,
) -> Environment:
    """An environment that answers from a recorded table; kinds arrive as their share of items, or as told.

    `columns` has what a file calls its columns, like {"reward": "score"}. `features` is a file with the
    features of the items: a column item_id, and one for each feature. With `one_pass`, each item comes once, in random
    order.
    """
    if not isinstance(table, Table):
        table = read_table(table, columns)
    table, left_out = scorable(table)
    if left_out:
        log.warning("%s", left_out_words(table.name, left_out))
    check_arrival(table, left_out, arrival)
    check_one_pass(table, one_pass, arrival)
    cost = check_added(table, added_cost)
    names, silent = (table.name, table.kinds, table.options), Noise(sd=0.0)  # the noise is in the rows
    rows, means = means_of(table, cost)
    failures = (means.failure_rate, means.failure_cost) if np.isnan(table.reward).any() else (None, None)
    values = shares(table, arrival), means.reward, means.cost
    problem = Problem(*names, *values, silent, silent, 0.0, reward_unit, cost_unit, *failures)
    order = np.lexsort((table.item, table.option, table.kind))
    first = (np.cumsum(rows) - rows.ravel()).reshape(rows.shape)
    recorded = cumulative(problem.arrival), first, rows, table.reward[order], cost[order]
    items = items_of(table).per_kind(len(table.kinds))
    world = ReplayWorld(*recorded, items, item_features(table, features), np.cumsum(items) - items, one_pass)
    return Environment(problem, world, int(items.sum()) if one_pass else None)


def left_out_words(name: str, kinds: Sequence[str]) -> str:
    """What to tell of kinds that `scorable` left out."""
    which = f"kind{'s' if len(kinds) > 1 else ''} {', '.join(map(repr, kinds))}"
    return f"{name}: nothing of {which} ever succeeded, so no option can be best there; left out"


class Means(NamedTuple):
    """(kinds, options): what the rows of a cell come to; NaN where there are none."""

    reward: Floats  # of the tasks that succeeded; 0 if none has
    cost: Floats  # of these; if there are none, what a failure costs
    failure_rate: Floats
    failure_cost: Floats  # if nothing has failed, what a success costs


def means_of(table: Table, cost: Floats) -> tuple[npt.NDArray[np.int64], Means]:
    """How many rows every cell has, and their means."""
    size = len(table.kinds), len(table.options)
    cell, failed = table.kind * size[1] + table.option, np.isnan(table.reward)

    def total(which: npt.NDArray[np.bool_], values: Floats | None = None) -> Floats:
        weights = np.ones(which.sum()) if values is None else values[which]
        sums: Floats = np.bincount(cell[which], weights, size[0] * size[1]).astype(np.float64)
        return sums.reshape(size)

    rows, failures, successes = total(np.ones_like(failed)), total(failed), total(~failed)
    with np.errstate(invalid="ignore"):
        reward, rate = total(~failed, table.reward) / successes, failures / rows
        of_success, of_failure = total(~failed, cost) / successes, total(failed, cost) / failures
    reward = np.where(rate == 1.0, 0.0, reward)
    of_success, of_failure = (
        np.where(successes > 0, of_success, of_failure),
        np.where(failures > 0, of_failure, of_success),
    )
    return rows.astype(np.int64), Means(reward, of_success, rate, of_failure)


def check_added(table: Table, added_cost: float) -> Floats:
    """The costs with the added cost per task; still positive."""
    if not math.isfinite(added_cost):
        raise BadTable(f"{table.name}: added cost {added_cost:g}; it must be a finite number")
    if float(table.cost.min()) + added_cost <= 0.0:
        raise BadTable(
            f"{table.name}: added cost {added_cost:g} leaves costs at or below 0; every cost must be above 0"
        )
    return table.cost + added_cost


def check_one_pass(table: Table, one_pass: bool, arrival: Mapping[str, float] | None) -> None:
    """Refuse one pass through items that cannot be told apart, or that are to arrive as told."""
    if one_pass and not table.crossed:
        raise BadTable(f"{table.name}: {NOT_CROSSED}; leave one_pass out, or complete the table")
    if one_pass and arrival is not None:
        raise BadParameter("one_pass and arrival: each item comes once, so kinds arrive as their items do; give one")


def shares(table: Table, arrival: Mapping[str, float] | None) -> Floats:
    """Arrival of every kind: as given, or its share of the distinct items."""
    if arrival is not None:
        return np.array([float(arrival.get(kind, 0.0)) for kind in table.kinds])
    items = items_of(table)
    return items.per_kind(len(table.kinds)) / len(items.item)


def check_arrival(table: Table, left_out: Sequence[str], arrival: Mapping[str, float] | None) -> None:
    """Refuse shares of kinds that are not there."""
    for kind in arrival or ():
        if kind in left_out:
            raise BadTable(
                f"{table.name}: kind {kind!r} has an arrival, but nothing of it ever succeeded; leave it out"
            )
        if kind not in table.kinds:
            raise BadTable(f"{table.name}: no kind {kind!r}; {did_you_mean(kind, table.kinds)}")
