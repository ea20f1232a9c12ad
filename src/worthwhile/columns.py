"""The columns of a recorded table under our names, whatever a file calls them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any

from worthwhile.errors import BadParameter, BadTable

NEEDED = ("task_type", "option", "reward", "cost")
OPTIONAL = ("item_id", "overhead", "observed", "option_json", "outcome", "failed", "reason", "attempt", "features")
FEATURE = "feature."  # what follows is the name of a feature, of which this is the column
ALSO_CALLED = {"kind": "task_type", "key": "item_id"}  # as everything but recorded tables calls them
TRUE, FALSE = ("true", "1", "1.0", "yes"), ("false", "0", "0.0", "no", "")
Columns = dict[str, Any]


def named(columns: Columns, names: Mapping[str, str] | None, where: str) -> Columns:
    """The columns under our names; `names` has what the file calls some of them, and "" for one to be left out."""
    theirs = {ALSO_CALLED.get(name, name): column for name, column in checked(names or {}).items()}
    for name, column in theirs.items():
        if column and column not in columns:
            raise BadTable(f"{where}: no column {column!r}, which is to be {name}; it has {listed(columns)}")
    taken = {*theirs, *theirs.values()}
    ours = {name: values for name, values in columns.items() if name not in taken}
    for also, name in ALSO_CALLED.items():
        if also in ours and name not in taken | ours.keys():
            ours[name] = ours.pop(also)
    return ours | {name: columns[column] for name, column in theirs.items() if column}


def checked(names: Mapping[str, str]) -> Mapping[str, str]:
    """Refuse names that we do not know, and whatever is named twice."""
    if not isinstance(names, Mapping) or not all(isinstance(text, str) for pair in names.items() for text in pair):
        raise BadParameter(f"columns = {names!r}; give names of columns, like {{'reward': 'score', 'cost': 'usd'}}")
    known = (*NEEDED, *OPTIONAL, *ALSO_CALLED)
    owners: dict[str, str] = {}
    for name, column in names.items():
        if name not in known and not name.startswith(FEATURE):
            raise BadParameter(f"a table has no {name!r}, so it cannot be in column {column!r}; it has {listed(known)}")
        if ALSO_CALLED.get(name) in names:
            raise BadParameter(f"{name} and {ALSO_CALLED[name]} are the same; name the column once")
        if column and owners.setdefault(column, name) != name:
            raise BadParameter(f"{owners[column]} and {name} cannot both be column {column!r}; give each its own")
    return names


def check_present(columns: Columns, where: str) -> None:
    """Refuse a table without what every table has."""
    missing = [name for name in NEEDED if name not in columns]
    if missing:
        said = f"{where}: no column {listed(missing)}; a table has {listed(NEEDED)} (found: {listed(columns)})"
        python = f"in Python columns={{{missing[0]!r}: 'NAME'}}, beside history= history_columns"
        raise BadTable(f"{said}. If it has another name, say which: --map {missing[0]}=NAME; {python}")
    task_wide = [name for name in ("observed", "attempt") if name in columns]
    if task_wide and "item_id" not in columns:
        raise BadTable(f"{where}: a column {task_wide[0]}, but no item_id that says of which task; add it")


def with_outcomes(columns: Columns, where: str, first_row: int) -> Columns:
    """The columns with an `outcome` in place of `failed`; what has failed has no reward, whatever the log says."""
    if "failed" not in columns or "reward" not in columns:  # which is complained about later
        return columns
    if "outcome" in columns:
        raise BadTable(f"{where}: a column failed and a column outcome; one of them is enough, leave the other out")
    failed = truths(columns["failed"], f"{where}, column failed", first_row)
    rewards = [None if fails else reward for fails, reward in zip(failed, columns["reward"], strict=True)]
    outcomes = ["failed" if fails else "result" for fails in failed]
    return {name: values for name, values in columns.items() if name != "failed"} | {
        "reward": rewards, "outcome": outcomes,
    }  # fmt: skip


def truths(column: Iterable[Any], where: str, first_row: int) -> list[bool]:
    """A column of yes and no."""
    texts = ["" if value is None else str(value).strip().lower() for value in column]
    for row, text in enumerate(texts, first_row):
        if text not in TRUE + FALSE:
            raise BadTable(f"{where}, row {row}: {text!r} is neither true nor false; write one of them")
    return [text in TRUE for text in texts]


def check_filled(columns: Columns, where: str, first_row: int) -> None:
    """Refuse rows that do not say which task or option they are about."""
    for name in ("task_type", "item_id", "option"):
        for row, value in enumerate(columns.get(name, ()), first_row):
            # Parquet has NaN in place of a missing number
            if value is None or (isinstance(value, Real) and math.isnan(value)):
                raise BadTable(f"{where}, column {name}, row {row}: no value; give one, or leave the row out")


def listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"
