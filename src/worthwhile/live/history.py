"""History: the log as a table that `worthwhile replay` reads, and rows from elsewhere, taken into the log once."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from worthwhile.errors import BadFeedback, BadParameter, BadTask, MissingExtra
from worthwhile.live.batch import Batch
from worthwhile.live.fold import fault
from worthwhile.live.recorded import Recorded, Which, check_kind, count_new, which
from worthwhile.live.replica import Replica
from worthwhile.live.stores.base import LOST, MODES, NO_POLICY, OWN, REPLACES, RESTORED, RESULT, LogRow, TaskRow
from worthwhile.tables import OUTCOMES, replace_file

FORMATS = (".parquet", ".csv", ".jsonl")
TYPES = {
    "number": "int64", "task_type": "string", "item_id": "string", "option": "string", "reward": "float64",
    "cost": "float64", "overhead": "float64", "observed": "bool", "option_json": "string", "outcome": "string",
    "reason": "string", "attempt": "int64", "features": "string", "mode": "string", "probability": "float64",
    "own_json": "string",
}  # fmt: skip
Line = dict[str, Any]
MOST_UNTOLD = 1000  # attempts in a row, of one task
UNTOLD = {"option": -1, "cost": None, "overhead": 0.0, "reason": None, "outcome": RESULT, "report": None}


def line_of(entry: LogRow, replica: Replica, row: TaskRow | None) -> Line:
    """An entry of the log as a row of the table; the cost is without the overhead.

    How likely the option was is known of a task's latest attempt, not of what was seen on the side.
    """
    latest = row is not None and row.report == entry.number
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
        "features": entry.features or "",
        "mode": MODES[entry.mode] if entry.policy != NO_POLICY and entry.observed <= OWN else "",
        "probability": row.probability if row is not None and latest else None,
        "own_json": replica.options.texts[row.own] if row is not None and latest and row.own is not None else "",
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
    rows = {row.task: row for row in batch.tx.tasks(replica.id, list({entry.task for entry in told}))}
    return [
        line_of(entry, replica, rows.get(entry.task))
        for entry in told
        if entry.outcome != LOST or (entry.task, attempt_of(entry)) not in replaced
    ]


def take_in(batch: Batch, records: Sequence[Recorded]) -> int:
    """History from elsewhere, what is there already left out; how many rows were new."""
    replica, before = batch.replica, len(batch.entries)
    look_up(batch, records)
    batch.announce([record.kind for record in records], [record.option for record in records])
    replica.name_features(record.features for record in records if record.features is not None)
    for record in records:
        kind, option = replica.name("kind", record.kind), replica.name("option", record.option)
        row = batch.by_key(record.key) or batch.add(task_of(record, kind, option, batch))
        if not record.observed:
            take_outcome(batch, row, record, option)
        elif record.reward is not None and option not in batch.observations(row.task):
            batch.log_observation(row, option, record.reward, record.cost)
    return len(batch.entries) - before


def look_up(batch: Batch, records: Sequence[Recorded]) -> int:
    """How many rows are new; raises if one contradicts what is there, or another of these. Changes nothing."""
    batch.keep_keyed(batch.tx.keyed(batch.replica.id, list({record.key for record in records})))
    check_tasks(batch, records)
    return count_new(records, known_rows(batch, records))


def check_features(batch: Batch, records: Sequence[Recorded]) -> None:
    """Refuse history with more features than a scheduler can know."""
    batch.replica.new_features(record.features for record in records if record.features is not None)


def known_rows(batch: Batch, records: Sequence[Recorded]) -> dict[Which, Recorded]:
    """What the log has of the tasks that these rows are about."""
    keys = {row.task: record.key for record in records if (row := batch.by_key(record.key)) is not None}
    if not keys:
        return {}
    id, tasks, tx = batch.replica.id, list(keys), batch.tx
    on_the_side = tx.observations(id, tasks) if any(record.observed for record in records) else []
    entries = [*tx.outcomes(id, tasks), *on_the_side, *(entry for entry in batch.entries if entry.task in keys)]
    entries.sort(key=lambda entry: entry.number)  # what replaces a loss comes later
    rows = [record_of(entry, keys[entry.task], batch.replica) for entry in entries]
    return {which(row): row for row in rows}


def record_of(entry: LogRow, key: str, replica: Replica) -> Recorded:
    """An entry of the log as the row of history that it came from."""
    kind, option, observed = replica.kinds.texts[entry.kind], replica.options.texts[entry.option], entry.observed > OWN
    values = entry.reward, entry.cost, entry.overhead, observed, OUTCOMES[entry.outcome]
    return Recorded(key, kind, option, *values, attempt=attempt_of(entry))


def take_outcome(batch: Batch, row: TaskRow, record: Recorded, option: int) -> None:
    """What came of an attempt elsewhere, unless it is known already; rows may come in any order."""
    if record.attempt > row.attempt:
        row = go_on_to(batch, row, record.attempt)
    outcome, latest = OUTCOMES.index(record.outcome), record.attempt == row.attempt
    told = row if latest else row_at(row, record.attempt)
    if told.report is not None and (told.outcome != LOST or outcome == LOST):
        return
    # until now it was perhaps known by observations only
    told = told._replace(option=option, overhead=overhead_of(record, batch), cancelled=0)
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


def check_tasks(batch: Batch, records: Sequence[Recorded]) -> None:
    """Refuse records under the key of a task that was decided here, or of a task of another kind."""
    kinds: dict[str, str] = {}
    for record in records:
        key, row = record.key, batch.by_key(record.key)
        if row is not None and row.policy != NO_POLICY:
            said = f"{record.where}key {key!r} belongs to task {row.task}, which was decided here"
            raise BadTask(f"{said}; use other keys")
        check_kind(record, kinds.setdefault(key, record.kind if row is None else batch.replica.kinds.texts[row.kind]))


def task_of(record: Recorded, kind: int, option: int, batch: Batch) -> TaskRow:
    """A task that was decided elsewhere; it never counts as running."""
    now, task = batch.header.now, batch.header.tasks + len(batch.new) + 1
    return TaskRow.running(
        task=task, kind=kind, option=option, options=str(option), pending="0", reward_estimate=0.0, cost_estimate=0.0,
        price=None, seen=batch.replica.fold.position, policy=NO_POLICY, key=record.key, decided=now, lease_end=now,
        overhead=overhead_of(record, batch), features=record.features,
    )._replace(cancelled=1, probability=None)  # fmt: skip


def overhead_of(record: Recorded, batch: Batch) -> float:
    """That of the row, or what every task costs here: an option must not look cheap because its rows are old."""
    return batch.replica.settings.overhead if record.overhead is None else record.overhead


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
