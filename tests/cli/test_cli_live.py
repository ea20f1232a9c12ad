"""The commands on a store: what they print is what the scheduler knows, and tables go out and come back whole."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from worthwhile import Scheduler, replay
from worthwhile.cli.main import main
from worthwhile.errors import BadTable

OPTIONS = [1, "1", 2.5, None, 'long, with "quotes" and ü']


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    """What a command prints with --json."""
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def complaint(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line with which a command refuses."""
    assert main(list(arguments)) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.splitlines()) == 1
    return said.err


@pytest.fixture
def used(durable: str) -> str:
    """A scheduler with some history, side observations and a cancelled task."""
    with Scheduler(durable, overhead=0.5, seed=2) as scheduler:
        for number in range(12):
            task = scheduler.decide(f"kind {number % 2}", OPTIONS, key=f"key {number}")
            if number % 3 == 0:
                task.observe(next(one for one in OPTIONS if one is not task.option), 0.1 * number, 0.7)
            if number == 5:
                task.cancel()
            elif number < 11:
                task.report(reward=0.1 * number, cost=1.0 + number / 7)
    return durable


def test_decide_and_report_from_a_shell(capsys: pytest.CaptureFixture[str], durable: str) -> None:
    assert main(["decide", durable, "weather", "5", "--key", "job"]) == 0
    assert capsys.readouterr().out == "1\t5\n"
    assert document(capsys, "decide", durable, "weather", "5", "--key", "job") == {
        "task": "1",
        "kind": "weather",
        "option": 5,
    }
    assert main(["report", durable, "1", "--reward", "0.9"]) == 0
    assert capsys.readouterr().out == "task 1: running\n"
    assert document(capsys, "report", durable, "1", "--cost", "3")["state"] == "reported"
    assert document(capsys, "status", durable)["ratio"] == pytest.approx(0.3)
    assert document(capsys, "decide", durable, "x", "-", "true", "5", "text")["option"] == "-"
    assert "--cancel says" in complaint(capsys, "report", durable, "2", "--cancel", "--reward", "1")
    for wrong in (["--cancel", "--failed"], ["--failed", "--reward", "1"], ["--reason", "x", "--cost", "1"]):
        assert "--failed" in complaint(capsys, "report", durable, "2", *wrong)
    assert main(["report", durable, "2", "--cancel"]) == 0
    assert capsys.readouterr().out == "task 2: cancelled\n"
    assert "already has feedback" in complaint(capsys, "report", durable, "1", "--cost", "4")
    assert "cost = nan" in complaint(capsys, "report", durable, "2", "--cost", "nan")
    assert "no task '99x'" in complaint(capsys, "report", durable, "99x", "--cost", "1")


def test_status_tasks_and_explain_tell_what_the_scheduler_knows(capsys: pytest.CaptureFixture[str], used: str) -> None:
    with Scheduler(used) as scheduler:
        summary, last, why = scheduler.summary(), scheduler.latest(1)[0], scheduler.explain("7")
    found = document(capsys, "status", used)
    assert (found["tasks"], found["reports"], found["running"]) == (12, 10, 1)
    assert found == json.loads(json.dumps(asdict(summary)))
    assert [kind["kind"] for kind in found["kinds"]] == ["kind 0", "kind 1"]
    assert document(capsys, "tasks", used, "--count", "1")["tasks"][0]["key"] == last.key == "key 11"
    told = document(capsys, "explain", used, "7")
    assert (told["why"], told["repeated"]) == (why.why, True)
    for command in (["status", used], ["tasks", used], ["explain", used, "7"]):
        assert main(command) == 0
    text = capsys.readouterr().out
    assert str(summary) in text
    assert "12 tasks, 10 reported, 1 running" in text
    assert why.why in text
    assert "cancelled" in text


def test_failures_are_told_and_shown(capsys: pytest.CaptureFixture[str], durable: str) -> None:
    main(["decide", durable, "weather", "good", "broken"])
    capsys.readouterr()
    assert main(["report", durable, "1", "--failed", "--cost", "2", "--reason", "KeyError: 'x'"]) == 0
    assert capsys.readouterr().out == "task 1: failed\n"
    assert main(["report", durable, "1", "--failed"]) == 0  # the same again
    capsys.readouterr()
    assert "has failed; it takes no report" in complaint(capsys, "report", durable, "1", "--reward", "1", "--cost", "1")
    with Scheduler(durable) as scheduler:
        scheduler.again("1")
    assert document(capsys, "tasks", durable)["tasks"][0]["total_cost"] == 2.0
    for command, words in (
        (["tasks", durable], ["running", "attempts", " 2"]),
        (["explain", durable, "1"], ["running, 2.0000 spent", "tried before", "failed", "KeyError: 'x'"]),
        (["status", durable], ["attempts", "1 failed", "NOTHING HAS SUCCEEDED YET for weather", "KeyError: 'x'"]),
    ):
        assert main(command) == 0
        text = capsys.readouterr().out
        assert [word for word in words if word not in text] == []


def test_costs_of_attempts_add_up_where_they_are_shown(capsys: pytest.CaptureFixture[str], durable: str) -> None:
    with Scheduler(durable) as scheduler:
        task = scheduler.decide("weather", ["good", "broken"])
        task.fail(cost=2.0)
        task.again().report(reward=1.0, cost=0.5)
        scheduler.decide("weather", ["good"]).report(reward=1.0, cost=0.25)
    later, first = document(capsys, "tasks", durable)["tasks"]
    assert (first["cost"], first["total_cost"], later["cost"], later["total_cost"]) == (0.5, 2.5, 0.25, 0.25)
    assert main(["tasks", durable]) == 0
    assert "2.5000" in capsys.readouterr().out
    assert main(["explain", durable, "1"]) == 0
    assert "reward 1.0000, cost 0.50000 (2.5000 with the attempts before)" in capsys.readouterr().out


def test_options_are_retired_and_restored_from_a_shell(capsys: pytest.CaptureFixture[str], durable: str) -> None:
    main(["decide", durable, "weather", "5", "10"])
    capsys.readouterr()
    assert main(["retire", durable, "5"]) == 0
    assert main(["retire", durable, "10", "--kind", "rice"]) == 0
    assert capsys.readouterr().out == "5: retired for all kinds\n10: retired for kind 'rice'\n"
    assert {document(capsys, "decide", durable, "weather", "5", "10")["option"] for _ in range(3)} == {10}
    assert "retired" in complaint(capsys, "decide", durable, "rice", "5", "10")
    facts = {"option": 5, "kind": None, "retired": False}
    assert document(capsys, "restore", durable, "5") == facts
    assert document(capsys, "decide", durable, "rice", "5", "10")["option"] == 5
    assert "neither retired nor benched" in complaint(capsys, "restore", durable, "5")
    assert main(["restore", durable, "10", "--kind", "rice"]) == 0


def test_a_bad_entry_is_shown_by_status(capsys: pytest.CaptureFixture[str], sqlite: str) -> None:
    import apsw

    with Scheduler(sqlite) as scheduler:
        scheduler.decide("x", [1]).report(1.0, 1.0)
    connection = apsw.Connection(sqlite.removeprefix("sqlite:///"))
    connection.execute("update reports set cost = -1")
    connection.close()
    assert main(["status", sqlite]) == 0
    text = capsys.readouterr().out
    assert "learned from it: 1 entry of the log.\n  entry 1: task 1: cost = -1.0" in text


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_a_history_goes_out_and_comes_back_whole(
    capsys: pytest.CaptureFixture[str], used: str, tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worthwhile.live.scheduler.LOADED_AT_ONCE", 1)
    path = str(tmp_path / f"history.{suffix}")
    assert document(capsys, "export", used, path) == {"rows": 14, "file": path}
    problem = replay(path).problem
    assert problem.kinds == ("kind 0", "kind 1")
    assert document(capsys, "replay", path, "--tasks", "50", "--runs", "2", "--engine", "python")["runs"] == 2
    for new in (14, 0):
        assert document(capsys, "import", f"{tmp_path}/again.db", path) == {"new_rows": new}
    with Scheduler(used) as one, Scheduler(f"{tmp_path}/again.db") as two:
        mine, its = one.summary(), two.summary()
        assert (its.reports, its.reward, its.cost) == (mine.reports, mine.reward, mine.cost)
        for kind, its_kind in zip(mine.kinds, its.kinds, strict=True):
            means = {repr(line.option): line.mean_reward for line in kind.options if line.pulls}
            assert means == {repr(line.option): line.mean_reward for line in its_kind.options if line.pulls}
        assert two.rebuild()
        entries = {entry.task: entry.option for entry in two._transactor.entries(0, 99) if entry.observed < 0}
        rows = two._transactor.do(lambda batch: batch.tx.tasks(batch.replica.id, list(entries)))
        assert {row.task: row.option for row in rows} == entries
        assert two.explain("1").why == "it was recorded elsewhere, and imported"
        assert its.running == 0


def test_a_recorded_table_is_learned_from(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "recorded.csv"
    path.write_text("task_type,item_id,option,reward,cost\n" + "".join(
        f"x,{item},{option},{reward},1.0\n" for item in range(9) for option, reward in (("5", 0.9), ("10", 0.2))
    ))  # fmt: skip
    store = f"{tmp_path}/tasks.db"
    assert document(capsys, "import", store, str(path)) == {"new_rows": 18}
    assert document(capsys, "decide", store, "x", "5", "10")["option"] == 5
    assert main(["rebuild", store, "--check"]) == 0
    assert "18 reports replayed: the same, to the bit" in capsys.readouterr().out
    path.write_text(path.read_text() + "x,77,5,0.8,2.0\n")
    assert document(capsys, "import", store, str(path)) == {"new_rows": 1}


@pytest.mark.parametrize(
    ("line", "words"),
    [("x,1,a,1,0", "row 3: cost = 0"), (f"x,1,{'a' * 300},1,1", "row 3: option"), (",1,a,1,1", "row 3: kind ''")],
)
def test_a_bad_table_is_not_taken_in(capsys: pytest.CaptureFixture[str], tmp_path: Path, line: str, words: str) -> None:
    path = tmp_path / "recorded.csv"
    path.write_text(f"task_type,item_id,option,reward,cost\nx,0,a,1,1\n{line}\n")
    assert words in complaint(capsys, "import", f"{tmp_path}/tasks.db", str(path))
    assert document(capsys, "status", f"{tmp_path}/tasks.db")["reports"] == 0


@pytest.mark.slow
def test_a_log_is_imported_and_replayed_whatever_its_columns(
    capsys: pytest.CaptureFixture[str], durable: str, tmp_path: Path
) -> None:
    path = tmp_path / "log.csv"
    path.write_text("task,model,score,usd,ok\ncode,big,0.9,4,1\ncode,small,0.7,1,2\ncode,small,0.8,1,3\n")
    columns = "kind=task, option=model,reward=score,cost=usd"
    for new in (3, 0):
        assert document(capsys, "import", durable, str(path), "--map", columns) == {"new_rows": new}
    assert document(capsys, "status", durable)["history"] == 3
    assert main(["status", durable]) == 0
    assert "3 tasks, 0 reported here, 3 from history" in capsys.readouterr().out
    assert document(capsys, "replay", str(path), "--map", columns, "--tasks", "50", "--runs", "2")["runs"] == 2
    for wrong, words in (
        ("reward", "write NAME=COLUMN, for instance reward=score,cost=usd"),
        ("reward=score,reward=usd", "reward is both 'score' and 'usd'; name it once"),
        ("reward=usd,cost=usd", "reward and cost cannot both be column 'usd'"),
        ("rewrd=score", "a table has no 'rewrd'"),
        ("reward=score", "no column task_type, option, cost; a table has"),
    ):
        for command in (["import", durable, str(path)], ["replay", str(path)]):
            assert words in complaint(capsys, *command, "--map", wrong)


def test_lines_of_json_must_agree(tmp_path: Path) -> None:
    path = tmp_path / "table.jsonl"
    path.write_text('{"task_type": "x"}\n{"other": 1}\n')
    with pytest.raises(BadTable, match=r"row 2: every line is a JSON object with the same columns"):
        replay(path)
    path.write_text('{"task_type": "x"}\n{"ot\n')
    with pytest.raises(BadTable, match="row 2"):
        replay(path)


def test_a_store_that_is_not_there_is_not_made(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    store = f"{tmp_path}/absent.db"
    for command in (["status", store], ["explain", store, "1"], ["report", store, "1", "--cost", "1"]):
        assert "no store at" in complaint(capsys, *command)
    assert list(tmp_path.iterdir()) == []
    Scheduler(store, name="here").close()
    assert "no scheduler 'there'" in complaint(capsys, "status", store, "--name", "there")
    assert "there are: here" in complaint(capsys, "status", store, "--name", "there")


def test_rebuild_says_when_the_state_is_not_what_the_log_gives(
    capsys: pytest.CaptureFixture[str], durable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worthwhile.live.replica.SNAPSHOT_EVERY", 20)
    with Scheduler(durable) as scheduler:
        scheduler.decide("x", [1]).report(1.0, 1.0)
    with Scheduler(durable) as scheduler:
        fold = scheduler._transactor.do(lambda batch: batch.replica.fold)
        fold.state.learned.arms.mean_reward[0, 0] = 0.5  # as if a snapshot had been written by other code
        scheduler._transactor.do(lambda batch: batch.replica.want_snapshot())
    assert main(["rebuild", durable, "--check"]) == 1
    assert "NOT what the scheduler knows" in capsys.readouterr().out


def test_a_report_may_be_a_small_negative_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = str(tmp_path / "tasks.db")
    with Scheduler(tmp_path / "tasks.db") as scheduler:
        id = scheduler.decide("x", [1]).id
    assert main(["report", store, id, "--reward", "-3e-2", "--cost", "2"]) == 0
    with Scheduler(store) as scheduler:
        assert scheduler.summary().reward == -0.03


def test_names_cannot_play_with_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Scheduler(tmp_path / "tasks.db") as scheduler:
        scheduler.decide("we\nath\x1b[31mer", ["red\x1b[31m"]).report(1.0, 1.0)
    for command in ("status", "tasks"):
        assert main([command, str(tmp_path / "tasks.db")]) == 0
        shown = capsys.readouterr().out
        assert "\x1b" not in shown
        assert r"we\nath\x1b[31mer" in shown


def test_features_are_told_and_shown(capsys: pytest.CaptureFixture[str], durable: str) -> None:
    given = {
        "clauses=12000": 12000, "density=4.5": 4.5, "gpu=true": True, "cold=false": False, "family=crypto": "crypto",
        'release="12"': "12", "formula=a=b": "a=b", "empty=": "", "list=[1]": "[1]", "nan=NaN": "NaN", "age=null": None,
        "a name=x y": "x y", "hidden=\x1b[2J": "\x1b[2J",
    }  # fmt: skip
    words = [word for text in given for word in ("--feature", text)]
    assert main(["decide", durable, "sat", "kissat", *words, "--key", "one"]) == 0
    assert main(["decide", durable, "sat", "kissat"]) == 0
    assert main(["decide", durable, "sat", "kissat", "--feature", "clauses=1", "--key", "one"]) == 0
    assert [line.split("\t")[0] for line in capsys.readouterr().out.splitlines()] == ["1", "2", "1"]
    known = {text.partition("=")[0]: value for text, value in given.items() if value is not None}
    second, first = document(capsys, "tasks", durable)["tasks"]
    assert (first["features"], second["features"]) == (known, None)
    assert [type(value) for value in first["features"].values()] == [type(value) for value in known.values()]
    assert document(capsys, "explain", durable, "1")["features"] == known
    assert main(["tasks", durable]) == 0
    table = capsys.readouterr().out
    assert table.splitlines()[0].endswith("features")
    assert table.splitlines()[-1].endswith("clauses=12000, density=4.5, gpu=true, cold=false, family=cr…")
    assert main(["explain", durable, "1"]) == 0
    text = capsys.readouterr().out
    assert "\nfeatures: clauses=12000, density=4.5, gpu=true, cold=false, family=crypto, release=12, " in text
    assert "\x1b" not in text
    assert main(["explain", durable, "2"]) == 0
    assert "features" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("features", "words"),
    [
        (["clauses"], "argument --feature: 'clauses' has no =; write NAME=VALUE, for instance clauses=12000"),
        (["=5"], "argument --feature: '=5' has no name; write NAME=VALUE"),
        (["a=1", "b=2", "a=x"], "--feature a is there twice, as 1 and x; name it once"),
        (["a=" + "x" * 201], "feature 'a'"),
        (["a" * 201 + "=1"], "at most 200"),
        (["a=1e101"], "feature 'a' = 1e+101"),
        ([f"{place}=1" for place in range(257)], "257 features; a task can have at most 256"),
    ],
)
def test_bad_features_are_refused_in_one_line(
    capsys: pytest.CaptureFixture[str], sqlite: str, features: list[str], words: str
) -> None:
    options = [word for text in features for word in ("--feature", text)]
    assert words in complaint(capsys, "decide", sqlite, "sat", "kissat", *options)


def test_features_and_reasons_are_forgotten_from_a_shell(capsys: pytest.CaptureFixture[str], durable: str) -> None:
    for name in ("Ada", "Bob", "Eve"):
        main(["decide", durable, "visit", "1", "--feature", f"name={name}"])
    for id, name in (("1", "Ada"), ("2", "Bob")):
        main(["report", durable, id, "--failed", "--cost", "2", "--reason", f"no {name} here"])
    capsys.readouterr()
    assert "no task" in complaint(capsys, "forget", durable, "1", "77")
    assert main(["forget", durable, "1", "3"]) == 0
    assert capsys.readouterr().out == "forgot the features and reasons of 2 tasks\n"
    assert document(capsys, "forget", durable, "1") == {"tasks": ["1"]}
    lines = document(capsys, "tasks", durable)["tasks"]
    assert [(line["features"], line["reason"]) for line in lines] == [
        (None, None), ({"name": "Bob"}, "no Bob here"), (None, None),
    ]  # fmt: skip
    assert [line["total_cost"] for line in lines] == [None, 2.0, 2.0]
    assert document(capsys, "rebuild", durable, "--check")["same"]


def test_settings_are_changed_from_a_shell(capsys: pytest.CaptureFixture[str], durable: str) -> None:
    main(["decide", durable, "visit", "1"])
    capsys.readouterr()
    assert main(["change", durable, "--no-store-reasons", "--overhead", "0.5"]) == 0
    assert capsys.readouterr().out == "default: overhead = 0.5, store_reasons = false from now on\n"
    main(["report", durable, "1", "--failed", "--cost", "2", "--reason", "Ada is not here"])
    capsys.readouterr()
    assert document(capsys, "tasks", durable)["tasks"][0]["reason"] is None
    changed = document(capsys, "change", durable, "--policy", "plug-ts", "--store-reasons", "--failed-reward", "-1")
    assert changed == {"policy": "plug-ts", "failed_reward": -1.0, "store_reasons": True}
    assert document(capsys, "change", durable, "--failed-reward", "none") == {"failed_reward": "none"}
    assert (document(capsys, "status", durable)["policy"], document(capsys, "status", durable)["overhead"]) == (
        "plug-ts", 0.5,
    )  # fmt: skip
    assert "nothing to change; give at least one of --policy, " in complaint(capsys, "change", durable)
    assert "plug-tz" in complaint(capsys, "change", durable, "--policy", "plug-tz")
    words = "--failed-reward: 'x' is neither a number nor the word none"
    assert words in complaint(capsys, "change", durable, "--failed-reward", "x")
    assert "no scheduler" in complaint(capsys, "change", durable, "--name", "nobody", "--overhead", "1")


def test_the_only_scheduler_of_a_store_needs_no_name(capsys: pytest.CaptureFixture[str], durable: str) -> None:
    with Scheduler(durable, name="training") as scheduler:
        scheduler.decide("weather", [1]).report(1.0, 2.0)
    assert document(capsys, "status", durable)["scheduler"] == "training"
    assert main(["decide", durable, "weather", "1"]) == 0
    assert main(["report", durable, "2", "--reward", "1", "--cost", "2"]) == 0
    assert main(["change", durable, "--overhead", "0.5"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "training: overhead = 0.5 from now on"
    assert len(document(capsys, "tasks", durable)["tasks"]) == 2
    for number in range(11):
        Scheduler(durable, name=f"more {number:02}").close()
    for command in (["status", durable], ["decide", durable, "weather", "1"]):
        said = complaint(capsys, *command)
        assert "there are several schedulers, and none is called default; give --name: " in said
        assert said.endswith("more 08, more 09 and 2 more\n")
    Scheduler(durable).close()
    assert document(capsys, "status", durable)["scheduler"] == "default"
    assert document(capsys, "status", durable, "--name", "training")["reports"] == 2


def test_schedulers_are_made_and_listed_from_a_shell(capsys: pytest.CaptureFixture[str], durable: str) -> None:
    units = ("--reward-unit", "AUC", "--cost-unit", "s")
    told = ("--overhead", "0.5", "--baseline", "5", "--holdout", "0.1", "--declare", "weather=1,5,10")
    made = document(capsys, "create", durable, *units, *told)
    assert (made["scheduler"], made["new"], made["declared"]) == ("default", True, {"weather": [1, 5, 10]})
    assert document(capsys, "create", durable, *units)["new"] is False
    assert main(["create", durable, "--name", "chat", "--floor", "0.8"]) == 0
    assert capsys.readouterr().out == "chat: made, with policy = goal-imed, goal = least cost with mean reward ≥ 0.8\n"
    assert "has overhead 0.5, not 1" in complaint(capsys, "create", durable, "--overhead", "1")
    assert "option 11 for kind 'weather' was not declared" in complaint(capsys, "decide", durable, "weather", "11")
    assert main(["decide", durable, "weather", "10"]) == 0
    assert main(["report", durable, "1", "--reward", "1", "--cost", "1.5"]) == 0
    capsys.readouterr()
    chat, default = document(capsys, "schedulers", durable)["schedulers"]
    assert (default["scheduler"], default["ratio"], default["cost_unit"], chat["tasks"]) == ("default", 0.5, "s", 0)
    assert main(["schedulers", durable]) == 0
    assert "0.50000 AUC/s" in capsys.readouterr().out
    assert main(["status", durable]) == 0
    assert "reward / cost = 0.50000 AUC/s" in capsys.readouterr().out
    assert document(capsys, "change", durable, "--declare", "none", "--cost-unit", "min") == {
        "cost_unit": "min", "declared": {},
    }  # fmt: skip
    assert document(capsys, "decide", durable, "weather", "11")["option"] == 11


def test_a_problem_file_declares_its_kinds_and_options(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "problem.toml"
    option = "{ reward = 1, cost = 1 }"
    path.write_text(f'[[kind]]\nname = "chat"\narrival = 1\noptions = {{ small = {option}, 5 = {option} }}\n')
    store = f"{tmp_path}/tasks.db"
    assert document(capsys, "create", store, "--declare", str(path))["declared"] == {"chat": ["small", 5]}
    assert "did you mean chat?" in complaint(capsys, "decide", store, "caht", "small")
    for wrong, words in ((["chat"], "write KIND=OPTION"), (["a=1", "--declare", "a=2"], "a is there twice")):
        assert words in complaint(capsys, "create", store, "--declare", *wrong)
