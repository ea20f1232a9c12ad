"""Rows changed behind a store's back: named, never believed, and no reason to end with somebody else's exception."""

from __future__ import annotations

import os
import random
import shutil
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar

import apsw
import psycopg
import pytest

from old_stores import VERSIONS, install
from tampering import execute
from worthwhile import Scheduler
from worthwhile.cli.main import main
from worthwhile.errors import Error, StoreError
from worthwhile.live.checking import find_damage
from worthwhile.live.stores import open_store

pytestmark = pytest.mark.slow

DAMAGES, SEED = int(os.environ.get("DAMAGES", "100")), int(os.environ.get("DAMAGE_SEED", "1"))
OPTIONS = [1, "five", 2.5]
TABLES = ("worthwhile", "schedulers", "names", "tasks", "reports", "snapshots", "snapshot_parts", "tokens")


def fill(url: str) -> None:
    """A store with a row of every sort."""
    with Scheduler(url, seed=3, overhead=0.5) as scheduler:
        for number in range(6):
            features = {"size": number, "name": "ü"} if number % 3 else None
            task = scheduler.decide(f"kind {number % 2}", OPTIONS, key=f"key {number}", features=features)
            task.report(number / 7, 1.0 + number / 3)
        other = scheduler.decide("ü", OPTIONS)
        scheduler.observe(other.id, next(option for option in OPTIONS if option != other.option), 0.25, 2.0)
        scheduler.report(scheduler.decide("ü", OPTIONS).id, reward=0.5)
        scheduler.cancel(scheduler.decide("ü", OPTIONS).id)
        scheduler.retire(2.5, kind="kind 1")
        scheduler._transactor.do(lambda batch: batch.replica.want_snapshot())
        scheduler.decide("kind 0", OPTIONS).report(0.75, 1.5)


def said(url: str, folder: Path, name: str = "default") -> dict[str, Any]:
    """All that a scheduler tells, or which error of ours it raises instead."""
    answers: dict[str, Any] = {}

    def ask(name: str, question: Any) -> None:
        try:
            answers[name] = question()
        except Error as error:
            answers[name] = type(error).__name__, str(error)

    def asked() -> None:
        with Scheduler(url, name) as scheduler:
            ask("summary", lambda: asdict(scheduler.summary()))
            ask("latest", lambda: scheduler.latest(20))
            for task in range(1, 11):
                ask(f"explain {task}", lambda task=task: scheduler.explain(task))
            ask("export", lambda: scheduler.export(folder / "log.csv"))
            answers["log"] = (folder / "log.csv").read_bytes() if "export" in answers else None

    ask("open", asked)
    return answers


def use(url: str, name: str = "default") -> None:
    """Work with it; whatever it raises must be ours."""
    with suppress(Error), Scheduler(url, name) as scheduler:
        for step in (
            lambda: scheduler.decide("kind 0", OPTIONS).report(0.5, 2.0),
            lambda: scheduler.decide("new kind", [*OPTIONS, "new"]).report(0.5, 2.0),
            lambda: scheduler.decide("kind 1", OPTIONS, key="key 1"),
            lambda: scheduler.report("7", 0.5, 2.0),
            lambda: scheduler.report("8", cost=2.0),
            lambda: scheduler.observe("7", 1, 0.25, 2.0),
            lambda: scheduler.observe("7", "five", 0.25, 2.0),
            lambda: scheduler.change(overhead=1.0),
            scheduler.rebuild,
        ):
            with suppress(Error):
                step()


def test_a_store_that_nobody_touched_has_no_damage(durable: str, capsys: pytest.CaptureFixture[str]) -> None:
    fill(durable)
    assert main(["check", durable]) == 0
    assert capsys.readouterr().out == "1 scheduler, 10 tasks and 8 reports read: all as they were written\n"
    use(durable)
    assert find_damage(durable).damage == []


def test_check_lists_every_damage_by_table_and_row(durable: str, capsys: pytest.CaptureFixture[str]) -> None:
    fill(durable)
    for sql in (
        "update names set text = 'other' where position = 2",
        "update tasks set option = case option when 2 then 1 else 2 end where task = 3",
        "delete from tasks where task = 5",
        "update reports set reward = 7 where number = 4",
        "update schedulers set reports = 9",
    ):
        execute(durable, sql)
    assert main(["check", durable]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "1 scheduler, 9 tasks and 8 reports read: 7 damaged"
    for start in (
        "  table names, scheduler 1, position 2: it is not what was written",
        "  table tasks, scheduler 1, task 3: it is not what was written",
        "  table tasks, scheduler 1, numbers 5 to 5: missing",
        "  table reports, scheduler 1, number 4: task 4: it is not what was written",
        "  table reports, scheduler 1, numbers 9 to 9: missing",
    ):
        assert [line for line in lines if line.startswith(start)], start
    with pytest.raises(StoreError, match=r"table names, scheduler 1, position 2: .*; `worthwhile check` lists all"):
        Scheduler(durable)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_store_of_an_earlier_version_has_no_damage(durable: str, version: int) -> None:
    install(durable, version)
    assert find_damage(durable).damage == []


VALUES = (
    "null",
    "'text'",
    "''",
    "x'00ff41'",
    "cast(x'ff41' as text)",
    "9223372036854775807",
    "-1",
    "1.5",
    "9e999",
    "-9e999",
)


class SqliteDamage:
    """One cell, one row deleted, one row twice: anything that a file lets be done."""

    def __init__(self, whole: Path, path: Path) -> None:
        self.whole, self.path = whole, path

    def begin(self) -> None:
        for file in self.path.parent.glob(f"{self.path.name}*"):
            file.unlink()
        shutil.copy(self.whole, self.path)

    def do(self, luck: random.Random) -> str:
        """What was done; nothing if the file does not let it."""
        connection = apsw.Connection(str(self.path))
        connection.execute("pragma synchronous = off")
        table = luck.choice(TABLES)
        rows = connection.execute(f"select rowid from {table}").fetchall()
        columns = [row[1] for row in connection.execute(f"pragma table_info({table})")]
        if not rows:
            return ""
        rowid, column, action = luck.choice(rows)[0], luck.choice(columns), luck.random()
        if action < 0.1:
            sql = f"delete from {table} where rowid = {rowid}"
        elif action < 0.2:
            others = ", ".join(name for name in columns if name != "id")
            sql = f"insert into {table} ({others}) select {others} from {table} where rowid = {rowid}"
        elif action < 0.6:
            sql = f"update {table} set {column} = {luck.choice(VALUES)} where rowid = {rowid}"
        else:
            cell = connection.execute(f"select {column} from {table} where rowid = {rowid}").fetchone()[0]
            sql = f"update {table} set {column} = {changed(cell, luck)} where rowid = {rowid}"
        try:
            connection.execute(sql)
        except (apsw.ConstraintError, apsw.MismatchError):
            return ""
        finally:
            connection.close()
        return sql


def changed(cell: Any, luck: random.Random) -> str:
    """A value that is nearly the same."""
    if isinstance(cell, bytes):
        place = luck.randrange(len(cell))
        return f"x'{(cell[:place] + bytes([cell[place] ^ (1 << luck.randrange(8))]) + cell[place + 1 :]).hex()}'"
    if isinstance(cell, str) and cell:
        place = luck.randrange(len(cell))
        return "'" + (cell[:place] + luck.choice("0123456789ax") + cell[place + 1 :]).replace("'", "''") + "'"
    if isinstance(cell, int | float):
        return repr(luck.choice([cell + 1, cell - 1, cell * 2, -cell, cell / 3]))
    return "0"


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    fill(f"sqlite:///{tmp_path}/whole.db")
    return tmp_path / "whole.db"


@pytest.fixture
def damaged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> str:
    """The address of a file to be damaged; it may say of each damage that it has a snapshot which it cannot use."""
    caplog.set_level("ERROR")
    return f"sqlite:///{tmp_path}/damaged.db?synchronous=normal"


def looked_for(url: str) -> bool:
    """Whether `check` finds something."""
    try:
        return bool(find_damage(url).damage)
    except StoreError:
        return True


@pytest.mark.slow
def test_any_damage_is_found_or_changes_nothing_and_only_our_errors_are_raised(
    whole: Path, tmp_path: Path, damaged: str
) -> None:
    damage, luck, done, believed = SqliteDamage(whole, tmp_path / "damaged.db"), random.Random(SEED), 0, []
    damage.begin()
    expected = said(damaged, tmp_path)
    while done < DAMAGES:
        damage.begin()
        what = damage.do(luck)
        done += what != ""
        answers, found = said(damaged, tmp_path), looked_for(damaged)
        if not found and answers != expected:
            believed.append((what, {key: value for key, value in answers.items() if value != expected.get(key)}))
        use(damaged)
    assert believed == []


def test_damaged_rows_of_an_earlier_version_raise_only_our_errors(tmp_path: Path, damaged: str) -> None:
    """They have no checksums, so that a value which makes sense is believed."""
    install(f"sqlite:///{tmp_path}/old.db", 3)
    open_store(f"sqlite:///{tmp_path}/old.db").close()
    damage, luck = SqliteDamage(tmp_path / "old.db", tmp_path / "damaged.db"), random.Random(SEED)
    for _ in range(DAMAGES // 4):
        damage.begin()
        damage.do(luck)
        said(damaged, tmp_path, "old")
        looked_for(damaged)
        use(damaged, "old")


class PostgresDamage:
    """What the types of a server's columns let be done."""

    VALUES: ClassVar[dict[str, tuple[str, ...]]] = {
        "bigint": ("null", "0", "-1", "9223372036854775807", "{column} + 1", "{column} * 2"),
        "double precision": ("null", "'NaN'", "'Infinity'", "-{column}", "{column} * 1.5 + 1"),
        "text": ("null", "''", "'text'", "{column} || '0'", "overlay({column} placing '7' from 2)"),
        "bytea": ("null", "''", "set_bit({column}, 100, 1 - get_bit({column}, 100))"),
    }
    COLUMNS = "select column_name, data_type from information_schema.columns where table_name = %s"

    def __init__(self, url: str) -> None:
        self.server = psycopg.connect(url, autocommit=True)
        self.columns = {
            table: self.server.execute(f"{self.COLUMNS} and table_schema = current_schema", [table]).fetchall()
            for table in TABLES
        }
        for table in TABLES:
            self.server.execute(f"create table whole_{table} as table {table}".encode())

    def begin(self) -> None:
        for table, columns in self.columns.items():
            names = ", ".join(name for name, _ in columns)
            self.server.execute(f"delete from {table}".encode())
            self.server.execute(
                f"insert into {table} ({names}) overriding system value select {names} from whole_{table}".encode()
            )

    def do(self, luck: random.Random) -> str:
        table = luck.choice([table for table in TABLES if table != "tokens"])
        [row] = luck.choice(self.server.execute(f"select ctid::text from {table}".encode()).fetchall())
        column, kind = luck.choice(self.columns[table])
        sql = (
            f"update {table} set {column} = {luck.choice(self.VALUES[kind]).format(column=column)} where ctid = '{row}'"
        )
        if luck.random() < 0.15:
            sql = f"delete from {table} where ctid = '{row}'"
        try:
            self.server.execute(sql.encode())
        except psycopg.Error:  # a constraint
            return ""
        return sql


@pytest.mark.slow
def test_any_damage_on_a_server_is_found_or_changes_nothing(
    postgres: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("ERROR")
    fill(postgres)
    expected, damage, luck, believed = said(postgres, tmp_path), PostgresDamage(postgres), random.Random(SEED), []
    for _ in range(DAMAGES // 5):
        damage.begin()
        what = damage.do(luck)
        answers, found = said(postgres, tmp_path), looked_for(postgres)
        if not found and answers != expected:
            believed.append((what, {key: value for key, value in answers.items() if value != expected.get(key)}))
        use(postgres)
    damage.server.close()
    assert believed == []
