"""`worthwhile run`: the command gets its option, the scheduler gets what came of it, the caller gets the exit code."""

from __future__ import annotations

import json
import os
import pty
import shlex
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service_process import listening
from waiting import NET, has_taken_signals, wait_until
from worthwhile import Scheduler
from worthwhile.cli.main import main
from worthwhile.execution import command
from worthwhile.execution.claims import beginning
from worthwhile.live.explain import TaskLine

HEARS = """\
import pathlib, signal, sys, time

def hear(number, frame):
    with open("heard", "a") as file:
        file.write(signal.Signals(number).name + " ")

for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
    signal.signal(number, hear)
pathlib.Path("ready").write_text(str(__import__("os").getpid()))
end = time.monotonic() + 300
while not pathlib.Path("go").exists() and time.monotonic() < end:
    time.sleep(0.01)
sys.exit(7)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "hears.py").write_text(HEARS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def shell(script: str, *flags: str, options: tuple[str, ...] = ("2",)) -> int:
    return main(["run", "tasks.db", "x", "--options", *options, *flags, "--", "sh", "-c", script])


def task(store: str = "tasks.db") -> TaskLine:
    """The latest one."""
    with Scheduler(store, create=False) as scheduler:
        return scheduler.latest(1)[0]


def started(*words: str) -> subprocess.Popen[str]:
    """The real thing, in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "worthwhile", "run", "tasks.db", "x", "--options", "2", *words],
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("script", "code", "state", "reason"),
    [
        ("exit 0", 0, "reported", None),
        ("exit 3", 3, "failed", "exit code 3"),
        ("kill -9 $$", 137, "failed", "killed by SIGKILL"),
    ],
)
def test_the_exit_code_says_what_came_of_it_and_is_passed_on(
    script: str, code: int, state: str, reason: str | None
) -> None:
    assert shell(script) == code
    line = task()
    assert (line.state, line.reason, line.reward) == (state, reason, 1.0 if code == 0 else None)
    assert line.cost is not None
    assert line.cost > 0.0


@pytest.mark.usefixtures("folder")
def test_the_option_is_in_the_command_and_in_its_environment(capfd: pytest.CaptureFixture[str]) -> None:
    script = 'echo "{option} $WORTHWHILE_OPTION $WORTHWHILE_TASK $1 {} $2"'
    assert main(["run", "tasks.db", "x", "--options", "a b", "--", "sh", "-c", script, "sh", "--", "{option}!"]) == 0
    said = capfd.readouterr()
    assert said.out == "a b a b 1 -- {} a b!\n"
    assert said.err.startswith("worthwhile: task 1 (x, a b): reward 1.0000, cost ")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("script", "flags", "reward", "cost"),
    [
        ("echo 9 > score; echo 0.5 >> score", ["--reward-file", "score"], 0.5, None),
        ("echo begins; echo -1e-3; echo", ["--reward-line"], -0.001, None),
        ("printf '1 0.25'", ["--reward-line", "--meter", "own"], 1.0, 0.25),
    ],
)
def test_the_reward_is_what_the_command_says(script: str, flags: list[str], reward: float, cost: float | None) -> None:
    assert shell(script, *flags) == 0
    line = task()
    assert (line.state, line.reward) == ("reported", reward)
    assert cost is None or line.cost == cost


@pytest.mark.parametrize(
    ("script", "flags", "reason"),
    [
        ("true", ["--reward-file", "score"], "it did not write score"),
        ("echo 5 passed", ["--reward-line"], "the last line that it printed is '5 passed'; it must be one number"),
        ("true", ["--reward-line"], "the last line that it printed is ''; it must be one number"),
        ("echo nan", ["--reward-line"], "reward"),
        ("echo 3", ["--reward-line", "--meter", "own"], "must be two numbers, the reward and the cost"),
        ("echo 3 0", ["--reward-line", "--meter", "own"], "cost"),
        ("rm score; mkdir score", ["--reward-file", "score"], "score is no file"),
        ("rm score; mkfifo score", ["--reward-file", "score"], "score is no file"),
    ],
)
def test_a_command_that_does_not_say_its_reward_has_failed(
    folder: Path, script: str, flags: list[str], reason: str
) -> None:
    (folder / "score").write_text("0.9")  # of an earlier run
    assert shell(script, *flags) == 0
    line = task()
    assert (line.state, line.reward) == ("failed", None)
    assert reason in (line.reason or "")


@pytest.mark.usefixtures("folder")
def test_what_it_prints_goes_on_and_with_json_stays_out_of_the_answer(capfd: pytest.CaptureFixture[str]) -> None:
    assert shell("echo begins; echo 4", "--reward-line") == 0
    assert capfd.readouterr().out == "begins\n4\n"
    assert shell("echo begins; exit 5", "--json") == 5
    said = capfd.readouterr()
    document = json.loads(said.out)
    assert (document["state"], document["reason"], document["code"]) == ("failed", "exit code 5", 5)
    assert said.err.startswith("begins\n")


@pytest.mark.usefixtures("folder")
def test_a_failure_is_followed_by_another_option(capfd: pytest.CaptureFixture[str]) -> None:
    script = "echo {option}; test {option} = 3"
    assert shell(script, "--attempts", "3", options=("1", "2", "3")) == 0
    line, tried = task(), capfd.readouterr().out.split()
    assert (line.state, line.option, line.attempts) == ("reported", 3, len(tried))
    assert shell("exit 4", "--attempts", "3", options=("1", "2")) == 4  # no third one is left
    assert (task().state, task().attempts) == ("failed", 2)


@pytest.mark.usefixtures("folder")
def test_a_command_that_takes_too_long_is_ended_with_all_that_it_has_started() -> None:
    script = "(setsid sh -c 'echo $$ > daemon; sleep 1000' &); echo $$ > shell; sleep 1000"
    done = started("--timeout", "1", "--", "sh", "-c", script)
    _, said = done.communicate(timeout=NET)
    assert (done.returncode, task().state) == (124, "failed")
    assert task().reason == "TimedOut: it ran for longer than 1 s"
    assert "failed: TimedOut" in said
    for name in ("daemon", "shell"):
        assert not beginning(Path(name).read_text().strip())


@pytest.mark.usefixtures("folder")
def test_a_timeout_of_years_and_the_last_line_of_a_large_file() -> None:
    script = "head -c 30000000 /dev/zero > score; printf '\\n0.25\\n\\n' >> score"
    assert shell(script, "--timeout", "1e9", "--reward-file", "score") == 0
    assert (task().state, task().reward) == ("reported", 0.25)


@pytest.mark.usefixtures("folder")
def test_closed_and_full_streams_keep_no_result_back(capfd: pytest.CaptureFixture[str]) -> None:
    """The task has reported, and the exit code is the command's."""
    run = [sys.executable, "-m", "worthwhile", "run", "tasks.db", "x", "--options", "2", "--reward-line", "--"]
    for redirected in (">&- 2>&-", "<&- >&-", ">/dev/full"):
        words = shlex.join([*run, "sh", "-c", "echo 3"])
        assert subprocess.run(["sh", "-c", f"{words} {redirected}"], check=False, timeout=NET).returncode == 0
        assert (task().state, task().reward) == ("reported", 3.0)
    assert "Traceback" not in capfd.readouterr().err


def test_a_reader_that_does_not_wait_and_is_slow_gets_everything() -> None:
    """Output that may not block, as some programs leave their terminal."""
    reads, writes = os.pipe()
    os.set_blocking(writes, False)
    piece, got = bytes(1 << 20), bytearray()
    writer = threading.Thread(target=command.write_all, args=[writes, piece])
    writer.start()
    while len(got) < len(piece):
        got += os.read(reads, 1 << 16)
    writer.join(NET)
    assert got == piece
    os.close(reads)
    os.close(writes)


def test_a_word_that_no_command_can_be_given_has_failed(folder: Path) -> None:
    assert main(["run", "tasks.db", "x", "--options", '"a\\u0000b"', "--", "echo", "{option}"]) == 126
    assert (task().state, task().reason) == ("failed", "echo: embedded null byte")


@pytest.mark.usefixtures("folder")
def test_a_late_command_that_does_not_want_to_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "GRACE", 0.1)
    assert shell("trap '' TERM; while :; do sleep 0.01; done", "--timeout", "0.5") == 124
    assert task().state == "failed"


@pytest.mark.usefixtures("folder")
def test_cpu_seconds_are_those_of_the_command_and_what_it_has_started() -> None:
    burn = f"{sys.executable} -Sc 'import time\nwhile time.process_time() < 0.2: pass'"
    assert shell(f"{burn} & wait", "--meter", "cpu") == 0
    assert (task().cost or 0.0) > 0.19
    assert shell("sleep 0.5", "--meter", "cpu") == 0
    assert (task().cost or 1.0) < 0.2


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_goes_on_to_the_command_and_cancels_the_task(number: signal.Signals, folder: Path) -> None:
    process = started("--", sys.executable, "hears.py")
    wait_until((folder / "ready").exists, "the command")
    process.send_signal(number)
    wait_until((folder / "heard").exists, "the signal")
    (folder / "go").touch()
    _, said = process.communicate(timeout=NET)
    assert (process.returncode, task().state) == (7, "cancelled")
    assert "task 1 (x, 2) cancelled" in said
    assert (folder / "heard").read_text() == f"{number.name} "


def test_a_warning_of_a_cluster_goes_on_to_the_command_and_nothing_else(folder: Path) -> None:
    """One that ends what does not listen; the task is as the command ends."""
    process = started("--", sys.executable, "hears.py")
    wait_until((folder / "ready").exists, "the command")
    process.send_signal(signal.SIGUSR1)
    wait_until((folder / "heard").exists, "the signal")
    (folder / "go").touch()
    process.communicate(timeout=NET)
    assert (process.returncode, task().state, task().reason) == (7, "failed", "exit code 7")


def test_ctrl_c_at_a_terminal_reaches_the_command_once(folder: Path) -> None:
    pid, terminal = pty.fork()
    if pid == 0:  # a process that has a terminal of its own, in whose foreground it is
        words = ["run", "tasks.db", "x", "--options", "2", "--", sys.executable, "hears.py"]
        os.execv(sys.executable, [sys.executable, "-m", "worthwhile", *words])
    try:
        wait_until((folder / "ready").exists, "the command")
        os.write(terminal, b"\x03")
        wait_until((folder / "heard").exists, "the signal")
        for heard in (pid, int((folder / "ready").read_text())):
            wait_until(lambda heard=heard: has_taken_signals(heard), "the signal")  # type: ignore[misc]
        (folder / "go").touch()
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    finally:
        os.close(terminal)
    assert task().state == "cancelled"
    assert (folder / "heard").read_text() == "SIGINT "


def test_killed_in_the_middle_the_task_is_lost_when_its_lease_ends_and_its_key_runs_it_again(folder: Path) -> None:
    process = started("--lease", "0.5", "--key", "build 1", "--", sys.executable, "hears.py")
    wait_until((folder / "ready").exists, "the command")
    process.kill()
    process.wait(NET)
    assert process.stderr is not None
    process.stderr.close()  # which the command still has
    with Scheduler("tasks.db") as scheduler:
        wait_until(lambda: scheduler.summary().expired == 1, "the end of the lease")
        assert scheduler.latest(1)[0].state == "expired"
    (folder / "go").touch()  # the command itself was not killed
    assert shell("exit 0", "--key", "build 1") == 0
    assert (task().task, task().state) == ("1", "reported")


@pytest.mark.usefixtures("folder")
def test_a_key_that_has_ended_is_not_run_again(capfd: pytest.CaptureFixture[str]) -> None:
    for code in (0, 6):
        assert shell(f"exit {code}", "--key", f"build {code}") == code
        assert shell("echo again", "--key", f"build {code}") == int(code != 0)
        said = capfd.readouterr()
        assert said.out == ""
        assert "has been done before" in said.err


@pytest.mark.usefixtures("folder")
def test_a_daemon_that_keeps_the_output_open_keeps_nobody_waiting(capfd: pytest.CaptureFixture[str]) -> None:
    assert shell("sleep 1000 & echo $!; echo 5", "--reward-line") == 0
    os.kill(int(capfd.readouterr().out.split()[0]), signal.SIGKILL)
    assert task().reward == 5.0


@pytest.mark.usefixtures("folder")
def test_a_scheduler_that_cannot_be_reached_stops_no_build(capfd: pytest.CaptureFixture[str]) -> None:
    for usual, code, out in (["--usual", "7"], 5, "7\n"), ([], 2, ""):
        words = ["run", "none/tasks.db", "x", "--options", "2", "7", *usual, "--", "sh", "-c", "echo {option}; exit 5"]
        assert main(words) == code
        said = capfd.readouterr()
        assert said.out == out
        assert len(said.err.splitlines()) == 1


@pytest.mark.usefixtures("folder")
def test_what_cannot_be_stored_is_said_and_the_exit_code_passed_on(capfd: pytest.CaptureFixture[str]) -> None:
    assert shell("rm tasks.db*; exit 0") == 0
    assert "has ended, and that could not be stored" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--timeout", "0"], "--timeout 0"),
        (["--timeout", "nan"], "--timeout nan"),
        (["--timeout", "1e10"], "--timeout 1e+10: give a number of seconds above 0, at most 1e+09"),
        (["--meter", "own"], "--reward-line or --reward-file"),
        (["--attempts", "0"], "below 1"),
        (["--reward-line", "--reward-file", "x"], "not allowed with"),
        (["--feature", "a"], "NAME=VALUE"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_decided(
    folder: Path, flags: list[str], words: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert shell("true", *flags) == 2
    assert words in capfd.readouterr().err
    assert not (folder / "tasks.db").exists()


def test_a_program_that_is_not_there_is_refused_but_an_option_that_is_not_there_has_failed(folder: Path) -> None:
    assert main(["run", "tasks.db", "x", "--options", "1", "--", "no-such-program"]) == 2
    assert not (folder / "tasks.db").exists()
    assert main(["run", "tasks.db", "x", "--options", "no-such-program", "--", "{option}"]) == 127
    assert (task().state, task().reason) == ("failed", "no-such-program: No such file or directory")


def test_a_scheduler_is_made_through_a_service(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with listening(f"sqlite:///{folder}/service.db") as port:
        address = f"http://127.0.0.1:{port}"
        assert main(["create", address, "--name", "plain"]) == 0
        assert main(["create", address, "--name", "kept", "--floor", "0.8", "--cost-unit", "s"]) == 0
        assert main(["create", address, "--name", "kept", "--floor", "0.8"]) == 0
        assert main(["create", address, "--name", "kept", "--floor", "0.7"]) == 2
        said = capsys.readouterr()
    assert [line.split(",")[0] for line in said.out.splitlines() if line[0] != " "] == [
        "plain: made", "kept: made", "kept: exists"
    ]  # fmt: skip
    assert "floor" in said.err
    with Scheduler(f"sqlite:///{folder}/service.db", "kept", create=False) as scheduler:
        assert (scheduler.summary().cost_unit, scheduler.summary().goal) != ("", None)


def test_the_same_through_a_service(folder: Path) -> None:
    with listening(f"sqlite:///{folder}/service.db") as port:
        address = f"http://127.0.0.1:{port}"
        words = ["run", address, "x", "--options", "1", "2", "--attempts", "2", "--", "sh", "-c", "exit {option}"]
        assert main(words) in (1, 2)
        assert main(["decide", address, "x", "1", "2"]) == 0
        assert main(["report", address, "2", "--reward", "1", "--cost", "2"]) == 0
    with Scheduler(f"sqlite:///{folder}/service.db") as scheduler:
        done, failed = scheduler.latest(2)
    assert (failed.state, failed.attempts, done.state) == ("failed", 2, "reported")


@given(st.lists(st.sampled_from([b"a", b"bc", b"\n", b" ", b"\n\n", b"7\n"]), max_size=20))
def test_the_last_line_does_not_depend_on_how_the_output_is_cut(pieces: list[bytes]) -> None:
    last = command.LastLine()
    for piece in pieces:
        last.take(piece)
    lines = [line.strip() for line in b"".join(pieces).decode().split("\n") if line.strip()]
    assert last.text() == (lines[-1] if lines else "")
