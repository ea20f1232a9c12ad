"""Faces: the glossary says where every word shows, and whatever shows is made of its words."""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import io
import re
import tokenize
import typing
from collections.abc import Iterable, Iterator
from functools import cache, reduce
from importlib import import_module
from pathlib import Path
from token import NAME
from typing import Any

import apsw
import pytest

import worthwhile
from worthwhile.cli.main import parser
from worthwhile.service.metrics import Metrics
from worthwhile.service.openapi import description
from worthwhile.service.routes import ENDPOINTS

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "worthwhile"
PAGE = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
PLAIN = {"type", "title", "status", "detail"}  # RFC 9457, which is not ours


def table(heading: str) -> list[list[str]]:
    """The rows of the table that begins with such a line, as cells."""
    rows = PAGE.split(f"{heading}\n", 1)[1].split("\n\n", 1)[0].splitlines()[1:]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def terms() -> Iterator[list[str]]:
    """Term, meaning and where it shows."""
    parts = PAGE.split("| term | meaning | where it shows |\n")
    for part in parts[1:]:
        for row in part.split("\n\n", 1)[0].splitlines()[1:]:
            yield [cell.strip() for cell in row.strip("|").split("|")]


def shown(label: str) -> list[str]:
    """The names that the glossary gives with such a label; without one, those of the code."""
    found = [name for _, _, where in terms() for name in re.findall(r"(\w+ )?`([^`]+)`", where)]
    return [name for before, name in found if before.strip() == label]


def exists(path: str) -> bool:
    """Whether there is such a name in the package: public, or with its module; a parameter is one, too."""
    first, *rest = path.split(".")
    if first in dir(worthwhile):
        return has(getattr(worthwhile, first), rest)
    for size in range(path.count(".") + 1, 0, -1):
        names = path.split(".")
        try:
            module = import_module(f"worthwhile.{'.'.join(names[:size])}")
        except ModuleNotFoundError:
            continue
        return has(module, names[size:])
    return False


def has(thing: Any, names: list[str]) -> bool:
    for name in names:
        if hasattr(thing, name):
            thing = getattr(thing, name)
        else:
            return name in fields_of(thing) | set(inspect.signature(thing).parameters)
    return True


def fields_of(kind: Any) -> set[str]:
    """What its instances have, as far as the class or `__init__` says so."""
    named = {name for base in getattr(kind, "__mro__", ()) for name in getattr(base, "__annotations__", {})}
    return named | set(re.findall(r"self\.(\w+)", inspect.getsource(kind)))


def columns() -> dict[str, set[str]]:
    """The tables of a SQL store and their columns."""
    from worthwhile.live.stores.schema import TABLES
    from worthwhile.live.stores.sqlite import WORDS

    connection = apsw.Connection(":memory:")
    connection.execute(TABLES.format(**WORDS)).fetchall()
    names = [name for (name,) in connection.execute("select name from sqlite_master where type = 'table'")]
    return {name: {row[1] for row in connection.execute(f"pragma table_info({name})")} for name in names}


def properties() -> set[str]:
    """The fields of every message of the service."""
    schemas = description(ENDPOINTS)["components"]["schemas"].values()
    return {name for schema in schemas for name in schema.get("properties", {})}


def commands(command: argparse.ArgumentParser) -> set[str]:
    """Commands and options, and theirs."""
    found = {option for option in command._option_string_actions if option.startswith("--")}
    for action in command._actions:
        if isinstance(action, argparse._SubParsersAction):
            found |= set(action.choices).union(*map(commands, action.choices.values()))
    return found


def metrics(summary: Any) -> set[str]:
    """What Prometheus is told."""
    counts = Metrics()
    counts.add("GET", "/", 200, 0.1)
    return set(re.findall(r"^# TYPE (\w+)", counts.text([summary]), re.M))


def answers(kind: Any) -> Iterator[Any]:
    """The dataclasses and tuples in a type, those in their fields included."""
    for part in typing.get_args(kind):
        yield from answers(part)
    if dataclasses.is_dataclass(kind) or hasattr(kind, "_fields"):
        yield kind
        for part in typing.get_type_hints(kind).values():
            yield from answers(part)


def words(name: str) -> set[str]:
    return set(re.split(r"[^a-z]+", name.lower())) - {""}


def known_words() -> set[str]:
    """All that names may be made of."""
    combining = re.findall(r"`(\w+)`", PAGE.split("## Words that make names with these")[1].split("\n## ")[0])
    named = {name for label in ("", "SQL", "JSON") for name in shown(label)}
    own = set().union(*(words(term) for term, _, _ in terms()))
    return own | set(combining) | PLAIN | set().union(*(words(name) for name in named))


def strange(names: Iterable[str]) -> set[str]:
    """Those that have a word which the glossary does not know, in the singular or plural, present or past."""
    known = known_words()
    endings = ("", "s", "es", "d", "ed", "led")
    forms = {word + ending for word in known for ending in endings} | {re.sub("y$", "ies", word) for word in known}
    return {name for name in names if not words(name) <= forms}


@cache
def used(file: Path) -> set[str]:
    """The words that the names in a file are made of: of Python the identifiers, of a template all of its text."""
    text = file.read_text(encoding="utf-8")
    names = set(re.findall(r"\w+", text))
    if file.suffix == ".py":
        names = {token.string for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type == NAME}
    parted = {re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower() for name in {*names, file.stem}}
    return parted | {word for name in parted for word in name.split("_")}


def test_every_name_in_the_glossary_exists() -> None:
    assert not [name for name in shown("") if not exists(name)]
    tables = columns()
    pairs = [name.split(".") for name in shown("SQL")]
    assert not [(table, column) for table, column in pairs if column not in tables.get(table, set())]
    assert set(shown("JSON")) <= properties()
    assert set(shown("CLI")) <= commands(parser())
    with worthwhile.Scheduler() as scheduler:
        assert set(shown("metric")) <= metrics(scheduler.summary())
    assert len(shown("")) > 40


def test_what_a_scheduler_answers_stores_and_sends_is_made_of_the_glossarys_words() -> None:
    asked = [worthwhile.Scheduler.summary, worthwhile.Scheduler.explain, worthwhile.Scheduler.tasks]
    kinds = [kind for method in asked for kind in answers(typing.get_type_hints(method)["return"])]
    assert len(kinds) > 4
    assert not strange(name for kind in kinds for name in typing.get_type_hints(kind))
    assert not strange(reduce(set.union, columns().values(), properties()))
    with worthwhile.Scheduler() as scheduler:
        told = metrics(scheduler.summary())
    assert not strange(name.removeprefix("worthwhile_") for name in told)


def test_a_task_is_in_one_of_the_glossarys_states() -> None:
    with worthwhile.Scheduler() as scheduler:
        leases = (3600.0, 3600.0, 3600.0, 3600.0, 0.0)
        tasks = [scheduler.decide("weather", [1, 5], lease=lease) for lease in leases]
        tasks[1].report(0.9, 3.2)
        tasks[2].fail()
        tasks[3].cancel()
        found = {line.state for line in scheduler.tasks([task.id for task in tasks])}
    assert dict(table("| state | meaning |")).keys() == found


@pytest.mark.parametrize(("refused", "instead"), table("| not | but |"))
def test_no_other_word_is_used_for_the_same_idea(refused: str, instead: str) -> None:
    words = set(refused.split(", "))
    files = [file for file in SOURCE.rglob("*") if file.suffix in (".py", ".html", ".js")]
    assert not {(file.name, word) for file in files for word in words & used(file)}, f"use {instead}"
    options = {name.strip("-").replace("-", "_") for name in commands(parser())}
    assert not words & {*options, *properties(), *reduce(set.union, columns().values())}
