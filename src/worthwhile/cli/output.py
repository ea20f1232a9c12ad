"""How the commands answer: on standard output for a person or a machine, on standard error beside it."""

from __future__ import annotations

import json
import sys

from worthwhile.cli import text


def show(facts: text.Facts, words: str, as_json: bool) -> None:
    """The answer, for a machine or a person."""
    print(json.dumps(text.for_json(facts), indent=2, allow_nan=False) if as_json else words)


def say(message: str) -> None:
    """One line beside the answer."""
    print(f"worthwhile: {' '.join(message.split())}", file=sys.stderr)
