"""What a person at a terminal sees: pages that fit, colours there and nowhere else, and what was probably meant."""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from waiting import NET
from worthwhile import Scheduler
from worthwhile.cli.commands import COMMANDS, GROUPS
from worthwhile.cli.main import main, parser
from worthwhile.formatting import PAGE, fitted, table


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two schedulers, one with an option that always fails, units, a baseline, long names and features."""
    address = str(tmp_path_factory.mktemp("terminal") / "tasks.db")
    with Scheduler(address, seed=1, baseline="medium", holdout=0.2, reward_unit="AUC", cost_unit="s") as scheduler:
        for number in range(60):
            kind = ("weather forecasts of the north", "rice")[number % 2]
            task = scheduler.decide(kind, ["small", "medium", "broken"], key=f"job {number}", features={"n": number})
            if task.option == "broken":
                task.fail(1.0, "KeyError: 'rain' in a file with a long name")
            else:
                task.report(12345.678 if task.option == "small" else 23456.789, 1.0 + number % 7)
    Scheduler(address, "another with a floor", floor=0.8).close()
    return address


SHOWN = (
    "status", "tasks", "schedulers", "explain 7", "evaluate --rule greedy", "promote",
    "status --name", "check", "rebuild --check",
)  # fmt: skip


@pytest.mark.parametrize("columns", [60, 80])
@pytest.mark.parametrize("words", SHOWN)
def test_answers_fit_the_terminal_and_no_number_is_broken(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, store: str, columns: int, words: str
) -> None:
    command, *rest = words.split()
    more = ["another with a floor"] if rest == ["--name"] else []
    full = answer(capsys, command, store, *rest, *more)
    monkeypatch.setenv("COLUMNS", str(columns))
    narrow = answer(capsys, command, store, *rest, *more)
    assert max(map(len, narrow.splitlines())) <= columns
    numbers = r"[\d.,:]*\d(?![\w=])"
    assert set(re.findall(numbers, full)) <= set(re.findall(numbers, narrow))


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("columns", [60, 80])
def test_help_fits_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert main([]) == 0
    text = capsys.readouterr().out
    assert [name for name in COMMANDS if f"\n  {name}" not in text] == []
    top = parser()
    pages = [command.format_help() for command in top._subparsers._group_actions[0].choices.values()]
    most = columns if columns == 80 else columns + 6  # argparse breaks no pair of options
    assert max(len(line) for page in (text, *pages) for line in page.splitlines()) <= most


def test_a_wide_page_has_tables_in_one_piece() -> None:
    text = table(["kind", "reward"], [["a name of many words", "1.0"]])
    assert text.splitlines()[2] == "a name of many words     1.0"
    token = PAGE.set(20)
    try:
        assert table(["kind", "reward"], [["a name of many words", "1.0"]]).splitlines()[-3:] == [
            "────────────  ──────", "a name of        1.0", "many words",
        ]  # fmt: skip
        assert fitted("a sentence of many words") == "a sentence of many\n  words"
    finally:
        PAGE.reset(token)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["statsu"], "no command: statsu; did you mean 'status'?"),
        (["status", "x.db", "--nmae", "y"], "unrecognized arguments: --nmae y; did you mean '--name'?"),
        (["solve", "x", "--goal", "rewards"], "invalid choice: 'rewards'; did you mean 'reward'?"),
        (["token", "crete", "x.db"], "did you mean 'create'?"),
    ],
)
def test_what_is_misspelt_is_told_what_was_meant(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert main(arguments) == 2
    assert words in capsys.readouterr().err


def test_every_command_is_where_the_overview_says() -> None:
    commands = parser()._subparsers._group_actions[0].choices
    assert set(commands) == set(COMMANDS)
    assert sum(map(len, GROUPS.values())) == len(COMMANDS)


def on_terminal(*arguments: str, **environment: str) -> str:
    """What a real terminal gets."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "worthwhile", *arguments]
    plain = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS")}
    with subprocess.Popen(
        command, stdout=theirs, stderr=theirs, env=plain | {"TERM": "xterm"} | environment
    ) as process:
        os.close(theirs)
        said = b""
        try:
            while new := os.read(ours, 65536):
                said += new
        except OSError:  # Linux says so when the other side is closed
            pass
        process.wait(NET)
    os.close(ours)
    return said.decode()


def test_colours_are_for_terminals_that_want_them(store: str) -> None:
    shown = on_terminal("status", store, COLUMNS="60")
    assert re.search(r"\x1b\[32m\w+ ★\x1b\[0m", shown)
    assert max(len(re.sub(r"\x1b\[\d+m", "", line)) for line in shown.splitlines()) <= 60
    assert "\x1b" not in on_terminal("status", store, NO_COLOR="1")
    assert "\x1b[31mworthwhile:" in on_terminal("statsu")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_commands_options_and_values(capsys: pytest.CaptureFixture[str], shell: str) -> None:
    script = answer(capsys, "completion", shell)
    assert [name for name in COMMANDS if name not in script] == []
    assert "plug-ts" in script
    assert "holdout" in script
    if path := shutil.which(shell):
        checked = subprocess.run([path, "-n"], input=script, text=True, capture_output=True, timeout=NET, check=False)
        assert (checked.returncode, checked.stderr) == (0, "")


def test_bash_completes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    script = answer(capsys, "completion", "bash")
    ask = 'COMP_WORDS=({}); COMP_CWORD={}; _worthwhile; echo "${{COMPREPLY[*]}}"\n'
    asked = [("worthwhile sta", 1), ("worthwhile change --hold", 2), ("worthwhile solve --goal r", 3)]
    lines = "".join(ask.format(words, place) for words, place in asked)
    ended = subprocess.run(
        ["bash"], input=script + lines, text=True, capture_output=True, timeout=NET, check=True, cwd=tmp_path
    )
    assert ended.stdout.splitlines() == ["status", "--holdout", "ratio reward"]


def test_deciding_imports_no_more_than_it_needs(tmp_path: Path) -> None:
    code = "import sys; from worthwhile.cli.main import main; main(sys.argv[1:]); print(*sys.modules)"
    arguments = ["decide", str(tmp_path / "tasks.db"), "weather", "1", "5"]
    ended = subprocess.run(
        [sys.executable, "-c", code, *arguments], text=True, capture_output=True, timeout=NET, check=True
    )
    loaded = set(ended.stdout.split())
    unneeded = ("live.scheduler", "live.summary", "live.log_statistics", "optimum", "simulation.loop", "policies.bts")
    assert "worthwhile.live.transactor" in loaded
    assert not loaded & {"statistics", "apsw.ext", "importlib.metadata", *(f"worthwhile.{name}" for name in unneeded)}
