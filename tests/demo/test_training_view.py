"""Faces: the view of running tasks, drawn on a real terminal of any width."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import struct
import termios
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from worthwhile import Scheduler
from worthwhile.demo.view import View, bar
from worthwhile.execution.results import Finished

KINDS = ["digits", "a kind with a long name", "iris"]
TAKEN = [2, 2, 2, 16, 1]  # by every kind, again and again
TASKS = 60


class Screen:
    """A terminal, as far as the view needs one; it refuses long lines and what it does not know."""

    def __init__(self, columns: int) -> None:
        self.columns, self.row, self.column = columns, 0, 0
        self.lines: list[str] = [""]

    def feed(self, text: str) -> Screen:
        for code, letter in re.findall(r"\033\[([?\d]*[A-Za-z])|([^\033])", text):
            self.obey(code) if code else self.put(letter)
        assert "\033" not in re.sub(r"\033\[[?\d]*[A-Za-z]", "", text)
        return self

    def obey(self, code: str) -> None:
        if code.endswith("F"):
            self.row, self.column = self.row - int(code[:-1]), 0
            assert self.row >= 0
        elif code == "J":
            self.lines[self.row] = self.lines[self.row][: self.column]
            del self.lines[self.row + 1 :]
        else:
            assert code in ("?7l", "?7h")  # cut lines, wrap lines: there are none to cut or wrap

    def put(self, letter: str) -> None:
        if letter == "\r":
            self.column = 0
        elif letter == "\n":
            self.row += 1
            self.lines += [""] * (self.row + 1 - len(self.lines))
        elif self.column < self.columns:
            line = self.lines[self.row].ljust(self.column)
            self.lines[self.row] = line[: self.column] + letter + line[self.column + 1 :]
            self.column += 1
        else:
            raise AssertionError("a line is longer than the screen is wide")


@contextmanager
def terminal(columns: int, rows: int) -> Iterator[tuple[int, io.TextIOWrapper]]:
    """Both ends of a pseudo-terminal: the screen's, and the program's."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    with os.fdopen(theirs, "w", encoding="utf-8") as out:
        yield ours, out
    os.close(ours)


def arrived(ours: int) -> str:
    """One drawing: it ends with lines being wrapped again."""
    found = b""
    while not found.endswith(b"\033[?7h"):
        found += os.read(ours, 1 << 16)
    return found.decode()


@pytest.fixture(autouse=True)
def a_terminal_that_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")


def drawn(columns: int, rows: int = 30) -> list[str]:
    """What is on the screen after a run that was drawn after every task."""
    screen = Screen(columns or 80)
    with Scheduler() as scheduler, terminal(columns, rows) as (ours, out):
        view = View(scheduler, TASKS, out)
        view.every = 0.0
        for number in range(TASKS + 1):
            if number:
                task = scheduler.decide(KINDS[number % len(KINDS)], [TAKEN[(number - 1) // 3 % 5]])
                if number == 7:
                    task.fail(2.0, "it broke")
                    view(Finished(task, None, 2.0, "it broke"))
                else:
                    task.report(0.5, 2.0)
                    view(Finished(task, 0.5, 2.0))
            else:
                view.draw()
            screen.feed(arrived(ours))
    return [line.rstrip() for line in screen.lines]


def test_eighty_columns_show_everything_once_with_bars() -> None:
    lines = drawn(80)
    assert re.fullmatch(r"█{30}  60 of 60 tasks   [\d.]+/s   0 s left", lines[0])
    assert re.fullmatch(r"reward/cost 0.24583   price θ [\d.]+   1 failed: it broke", lines[1])
    assert lines[3].split() == ["option", "1", "2", "16"]
    assert [line[:14].strip() for line in lines[4:7]] == ["a kind with a", "iris", "digits"]
    assert lines[7:] == [""]
    assert [re.findall(r"(\d+)%", line) for line in lines[4:7]] == [["20", "60", "20"]] * 3
    assert [line.count("█") for line in lines[4:7]] == [2 + 7 + 2] * 3
    ends = [[found.end() for found in re.finditer(r"\d+%|·", line)] for line in lines[4:7]]
    assert ends[0] == ends[1] == ends[2] == [found.end() for found in re.finditer(r"\d+", lines[3])]


@pytest.mark.parametrize("columns", [40, 20, 7])
def test_a_narrow_terminal_cuts_lines_and_never_wraps_them(columns: int) -> None:
    lines = drawn(columns)
    assert len(lines) == 8  # and no remains of earlier drawings
    assert lines[0].startswith("60 of 60 tasks   "[:columns].rstrip())
    if columns == 40:
        assert lines[4] == "a kind with a      20%     60%     20%"


def test_a_low_terminal_gets_as_many_lines_as_it_has() -> None:
    assert len(drawn(80, rows=5)) == 5


def test_a_terminal_that_does_not_know_its_size_is_taken_for_a_usual_one() -> None:
    assert drawn(0, rows=0)[1:] == drawn(80)[1:]  # the first line has the pace in it


def test_a_dumb_terminal_gets_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    with Scheduler() as scheduler, terminal(80, 24) as (ours, out):
        View(scheduler, 2, out).draw()
        assert os.read(ours, 100).decode() == "0 of 2 tasks   starting …\r\n"


def test_where_nobody_watches_there_is_a_plain_line_now_and_then() -> None:
    out = io.StringIO()
    with Scheduler() as scheduler:
        view = View(scheduler, 2, out)
        view.draw()
        task = scheduler.decide("iris", [4])
        task.report(1.0, 4.0)
        view(Finished(task, 1.0, 4.0, None))
        view.draw()
    assert out.getvalue() == "0 of 2 tasks   starting …\n1 of 2 tasks   reward/cost 0.25000   price θ 0.25000\n"


def test_a_bar_is_as_long_as_its_share() -> None:
    assert [bar(share, 4, "░") for share in (0.0, 0.5, 0.53125, 1.0)] == ["░░░░", "██░░", "██▏░", "████"]
