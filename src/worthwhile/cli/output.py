"""How the commands answer: on standard output for a person or a machine, on standard error beside it."""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from shutil import get_terminal_size
from typing import Any, TextIO

from worthwhile.formatting import PAGE, fitted

NARROWEST = 40  # columns: less is no terminal
RED, GREEN, YELLOW, BOLD, DIM = "31", "32", "33", "1", "2"
COLOURS = (  # of what stands out, line by line
    (re.compile(r"^! .*(?:\n  .*)*", re.MULTILINE), YELLOW),
    (re.compile(r"^[─ ]*──[─ ]*$", re.MULTILINE), DIM),
    (re.compile(r"\S+ ★"), GREEN),
    (re.compile(r"\(benched\)|\(retired\)|\bfailed\b(?=  )|NOT what the scheduler knows"), RED),
)


@contextmanager
def on_page() -> Iterator[None]:
    """Tables fit the terminal that they are for, or as many columns as COLUMNS says; a file gets them in full."""
    columns = max(NARROWEST, get_terminal_size().columns)
    token = PAGE.set(columns if sys.stdout.isatty() or os.environ.get("COLUMNS") else None)
    try:
        yield
    finally:
        PAGE.reset(token)


def show(facts: dict[str, Any], words: str, as_json: bool) -> None:
    """The answer, for a machine or a person."""
    print(json.dumps(for_json(facts), indent=2, allow_nan=False) if as_json else painted(fitted(words), sys.stdout))


def say(message: str) -> None:
    """One line beside the answer."""
    print(f"{coloured('worthwhile:', RED, sys.stderr)} {' '.join(message.split())}", file=sys.stderr)


def painted(words: str, stream: TextIO) -> str:
    """Warnings, winners and what keeps failing, in colour on a terminal."""
    if has_colours(stream):
        for pattern, colour in COLOURS:
            words = pattern.sub(rf"\033[{colour}m\g<0>\033[0m", words)
    return words


def coloured(words: str, colour: str, stream: TextIO) -> str:
    return f"\x1b[{colour}m{words}\x1b[0m" if has_colours(stream) else words


def has_colours(stream: TextIO) -> bool:
    """On a terminal, unless the user minds: https://no-color.org."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def for_json(value: Any) -> Any:
    """The facts with null where a number is not finite: JSON has no word for it."""
    if isinstance(value, dict):
        return {name: for_json(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [for_json(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
