"""History from elsewhere: one line, any columns, each row once, and nothing dropped in silence."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from worthwhile import Scheduler, replay
from worthwhile.errors import AlreadyReported, BadInput, BadParameter, BadTable, BadTask, Error, MissingExtra
from worthwhile.live.checking import find_damage
from worthwhile.live.history import FORMATS

Row = dict[str, Any]
THEIRS = {"kind": "task", "option": "model", "reward": "score", "cost": "usd"}
LOG: list[Row] = [
    {"task": kind, "model": model, "score": score, "usd": usd}
    for kind in ("code", "chat")
    for model, score, usd in (("big", 0.9, 4.0), ("small", 0.7, 1.0), ("small", 0.7, 1.0), ("small", 0.6, 1.5))
]


def write(path: Path, rows: Sequence[Row]) -> Path:
    """A file of the format that its name says."""
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(rows)), path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        lines = [",".join("" if value is None else str(value) for value in row.values()) for row in rows]
        path.write_text("\n".join([",".join(rows[0]), *lines]) + "\n")
    return path


@pytest.mark.parametrize("suffix", FORMATS)
def test_history_is_learned_once_however_often_the_program_starts(address: str, tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"old{suffix}", LOG)
    with Scheduler(address, history=path, history_columns=THEIRS) as scheduler:
        first = scheduler.summary()
        assert (first.reports, first.history) == (8, 8)
        assert scheduler.load(path, THEIRS) == 0
        scheduler.decide("code", ["big", "small"]).report(1.0, 2.0)
    if address == "memory://":
        return
    with Scheduler(address, history=str(path), history_columns=THEIRS) as scheduler:
        found = scheduler.summary()
        assert (found.tasks, found.reports, found.history) == (9, 9, 8)
        assert (found.history_reward, found.history_cost) == (first.reward, first.cost)
        assert found.own_ratio == pytest.approx(0.5)
        assert scheduler.rebuild()
    assert not find_damage(address).damage


def test_one_format_has_the_keys_of_the_other(tmp_path: Path) -> None:
    with Scheduler() as scheduler:
        assert [scheduler.load(write(tmp_path / f"old{suffix}", LOG), THEIRS) for suffix in FORMATS] == [8, 0, 0]


def test_a_file_that_has_changed_adds_what_is_new(durable: str, tmp_path: Path) -> None:
    """Rows that say the same are counted, whatever their order and whatever other columns there are."""
    path, more = tmp_path / "old.csv", {"task": "code", "model": "big", "score": 0.9, "usd": 4.0}
    with Scheduler(durable) as scheduler:
        assert scheduler.load(write(path, LOG), THEIRS) == 8
        assert scheduler.load(write(path, [*LOG[::-1], more]), THEIRS) == 1
        assert scheduler.load(write(path, [row | {"when": "then"} for row in [more, *LOG, more]]), THEIRS) == 1
        assert scheduler.load(write(path, LOG[2:]), THEIRS) == 0
        assert scheduler.summary().history == 10
        assert scheduler.load(write(tmp_path / "other.csv", LOG), THEIRS) == 8  # another file is another history


def test_a_row_with_a_key_counts_once_and_is_refused_if_it_says_something_else(address: str, tmp_path: Path) -> None:
    path = tmp_path / "old.csv"
    rows = [row | {"key": str(number)} for number, row in enumerate(LOG)]
    with Scheduler(address) as scheduler:
        assert scheduler.load(write(path, rows), THEIRS) == 8
        before = scheduler.summary()
        new = {"task": "code", "model": "big", "score": 0.5, "usd": 4.5, "key": "new"}
        changed = [new, *rows[:5], rows[5] | {"usd": 7.0}]
        words = (
            r"old.csv, row 8: key 'old:5:small' now has cost 7.0, but cost 1.0 in what is known already; a row counts"
        )
        with pytest.raises(AlreadyReported, match=words):
            scheduler.load(write(path, changed), THEIRS)
        for other in ({"score": 0.1}, {"task": "images"}):
            with pytest.raises((AlreadyReported, BadTask)):
                scheduler.load(write(path, [new, rows[5] | other]), THEIRS)
        with pytest.raises(AlreadyReported, match=r"row 4: key .* now has reward 0.2, but reward 0.5 in .*row 2;"):
            scheduler.load(write(path, [new, rows[0], new | {"score": 0.2}]), THEIRS)
        assert scheduler.summary() == before
        assert scheduler.load(write(path, [new, new, *rows]), THEIRS) == 1
        assert scheduler.rebuild()


def test_nothing_is_written_if_a_late_portion_is_refused(
    durable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worthwhile.live.scheduler.LOADED_AT_ONCE", 3)
    rows = [row | {"key": str(number)} for number, row in enumerate(LOG)]
    with Scheduler(durable) as scheduler:
        assert scheduler.load(write(tmp_path / "old.csv", rows[-1:]), THEIRS) == 1
        with pytest.raises(AlreadyReported, match="row 9"):
            scheduler.load(write(tmp_path / "old.csv", [*rows[:-1], rows[-1] | {"usd": 9.0}]), THEIRS)
        assert (scheduler.summary().tasks, scheduler.summary().reports) == (1, 1)
    with pytest.raises(AlreadyReported):
        Scheduler(durable, history=tmp_path / "old.csv", history_columns=THEIRS)


KILLED = """
import os, signal, sys
from worthwhile import Scheduler
from worthwhile.live import scheduler

taken, take_in = 0, scheduler.take_in
def killed(batch, records):
    global taken
    answer, taken = take_in(batch, records), taken + 1
    if taken == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return answer
scheduler.take_in, scheduler.LOADED_AT_ONCE = killed, 10
Scheduler(sys.argv[1], history=sys.argv[2])
"""


def test_an_import_that_is_killed_goes_on_where_it_was(durable: str, tmp_path: Path) -> None:
    rows = [{"kind": "x", "option": number % 3, "reward": number % 7, "cost": 1 + number % 2} for number in range(100)]
    path = write(tmp_path / "old.csv", rows)
    ended = subprocess.run([sys.executable, "-c", KILLED, durable, str(path)], check=False, timeout=120)
    assert ended.returncode == -signal.SIGKILL
    with Scheduler(durable) as scheduler:
        assert scheduler.summary().history == 20  # the portion that was under way left nothing
    for _ in range(2):
        with Scheduler(durable, history=path) as scheduler:
            assert (scheduler.summary().tasks, scheduler.summary().history) == (100, 100)
            assert scheduler.rebuild()
    assert not find_damage(durable).damage


@pytest.mark.slow
def test_programs_that_start_at_the_same_time_import_once(durable: str, tmp_path: Path) -> None:
    rows = [{"kind": "x", "option": number % 3, "reward": number, "cost": 1} for number in range(2500)]
    path = write(tmp_path / "old.csv", rows)
    Scheduler(durable).close()
    begin = "import sys; from worthwhile import Scheduler; Scheduler(sys.argv[1], history=sys.argv[2]).close()"
    started = [subprocess.Popen([sys.executable, "-c", begin, durable, str(path)]) for _ in range(3)]
    assert [process.wait(120) for process in started] == [0, 0, 0]
    with Scheduler(durable) as scheduler:
        assert (scheduler.summary().tasks, scheduler.summary().history) == (2500, 2500)


BAD: list[tuple[Row, dict[str, str], str]] = [
    ({"usd": ""}, THEIRS, "column cost, row 3: '' is not a finite number; give one, or leave the row out"),
    ({"usd": 0}, THEIRS, "row 3: cost = 0; every cost must be above 0"),
    ({"usd": -1}, THEIRS, "row 3: cost = -1; every cost must be above 0"),
    ({"score": "nan"}, THEIRS, "column reward, row 3: 'nan' is not a finite number"),
    ({"score": "inf"}, THEIRS, "column reward, row 3: 'inf' is not a finite number"),
    ({"task": ""}, THEIRS, "row 3: kind ''"),
    ({}, THEIRS | {"cost": "eur"}, "no column 'eur', which is to be cost; it has task, model, score, usd"),
    ({}, THEIRS | {"costs": "usd"}, "a table has no 'costs', so it cannot be in column 'usd'; it has task_type,"),
    ({}, THEIRS | {"task_type": "model"}, "kind and task_type are the same; name the column once"),
    ({}, THEIRS | {"cost": "score"}, "reward and cost cannot both be column 'score'; give each its own"),
    ({}, {"reward": "score"}, "no column task_type, option, cost; a table has task_type, option, reward, cost"),
    (
        {},
        {"reward": "score"},
        r"found: task, model, usd, reward\). If it has another name, say which: --map task_type=",
    ),
    ({}, THEIRS | {"failed": "score"}, "reward and failed cannot both be column 'score'"),
    ({}, THEIRS | {"overhead": ""}, ""),
]


@pytest.mark.parametrize(("wrong", "columns", "words"), BAD)
def test_what_is_wrong_is_said_with_its_place_and_nothing_is_taken_in(
    tmp_path: Path, wrong: Row, columns: dict[str, str], words: str
) -> None:
    path = write(tmp_path / "old.csv", [LOG[0], LOG[1] | wrong, LOG[2]])
    with Scheduler() as scheduler:
        if not words:
            assert scheduler.load(path, columns) == 3
            return
        with pytest.raises(BadInput, match=words):
            scheduler.load(path, columns)
        assert scheduler.summary().tasks == 0


@pytest.mark.parametrize("columns", [["reward"], {"reward": 5}, "reward=score"])
def test_columns_must_be_names(tmp_path: Path, columns: Any) -> None:
    with pytest.raises(BadParameter, match=r"give names of columns, like \{'reward': 'score'"):
        Scheduler(history=write(tmp_path / "old.csv", LOG), history_columns=columns)
    with pytest.raises(BadParameter, match="give the file: history="):
        Scheduler(history_columns={"reward": "score"})


@pytest.mark.parametrize("suffix", [".parquet", ".jsonl"])
@pytest.mark.parametrize("column", ["task", "model", "usd"])
def test_a_missing_value_is_no_name_and_no_number(tmp_path: Path, suffix: str, column: str) -> None:
    path = write(tmp_path / f"old{suffix}", [LOG[0], LOG[1] | {column: None}])
    with Scheduler() as scheduler, pytest.raises(BadTable, match="row 2"):
        scheduler.load(path, THEIRS)


def test_failures_in_a_log_need_no_reward_and_win_nothing(address: str, tmp_path: Path) -> None:
    rows = [{**row, "failed": "true", "score": score} for row, score in ((LOG[0], ""), (LOG[0], 0), (LOG[1], 9))]
    rows += [{**row, "failed": failed} for row, failed in ((LOG[1], "false"), (LOG[1], "0"), (LOG[0], ""))]
    path = write(tmp_path / "old.csv", rows)
    with Scheduler(address, history=path, history_columns=THEIRS) as scheduler:
        found = scheduler.summary()
        options = {option.option: option for option in found.kinds[0].options}
        assert (found.reports, found.history, found.failed) == (3, 3, 3)
        assert (options["big"].failed, options["big"].mean_reward) == (2, 0.9)
        assert (options["small"].failed, options["small"].mean_reward) == (1, 0.7)
        assert found.history_cost == found.cost == 15.0
        assert found.own_ratio is None
        assert scheduler.load(path, THEIRS) == 0
    for column, words in (("maybe", "row 2: 'maybe' is neither true nor false"), ("false", "and a column outcome")):
        bad = write(tmp_path / "bad.csv", [LOG[0] | {"failed": column, "outcome": "result"}])
        with Scheduler() as scheduler, pytest.raises(BadTable, match=words):
            scheduler.load(bad, THEIRS | ({"outcome": ""} if column == "maybe" else {}))
    bad = write(tmp_path / "bad.csv", [LOG[0] | {"outcome": "ok"}])
    with Scheduler() as scheduler, pytest.raises(BadTable, match="row 2: outcome = 'ok'; it must be one of result"):
        scheduler.load(bad, THEIRS)


def test_a_loss_in_history_that_was_none_is_counted_as_what_it_was(tmp_path: Path) -> None:
    row = {"task_type": "x", "item_id": 1, "option": "a", "overhead": 0.5, "observed": False, "attempt": 0}
    lost = row | {"reward": None, "cost": 1.0, "outcome": "lost"}
    late = row | {"reward": 6.0, "cost": 2.5, "outcome": "result"}
    with Scheduler() as scheduler:
        scheduler.load(write(tmp_path / "log.jsonl", [lost]))
        found = scheduler.summary()
        assert (found.history, found.history_reward, found.history_cost) == (0, 0.0, 1.5)
        with pytest.raises(AlreadyReported, match='now has option "b", but option "a" in what is known already'):
            scheduler.load(write(tmp_path / "log.jsonl", [late | {"option": "b"}]))
        scheduler.load(write(tmp_path / "log.jsonl", [lost, late]))
        found = scheduler.summary()
        assert (found.history, found.history_reward, found.history_cost) == (1, 6.0, 3.0)
        with pytest.raises(AlreadyReported, match=r"row 1: key 'log:1' now has reward 5.0, but reward 6.0"):
            scheduler.load(write(tmp_path / "log.jsonl", [late | {"reward": 5.0}]))


def test_columns_may_change_places_and_an_id_that_is_none_can_be_left_out(tmp_path: Path) -> None:
    rows = [{"kind": "x", "item_id": "same", "option": 1, "reward": 2.0, "cost": score} for score in (3.0, 4.0)]
    path = write(tmp_path / "old.csv", rows)
    with Scheduler() as scheduler:
        with pytest.raises(AlreadyReported, match="row 3"):
            scheduler.load(path)
        assert scheduler.load(path, {"reward": "cost", "cost": "reward", "item_id": ""}) == 2
        assert (scheduler.summary().reward, scheduler.summary().cost) == (7.0, 4.0)
        assert replay(path, columns={"key": "", "reward": "cost", "cost": "reward"}).problem.reward[0, 0] == 3.5
    with Scheduler() as scheduler, pytest.raises(BadTable, match="a column attempt, but no item_id"):
        scheduler.load(write(tmp_path / "tries.csv", [rows[0] | {"attempt": 1}]), {"item_id": ""})


def test_parquet_needs_an_extra_that_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "old.parquet", LOG)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"worthwhile\[tables\]"):
        Scheduler(history=path)


def test_a_scheduler_whose_history_is_refused_lets_go_of_its_store(sqlite: str, tmp_path: Path) -> None:
    with pytest.raises(Error, match="no table at"):
        Scheduler(sqlite, history=tmp_path / "nothing.csv")
    with Scheduler(sqlite) as scheduler:
        assert scheduler.summary().tasks == 0


def test_a_summary_tells_history_from_what_was_decided_here(tmp_path: Path) -> None:
    with Scheduler(history=write(tmp_path / "old.csv", LOG), history_columns=THEIRS) as scheduler:
        assert "8 tasks, 0 reported here, 8 from history, 0 running" in str(scheduler.summary())
        assert "; – without history" in str(scheduler.summary())
        scheduler.decide("code", ["small"]).report(1.0, 2.0)
        scheduler.decide("code", ["small"])
        found = scheduler.summary()
        code = found.kinds[0]
        assert "10 tasks, 1 reported here, 8 from history, 1 running" in str(found)
        assert "; 0.50000 without history" in str(found)
        assert (code.reports, code.history) == (5, 4)
        assert {option.option: (option.pulls, option.history) for option in code.options} == {
            "small": (4, 3),
            "big": (1, 1),
        }
        assert "history" in found._repr_html_()


def test_what_others_have_achieved_is_compared_with_nothing(tmp_path: Path) -> None:
    rows = [{"kind": "x", "option": option, "reward": 1.0, "cost": 2.0, "failed": False} for option in "ab" * 5]
    rows += [rows[0] | {"failed": True, "cost": 8.0}] * 15
    with Scheduler(history=write(tmp_path / "old.csv", rows)) as scheduler:
        assert {rule.advantage for rule in scheduler.summary().comparisons} == {None}
        scheduler.decide("x", ["b"]).report(1.0, 2.0)
        scheduler.decide("x", ["b"]).fail(cost=1.0)
        found = scheduler.summary()
        single = found.comparisons[0]
        assert (single.says, single.ratio) == ("always b", pytest.approx(6.0 / 13.0))
        assert single.advantage == pytest.approx((1.0 / 3.0) / single.ratio - 1.0)
        assert found.ratio == pytest.approx(11.0 / 143.0)
        assert found.own_ratio == pytest.approx(1.0 / 3.0)


def test_rows_without_an_overhead_cost_as_much_more_as_tasks_do_here(address: str, tmp_path: Path) -> None:
    path = write(tmp_path / "old.csv", LOG)
    with Scheduler(address, overhead=2.0, history=path, history_columns=THEIRS) as scheduler:
        assert scheduler.summary().history_cost == pytest.approx(sum(row["usd"] + 2.0 for row in LOG))
        scheduler.change(overhead=3.0)
        assert scheduler.load(path, THEIRS) == 0  # they are known, with the overhead of then
        told = write(tmp_path / "told.csv", [row | {"overhead": 0.5} for row in LOG])
        before = scheduler.summary().history_cost
        assert scheduler.load(told, THEIRS) == 8
        assert scheduler.summary().history_cost - before == pytest.approx(sum(row["usd"] + 0.5 for row in LOG))


def test_a_log_with_failures_and_columns_of_other_names_is_refused_in_words(tmp_path: Path) -> None:
    path = write(tmp_path / "old.csv", [row | {"failed": False} for row in LOG])
    with Scheduler() as scheduler, pytest.raises(BadTable, match="no column task_type, option, reward, cost;"):
        scheduler.load(path)
