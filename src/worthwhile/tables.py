"""Recorded tables (task_type, item_id, option, reward, cost), and files that are written whole or not at all."""

from __future__ import annotations

import math
import platform
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from worthwhile.columns import check_filled, check_present, named, with_outcomes
from worthwhile.errors import BadParameter, BadTable, MissingExtra
from worthwhile.state import LARGEST, Floats

COLUMNS = ("task_type", "item_id", "option", "reward", "cost")
OUTCOMES = (
    "result",
    "failed",
    "lost",
)  # in the column `outcome`, which not every table has; the last two need no reward


class Table(NamedTuple):
    """A recorded table with names turned into numbers."""

    name: str
    kinds: tuple[str, ...]
    options: tuple[str, ...]
    kind: npt.NDArray[np.int64]
    option: npt.NDArray[np.int64]
    item: npt.NDArray[np.int64]
    reward: Floats  # NaN where a task has failed
    cost: Floats
    crossed: bool
    items: tuple[str, ...] = ()  # the names that `item` numbers
    features: npt.NDArray[Any] | None = None  # of every row's task: what a column `features` holds, a JSON object


def read_table(path: str | Path, names: Mapping[str, str] | None = None) -> Table:
    """A table from a .parquet, .csv or .jsonl file; what `export` wrote has the overhead in a column of its own.

    `names` has what the file calls its columns, like {"reward": "score"}.
    """
    path = Path(path)
    columns, first_row = read_columns(path)
    columns = with_outcomes(named(columns, names, str(path)), str(path), first_row)
    table = as_table(path.stem, columns, str(path), first_row)
    if "overhead" in columns:
        overhead = numbers(columns["overhead"], f"{path}, column overhead", first_row)
        table = table._replace(cost=table.cost + overhead)
    return without(table, replaced_losses(columns))


def replaced_losses(columns: Mapping[str, Any]) -> npt.NDArray[np.bool_]:
    """Which rows of a table that `export` wrote say that a task was lost, before a later row says what came of it."""
    replaced = np.zeros(len(columns["reward"]), bool)
    if {"outcome", "attempt", "observed"} <= columns.keys():
        seen = set()
        for row in reversed(range(len(replaced))):
            attempt = str(columns["item_id"][row]), int(columns["attempt"][row]), str(columns["observed"][row])
            replaced[row] = columns["outcome"][row] == OUTCOMES[-1] and attempt in seen
            seen.add(attempt)
    return replaced


def without(table: Table, rows: npt.NDArray[np.bool_]) -> Table:
    """The table without these rows."""
    if not rows.any():
        return table
    kept = {name: getattr(table, name)[~rows] for name in ("kind", "option", "item", "reward", "cost")}
    crossed = is_crossed(kept["kind"], kept["option"], kept["item"])
    features = None if table.features is None else table.features[~rows]
    return table._replace(**kept, crossed=crossed, features=features)


def scorable(table: Table) -> tuple[Table, list[str]]:
    """The table without kinds in which nothing ever succeeded, and which kinds these are."""
    good = np.zeros(len(table.kinds), bool)
    good[table.kind[~np.isnan(table.reward)]] = True
    if good.all():
        return table, []
    if not good.any():
        raise BadTable(f"{table.name}: every task has failed; there is nothing to score before one succeeds")
    kept = without(table, ~good[table.kind])
    names = np.array(table.kinds, dtype=object)
    numbered = np.cumsum(good)[kept.kind] - 1
    return kept._replace(kinds=tuple(names[good]), kind=numbered), names[~good].tolist()


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
    except (OSError, UnicodeDecodeError) as error:
        raise BadTable(f"{path}: {error}") from None
    except ValueError as error:
        raise BadTable(f"{path}, row {len(rows) + 1}: {error}") from None
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
    except (pyarrow.ArrowException, OSError) as error:
        raise BadTable(f"{path}: {str(error).splitlines()[0]}") from None
    return {name: table[name].to_numpy(zero_copy_only=False) for name in table.column_names}


def read_csv(path: Path) -> dict[str, Any]:
    """The columns of a CSV file, as text."""
    import csv

    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file)
            header = next(reader, [])
            rows = list(reader)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadTable(f"{path}: {error}") from None
    while rows and not rows[-1]:
        rows.pop()  # empty lines at the end; anywhere else they would make row numbers wrong
    header = [name.strip() for name in header]
    for name in header:
        if header.count(name) > 1:
            raise BadTable(f"{path}: two columns are called {name!r}; each name may stand once")
    for line, row in enumerate(rows, 2):
        if len(row) != len(header):
            raise BadTable(f"{path}, row {line}: {len(row)} values for {len(header)} columns")
    return {name: [row[column].strip() for row in rows] for column, name in enumerate(header)}


def as_table(name: str, columns: Mapping[str, Any], where: str = "the table", first_row: int = 1) -> Table:
    """A table from its columns, checked; messages count rows from first_row."""
    check_present(dict(columns), where)
    if len(columns["reward"]) == 0:
        raise BadTable(f"{where}: no rows")
    check_filled(dict(columns), where, first_row)
    failed = [outcome in OUTCOMES[1:] for outcome in columns.get("outcome", ())]
    reward = numbers(columns["reward"], f"{where}, column reward", first_row, np.array(failed or False))
    cost = numbers(columns["cost"], f"{where}, column cost", first_row)
    for column, values in (("reward", reward), ("cost", cost)):
        too_large = np.abs(values) > LARGEST
        if too_large.any():
            row = int(np.argmax(too_large))
            where_row = f"{where}, row {row + first_row}"
            raise BadTable(f"{where_row}: {column} = {values[row]:g}; at most {LARGEST:g}: use another unit")
    if not (cost > 0.0).all():
        row = int(np.argmin(cost > 0.0))
        raise BadTable(f"{where}, row {row + first_row}: cost = {cost[row]:g}; every cost must be above 0")
    kinds, kind = labels(columns["task_type"])
    options, option = labels(columns["option"])
    items, item = labels(columns.get("item_id", range(len(kind))))  # without one, every row is a task of its own
    crossed, features = is_crossed(kind, option, item), columns.get("features")
    features = None if features is None else np.array([*features, None], object)[:-1]  # never an array of arrays
    return Table(name, kinds, options, kind, option, item, reward, cost, crossed, items, features)


def numbers(column: Any, where: str, first_row: int, optional: Any = False) -> Floats:
    """A column as finite numbers; NaN where one is optional and there is none."""
    try:
        values = np.array(column, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.array([as_number(value) for value in column])
    sound = np.isfinite(values) | (optional & np.isnan(values))
    if not sound.all():
        row = int(np.argmin(sound))
        raise BadTable(
            f"{where}, row {row + first_row}: {column[row]!r} is not a finite number; give one, or leave the row out"
        )
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


def ratio_so_far(path: Path) -> Floats:
    """ΣR/ΣC after every task of a table that `Scheduler.export` wrote; observations of other options are no tasks."""
    columns = read_csv(path)
    own = np.array([observed == "False" for observed in columns["observed"]], dtype=bool)
    own &= ~replaced_losses(columns)
    values = (np.array([value or "0" for value in columns[name]], float)[own] for name in ("reward", "cost"))
    reward, cost = map(np.cumsum, values)
    ratio: Floats = reward / cost
    return ratio


def provenance(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Where a file comes from: version, command, platform and the settings that matter, seed included."""
    from worthwhile import __version__

    return {
        "worthwhile": __version__,
        "command": " ".join(sys.argv),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "platform": platform.platform(),
        **settings,
    }


def replace_file(path: Path, write: Any) -> None:
    """Write beside the file and move into place: a reader or a full disk never leaves half a file."""
    new = path.with_name(f".{path.name}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(new)
        new.replace(path)
    except OSError as error:
        raise BadParameter(f"cannot write {path}: {error}") from None
    finally:
        with suppress(OSError):
            new.unlink(missing_ok=True)
