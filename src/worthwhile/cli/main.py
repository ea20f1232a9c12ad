"""The `worthwhile` command: reads its arguments, calls the library, prints the answer."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module

from worthwhile.cli.commands import COMMANDS, EXAMPLES, overview
from worthwhile.cli.help import Parser, check_command, fill_help, page
from worthwhile.cli.output import on_page, say
from worthwhile.errors import Error

NOBODY_READS = 141  # 128 + SIGPIPE
BEYOND_STREAMS = 3  # the first descriptor of a file
INTERRUPTED = 130  # 128 + SIGINT


def parser(names: Iterable[str] = tuple(COMMANDS)) -> Parser:
    """The parser of some commands, or of all of them: only their modules are imported."""
    top = Parser("worthwhile", description="Learn to earn the most reward per cost.", epilog=EXAMPLES)
    top.add_argument("--version", action="store_true", help="say which version this is")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND", title="commands")
    for module in dict.fromkeys(COMMANDS[name].module for name in names):
        import_module(f"worthwhile.cli.{module}").add_commands(commands)
    for command in commands.choices.values():
        command.add_argument("--json", action="store_true", help="print one JSON document instead of tables")
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    open_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without θ still gets its table
    try:
        code = run(sys.argv[1:] if argv is None else list(argv))
        sys.stdout.flush()
        return code
    except Error as error:
        say(str(error))
        return 2
    except KeyboardInterrupt:
        say("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more when it ends
        return NOBODY_READS
    except OSError as error:
        if error.filename is not None:
            say(f"{error.filename}: {error.strerror}")
            return 2
        say(f"cannot write the answer: {error}")  # a full disk
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 2


def open_streams() -> None:
    """Where a caller has closed them (`>&-`), what is written goes nowhere, and no file takes their numbers."""
    if sys.stdin is None or sys.stdout is None or sys.stderr is None:
        while (number := os.open(os.devnull, os.O_RDWR)) < BEYOND_STREAMS:
            os.set_inheritable(number, True)
        os.close(number)
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


def run(arguments: list[str]) -> int:
    """Without a command, what there is; else the command."""
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        sys.stdout.write(fill_help(overview(), page()) + "\n")
        return 0
    if arguments[0] == "--version":
        from worthwhile import __version__  # slow

        sys.stdout.write(f"worthwhile {__version__}\n")
        return 0
    check_command(arguments[0])
    if COMMANDS[arguments[0]].module == "deciding":
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # starting more takes NumPy longer than all they would do
    parsed = parser(arguments[:1]).parse_args(arguments)
    with on_page():
        code: int = parsed.run(parsed)
    return code
