"""Run commands as tasks: what they cost, how they end, the last line they print; signals go on to them."""

from __future__ import annotations

import os
import select
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from worthwhile.errors import BadParameter
from worthwhile.execution.metering import LEAST_COST, Meter

GRACE = 5.0  # seconds between asking a command that takes too long to end, and killing it
LATE, NOT_EXECUTABLE, NOT_FOUND = 124, 126, 127  # exit codes, as shells and `timeout` have them
LONGEST_LINE = 4096  # bytes of a last line
AT_ONCE, MOST_LEFT = 1 << 16, 1 << 20  # bytes of output: read at once, that may be in a pipe
FORWARDED = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT") if hasattr(signal, name)]
PASSED_ON = [getattr(signal, name) for name in ("SIGUSR1", "SIGUSR2") if hasattr(signal, name)]  # a cluster's warnings
FROM_KEYS = (signal.SIGINT, getattr(signal, "SIGQUIT", None))  # a terminal sends them to its whole group
POSIX = os.name == "posix"
LONGEST_WAIT = 3600.0  # seconds; the system counts milliseconds, and not very far
BREATH = 0.001  # seconds between two looks at who is left
OUTPUT, ERRORS = 1, 2  # our own, as file descriptors


class Ran(NamedTuple):
    """How a command has ended."""

    code: int  # as a shell counts: 128 + the signal that ended it
    trouble: str = ""  # why it has failed; empty if it went well
    cost: float | None = None  # as the meter says; None if it never began
    last_line: str = ""  # of what it printed, if that was asked for
    stopped: int = 0  # the signal with which somebody has stopped it


class Stopped(KeyboardInterrupt):
    """Somebody wants this process to end while no command runs."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


def cpu_of_children() -> float:
    """Seconds of CPU that commands have used, with all that they have waited for."""
    if not POSIX:
        raise BadParameter("CPU time of other processes cannot be read on this system; measure wall")
    import resource

    used = resource.getrusage(resource.RUSAGE_CHILDREN)  # os.times counts hundredths of a second
    return used.ru_utime + used.ru_stime


METERS: dict[str, Meter] = {"wall": time.perf_counter, "cpu": cpu_of_children}


class Commands:
    """Runs one command after another. While it is open, signals go to the command; without one, they raise `Stopped`.

    A command in the foreground of a terminal shares it, Ctrl-C included; any other one gets a process group of its own.
    """

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.running = False  # or about to
        self.stopped = 0
        self.own_group = POSIX and not in_foreground()
        self.orphans = Orphans()

    def __enter__(self) -> Commands:
        self.orphans.adopt(True)
        ignored = signal.SIG_IGN  # by nohup, and in jobs in &
        heard = [number for number in (*FORWARDED, *PASSED_ON) if signal.getsignal(number) is not ignored]
        self.before = {number: signal.signal(number, self.hear) for number in heard}
        if POSIX:  # where it is ignored, nobody is told how a command has ended
            self.before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        return self

    def __exit__(self, *_: object) -> None:
        self.orphans.adopt(False)
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def hear(self, number: int, _: Any) -> None:
        """A signal handler."""
        if number in PASSED_ON:
            self.send(number)
            return
        if not self.running:
            raise Stopped(number)
        self.stopped = self.stopped or number
        if self.own_group or number not in FROM_KEYS:
            self.send(number)

    def send(self, number: int) -> None:
        """To the command, and to what it has started if that is in its group."""
        process = self.process
        if process is None or process.returncode is not None:
            return
        with suppress(ProcessLookupError):
            if self.own_group:
                os.killpg(process.pid, number)
            else:
                process.send_signal(number)

    def run(
        self,
        words: Sequence[str],
        environment: Mapping[str, str],
        meter: Meter,
        timeout: float | None = None,
        output: int = OUTPUT,
        keep_last_line: bool = False,
    ) -> Ran:
        """Run it to its end; `output` is where what it prints goes."""
        began, self.stopped, self.running = meter(), 0, True
        try:
            try:
                self.process = self.start(words, environment, subprocess.PIPE if keep_last_line else output)
            except (OSError, ValueError) as error:
                return Ran(*never_began(words[0], error), stopped=self.stopped)
            with Ending(self.process, output) as ending:
                late = not self.wait(ending, timeout)
        finally:
            self.process, self.running = None, False
        code, trouble = ended_with(ending.process.returncode)
        if late:
            code, trouble = LATE, f"TimedOut: it ran for longer than {timeout:g} s"
        return Ran(code, trouble, max(meter() - began, LEAST_COST), ending.last.text(), self.stopped)

    def start(self, words: Sequence[str], environment: Mapping[str, str], output: int) -> subprocess.Popen[bytes]:
        """The command; a signal that comes before it is there is only noted."""
        group, known = 0 if self.own_group else None, {**os.environ, **environment}
        return subprocess.Popen(words, env=known, stdout=output, process_group=group)

    def wait(self, ending: Ending, timeout: float | None) -> bool:
        """Until it has ended; whether that was in time."""
        if self.stopped:
            self.send(self.stopped)
        if ending.wait(timeout):
            self.orphans.left()  # counts the CPU time of those that have ended
            return True
        self.send(signal.SIGTERM)
        if not ending.wait(GRACE):
            ending.process.kill()
            ending.wait(None)
        self.orphans.end(ending.process.pid)
        return False


class Ending:
    """Waits for the end of a process, and copies what it prints meanwhile."""

    def __init__(self, process: subprocess.Popen[bytes], output: int) -> None:
        self.process, self.output, self.last = process, output, LastLine()
        self.selector = selectors.DefaultSelector()
        self.ended, self.tell = os.pipe()
        self.selector.register(self.ended, selectors.EVENT_READ)
        if process.stdout is not None:
            os.set_blocking(process.stdout.fileno(), False)
            self.selector.register(process.stdout, selectors.EVENT_READ)
        self.thread = threading.Thread(target=self.wait_in_thread, daemon=True)  # signals come to the main one

    def wait_in_thread(self) -> None:
        self.process.wait()
        os.write(self.tell, b".")

    def wait(self, seconds: float | None) -> bool:
        """Whether it has ended within so many seconds."""
        end = None if seconds is None else time.monotonic() + seconds
        while True:
            left = None if end is None else end - time.monotonic()
            ready = [key.fileobj for key, _ in self.selector.select(None if left is None else min(left, LONGEST_WAIT))]
            if self.process.stdout in ready:
                self.copy()
            if self.ended in ready:
                self.copy_rest()
                return True
            if not ready and left is not None and left <= 0.0:
                return False

    def copy_rest(self) -> None:
        """What the command itself has left in the pipe; what it has started may go on for ever."""
        for _ in range(MOST_LEFT // AT_ONCE):
            if not self.copy():
                return

    def copy(self) -> bool:
        """What there is to be read; whether there was anything."""
        pipe = self.process.stdout
        if pipe is None or pipe.closed:
            return False
        try:
            piece = os.read(pipe.fileno(), AT_ONCE)
            self.last.take(piece)
            write_all(self.output, piece)
        except BlockingIOError:
            return False
        except OSError:  # nobody reads it, or the disk is full: the command is told in the usual way
            piece = b""
        if not piece:
            self.selector.unregister(pipe)
            pipe.close()
        return bool(piece)

    def __enter__(self) -> Ending:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.selector.close()
        if self.process.returncode is None:  # we are to end at once
            self.process.kill()
        self.thread.join()
        for number in (self.ended, self.tell):
            os.close(number)
        if self.process.stdout is not None:
            self.process.stdout.close()


class LastLine:
    """Of a text that comes in pieces: the last line that is not blank."""

    def __init__(self) -> None:
        self.line, self.begun = b"", b""

    def take(self, piece: bytes) -> None:
        *lines, self.begun = (self.begun + piece).split(b"\n")
        self.begun = self.begun[-LONGEST_LINE:]
        self.line = next((line for line in reversed(lines) if line.strip()), self.line)[-LONGEST_LINE:]

    def text(self) -> str:
        return (self.begun if self.begun.strip() else self.line).decode(errors="replace").strip()


def write_all(file: int, piece: bytes) -> None:
    rest = memoryview(piece)
    while rest:
        try:
            rest = rest[os.write(file, rest) :]
        except BlockingIOError:  # whoever reads it has it so, and is slower
            select.select([], [file], [])


def never_began(program: str, error: OSError | ValueError) -> tuple[int, str]:
    """The exit code, and why; a `ValueError` is a word that no command can be given."""
    why = error.strerror if isinstance(error, OSError) else str(error)
    return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE, f"{program}: {why}"


def ended_with(returncode: int) -> tuple[int, str]:
    """The exit code as a shell counts, and why that is a failure, if it is one."""
    if returncode >= 0:
        return returncode, f"exit code {returncode}" if returncode else ""
    try:
        name = signal.Signals(-returncode).name
    except ValueError:
        name = f"signal {-returncode}"
    return 128 - returncode, f"killed by {name}"


def in_foreground() -> bool:
    """Whether what is typed at our terminal is meant for us."""
    try:
        with open("/dev/tty", "rb", 0) as terminal:
            return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    except (OSError, AttributeError):  # there is none
        return False


class Orphans:
    """What commands leave behind: on Linux it becomes a child of ours, so that it can be counted, and ended."""

    def __init__(self) -> None:
        self.others: set[int] = set()  # children that we had before

    def adopt(self, wanted: bool) -> None:
        if POSIX:
            from worthwhile.execution.keeper import PR_SET_CHILD_SUBREAPER, children, set_process

            set_process(PR_SET_CHILD_SUBREAPER, int(wanted))
            self.others = set(children())

    def left(self) -> list[int]:
        """Those that have not ended."""
        if not POSIX:
            return []
        from worthwhile.execution.keeper import children

        return [child for child in children() if child not in self.others and not has_ended(child)]

    def end(self, group: int) -> None:
        """Kill those that are left, and the command's process group."""
        with suppress(OSError):
            os.killpg(group, signal.SIGKILL)
        while sum(killed(child) for child in self.left()):  # all of them; their children are ours next time
            time.sleep(BREATH)


def has_ended(child: int) -> bool:
    """Whether it has; its CPU time is counted then."""
    with suppress(ChildProcessError):
        return os.waitpid(child, os.WNOHANG)[0] == child
    return True


def killed(child: int) -> bool:
    """Whether that can be done; somebody else's process (sudo) cannot be killed."""
    try:
        os.kill(child, signal.SIGKILL)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return True
