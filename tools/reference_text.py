"""Pages and tables in Markdown, as all of the reference has them."""

from __future__ import annotations

MADE = "<!-- made by tools/reference_pages.py (make reference); edit the code, not this page -->\n"


def page(title: str, about: str, *parts: str) -> str:
    return "\n\n".join([f"# {title}\n\n{MADE}", about, *parts]).rstrip() + "\n"


def cell(text: str) -> str:
    """Text that may stand in a table."""
    return " ".join(text.split()).replace("|", "\\|")


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *([cell(each) for each in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
