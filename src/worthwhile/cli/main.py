"""The `worthwhile` command: reads its arguments, calls the library, prints the answer."""

from __future__ import annotations

import io
import os
import sys

from worthwhile import __version__
from worthwhile.cli import live, run, serve, simulate, work
from worthwhile.cli.arguments import INTERRUPTED, Parser
from worthwhile.cli.output import say
from worthwhile.errors import Error

NOBODY_READS = 141  # 128 + SIGPIPE

OVERVIEW = """\
Tasks of several kinds arrive. Each can be done in several ways, its options; an option earns a reward and has a cost.
Worthwhile learns which options earn the most total reward per total cost.

examples:
  worthwhile solve seven-kinds                 the best possible ratio, when everything is known
  worthwhile simulate seven-kinds              how close to it policies get that must learn
  worthwhile replay measurements.parquet       the same on a table of recorded rewards and costs
  worthwhile policies                          the policies, with their parameters
  worthwhile reproduce --quick                 every result of the paper, in a report

for real tasks, one at a time:
  worthwhile decide tasks.db weather 1 5 10    an option for a task of the kind weather, and the task's id
  worthwhile report tasks.db 1 --reward 0.9 --cost 3.2
  worthwhile status tasks.db                   what it has learned
  worthwhile serve --store tasks.db            the same over HTTP, with a dashboard
  worthwhile work jobs:train --store x.db      call your function for every task, and report what it did
  worthwhile train                             the same with small networks, on data that comes with scikit-learn
"""


def parser() -> Parser:
    """All commands and their options."""
    top = Parser("worthwhile", description="Learn to earn the most reward per cost.", epilog=OVERVIEW)
    top.add_argument("--version", action="version", version=f"worthwhile {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND", title="commands")
    simulate.add_commands(commands)
    live.add_commands(commands)
    serve.add_commands(commands)
    work.add_commands(commands)
    run.add_commands(commands)
    for command in commands.choices.values():
        command.add_argument("--json", action="store_true", help="print one JSON document instead of tables")
    return top


def main(argv: list[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without θ still gets its table
    try:
        arguments = parser().parse_args(argv)
        code: int = arguments.run(arguments)
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
