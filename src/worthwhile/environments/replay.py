"""Replay of recorded tables: columns task_type, item_id, option, reward, cost.

Each task is a recorded item of its kind. Where every item has one row for every option of its kind (fully crossed), the
choice is answered with that very item's row; elsewhere with a random row of the (kind, option).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from worthwhile.environments.base import Environment, cumulative, draw_kinds
from worthwhile.errors import BadTable, MissingExtra, did_you_mean
from worthwhile.problem import LARGEST, Noise, Problem
from worthwhile.state import Floats, Indices

COLUMNS = ("task_type", "item_id", "option", "reward", "cost")


class ReplayWorld(NamedTuple):
    """Recorded rewards and costs, sorted by kind, option and item."""

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


class Table(NamedTuple):
    """A recorded table with names turned into numbers."""

    name: str
    kinds: tuple[str, ...]
    options: tuple[str, ...]
    kind: npt.NDArray[np.int64]
    option: npt.NDArray[np.int64]
    item: npt.NDArray[np.int64]
    reward: Floats
    cost: Floats
    crossed: bool


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
    with np.errstate(invalid="ignore"):
        mean_reward = np.bincount(cell, table.reward, size[0] * size[1]).reshape(size) / rows
        mean_cost = np.bincount(cell, cost, size[0] * size[1]).reshape(size) / rows
    problem = Problem(
        table.name,
        table.kinds,
        table.options,
        shares(table, arrival),
        mean_reward,
        mean_cost,
        Noise(sd=0.0),
        Noise(sd=0.0),
        reward_unit=reward_unit,
        cost_unit=cost_unit,
    )
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


def read_table(path: str | Path) -> Table:
    """A table from a .parquet, .csv or .jsonl file."""
    path = Path(path)
    columns, first_row = read_columns(path)
    return as_table(path.stem, columns, str(path), first_row)


def read_columns(path: Path) -> tuple[dict[str, Any], int]:
    """The columns of a file, and the number that messages give its first row."""
    if not path.is_file():
        raise BadTable(f"no table at {str(path)!r}")
    if path.suffix == ".parquet":
        return read_parquet(path), 1
    if path.suffix == ".csv":
        return read_csv(path), 2
    if path.suffix == ".jsonl":
        return read_jsonl(path), 1
    raise BadTable(f"{path}: a table ends in .parquet, .csv or .jsonl, not {path.suffix!r}")


def read_jsonl(path: Path) -> dict[str, Any]:
    """The columns of a file with one JSON object per line; those of the first line are the file's."""
    import json

    rows: list[Any] = []
    try:
        with open(path, encoding="utf-8") as file:
            for line, text in enumerate(file, 1):
                rows.append(json.loads(text))
                if not isinstance(rows[-1], dict) or rows[-1].keys() != rows[0].keys():
                    raise BadTable(f"{path}, row {line}: every line is a JSON object with the same columns")
    except (OSError, UnicodeDecodeError) as reason:
        raise BadTable(f"{path}: {reason}") from None
    except ValueError as reason:
        raise BadTable(f"{path}, row {len(rows) + 1}: {reason}") from None
    return {name: [row[name] for row in rows] for name in rows[0]} if rows else {}


def read_parquet(path: Path) -> dict[str, Any]:
    """The columns of a Parquet file."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra(f"reading {path.name}", "tables") from None
    try:
        table = pyarrow.parquet.read_table(path)
    except (pyarrow.ArrowException, OSError) as reason:
        raise BadTable(f"{path}: {str(reason).splitlines()[0]}") from None
    return {name: table[name].to_numpy(zero_copy_only=False) for name in table.column_names}


def read_csv(path: Path) -> dict[str, Any]:
    """The columns of a CSV file, as text."""
    import csv

    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file)
            header = next(reader, [])
            rows = list(reader)
    except (OSError, UnicodeDecodeError, csv.Error) as reason:
        raise BadTable(f"{path}: {reason}") from None
    while rows and not rows[-1]:
        rows.pop()  # empty lines at the end; anywhere else they would make row numbers wrong
    header = [name.strip() for name in header]
    for name in header:
        if header.count(name) > 1:
            raise BadTable(f"{path}: two columns are called {name!r}; each name may stand once")
    for line, row in enumerate(rows, 2):
        if len(row) != len(header):
            raise BadTable(f"{path}, row {line}: {len(row)} values for {len(header)} columns")
    return {name: [row[place].strip() for row in rows] for place, name in enumerate(header)}


def as_table(name: str, columns: Mapping[str, Any], where: str = "the table", first_row: int = 1) -> Table:
    """A table from its columns, checked; messages count rows from first_row."""
    missing = [column for column in COLUMNS if column not in columns]
    if missing:
        found = ", ".join(columns) or "none"
        raise BadTable(f"{where}: no column {', '.join(missing)}; a table has {', '.join(COLUMNS)} (found: {found})")
    if len(columns["reward"]) == 0:
        raise BadTable(f"{where}: no rows")
    reward = numbers(columns["reward"], f"{where}, column reward", first_row)
    cost = numbers(columns["cost"], f"{where}, column cost", first_row)
    for column, values in (("reward", reward), ("cost", cost)):
        if np.abs(values).max() > LARGEST:
            row = int(np.argmax(np.abs(values)))
            where_row = f"{where}, row {row + first_row}"
            raise BadTable(f"{where_row}: {column} = {values[row]:g}; at most {LARGEST:g}: use another unit")
    if not (cost > 0.0).all():
        row = int(np.argmin(cost > 0.0))
        raise BadTable(f"{where}, row {row + first_row}: cost = {cost[row]:g}; every cost must be above 0")
    kinds, kind = labels(columns["task_type"])
    options, option = labels(columns["option"])
    _, item = labels(columns["item_id"])
    return Table(name, kinds, options, kind, option, item, reward, cost, is_crossed(kind, option, item))


def numbers(column: Any, where: str, first_row: int) -> Floats:
    """A column as finite numbers."""
    try:
        values = np.array(column, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.array([as_number(value) for value in column])
    if not np.isfinite(values).all():
        row = int(np.argmin(np.isfinite(values)))
        raise BadTable(f"{where}, row {row + first_row}: {column[row]!r} is not a finite number")
    return values


def as_number(value: Any) -> float:
    """The value as a float, NaN if it is not one."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def labels(column: Any) -> tuple[tuple[str, ...], npt.NDArray[np.int64]]:
    """Distinct values in order (numbers by size), and each row's position among them."""
    text = np.asarray([str(value) for value in column])
    names, position = np.unique(text, return_inverse=True)
    values = [as_number(name) for name in names]
    if not any(math.isnan(value) for value in values):
        order = np.argsort(values, kind="stable")
        names, position = names[order], np.argsort(order)[position]
    return tuple(names.tolist()), position.astype(np.int64)


def is_crossed(kind: npt.NDArray[np.int64], option: npt.NDArray[np.int64], item: npt.NDArray[np.int64]) -> bool:
    """Whether every item has exactly one row for every option of its kind."""
    options, span = int(option.max()) + 1, int(item.max()) + 1
    if len(np.unique((kind * span + item) * options + option)) != len(kind):
        return False
    cells = np.unique(kind * options + option) // options
    items = np.unique(kind * span + item) // span
    return int((np.bincount(cells) * np.bincount(items)).sum()) == len(kind)


def subset(table: Table, keep: Sequence[bool] | npt.NDArray[np.bool_]) -> Table:
    """Only some rows of a table, its names unchanged."""
    rows = np.asarray(keep, dtype=bool)
    kept = [column[rows] for column in (table.kind, table.option, table.item, table.reward, table.cost)]
    kind, option, item, reward, cost = kept
    return Table(
        table.name, table.kinds, table.options, kind, option, item, reward, cost, is_crossed(kind, option, item)
    )
