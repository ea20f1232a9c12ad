"""Numbers, names and tables as people read them, on a terminal or a page."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from contextvars import ContextVar
from itertools import zip_longest
from typing import NamedTuple

PAGE: ContextVar[int | None] = ContextVar("PAGE", default=None)  # columns that there is room for; None: any number
GAP = "  "  # between columns
COMFORTABLE = 20  # letters: narrower, a column of text is hard to read
KEYS = 2  # leading columns of text that say what a row is about


class Columns(NamedTuple):
    """A table by columns: their cells, headings first, and whether they are text, which stands to the left."""

    cells: Sequence[Sequence[str]]
    text: Sequence[bool]

    def some(self, chosen: Sequence[int]) -> Columns:
        return Columns([self.cells[column] for column in chosen], [self.text[column] for column in chosen])


def table(head: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> str:
    """Columns in line: numbers to the right, those in `left` to the left.

    On a narrow page, text and headings are wrapped; what is still too wide goes on below, under the same first columns.
    """
    rows = [[printable(cell) for cell in row] for row in rows]
    columns = Columns(list(zip(head, *rows, strict=True)), [column in left for column in range(len(head))])
    room = PAGE.get() or sum(map(natural, columns.cells)) + len(GAP) * len(head)
    keys = leading_text(columns.text)
    parts = [columns.some(chosen) for chosen in parts_of(columns, keys, room)]
    if len(parts) > 1:
        parts = [saying_something(part, keys) for part in parts]
    return "\n\n".join(drawn(part, widths_within(part, room)) for part in parts)


def natural(cells: Sequence[str]) -> int:
    """As wide as the widest cell."""
    return max(map(len, cells))


def narrowest(cells: Sequence[str], text: bool) -> int:
    """How far a column can be narrowed: numbers are never broken, headings between their words."""
    words = max(map(len, cells[0].split()), default=1)
    return min(natural(cells), max(words, COMFORTABLE)) if text else max(words, *map(len, cells[1:]), 1)


def leading_text(text: Sequence[bool]) -> int:
    """How many of the first columns say what a row is about."""
    return 2 if list(text[:KEYS]) == [True] * KEYS else 1


def parts_of(columns: Columns, keys: int, room: int) -> list[list[int]]:
    """The columns that stand side by side; each part begins with those that say what a row is about."""
    least = [narrowest(*column) + len(GAP) for column in zip(*columns, strict=True)]
    parts = [list(range(keys))]
    for column in range(keys, len(least)):
        if len(parts[-1]) > keys and sum(least[each] for each in [*parts[-1], column]) - len(GAP) > room:
            parts.append(list(range(keys)))
        parts[-1].append(column)
    return parts


def saying_something(columns: Columns, keys: int) -> Columns:
    """Without rows that are empty but for what they are about."""
    head, *rows = zip(*columns.cells, strict=True)
    return columns._replace(cells=list(zip(head, *(row for row in rows if any(row[keys:])), strict=True)))


def widths_within(columns: Columns, room: int) -> list[int]:
    """The widths of columns that are to fit: the widest that can give way does so first, text as far as it must."""
    widths = [natural(cells) for cells in columns.cells]
    comfortable = [narrowest(*column) for column in zip(*columns, strict=True)]
    tight = [min(low, max(8, room // 4)) if text else low for low, text in zip(comfortable, columns.text, strict=True)]
    for least in (comfortable, tight):
        while sum(widths) + len(GAP) * (len(widths) - 1) > room:
            wide = [column for column in range(len(widths)) if widths[column] > least[column]]
            if not wide:
                break
            widths[max(wide, key=widths.__getitem__)] -= 1
    return widths


def drawn(columns: Columns, widths: Sequence[int]) -> str:
    """The lines of a table."""
    head, *rows = zip(*columns.cells, strict=True)
    below = [line for row in rows for line in row_lines(row, widths, columns.text)]
    return "\n".join([*row_lines(head, widths, columns.text), GAP.join("─" * width for width in widths), *below])


def row_lines(row: Sequence[str], widths: Sequence[int], text: Sequence[bool]) -> list[str]:
    """A row, its cells wrapped."""
    cells = [wrap(cell, width) or [""] for cell, width in zip(row, widths, strict=True)]
    return [
        GAP.join(
            part.ljust(width) if is_text else part.rjust(width)
            for part, width, is_text in zip(parts, widths, text, strict=True)
        ).rstrip()
        for parts in zip_longest(*cells, fillvalue="")
    ]


def wrap(text: str, width: int) -> list[str]:
    """Lines of at most that many letters; broken between words where that is possible."""
    from textwrap import wrap as wrapped

    return [text] if len(text) <= width else wrapped(text, width, drop_whitespace=True)


def fitted(text: str) -> str:
    """Words on a narrow page: every line that is too long goes on in the next one, a little to the right."""
    room = PAGE.get()
    if room is None:
        return text
    from textwrap import fill

    def line(words: str) -> str:
        indent = " " * (len(words) - len(words.lstrip()))
        how = {"break_long_words": False, "break_on_hyphens": False, "replace_whitespace": False}
        return fill(words, room, subsequent_indent=indent + GAP, **how)  # type: ignore[arg-type]

    return "\n".join(words if len(words) <= room or "──" in words else line(words) for words in text.split("\n"))


def printable(text: str) -> str:
    """Names come from anywhere: what would move the cursor or change colours is written out."""
    return text if text.isprintable() else "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)


def number(value: float | None) -> str:
    """A number, or a dash where there is none."""
    return "–" if value is None else digits(value)


def shown(option: object) -> str:
    """An option as JSON writes it, text without its quotes."""
    return printable(option) if isinstance(option, str) else json.dumps(option)


def titled(name: str, unit: str) -> str:
    """A column's heading with its unit."""
    return f"{name} ({unit})" if unit else name


def quotient_unit(reward: str, cost: str) -> str:
    """The unit of reward/cost, empty if neither has one."""
    return f"{reward or '1'}/{cost or '1'}" if reward or cost else ""


def amount(value: float, unit: str) -> str:
    """A number with its unit."""
    return f"{digits(value)} {unit}".rstrip()


def digits(value: float) -> str:
    """A number to five digits, zeros included: columns of them line up."""
    return f"{value:#.5g}".rstrip(".")


def percent(share: float) -> str:
    """A share in per cent, three digits."""
    return "–" if math.isnan(share) else f"{100 * share:.3g} %"


def lost(share: float) -> str:
    """A share of the best ratio that is lost; beyond all of it, per cent mean nothing."""
    return "more than all" if share > 1.0 else percent(share)


def rounded(value: float, error: float) -> tuple[str, str]:
    """A mean to the two leading digits of its error, and that error.

    >>> rounded(53.64, 0.0123), rounded(53.64, 3e-15)
    (('53.640', '0.012'), ('53.64', '0'))
    """
    if math.isfinite(error) and error <= 1e-12 * abs(value):  # no more than how numbers are stored
        error = 0.0
    if not (math.isfinite(error) and error > 0.0):
        return f"{value:.4g}", "–" if math.isnan(error) else f"{error:.2g}"
    decimals = max(0, 1 - math.floor(math.log10(error)))
    return f"{value:.{decimals}f}", f"{error:.{decimals}f}"


def counted(count: int, noun: str) -> str:
    """So many, in words."""
    return f"{count:,} {noun}{'s' * (count != 1)}"
