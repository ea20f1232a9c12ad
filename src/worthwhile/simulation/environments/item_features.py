"""Features of the items of a recorded table: from a file with a row for each, or from a column of JSON objects.

Only of a table in which every item has a row for every option: elsewhere a task is answered with a random row of its
kind and option, and nobody can say which item it is.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from worthwhile.columns import check_filled, listed, named
from worthwhile.errors import BadTable
from worthwhile.policies.features import MISSING, Feature, feature_number
from worthwhile.state import LARGEST, Floats
from worthwhile.tables import Table, read_columns

log = logging.getLogger(__name__)

MOST_FEATURES = 256
NOT_CROSSED = (
    "not every item has exactly one row for every option of its kind, so a task is answered with a random row of its "
    "kind and option, and nobody can say which item it is"
)


class Items(NamedTuple):
    """The items of a table: those of the first kind, then those of the second, …"""

    kind: npt.NDArray[np.int64]
    item: npt.NDArray[np.int64]

    def per_kind(self, kinds: int) -> npt.NDArray[np.int64]:
        """How many there are of each kind."""
        return np.bincount(self.kind, minlength=kinds).astype(np.int64)


def items_of(table: Table) -> Items:
    """Each once; the same name under two kinds is two items."""
    span = int(table.item.max()) + 1
    return Items(*np.divmod(np.unique(table.kind * span + table.item), span))


def item_features(table: Table, path: str | Path | None) -> Floats:
    """(items, features): from the file, if there is one, else from the table's own column, if it has one."""
    if path is not None and not table.crossed:
        raise BadTable(f"{table.name}: {NOT_CROSSED}; leave the features out, or complete the table")
    if path is not None:
        return from_file(Path(path), table)
    if table.features is not None and not table.crossed:
        log.warning("%s: its features are left out; %s", table.name, NOT_CROSSED)
    elif table.features is not None:
        return from_column(table)
    return np.zeros((len(items_of(table).item), 0))


def from_file(path: Path, table: Table) -> Floats:
    """A row for every item, by its item_id, and by its task_type if there is one; all other columns are features."""
    columns, first_row = read_columns(path)
    columns, where = named(columns, None, str(path)), str(path)
    if "item_id" not in columns:
        raise BadTable(f"{where}: no column item_id, which says whose features they are (found: {listed(columns)})")
    check_filled(columns, where, first_row)
    keys = [name for name in ("task_type", "item_id") if name in columns]
    row_of = rows_by_key([*zip(*(map(str, columns.pop(name)) for name in keys), strict=True)], where, first_row)
    check_number(len(columns), where)
    numbers = [
        column_numbers(texts_read(values) if path.suffix == ".csv" else values, f"{where}, column {name}", first_row)
        for name, values in columns.items()
    ]
    return of_items(table, np.stack(numbers, axis=1), row_of, where, len(keys) == 2)


def rows_by_key(keys: Sequence[Hashable], where: str, first_row: int) -> dict[Any, int]:
    """Which row is about which item; no two may be about the same."""
    row_of: dict[Any, int] = {}
    for row, key in enumerate(keys):
        if row_of.setdefault(key, row) != row:
            again = f"{where}, row {row + first_row}: item {key[-1]!r} is already in row {row_of[key] + first_row}"  # type: ignore[index]
            raise BadTable(f"{again}; every item has one row")
    return row_of


def of_items(table: Table, numbers: Floats, row_of: Mapping[Any, int], where: str, by_kind: bool) -> Floats:
    """The rows of the table's items, in their order; those without one have all features missing, and are counted."""
    items = items_of(table)
    names = ((table.kinds[kind], table.items[item]) for kind, item in zip(*items, strict=True))
    rows = np.array([row_of.get(name if by_kind else name[1:], -1) for name in names])
    absent = int((rows < 0).sum())
    if absent == len(rows):
        raise BadTable(f"{where}: no item of {table.name} is in it; its item_id must be that of the table")
    if absent:
        log.warning("%s: no row for %d of %d items; their features are missing", where, absent, len(rows))
    return np.where(rows[:, None] < 0, MISSING, numbers[rows])


def check_number(count: int, where: str) -> None:
    """Refuse none, and too many."""
    if not 1 <= count <= MOST_FEATURES:
        raise BadTable(f"{where}: {count} features; there must be at least one, and at most {MOST_FEATURES}")


def texts_read(texts: Sequence[str]) -> list[Feature]:
    """A column of a CSV file: numbers or true and false if all are, else texts; an empty one is missing."""
    filled = [text for text in texts if text]
    if all(text.lower() in ("true", "false") for text in filled):
        return [text.lower() == "true" if text else None for text in texts]
    try:
        return [float(text) if text else None for text in texts]
    except ValueError:
        return [text or None for text in texts]


def column_numbers(values: Any, where: str, first_row: int) -> Floats:
    """A feature of every item as policies see it."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf" and not (np.abs(values) > LARGEST).any():
        return values.astype(np.float64) + 0.0
    return np.array([number_of(value, f"{where}, row {row}") for row, value in enumerate(values, first_row)])


def number_of(value: Any, where: str) -> float:
    """One feature as policies see it: NaN is missing, like None."""
    plain = value.item() if isinstance(value, np.generic) else value
    if plain is not None and not isinstance(plain, bool | int | float | str):
        raise BadTable(f"{where}: {value!r} is neither a number nor true, false or a text; turn it into one of them")
    number = feature_number(plain)
    if not isinstance(plain, str) and not math.isnan(number) and abs(number) > LARGEST:
        raise BadTable(f"{where}: {number:g}; a feature is at most {LARGEST:g}: use another unit, or leave it empty")
    return number


def from_column(table: Table) -> Floats:
    """What the rows say of their tasks; all rows of a task must say the same."""
    assert table.features is not None
    said: dict[tuple[int, int], tuple[int, dict[str, Any]]] = {}
    for row, value in enumerate(table.features):
        key, told = (int(table.kind[row]), int(table.item[row])), features_said(value, f"{table.name}, row {row + 1}")
        first, before = said.setdefault(key, (row, told))
        if told != before:
            differ = f"{table.name}: rows {first + 1} and {row + 1} are about one task, {table.items[key[1]]!r}"
            raise BadTable(f"{differ}, but have other features; a task has one set of them")
    names = dict.fromkeys(name for _, told in said.values() for name in told)
    if names:
        check_number(len(names), f"{table.name}, column features")
    rows = [said[int(kind), int(item)][1] for kind, item in zip(*items_of(table), strict=True)]
    where = f"{table.name}, column features"
    numbers = [[number_of(told.get(name), f"{where}, {name!r}") for name in names] for told in rows]
    return np.array(numbers).reshape(len(rows), len(names))


def features_said(value: Any, where: str) -> dict[str, Any]:
    """A JSON object, or nothing."""
    if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
        return {}
    try:
        told = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        told = None
    if not isinstance(told, dict):
        raise BadTable(f'{where}: features = {value!r}; they are a JSON object, like {{"size": 12}}')
    return {name: each for name, each in told.items() if each is not None}
