"""The log as a table: written to a file that `worthwhile replay` reads, and taken in from recorded history."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from worthwhile.errors import BadFeedback, BadParameter, BadTable, BadTask, Error, MissingExtra
from worthwhile.live.batch import Batch
from worthwhile.live.fold import fault
from worthwhile.live.replica import Replica
from worthwhile.live.stores.base import LOST, NO_POLICY, OWN, REPLACES, RESTORED, RESULT, LogRow, TaskRow
from worthwhile.live.validation import attempt_number, check_text, feedback, not_negative, option_text, reason_text
from worthwhile.tables import OUTCOMES, as_table, read_columns, replace_file

FORMATS = (".parquet", ".csv", ".jsonl")
TYPES = {
    "number": "int64", "task_type": "string", "item_id": "string", "option": "string", "reward": "float64",
    "cost": "float64", "overhead": "float64", "observed": "bool", "option_json": "string", "outcome": "string",
    "reason": "string", "attempt": "int64",
}  # fmt: skip
Line = dict[str, Any]
MOST_UNTOLD = 1000  # attempts in a row, of one task
UNTOLD = {"option": -1, "cost": None, "overhead": 0.0, "reason": None, "outcome": RESULT, "report": None}


class Recorded(NamedTuple):
    """A row of history from elsewhere; the key says which task it belongs to."""

    key: str
    kind: str
    option: str
    reward: float | None  # None for a failure that is worth no number
    cost: float
    overhead: float
    observed: bool
    outcome: str = OUTCOMES[RESULT]
    reason: str = ""
    attempt: int = 0  # at the task


def recorded(
    key: str,
    kind: str,
    option: Any,
    reward: float | None,
    cost: float,
    overhead: float = 0.0,
    observed: bool = False,
    outcome: str = OUTCOMES[RESULT],
    reason: str = "",
    attempt: int = 0,
) -> Recorded:
    """A row of history, checked."""
    option, kind, key = option_text(option), check_text("kind", kind), check_text("key", key)
    if outcome not in OUTCOMES or (observed and outcome != OUTCOMES[RESULT]):
        raise BadFeedback(
            f"outcome = {outcome!r}; it must be one of {', '.join(OUTCOMES)}, and of another option result"
        )
    if reward is not None or outcome == OUTCOMES[RESULT]:
        reward = feedback("reward", reward)
    cost, overhead = feedback("cost", cost), not_negative("overhead", overhead)
    why, which = reason_text(reason) or "", attempt_number(attempt)
    return Recorded(key, kind, option, reward, cost, overhead, observed, outcome, why, which)


def line_of(entry: LogRow, replica: Replica) -> Line:
    """An entry of the log as a row of the table; the cost is without the overhead."""
    option, text = replica.option(entry.option), replica.options.texts[entry.option]
    return {
        "number": entry.number,
        "task_type": replica.kinds.texts[entry.kind],
        "item_id": str(entry.task),
        "option": option if isinstance(option, str) else text,
        "reward": entry.reward,
        "cost": entry.cost,
        "overhead": entry.overhead,
        "observed": entry.observed > OWN,
        "option_json": text,
        "outcome": OUTCOMES[entry.outcome],
        "reason": entry.reason or "",
        "attempt": attempt_of(entry),
    }


def attempt_of(entry: LogRow) -> int:
    """Which attempt at its task an entry tells of; 0 is the first."""
    return max(0, (REPLACES if entry.observed <= REPLACES else OWN) - entry.observed)


def table_at(path: str | Path) -> Path:
    """Where a table is to be written, if it has a format that we write."""
    path = Path(path)
    if path.suffix not in FORMATS:
        raise BadParameter(f"{path}: a table ends in {', '.join(FORMATS)}")
    return path


def lines(batch: Batch, entries: Sequence[LogRow], until: int) -> list[Line]:
    """Sound entries of the log as rows of the table, but for losses that one of the first `until` entries replaces."""
    replica = batch.replica
    kinds, options = len(replica.kinds.texts), len(replica.options.texts)
    told = [entry for entry in entries if entry.outcome != RESTORED and not fault(entry, kinds, options)]
    lost = [entry.task for entry in told if entry.outcome == LOST]
    outcomes = batch.tx.outcomes(replica.id, lost) if lost else []
    replaced = {
        (late.task, attempt_of(late)) for late in outcomes if late.observed <= REPLACES and late.number <= until
    }
    return [
        line_of(entry, replica)
        for entry in told
        if entry.outcome != LOST or (entry.task, attempt_of(entry)) not in replaced
    ]


def take_in(batch: Batch, records: Sequence[Recorded]) -> int:
    """History from elsewhere, what is there already left out; how many rows were new."""
    replica, before = batch.replica, len(batch.entries)
    batch.keep_keyed(batch.tx.keyed(replica.id, list({record.key for record in records})))
    check(batch, records)
    batch.announce([record.kind for record in records], [record.option for record in records])
    for record in records:
        kind, option = replica.name("kind", record.kind), replica.name("option", record.option)
        row = batch.by_key(record.key) or batch.add(task_of(record, kind, option, batch))
        if not record.observed:
            take_outcome(batch, row, record, option)
        elif record.reward is not None and option not in batch.observations(row.task):
            batch.log_observation(row, option, record.reward, record.cost)
    return len(batch.entries) - before


def take_outcome(batch: Batch, row: TaskRow, record: Recorded, option: int) -> None:
    """What came of an attempt elsewhere, unless it is known already; rows may come in any order."""
    if record.attempt > row.attempt:
        row = go_on_to(batch, row, record.attempt)
    outcome, latest = OUTCOMES.index(record.outcome), record.attempt == row.attempt
    told = row if latest else row_at(row, record.attempt)
    if told.report is not None and (told.outcome != LOST or outcome == LOST):
        return
    # until now it was perhaps known by observations only
    told = told._replace(option=option, overhead=record.overhead, cancelled=0)
    number = batch.log_outcome(told, record.reward, record.cost, outcome, record.reason or None)
    values = (None, None) if outcome == LOST else (record.reward, record.cost)
    told = told._replace(reward=values[0], cost=values[1], report=number, outcome=outcome)
    batch.update(told if latest else with_earlier(row, batch.next_attempt(told)))


def go_on_to(batch: Batch, row: TaskRow, attempt: int) -> TaskRow:
    """The task at an attempt later than all that are known; of those in between nobody has told."""
    if row.report is not None:
        row = batch.next_attempt(row)
    if attempt - row.attempt > MOST_UNTOLD:
        raise BadFeedback(f"attempt = {attempt} of a task of which {row.attempt} are known; give those in between")
    return row._replace(attempts=json.dumps(earlier_of(row) + [UNTOLD] * (attempt - row.attempt), ensure_ascii=False))


def row_at(row: TaskRow, attempt: int) -> TaskRow:
    """The task as it was at an earlier attempt."""
    earlier = earlier_of(row)
    then, before = earlier[attempt], json.dumps(earlier[:attempt], ensure_ascii=False)
    return row._replace(report=then["report"], outcome=then["outcome"], attempts=before)


def with_earlier(row: TaskRow, told: TaskRow) -> TaskRow:
    """The task with the latest of the attempts that `told` has in place of its own of that number."""
    earlier, known = earlier_of(row), earlier_of(told)
    earlier[len(known) - 1] = known[-1]
    return row._replace(attempts=json.dumps(earlier, ensure_ascii=False))


def earlier_of(row: TaskRow) -> list[dict[str, Any]]:
    """Its earlier attempts."""
    earlier: list[dict[str, Any]] = json.loads(row.attempts or "[]")
    return earlier


def check(batch: Batch, records: Sequence[Recorded]) -> None:
    """Refuse records under the key of a task that was decided here, or of a task of another kind."""
    kinds: dict[str, str] = {}
    for record in records:
        key, row = record.key, batch.by_key(record.key)
        if row is not None and row.policy != NO_POLICY:
            raise BadTask(f"key {key!r} belongs to task {row.task}, which was decided here; use other keys")
        kind = kinds.setdefault(key, record.kind if row is None else batch.replica.kinds.texts[row.kind])
        if kind != record.kind:
            raise BadTask(f"key {key!r} is of a task of kind {kind!r}, now of kind {record.kind!r}; use other keys")


def task_of(record: Recorded, kind: int, option: int, batch: Batch) -> TaskRow:
    """A task that was decided elsewhere; it never counts as running."""
    now, task = batch.header.now, batch.header.tasks + len(batch.new) + 1
    return TaskRow.running(
        task=task, kind=kind, option=option, options=str(option), pending="0", reward_estimate=0.0, cost_estimate=0.0,
        price=None, seen=batch.replica.fold.position, policy=NO_POLICY, key=record.key, decided=now, lease_end=now,
        overhead=record.overhead,
    )._replace(cancelled=1)  # fmt: skip


def write_table(path: Path, portions: Iterable[Sequence[Line]]) -> int:
    """A file of the format that its name says; whole or not at all. Returns the number of rows."""
    rows = 0

    def counted() -> Iterator[Sequence[Line]]:
        nonlocal rows
        for portion in portions:
            rows += len(portion)
            yield portion

    write = {".parquet": write_parquet, ".csv": write_csv, ".jsonl": write_jsonl}[path.suffix]
    replace_file(path, lambda new: write(new, counted()))
    return rows


def write_csv(path: Path, portions: Iterable[Sequence[Line]]) -> None:
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(TYPES))
        writer.writeheader()
        for portion in portions:
            writer.writerows(portion)


def write_jsonl(path: Path, portions: Iterable[Sequence[Line]]) -> None:
    with open(path, "w", encoding="utf-8") as file:
        for portion in portions:
            file.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in portion)


def write_parquet(path: Path, portions: Iterable[Sequence[Line]]) -> None:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra(f"writing {path.name}", "tables") from None
    schema = pyarrow.schema([(name, getattr(pyarrow, type.replace("bool", "bool_"))()) for name, type in TYPES.items()])
    with pyarrow.parquet.ParquetWriter(path, schema) as writer:
        for portion in portions:
            writer.write_table(pyarrow.Table.from_pylist(list(portion), schema))


def read_history(path: Path) -> Iterator[Recorded]:
    """The rows of a recorded table, or of one that `export` wrote, checked before the first is taken in."""
    columns, first_row = read_columns(path)
    table = as_table(path.stem, columns, str(path), first_row)
    as_json, observed = columns.get("option_json"), columns.get("observed")
    rows = len(table.reward)
    overheads, attempts = columns.get("overhead", ["0"] * rows), columns.get("attempt", ["0"] * rows)
    outcomes, reasons = columns.get("outcome", OUTCOMES[:1] * rows), columns.get("reason", [""] * rows)
    records = []
    for index in range(rows):
        text = str(columns["option"][index])
        # One item of a foreign table has a row for each option: each of these is a task of its own.
        item = str(columns["item_id"][index]) + ("" if observed is not None else f":{text}")
        on_the_side = observed is not None and str(observed[index]).lower() == "true"
        try:
            option = as_option(text) if as_json is None else json.loads(as_json[index])
            kind, reward = str(columns["task_type"][index]), float(table.reward[index])
            values = None if math.isnan(reward) else reward, float(table.cost[index]), float(overheads[index])
            end = str(outcomes[index]), str(reasons[index]), int(attempts[index])
            records.append(recorded(f"{path.stem}:{item}", kind, option, *values, on_the_side, *end))
        except (Error, ValueError) as error:
            raise BadTable(f"{path}, row {index + first_row}: {error}") from None
    yield from records


def as_option(text: str) -> Any:
    """5 is a number, true is true, and what is no JSON scalar is text."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    infinite = isinstance(value, float) and not math.isfinite(value)
    return text if infinite or isinstance(value, list | dict) else value
