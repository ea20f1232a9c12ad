"""The parser of the command line: help that fits a terminal, and errors that say what was probably meant."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Sequence
from shutil import get_terminal_size
from textwrap import fill
from typing import Any, NoReturn

from worthwhile.cli.commands import COMMANDS
from worthwhile.errors import BadParameter, did_you_mean

WIDEST = 80  # columns: longer lines are hard to read
REMARK = re.compile(r" {3,}")  # between an example and what it does
INDENT = "      "  # of what continues an example


def page() -> int:
    return min(WIDEST, get_terminal_size().columns)


class Help(argparse.HelpFormatter):
    """Fills paragraphs, and gives every example lines of its own."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=page() - 1)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return fill_help(text, width)


def fill_help(text: str, width: int) -> str:
    """Paragraphs filled, lines that are indented kept."""
    parts: list[str] = []
    paragraph: list[str] = []
    for line in [*text.splitlines(), ""]:
        if line and not line.startswith((" ", "{")):
            paragraph.append(line)
            continue
        if paragraph:
            parts.append(fill(" ".join(paragraph), width, break_on_hyphens=False, break_long_words=False))
            paragraph = []
        parts.append(example(line, width))
    return "\n".join(parts[:-1])


def example(line: str, width: int) -> str:
    """A command and its remark, below one another where they do not fit side by side."""
    if len(line) <= width:
        return line
    indent = " " * (len(line) - len(line.lstrip()))
    command, *remark = REMARK.split(line.strip(), maxsplit=1)
    lines = [
        broken(indent + command, width),
        *(fill(words, width, initial_indent=INDENT, subsequent_indent=INDENT) for words in remark),
    ]
    return "\n".join(lines)


def broken(command: str, width: int) -> str:
    """A long command as a shell takes it, with a backslash at the end of a line."""
    if not command.lstrip().startswith("worthwhile"):
        return fill(command, width, subsequent_indent=INDENT, break_long_words=False, break_on_hyphens=False)
    lines = [""]
    for word in re.split(r" (?=--|[<>])", command):
        joined = f"{lines[-1]} {word}" if lines[-1] else word
        if len(joined) + 2 <= width or not lines[-1]:
            lines[-1] = joined
        else:
            lines.append(INDENT + word)
    return " \\\n".join(lines)


class Parser(argparse.ArgumentParser):
    """Raises `BadParameter` instead of exiting, and takes −1e-3 for a number."""

    def __init__(self, *values: Any, **settings: Any) -> None:
        super().__init__(*values, **{"formatter_class": Help, "allow_abbrev": False, **settings})
        self._negative_number_matcher = re.compile(r"-(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$", re.IGNORECASE)

    def error(self, message: str) -> NoReturn:
        raise BadParameter(f"{message} (see {self.prog} --help)")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            choices = list(map(str, action.choices))
            raise argparse.ArgumentError(action, f"invalid choice: {value!r}; {did_you_mean(str(value), choices)}")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Like argparse, but an option that nobody knows is refused here, where the others are known."""
        namespace, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}{meant(unknown, self._option_string_actions)}")
        return namespace, unknown


def meant(unknown: Sequence[str], known: Iterable[str]) -> str:
    """What the first unknown option may have been."""
    options = [word.partition("=")[0] for word in unknown if word.startswith("-")]
    return f"; {did_you_mean(options[0], (name for name in known if name.startswith('--')))}" if options else ""


def add_parser(commands: Any, name: str, epilog: str = "") -> Any:
    """A command with what the overview says of it."""
    says = COMMANDS[name].help
    return commands.add_parser(
        name, help=says, description=f"{says[0].upper()}{says[1:]}".rstrip("?.") + ".", epilog=epilog
    )


def check_command(name: str) -> None:
    """Refuse a command that there is not."""
    if name not in COMMANDS:
        what = "unrecognized arguments" if name.startswith("-") else "no command"
        raise BadParameter(f"{what}: {name}; {did_you_mean(name, COMMANDS)} (see worthwhile --help)")
