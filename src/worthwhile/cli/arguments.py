"""How the command line reads its arguments: numbers, delays, problems, and the files that it will write."""

from __future__ import annotations

import argparse
import math
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from worthwhile.cli.output import say
from worthwhile.errors import BadParameter, Error, MissingExtra
from worthwhile.formatting import printable, shown
from worthwhile.goals.goal import AIMS, Goal, goal_of
from worthwhile.live.validation import NONE, as_option

if TYPE_CHECKING:  # imported where they are needed: deciding and reporting need none of them
    from worthwhile.problem import Problem
    from worthwhile.tables import Table

INTERRUPTED = 130  # the exit code after Ctrl-C, as shells count: 128 + SIGINT
STORE = "a SQLite file (tasks.db, sqlite:///tasks.db) or postgresql://user@host/database"
OR_SERVICE = f"{STORE}, or http://host:8080 of a service (its token in WORTHWHILE_TOKEN)"
TABLE_FORMATS = (".parquet", ".csv")
READABLE = (*TABLE_FORMATS, ".jsonl")


def add_scheduler(parser: argparse.ArgumentParser, run: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
    """What every command on a scheduler needs, and what it does."""
    parser.add_argument("store", metavar="STORE", help=OR_SERVICE)
    parser.add_argument("--name", help="of the scheduler (default, or the only one there is)")
    parser.set_defaults(run=run)
    return parser


def whole(text: str) -> int:
    """A whole number, also written 1e6 or 100_000."""
    try:
        number = float(text) if "e" in text.lower() else int(text)
    except ValueError:
        number = math.nan
    if number != number // 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(number)


def count(text: str, least: int = 0) -> int:
    """A whole number, 0 or more."""
    number = whole(text)
    if number < least:
        raise argparse.ArgumentTypeError(f"{text!r} is below {least}")
    return number


def positive(text: str) -> int:
    """A whole number, 1 or more."""
    return count(text, least=1)


def delay(text: str) -> int | tuple[int, int]:
    """D tasks, or at random from A to B."""
    least, random, most = text.partition("-")
    return (whole(least), whole(most)) if random and least else whole(text)


def change(text: str) -> tuple[int, Problem]:
    """PROBLEM@TASK: the problem that holds from that task on."""
    problem, at, task = text.rpartition("@")
    if not at:
        raise argparse.ArgumentTypeError(f"{text!r}: write PROBLEM@TASK, for instance two-kinds-0.2@5000")
    try:
        return whole(task), problem_from(problem)
    except Error as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def problem_from(text: str) -> Problem:
    """A preset, a random problem, a TOML file or the means of a recorded table."""
    from worthwhile.problem_files import read_problem
    from worthwhile.random_problems import random_problem
    from worthwhile.simulation.environments import replay

    if text.startswith("random:"):
        _, family, seed = (text + ":").split(":")[:3]
        if not seed.isdecimal():
            raise BadParameter(f"{text}: write random:FAMILY:SEED with a whole number as seed, like random:train:3")
        return random_problem(family, int(seed))
    return replay(table_from(text)).problem if text.endswith(READABLE) else read_problem(text)


def add_map(command: argparse.ArgumentParser) -> None:
    """What a file calls its columns."""
    meant = "what the file calls our columns, reward=score,cost=usd; NAME= leaves that one out"
    command.add_argument("--map", type=column_names, metavar="NAME=COLUMN,…", help=meant)


def column_names(text: str) -> dict[str, str]:
    """NAME=COLUMN,NAME=COLUMN: our names, and those of a file."""
    names: dict[str, str] = {}
    for pair in text.split(","):
        name, equals, column = (part.strip() for part in pair.partition("="))
        if not equals or not name:
            raise argparse.ArgumentTypeError(f"{pair!r}: write NAME=COLUMN, for instance reward=score,cost=usd")
        if name in names:
            raise argparse.ArgumentTypeError(f"{name} is both {names[name]!r} and {column!r}; name it once")
        names[name] = column
    return names


def feature(text: str) -> tuple[str, Any]:
    """NAME=VALUE: a feature of a task; a value that is no JSON scalar is text, but True and False are what they say."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        lacks = "no name" if equals else "no ="
        remedy = "write NAME=VALUE, for instance clauses=12000 or family=crypto"
        raise argparse.ArgumentTypeError(f"{text!r} has {lacks}; {remedy}")
    if value in ("True", "False"):  # as Python writes them
        return name, value == "True"
    return name, as_option(value)


def features_from(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any] | None:
    """All features that were named, each once; None if there are none."""
    features: dict[str, Any] = {}
    for name, value in pairs:
        if name in features:
            both = f"{shown(features[name])} and {shown(value)}"
            raise BadParameter(f"--feature {printable(name)} is there twice, as {both}; name it once")
        features[name] = value
    return features or None


def add_goal(command: argparse.ArgumentParser) -> None:
    """What to aim at, and what to keep."""
    aim = "what to aim at; a floor alone implies cost, a budget alone reward (ratio)"
    command.add_argument("--goal", choices=tuple(AIMS), help=aim)
    floor = "the mean reward per task not to fall below, of all tasks or of one kind; repeat it for several kinds"
    command.add_argument("--floor", type=floor_of, action="append", default=[], metavar="[KIND=]Q", help=floor)
    command.add_argument("--budget", type=float, metavar="B", help="the mean cost per task not to exceed")


def floor_of(text: str) -> tuple[str | None, float]:
    """Q, or KIND=Q."""
    kind, equals, number = text.rpartition("=")
    try:
        return kind if equals else None, float(number)
    except ValueError:
        example = 'for instance 0.8 or "legal review=0.9"'
        raise argparse.ArgumentTypeError(f"{text!r}: write a number, or KIND=number, {example}") from None


def goal_from(arguments: argparse.Namespace) -> Goal | None:
    """The goal that was asked for; None if nothing was said of it."""
    if arguments.goal is None and not arguments.floor and arguments.budget is None:
        return None
    return goal_of(arguments.goal, floor_from(arguments.floor), arguments.budget)


def floor_from(pairs: Sequence[tuple[str | None, float]]) -> float | dict[str, float] | None:
    """One floor for all tasks, or one for each kind that was named, each once."""
    floors: dict[str | None, float] = {}
    for kind, number in pairs:
        if kind in floors:
            of_kind = "" if kind is None else f" of {printable(kind)}"
            raise BadParameter(f"--floor{of_kind} is there twice, as {floors[kind]:g} and {number:g}; say it once")
        floors[kind] = number
    if None not in floors:
        return {str(kind): number for kind, number in floors.items()} or None
    if len(floors) > 1:
        raise BadParameter(f"--floor {floors[None]:g} is for all tasks; leave it out, or the floors of single kinds")
    return floors[None]


def number_or_none(text: str) -> float | str:
    """A number, or the word none."""
    try:
        return text if text == NONE else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number nor the word {NONE}") from None


def table_from(path: str, names: Mapping[str, str] | None = None) -> Table:
    """A recorded table; kinds that cannot be scored are named and left out."""
    from worthwhile.simulation.environments.replay import left_out_words
    from worthwhile.tables import read_table, scorable

    table, left_out = scorable(read_table(path, names))
    if left_out:
        say(left_out_words(table.name, left_out))
    return table


def check_target(path: Path | None, suffixes: Sequence[str], module: str, extra: str) -> None:
    """Refuse a file that could not be written, before hours of work are spent on it."""
    if path is None:
        return
    if path.suffix not in suffixes:
        raise BadParameter(f"{path}: the file's name must end in {' or '.join(suffixes)}")
    if path.suffix != ".csv" and find_spec(module) is None:
        raise MissingExtra(f"writing {path}", extra)
    if path.is_dir():
        raise BadParameter(f"{path} is a folder; give a file name")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=path.parent).close()
    except OSError as error:
        raise BadParameter(f"cannot write {path}: {error.strerror}") from None


def import_from_here() -> None:
    """Let policies and functions be imported from the current folder; it comes last, so that it hides no module."""
    sys.path.append(os.getcwd())
