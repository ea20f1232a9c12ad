"""Numbers, names and tables as people read them, on a terminal or a page."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence


def table(head: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> str:
    """Columns in line: numbers to the right, those in `left` to the left."""
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = (
        "  ".join(
            cell.ljust(width) if column in left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in [head, ["─" * width for width in widths], *rows]
    )
    return "\n".join(lines)


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


def amount(value: float, unit: str) -> str:
    """A number with its unit."""
    return f"{digits(value)} {unit}".rstrip()


def digits(value: float) -> str:
    """A number to five digits, zeros included: columns of them line up."""
    return f"{value:#.5g}".rstrip(".")


def percent(share: float) -> str:
    """A share in per cent, three digits."""
    return "–" if math.isnan(share) else f"{100 * share:.3g} %"


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
