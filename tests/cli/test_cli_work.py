"""`worthwhile work` from a shell: tasks from a file or standard input, done once, interrupted and resumed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from waiting import NET, has_taken_signals, wait_until
from worthwhile import Scheduler
from worthwhile.cli.main import main
from worthwhile.cli.work import arrival
from worthwhile.errors import BadTask

JOBS = """
import os, time

def sleep(kind, option, payload):
    time.sleep(option)
    return payload

def wait(kind, option, payload):
    while payload == "last" and not os.path.exists("go"):
        time.sleep(0.01)
    return 2.0

def sometimes(kind, option, payload):
    if option != "good":
        raise KeyError(option)
    return 2.0

def joules():
    return 7.0 * time.perf_counter()

def prepare():
    open(f"warm {os.getpid()}", "x").close()

def cold():
    raise OSError("no network")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "jobs_of_a_test.py").write_text(JOBS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    return tmp_path


def lines(count: int, **more: Any) -> str:
    task = {"kind": "x", "options": [0.01], "payload": 2.0, **more}
    return "".join(json.dumps(task) + "\n" for _ in range(count))


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main(["work", "jobs_of_a_test:sleep", "--store", "tasks.db", "--slots", "1", "--json", *arguments]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_lines_of_a_file_are_done_once_and_the_file_may_grow(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks = folder / "tasks.jsonl"
    tasks.write_text(lines(3))
    assert document(capsys, "--tasks", "tasks.jsonl")["reported"] == 3
    tasks.write_text(lines(4) + lines(1, payload="no reward", key="own"))
    answer = document(capsys, "--tasks", "tasks.jsonl", "--failed-reward", "-1", "--meter", "jobs_of_a_test:joules")
    assert (answer["reported"], answer["failed"], answer["skipped"], answer["reward"]) == (1, 1, 3, 1.0)
    assert answer["cost"] >= 2 * 7 * 0.01
    with Scheduler("tasks.db") as scheduler:
        assert {line.key for line in scheduler.latest(9)} == {*(f"tasks.jsonl:{line}" for line in range(1, 5)), "own"}


def test_features_in_the_lines_of_a_file_are_stored_with_their_tasks(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known = {"clauses": 12000, "family": "crypto", "gpu": True}
    (folder / "tasks.jsonl").write_text(lines(1, features=known) + lines(1) + lines(1, features={"clauses": None}))
    assert document(capsys, "--tasks", "tasks.jsonl")["reported"] == 3
    assert document(capsys, "--tasks", "tasks.jsonl")["skipped"] == 3
    with Scheduler("tasks.db") as scheduler:
        assert [line.features for line in scheduler.latest(9)] == [None, None, known]


def test_what_cannot_be_run_is_refused_in_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "bad.jsonl").write_text(lines(1) + '{"kind": "x"}\n')
    for words, message in (
        (["jobs_of_a_test", "--store", "x.db"], "no import path"),
        (["no_such_module:run", "--store", "x.db"], "cannot import"),
        (["jobs_of_a_test:nothing", "--store", "x.db"], "cannot import"),
        (["jobs_of_a_test:sleep", "--store", "x.db", "--tasks", "none.jsonl"], "cannot read none.jsonl"),
        (["jobs_of_a_test:sleep", "--store", "x.db", "--tasks", "bad.jsonl"], "bad.jsonl, line 2"),
        (["jobs_of_a_test:sleep", "--store", "x.db", "--timeout", "0"], "timeout = 0"),
        (["jobs_of_a_test:sleep", "--store", "x.db", "--address", "tcp://x"], "local processes have none"),
    ):
        assert main(["work", *words]) == 2
        said = capsys.readouterr()
        assert message in said.err
        assert (said.out, len(said.err.splitlines())) == ("", 1)
    with Scheduler("x.db") as scheduler:
        assert scheduler.summary().reports == 1  # the good line before the bad one


def test_processes_warm_up_first_or_nothing_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "tasks.jsonl").write_text(lines(3))
    words = ["--tasks", "tasks.jsonl", "--warm-up"]
    command = ["work", "jobs_of_a_test:sleep", "--store", "tasks.db", "--slots", "1", *words]
    assert main([*command, "jobs_of_a_test:cold"]) == 2
    said = capsys.readouterr()
    assert (said.out, len(said.err.splitlines())) == ("", 1)
    assert "warm_up = cold: OSError: no network; no task runs without it" in said.err
    assert main([*command, "cold"]) == 2
    assert "'cold' is no import path" in capsys.readouterr().err
    assert document(capsys, *words, "jobs_of_a_test:prepare")["reported"] == 3
    assert len(list(folder.glob("warm *"))) == 1


def test_ctrl_c_ends_with_130_and_the_same_command_goes_on(folder: Path) -> None:
    (folder / "tasks.jsonl").write_text(lines(3) + lines(27, payload="last"))
    words = "work jobs_of_a_test:wait --store tasks.db --tasks tasks.jsonl --slots 1 --json"
    command = [sys.executable, "-m", "worthwhile", *words.split()]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    wait_until(lambda: os.path.exists("tasks.db") and reports() == 3, "the first tasks")
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all processes of the command
    wait_until(lambda: has_taken_signals(process.pid), "Ctrl-C")
    (folder / "go").touch()
    answer = json.loads(process.communicate(timeout=NET)[0])
    assert (process.returncode, answer["interrupted"], answer["failed"]) == (130, True, 0)
    assert 3 <= answer["reported"] < 30
    again = json.loads(subprocess.run(command, capture_output=True, text=True, check=True, timeout=NET).stdout)
    assert (again["skipped"], again["reported"]) == (answer["reported"], 30 - answer["reported"])


def reports() -> int:
    with Scheduler("tasks.db") as scheduler:
        return scheduler.summary().reports


def test_why_tasks_failed_is_said_once_and_it_matters_if_all_did(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "bad.jsonl").write_text(lines(3, payload="text") + lines(1, kind="y", payload=None))
    words = ["work", "jobs_of_a_test:sleep", "--store", "bad.db", "--slots", "1", "--tasks", "bad.jsonl"]
    assert main(words) == 1
    said = capsys.readouterr()
    assert said.err.count("reward = 'text'; it must be a number") == 1
    assert "task 4 (y, 0.01) failed" in said.err
    reason = "BadFeedback: reward = 'text'; it must be a number"
    assert "4 tasks done, 4 of them failed, 0 were done before" in said.out
    assert said.out.splitlines()[-1] == f"most frequent failure: 3 × {reason}"


def test_what_fails_is_tried_again_when_asked_for(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "tasks.jsonl").write_text(lines(4, options=["bad", "good"]))
    with Scheduler("again.db", policy="fixed-option") as scheduler:
        scheduler.announce(options=["bad", "good"])
    words = ["work", "jobs_of_a_test:sometimes", "--store", "again.db", "--slots", "1", "--tasks", "tasks.jsonl"]
    assert main([*words, "--attempts", "2"]) == 0
    said = capsys.readouterr()
    assert said.err == "task 1 (x, bad) failed and was tried again: KeyError: 'bad'\n"
    assert "4 tasks done, 0 of them failed, 0 were done before, 4 attempts followed a failed one" in said.out
    assert said.out.splitlines()[-1] == "most frequent failure: 4 × KeyError: 'bad'"
    assert main([*words, "--attempts", "0"]) == 2
    assert "attempts = 0; it must be a whole number" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("function", "text", "complaint"),
    [
        ("jobs_of_a_test:number", "", "'jobs_of_a_test:number' is 3; name a function"),
        ("jobs_of_a_test:later", "", "name a function that is not async"),
        ("broken_of_a_test:f", "", "ZeroDivisionError: division by zero"),
        ("jobs_of_a_test:sleep", '{"kind": "a", "options": 1}\n', "options = 1; give a list of options"),
        ("jobs_of_a_test:sleep", '{"kind": "ä"}\n', "it is not UTF-8"),
        (
            "jobs_of_a_test:sleep",
            '{"kind": "a"}\n',
            "some.jsonl, line 1: 'options' is missing; a task is a JSON object",
        ),
        ("jobs_of_a_test:sleep", '{"knd": "a"}\n', "line 1: a task has no 'knd'; did you mean 'kind'?"),
        ("jobs_of_a_test:sleep", '["a", [1]]\n', 'line 1: ["a", [1]] is no object; a task is'),
        ("jobs_of_a_test:sleep", "kind\n", "line 1: Expecting value"),
        (
            "jobs_of_a_test:sleep",
            '{"kind": "a", "options": [1], "features": ["size"]}\n',
            "some.jsonl, line 1: features = ['size']; give a mapping of names to values",
        ),
        (
            "jobs_of_a_test:sleep",
            '{"kind": "a", "options": [1], "features": {"size": [3]}}\n',
            "some.jsonl, line 1: feature 'size' = [3]; it must be a number, true, false or text",
        ),
        (
            "jobs_of_a_test:sleep",
            '{"kind": "a", "options": [1], "features": {"size": NaN}}\n',
            "some.jsonl, line 1: feature 'size' = nan; if it is not known, leave it out",
        ),
    ],
)
def test_what_cannot_be_run_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], function: str, text: str, complaint: str
) -> None:
    with open(folder / "jobs_of_a_test.py", "a", encoding="utf-8") as file:
        file.write("\nnumber = 3\n\nasync def later(kind, option, payload):\n    return 1.0\n")
    sys.modules.pop("jobs_of_a_test", None)
    (folder / "broken_of_a_test.py").write_text("1 / 0\n")
    (folder / "some.jsonl").write_bytes(text.encode("latin-1"))
    assert main(["work", function, "--store", "none.db", "--slots", "1", "--tasks", "some.jsonl"]) == 2
    assert complaint in capsys.readouterr().err


def test_numbers_that_make_no_sense_are_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["train", "--tasks", "-3"], ["train", "--seed", "-1"], ["tasks", "x.db", "--count", "0"]):
        assert main(words) == 2
        assert "is below" in capsys.readouterr().err


def test_another_seed_needs_another_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "out").mkdir()
    with Scheduler(folder / "out" / "tasks.db") as scheduler:
        scheduler.decide("iris", [1, 2], key="bundled 0.0")
    assert main(["train", "--no-dashboard", "--seed", "1", "--tasks", "1", "--out", "out"]) == 2
    assert "out has the tasks of --seed 0, not 1; name another folder" in capsys.readouterr().err


def test_a_function_that_cannot_be_called_is_refused_before_any_task(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "few_of_a_test.py").write_text("def train(kind, option):\n    return 1.0\n")
    (tmp_path / "tasks.jsonl").write_text('{"kind": "x", "options": [1]}\n')
    store = str(tmp_path / "tasks.db")
    assert main(["work", "few_of_a_test:train", "--store", store, "--tasks", "tasks.jsonl"]) == 2
    assert "few_of_a_test:train(kind, option) cannot be called as run(kind, option, payload)" in capsys.readouterr().err
    assert not (tmp_path / "tasks.db").exists()


@pytest.mark.parametrize(
    ("task", "words"),
    [({"kind": "", "options": [1]}, "kind ''"), ({"kind": "x", "options": 5}, "give a list of options"),
     ({"kind": "x", "options": []}, "no options"), ({"kind": "x", "options": [[1]]}, "option [1]")],
)  # fmt: skip
def test_a_bad_task_is_named_by_its_line(task: dict[str, Any], words: str) -> None:
    with pytest.raises(BadTask, match=r"jobs.jsonl, line 7: ") as refused:
        arrival(json.dumps(task), "jobs.jsonl, line 7", None)
    assert words in str(refused.value)
