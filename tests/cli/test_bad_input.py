"""Bad input of every kind: one line that names the file, row, field and value; exit code 2; never a traceback."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.csv
import pyarrow.parquet
import pytest

from waiting import NET
from worthwhile import Problem, Scheduler, solve
from worthwhile.cli.main import main
from worthwhile.errors import BadParameter, BadProblem, BadTask

KIND = '[[kind]]\nname = "x"\narrival = 1.0\n'
GOOD = KIND + "options = { a = { reward = 1.0, cost = 2.0 } }\n"
TWO_OF_THREE = """
[[kind]]
name = "x"
arrival = 1.0
options = { a = { reward = 1, cost = 1 }, b = { reward = 1, cost = 1 } }
[[kind]]
name = "never"
arrival = 0.0
options = { c = { reward = 1, cost = 1 } }
"""
HEADER = "task_type,item_id,option,reward,cost\n"
POLICY = """
from typing import NamedTuple

import numpy as np

from worthwhile.decision import Decision
from worthwhile.policies.fixed import State


class Mine(NamedTuple):
    rate: float = 1.0

    def init(self, kinds, options):
        return State(np.zeros(1))

    def choose(self, state, kind, options, pending, rng):
        {choose}

    def judge(self, state, kind, option):
        return Decision(option, 0.0, 0.0)

    def learn(self, state, kind, made, reward, cost, rng):
        pass

    def observe(self, state, kind, option, reward, cost, rng):
        pass
"""


def complaint(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line with which a command refuses its input."""
    assert main(list(arguments)) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("worthwhile: ")
    assert len(said.err.splitlines()) == 1
    return said.err.removeprefix("worthwhile: ").strip()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (GOOD.replace("1.0\n", "-0.2\n"), ["kind 'x'", "arrival = -0.2", "from 0 to 1"]),
        (GOOD.replace("1.0\n", "0.9\n"), ["add up to 0.9"]),
        (GOOD.replace("1.0\n", "nan\n"), ["kind 'x'", "arrival = nan", "finite"]),
        (GOOD.replace("arrival = 1.0\n", ""), ["kind 'x' has no arrival"]),
        (GOOD.replace(", cost = 2.0", ""), ["kind 'x', option 'a' has no cost"]),
        (GOOD.replace("reward = 1.0, ", ""), ["kind 'x', option 'a' has no reward"]),
        (GOOD.replace("cost = 2.0", "cost = 0"), ["kind 'x', option 'a'", "mean cost 0", "above 0"]),
        (GOOD.replace("cost = 2.0", "cost = -2"), ["kind 'x', option 'a'", "mean cost -2"]),
        (GOOD.replace("reward = 1.0", "reward = nan"), ["kind 'x', option 'a'", "reward = nan"]),
        (GOOD.replace("reward = 1.0", "reward = inf"), ["reward = inf", "finite number"]),
        (GOOD.replace("reward = 1.0", 'reward = "high"'), ["reward = 'high'", "finite number"]),
        (GOOD.replace("reward = 1.0", 'reward = "1.0"'), ["reward = '1.0'", "finite number"]),
        (GOOD.replace('"x"', '""'), ["kind 1 has an empty name"]),
        (GOOD.replace("a = {", '"" = {'), ["option 1 has an empty name"]),
        (GOOD.replace("reward = 1.0", "reward = true"), ["reward = True", "finite number"]),
        (GOOD.replace("reward = 1.0", f"reward = 1{'0' * 400}"), ["kind 'x', option 'a'", "finite number"]),
        (GOOD.replace("{ reward = 1.0, cost = 2.0 }", "7"), ["option 'a' is 7", "must be a table"]),
        (KIND + "options = {}\n", ["kind 'x' has no options"]),
        (KIND, ["kind 'x' has no options"]),
        (GOOD.replace("arrival", "arival"), ["unknown key 'arival'", "did you mean 'arrival'?"]),
        (GOOD.replace("cost", "costs"), ["unknown key 'costs'", "did you mean 'cost'?"]),
        ("nosie = {}\n" + GOOD, ["the file has an unknown key 'nosie'", "did you mean 'noise'?"]),
        ("noise = { reward = { family = 'gausian' } }\n" + GOOD, ["'gausian'", "did you mean 'gaussian'?"]),
        ("noise = { reward = { sd = -1 } }\n" + GOOD, ["sd = -1"]),
        ("noise = { reward = { sd = 1, cv = 1 } }\n" + GOOD, ["both sd = 1", "cv = 1"]),
        ("noise = { cost = { family = 'bernoulli' } }\n" + GOOD, ["bernoulli costs", "from 0 to 1"]),
        ("noise = { correlation = 2 }\n" + GOOD, ["correlation = 2"]),
        ("noise = 3\n" + GOOD, ["[noise] is 3", "must be a table"]),
        ("floor = nan\n" + GOOD, ["floor = nan", "it must be a finite number, or {kind: number}"]),
        ("floor = '0.8'\n" + GOOD, ["floor = '0.8'", "finite number"]),
        ("floor = {}\n" + GOOD, ["floor = {}", "name at least one kind"]),
        ("floor = { X = 0.8 }\n" + GOOD, ["floor of 'X'", "no kind of that name", "known: x"]),
        ("budget = 0\n" + GOOD, ["budget = 0", "above 0"]),
        ("floor = 1\nbudget = 1\n" + GOOD, ["floor = 1 and budget = 1 need a goal"]),
        ("goal = 'cost'\n" + GOOD, ["goal = 'cost' needs a floor"]),
        ("goal = 'rewards'\nbudget = 1\n" + GOOD, ["goal = 'rewards'", "did you mean 'reward'?"]),
        (GOOD + "floor = 0.8\n", ["kind 'x' has a floor", "above the first [[kind]]"]),
        (GOOD + GOOD, ["kind 'x' appears twice"]),
        ("kind = [1, 2]\n", ["kind", "must be a table"]),
        ("kind = 5\n", ["no [[kind]] table"]),
        ("", ["no [[kind]] table"]),
        ("arrival: 0.5", ["line 1"]),
        ("[[kind]", ["line 1"]),
    ],
)
def test_a_bad_problem_file_is_refused_by_name(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, content: str, words: list[str]
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(content)
    for command in ("solve", "simulate"):
        said = complaint(capsys, command, str(path))
        assert str(path) in said
        for word in words:
            assert word in said


def test_the_good_problem_file_is_good(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(GOOD)
    assert main(["solve", str(path)]) == 0
    assert "θ* = 0.5" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["solve", "simulate"])
def test_a_problem_that_is_no_file_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path, command: str) -> None:
    assert str(tmp_path) in complaint(capsys, command, str(tmp_path))
    assert "did you mean 'seven-kinds'?" in complaint(capsys, command, "seven-kind")
    junk = tmp_path / "junk.toml"
    junk.write_bytes(bytes(range(256)))
    assert str(junk) in complaint(capsys, command, str(junk))


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        ("two-kinds-1.5", ["arrival = 1.5"]),
        ("two-kinds-many", ["'many'", "finite number"]),
        ("random:train", ["random:FAMILY:SEED"]),
        ("random:train:-1", ["random:FAMILY:SEED"]),
        ("random:trian:1", ["no family 'trian'", "did you mean 'train'?"]),
    ],
)
def test_a_bad_problem_name_is_explained(capsys: pytest.CaptureFixture[str], problem: str, words: list[str]) -> None:
    said = complaint(capsys, "solve", problem)
    for word in words:
        assert word in said


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", ["no column task_type, option, reward, cost"]),
        (HEADER, ["no rows"]),
        ("task_type,item_id,option,reward\nx,1,a,1\n", ["no column cost", "found: task_type"]),
        (HEADER + "x,1,a,1,2\nx,2,a,1,0\n", ["row 3", "cost = 0", "above 0"]),
        (HEADER + "x,1,a,1,-2.5\n", ["row 2", "cost = -2.5"]),
        (HEADER + "x,1,a,1,2\nx,2,a,good,2\n", ["column reward", "row 3", "'good'"]),
        (HEADER + "x,1,a,nan,2\n", ["column reward", "row 2", "'nan'"]),
        (HEADER + "x,1,a,1,inf\n", ["column cost", "row 2", "'inf'"]),
        (HEADER + "x,1,a,1,\n", ["column cost", "row 2", "''"]),
        (HEADER + "x,1,a,1\n", ["row 2", "4 values for 5 columns"]),
        (HEADER + "x,1,a,1,2\n\nx,1,a,1,0\n", ["row 3", "0 values for 5 columns"]),
    ],
)
def test_a_bad_table_is_refused_by_row_and_column(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, content: str, words: list[str]
) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(content)
    said = complaint(capsys, "replay", str(path))
    assert str(path) in said
    for word in words:
        assert word in said


def test_a_table_that_is_no_table_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for name in ("junk.csv", "junk.parquet", "empty.parquet", "table.xlsx"):
        (tmp_path / name).write_bytes(b"" if name.startswith("empty") else bytes(range(256)))
        assert str(tmp_path / name) in complaint(capsys, "replay", str(tmp_path / name))
    assert str(tmp_path) in complaint(capsys, "replay", str(tmp_path))
    assert "missing.csv" in complaint(capsys, "replay", "missing.csv")


def test_a_bad_parquet_table_is_refused_by_row_and_column(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    good = {"task_type": ["x", "x"], "item_id": [1, 2], "option": ["a", "a"], "reward": [1.0, 2.0], "cost": [1.0, 2.0]}
    path = tmp_path / "mine.parquet"
    bad = {"no column cost": {"cost": None}, "row 2: cost = -1": {"cost": [1.0, -1.0]}}
    bad |= {"row 1: None is not": {"reward": [None, "1"]}, "row 2: 'x' is not": {"reward": ["1", "x"]}}
    for words, change in bad.items():
        columns = {name: column for name, column in {**good, **change}.items() if column is not None}
        pyarrow.parquet.write_table(pyarrow.table(columns), path)
        said = complaint(capsys, "replay", str(path))
        assert words in said
        assert str(path) in said


def test_an_added_cost_that_leaves_nothing_positive_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(HEADER + "x,1,a,1,2\n")
    assert "added cost -3" in complaint(capsys, "replay", str(path), "--added-cost", "-3")
    assert "mean cost -1" in complaint(capsys, "solve", str(path), "--added-cost", "-3")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--floor nan", ["floor = nan; it must be a finite number"]),
        ("--floor high", ["--floor: 'high': write a number, or KIND=number"]),
        ("--floor s1=", ["--floor: 's1=': write a number, or KIND=number"]),
        ("--floor =1", ["floor of '': a kind is a text that is not empty"]),
        ("--floor s9=1", ["floor of 's9': there is no kind of that name", "did you mean 's"]),
        ("--floor s1=1 --floor s1=2", ["--floor of s1 is there twice, as 1 and 2; say it once"]),
        ("--floor 1 --floor 1", ["--floor is there twice, as 1 and 1; say it once"]),
        ("--floor 1 --floor s1=2", ["--floor 1 is for all tasks; leave it out, or the floors of single kinds"]),
        ("--budget -1", ["budget = -1; it must be above 0"]),
        ("--budget inf", ["budget = inf; it must be a finite number above 0"]),
        ("--budget much", ["--budget: invalid float value: 'much'"]),
        ("--floor 1 --budget 1", ["floor = 1.0 and budget = 1.0 need a goal beside them: 'ratio' or"]),
        ("--goal cost", ["goal = 'cost' needs a floor"]),
        ("--goal reward --floor 1", ["goal = 'reward' needs a budget"]),
        ("--goal profit", ["--goal: invalid choice: 'profit'"]),
    ],
)
def test_a_goal_that_makes_no_sense_is_refused(
    capsys: pytest.CaptureFixture[str], arguments: str, words: list[str]
) -> None:
    said = complaint(capsys, "solve", "seven-kinds", *arguments.split())
    for word in words:
        assert word in said


def seconds_of_replay(path: Path, rows: int) -> float:
    """CPU time of a replay of so many random rows."""
    rng = np.random.default_rng(0)
    numbers = [rng.integers(0, most, rows) for most in (20, 100_000, 8)]
    names = ("task_type", "item_id", "option")
    columns = {name: pyarrow.array(column).cast("string") for name, column in zip(names, numbers, strict=True)}
    table = pyarrow.table(columns | {name: rng.uniform(0.1, 1.0, rows).round(4) for name in ("reward", "cost")})
    if path.suffix == ".csv":
        pyarrow.csv.write_csv(table, path)
    else:
        pyarrow.parquet.write_table(table, path)
    started = time.process_time()
    assert main(["replay", str(path), "--tasks", "100", "--runs", "1", "--engine", "python"]) == 0
    return time.process_time() - started


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [pytest.param(".csv", marks=pytest.mark.long), ".parquet"])
def test_a_million_rows_are_no_problem(capsys: pytest.CaptureFixture[str], tmp_path: Path, suffix: str) -> None:
    few, many = (seconds_of_replay(tmp_path / f"{rows}{suffix}", rows) for rows in (100_000, 1_000_000))
    assert many < 30.0 * few  # ten times as much, not a hundred times
    assert capsys.readouterr().out.count("optimum θ*") == 2


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (("--tasks", "0"), ["tasks = 0", "at least 1"]),
        (("--tasks", "-5"), ["tasks = -5"]),
        (("--tasks", "many"), ["--tasks", "'many' is not a whole number"]),
        (("--tasks", "1.5"), ["--tasks", "'1.5' is not a whole number"]),
        (("--tasks", "inf"), ["--tasks", "'inf' is not a whole number"]),
        (("--tasks", "1e30"), ["tasks = 1000000000000000"]),
        (("--runs", "0"), ["runs = 0"]),
        (("--seed", "-1"), ["seed = -1"]),
        (("--threads", "0"), ["threads = 0"]),
        (("--delay", "9-3"), ["(9, 3)", "least ≤ most"]),
        (("--delay", "-3"), ["delay = -3"]),
        (("--delay", "soon"), ["--delay", "'soon' is not a whole number"]),
        (("--delay", "1e15"), ["delay = 1000000000000000"]),
        (("--engine", "fast"), ["--engine", "'fast'", "compiled"]),
        (("--frob",), ["--frob", "worthwhile simulate --help"]),
        (("--policy", "ratio-imd"), ["no policy 'ratio-imd'", "did you mean 'ratio-imed'?"]),
        (("--policy", "dol-rm,nois=2"), ["'dol-rm' has no parameter 'nois'", "did you mean 'noise'?"]),
        (("--policy", "dol-rm,noise"), ["'noise' is not parameter=value"]),
        (("--policy", "dol-rm,noise=loud"), ["noise = 'loud'", "a number"]),
        (("--policy", "dol-rm,noise=nan"), ["noise = nan", "finite"]),
        (("--policy", "dol-rm,noise=-1"), ["noise = -1", "0 or more"]),
        (("--policy", "omega-ucb,rho=-1"), ["rho = -1", "0 or more"]),
        (("--policy", "b-greedy,exploration=-1"), ["exploration = -1", "0 or more"]),
        (("--policy", "dol-rm,cost_min=0"), ["cost_min = 0", "above 0"]),
        (("--policy", "dol-rm,anytime=maybe"), ["anytime = 'maybe'", "true or false"]),
        (("--policy", "oracle,mean_reward=3"), ["mean_reward = '3'"]),
        (("--policy", "fixed-option,option=a9"), ["no option 'a9'"]),
        (("--policy", "nowhere:Mine"), ["cannot import 'nowhere'"]),
        (("--policy", "worthwhile.policies.registry:Mine"), ["has no 'Mine'"]),
        (("--policy", "json:loads"), ["'json:loads' is not a policy"]),
        (("--then", "two-kinds-0.2"), ["PROBLEM@TASK"]),
        (("--then", "two-kinds-0.2@soon"), ["'soon' is not a whole number"]),
        (("--then", "two-kind@50"), ["no problem file 'two-kind'"]),
        (("--then", "seven-kinds@50"), ["other kinds or options"]),
        (("--then", "two-kinds-0.2@0"), ["stages start at [0, 0]"]),
        (("--then", "two-kinds-0.2@50", "--then", "two-kinds-0.2@40"), ["stages start at [0, 50, 40]"]),
        (("--then", "two-kinds-0.2@20000"), ["@20000", "only 10000 tasks"]),
    ],
)
def test_a_bad_option_is_explained(
    capsys: pytest.CaptureFixture[str], option: tuple[str, ...], words: list[str]
) -> None:
    said = complaint(capsys, "simulate", "two-kinds-0.8", *option)
    for word in words:
        assert word in said


@pytest.mark.parametrize(("option", "words"), [("--out", ".parquet or .csv"), ("--plot", ".png or .svg")])
def test_a_file_that_cannot_be_written_is_refused_before_the_long_run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, option: str, words: str
) -> None:
    endless = ("simulate", "seven-kinds", "--tasks", "1e14", option)
    suffix = words.rsplit(maxsplit=1)[-1]
    assert words in complaint(capsys, *endless, str(tmp_path / "runs.xlsx"))
    (tmp_path / "file").write_text("")
    assert "cannot write" in complaint(capsys, *endless, str(tmp_path / "file" / f"runs{suffix}"))
    (tmp_path / f"folder{suffix}").mkdir()
    assert "is a folder" in complaint(capsys, *endless, str(tmp_path / f"folder{suffix}"))
    assert "cannot write" in complaint(capsys, *endless, f"/proc/nowhere/runs{suffix}")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", f"folder{suffix}"]


@pytest.mark.parametrize(
    ("module", "choose", "engine", "words"),
    [
        ("uses_sets", "return Decision(max({str(o) for o in options}), 0.0, 0.0)", "compiled", ["cannot compile Mine"]),
        ("unknown_option", "return Decision(99, 0.0, 0.0)", "python", ["Mine chose", "not on offer"]),
        ("unknown_compiled", "return Decision(99, 0.0, 0.0)", "compiled", ["Mine chose", "not on offer"]),
        ("not_offered", "return Decision(2, 0.0, 0.0)", "python", ["Mine chose", "not on offer"]),
        ("negative", "return Decision(-2, 0.0, 0.0)", "python", ["Mine chose", "not on offer"]),
        ("negative_compiled", "return Decision(-2, 0.0, 0.0)", "compiled", ["Mine chose", "not on offer"]),
        ("no_python", "return return", "python", ["no_python:Mine", "cannot import"]),
    ],
)
def test_a_broken_policy_of_ones_own_is_explained(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    module: str,
    choose: str,
    engine: str,
    words: list[str],
) -> None:
    (tmp_path / f"{module}.py").write_text(POLICY.replace("{choose}", choose))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "two_of_three.toml").write_text(TWO_OF_THREE)
    few = ("--tasks", "50", "--runs", "2", "--engine", engine)
    said = complaint(capsys, "simulate", "two_of_three.toml", "--policy", f"{module}:Mine", *few)
    for word in words:
        assert word in said


def test_a_bad_command_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "COMMAND" in capsys.readouterr().out
    assert "simulat" in complaint(capsys, "simulat", "seven-kinds")
    assert "PROBLEM" in complaint(capsys, "simulate")


def test_a_missing_class_of_numbers_never_warns(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "coins.toml"
    coins = "noise = { reward = { family = 'bernoulli' }, cost = { family = 'bernoulli' } }\n"
    path.write_text(coins + GOOD.replace("reward = 1.0, cost = 2.0", "reward = 0.0, cost = 0.3"))
    saved = ("--out", str(tmp_path / "runs.csv"), "--plot", str(tmp_path / "curves.png"))
    assert main(["simulate", str(path), "--tasks", "40", "--runs", "2", "--engine", "python", *saved]) == 0
    said = capsys.readouterr()
    assert "θ* = 0.0000" in said.out
    assert "Warning" not in said.err


@pytest.mark.parametrize("arguments", [("solve", "{file}"), ("simulate", "{file}"), ("replay", "{file}")])
def test_the_real_command_ends_with_2_and_no_traceback(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    path = tmp_path / "junk.csv"
    path.write_bytes(bytes(range(256)))
    command = [sys.executable, "-m", "worthwhile", *(word.format(file=path) for word in arguments)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=NET, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert len(ended.stderr.splitlines()) == 1
    assert ended.stderr.startswith(f"worthwhile: {path}")


@pytest.mark.parametrize("kinds", [{"a": (1, {"x": 1})}, {"a": {"x": (1, 1)}}, [1], {"a": ("b", {"x": (1, 1)})}, None])
def test_a_problem_of_another_shape_is_refused(kinds: Any) -> None:
    with pytest.raises(BadProblem, match=r"write \{kind: \(arrival, \{option: \(mean reward, mean cost\)\}\)\}"):
        Problem.of(kinds)


def test_what_is_no_problem_or_store_is_refused() -> None:
    with pytest.raises(BadProblem, match="'seven-kinds' is no Problem; read_problem"):
        solve("seven-kinds")  # type: ignore[arg-type]
    with pytest.raises(BadParameter, match="store 5; write sqlite:///"):
        Scheduler(5)  # type: ignore[arg-type]
    with pytest.raises(BadTask, match="options = 5; give a list of options"):
        Scheduler().decide("a", 5)  # type: ignore[arg-type]
