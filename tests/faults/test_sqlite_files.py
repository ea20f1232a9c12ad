"""The file of a store: deleted, replaced, restored, made private, and read where it cannot be written."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

from worthwhile import Scheduler
from worthwhile.cli.main import main
from worthwhile.errors import StoreError, StoreReplaced
from worthwhile.live.stores import open_store

OPTIONS = [1, 2, 3]
ALL = ("", "-wal", "-shm")
REPORTS = 1010  # so many that a snapshot would be kept


def pair(scheduler: Scheduler) -> None:
    scheduler.decide("x", OPTIONS).report(1.0, 2.0)


def use(scheduler: Scheduler, times: int) -> None:
    for _ in range(times):
        pair(scheduler)


def path_of(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///"))


def delete(path: Path) -> None:
    for ending in ALL:
        Path(f"{path}{ending}").unlink()


def replace(path: Path) -> None:
    """By a copy of an hour ago, as an editor or rsync does it."""
    os.replace(f"{path}.backup", path)


def move(path: Path) -> None:
    path.rename(f"{path}.moved")


def delete_folder(path: Path) -> None:
    shutil.rmtree(path.parent)


@pytest.mark.parametrize("harm", [Path.unlink, delete, replace, move, delete_folder])
def test_nothing_is_acknowledged_into_a_file_that_is_gone(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    path = tmp_path / "folder" / "tasks.db"
    path.parent.mkdir()
    with Scheduler(path) as scheduler:
        pair(scheduler)
        back_up(path)
        pair(scheduler)
        task = scheduler.decide("x", OPTIONS)
        harm(path)
        with pytest.raises(StoreReplaced, match=r"tasks.db was deleted, or another file is in its place; nothing was "):
            task.report(1.0, 2.0)
        with pytest.raises(StoreError, match="nothing was stored"):
            pair(scheduler)
        assert not path.exists() or len(log_of(path)) == 1


def back_up(path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.execute("vacuum into ?", [f"{path}.backup"])
    connection.close()


def log_of(path: Path) -> list[tuple[int]]:
    connection = apsw.Connection(f"file:{path}?immutable=1", apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    try:
        return connection.execute("select number from reports").fetchall()
    finally:
        connection.close()


def test_what_was_put_back_is_used_once_nothing_of_the_old_file_is_left(sqlite: str) -> None:
    path = path_of(sqlite)
    with Scheduler(sqlite) as scheduler:
        pair(scheduler)
        back_up(path)
        for _ in range(5):
            pair(scheduler)
        assert scheduler.summary().reports == 6
        replace(path)
        for _ in range(2):  # the old file's -wal is still there: SQLite would take it for the new one's
            with pytest.raises(StoreReplaced, match=r"remove .*tasks.db-wal and -shm"):
                pair(scheduler)
        for ending in ("-wal", "-shm"):
            Path(f"{path}{ending}").unlink()
        pair(scheduler)
        assert [line.task for line in scheduler.latest()] == ["2", "1"]
        assert (scheduler.summary().reports, scheduler.rebuild()) == (2, True)
        assert scheduler.summary().kinds[0].reports == 2


def test_a_log_beside_the_file_that_was_deleted_is_noticed(sqlite: str) -> None:
    with Scheduler(sqlite) as scheduler:
        pair(scheduler)
        Path(f"{path_of(sqlite)}-wal").unlink()
        with pytest.raises(StoreReplaced, match=r"tasks.db-wal was deleted while it was in use"):
            use(scheduler, 50)
        pair(scheduler)
        assert scheduler.rebuild()


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o777])
def test_a_new_store_is_its_owners_alone(sqlite: str, umask: int) -> None:
    before = os.umask(umask)
    try:
        with Scheduler(sqlite) as scheduler:
            pair(scheduler)
            assert [modes(path_of(sqlite), ending) for ending in ALL] == [0o600] * 3
    finally:
        os.umask(before)


def test_a_store_that_is_there_keeps_its_rights(sqlite: str) -> None:
    Scheduler(sqlite).close()
    path_of(sqlite).chmod(0o640)
    with Scheduler(sqlite) as scheduler:
        pair(scheduler)
        assert [modes(path_of(sqlite), ending) for ending in ALL] == [0o640] * 3


def modes(path: Path, ending: str) -> int:
    return os.stat(f"{path}{ending}").st_mode & 0o777


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Callable[[Path], Path]]:
    """A second way to a folder, on which nothing can be written."""
    places: list[Path] = []

    def mount(folder: Path) -> Path:
        place = tmp_path / f"read-only-{len(places)}"
        place.mkdir()
        subprocess.run(["mount", "--bind", folder, place], check=True)
        places.append(place)
        subprocess.run(["mount", "-o", "remount,ro,bind", place], check=True)
        return place

    yield mount
    for place in places:
        subprocess.run(["umount", "--lazy", place], check=True)


@pytest.mark.parametrize("in_use", [True, False], ids=["in use", "closed"])
def test_what_cannot_be_written_can_be_read(
    tmp_path: Path, mounted: Callable[[Path], Path], in_use: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    writer = Scheduler(f"sqlite:///{folder}/tasks.db?synchronous=normal")
    use(writer, REPORTS)
    open_task = writer.decide("x", OPTIONS)
    place = mounted(folder)
    if not in_use:
        writer.close()
    with Scheduler(place / "tasks.db", create=False) as scheduler:
        assert scheduler.summary().reports == REPORTS
        assert scheduler.explain("7").repeated
        assert scheduler.export(tmp_path / "history.csv") == REPORTS
        assert scheduler.rebuild()
        for refused in (
            lambda: scheduler.decide("new", [9]),
            lambda: scheduler.cancel(open_task.id),
            lambda: scheduler.retire(1),
        ):
            with pytest.raises(
                StoreError, match=r"it can only be read here; nothing was stored: to decide and report, "
            ):
                refused()
        assert scheduler.summary().reports == REPORTS
        if not in_use:
            writer = Scheduler(folder / "tasks.db")
        pair(writer)
        assert scheduler.summary().reports == REPORTS + 1
    writer.close()
    with pytest.raises(StoreError, match="it can only be read here"):
        Scheduler(place / "tasks.db", "another")
    for command in (["status"], ["explain", "1"], ["export", tmp_path / "log.csv"]):
        name, *others = map(str, command)
        assert main([name, str(place / "tasks.db"), *others]) == 0
    assert main(["decide", str(place / "tasks.db"), "x", "1"]) == 2
    assert "it can only be read here" in capsys.readouterr().err


def test_a_file_that_only_others_may_write_can_be_read() -> None:
    """By another user, who is refused by its rights."""
    with tempfile.TemporaryDirectory() as folder:  # pytest's are closed to that user
        with Scheduler(f"{folder}/tasks.db") as scheduler:
            pair(scheduler)
        os.chmod(folder, 0o755)
        os.chmod(f"{folder}/tasks.db", 0o644)
        command = [sys.executable, "-c", AS_NOBODY, f"{folder}/tasks.db"]
        ended = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    reports, refused = json.loads(ended.stdout)
    assert reports == 1
    assert "it can only be read here; nothing was stored" in refused


AS_NOBODY = """
import json, os, sys
from worthwhile import Scheduler
from worthwhile.errors import StoreError
with Scheduler() as first:  # whatever is imported late
    first.decide("x", [1]).report(1.0, 1.0)
    first.summary()
import worthwhile.live.stores.sqlite
os.setgid(65534)
os.setuid(65534)
with Scheduler(sys.argv[1], create=False) as scheduler:
    found = [scheduler.summary().reports]
    try:
        scheduler.decide("x", [1])
    except StoreError as error:
        found.append(str(error))
print(json.dumps(found))
"""


def test_a_file_that_a_writer_has_just_changed_is_read_again(tmp_path: Path, mounted: Callable[[Path], Path]) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    with Scheduler(folder / "tasks.db") as writer:
        pair(writer)
    store = open_store(f"sqlite:///{mounted(folder)}/tasks.db", create=False)

    def change_meanwhile(tx: object) -> None:
        with Scheduler(folder / "tasks.db") as writer:
            pair(writer)

    with pytest.raises(StoreError, match=r"tasks.db was written to while it was read; try again"):
        store.transact(change_meanwhile)
    header = store.transact(lambda tx: tx.open("default"))
    assert header is not None
    assert header.reports == 2
    store.close()


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (
            "drop table reports",
            r"no such table: reports; nothing was stored: its tables are not as worthwhile made them",
        ),
        ("alter table reports drop column policy", r"column.* policy; nothing was stored: its tables are not as"),
    ],
)
def test_tables_that_are_not_there_are_named(sqlite: str, harm: str, words: str) -> None:
    with Scheduler(sqlite) as scheduler:
        task = scheduler.decide("x", OPTIONS)
        connection = apsw.Connection(str(path_of(sqlite)))
        connection.execute(harm)
        connection.close()
        with pytest.raises(StoreError, match=words):
            task.report(1.0, 1.0)
