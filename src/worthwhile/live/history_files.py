"""Files of recorded history as rows with keys, so that the same file again adds nothing."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from hashlib import blake2b
from numbers import Real
from pathlib import Path
from typing import Any

from worthwhile.columns import FEATURE, Columns, named, truths, with_outcomes
from worthwhile.errors import BadTable, BadTask, Error
from worthwhile.live.recorded import Recorded, count_new, recorded
from worthwhile.live.stores.base import RESULT
from worthwhile.live.validation import as_option, check_text, quoted
from worthwhile.tables import OUTCOMES, as_table, numbers, read_columns

DIGEST = 12  # bytes: among a billion different rows, two have the same with a chance of 1 in 10¹¹


def read_history(path: Path, names: Mapping[str, str] | None = None) -> list[Recorded]:
    """The rows of a recorded table, or of one that `export` wrote; raises unless all of them are sound.

    `names` has what the file calls its columns, like {"reward": "score"}.
    """
    columns, first_row = read_columns(path)
    columns = with_outcomes(named(columns, names, str(path)), str(path), first_row)
    rows, records = HistoryFile(path, columns, first_row), []
    for index in range(rows.count):
        try:
            records.append(rows.record(index))
        except (Error, ValueError) as error:
            raise BadTable(f"{rows.place(index)}: {error}") from None
    count_new(records, {})  # raises where two rows contradict each other
    return records


class HistoryFile:
    """The columns of a file, checked, and the keys of its rows."""

    def __init__(self, path: Path, columns: Columns, first_row: int) -> None:
        self.path, self.name, self.columns, self.first_row = path, path.stem, columns, first_row
        table = as_table(self.name, columns, str(path), first_row)
        self.reward, self.cost, self.count = table.reward, table.cost, len(table.reward)
        told = columns.get("overhead")
        self.overhead = None if told is None else numbers(told, f"{path}, column overhead", first_row)
        self.attempt = numbers(self.column("attempt", 0), f"{path}, column attempt", first_row)
        self.observed = truths(self.column("observed", False), f"{path}, column observed", first_row)
        self.outcome, self.reason = self.column("outcome", OUTCOMES[RESULT]), self.column("reason", "")
        self.features = self.column("features", None)
        single = [name for name in columns if name.startswith(FEATURE)]
        self.feature = {name.removeprefix(FEATURE): columns[name] for name in single}
        self.options: dict[str, Any] = {}  # by their texts: a file has few, in many rows
        self.alike: Counter[str] = Counter()  # rows so far that say the same

    def column(self, name: str, otherwise: Any) -> Any:
        return self.columns.get(name, [otherwise] * self.count)

    def place(self, index: int) -> str:
        return f"{self.path}, row {index + self.first_row}"

    def record(self, index: int) -> Recorded:
        """A row as it is taken in."""
        reward, attempt = float(self.reward[index]), self.attempt[index]
        record = recorded(
            key=self.name,  # until the rest is known
            kind=str(self.columns["task_type"][index]),
            option=self.option(index),
            reward=None if math.isnan(reward) else reward,
            cost=float(self.cost[index]),
            overhead=None if self.overhead is None else float(self.overhead[index]),
            observed=self.observed[index],
            outcome=str(self.outcome[index]),
            reason=str(self.reason[index] or ""),
            attempt=int(attempt) if attempt == attempt // 1 else attempt,  # which is refused
            features=self.features_at(index),
            place=self.place(index),
        )
        return record._replace(key=check_text("key", f"{self.name}:{self.item(index, record)}"))

    def features_at(self, index: int) -> dict[str, Any]:
        """The features that a row tells, all in one column or each in its own."""
        told = self.features[index]
        if isinstance(told, str) and told:
            told = json.loads(told)
        known = {} if is_missing(told) else told
        if not isinstance(known, Mapping):
            raise BadTask(f'features = {quoted(told)}; give a JSON object, like {{"clauses": 12}}')
        alone = {name: values[index] for name, values in self.feature.items() if not is_missing(values[index])}
        return {**known, **{name: as_option(one) if isinstance(one, str) else one for name, one in alone.items()}}

    def option(self, index: int) -> Any:
        """An option as JSON has it; text that reads as JSON is taken as such."""
        if "option_json" in self.columns:
            return json.loads(self.columns["option_json"][index])
        option = self.columns["option"][index]
        if not isinstance(option, str):
            return option
        if option not in self.options:
            self.options[option] = as_option(option)
        return self.options[option]

    def item(self, index: int, record: Recorded) -> str:
        """What tells a row of this file from all others: its item_id, or else what it says.

        One item of a foreign table has a row for each option: each of these is a task of its own. Rows without an item
        that say the same are counted, so that a file to which more was added has the keys that it had, and new ones.
        """
        if "item_id" in self.columns:
            item = str(self.columns["item_id"][index])
            return item if "observed" in self.columns else f"{item}:{self.columns['option'][index]}"
        said = json.dumps(
            [record.kind, record.option, record.reward, record.cost, record.overhead, record.outcome]
            + ([] if record.features is None else [record.features])
        )
        digest = blake2b(said.encode(), digest_size=DIGEST).hexdigest()
        self.alike[digest] += 1
        return f"{digest}:{self.alike[digest]}"


def is_missing(value: Any) -> bool:
    """Whether a cell says nothing: an empty text, or in Parquet NaN."""
    if isinstance(value, str):
        return value.lower() in ("", "nan")
    return value is None or (isinstance(value, Real) and math.isnan(value))
