"""A log and recorded history on their way through HTTP: in portions, as a request or a connection takes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from worthwhile.live.history import Line
from worthwhile.live.recorded import Recorded
from worthwhile.service.schemas import MOST_ROWS

MOST_BYTES = 1 << 19  # of rows in one request


def lines_in(chunks: Iterable[bytes]) -> Iterator[list[Line]]:
    """Rows of the log from its text, which comes in pieces of any size."""
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        if whole:
            yield [msgspec.json.decode(line) for line in whole]


def portions_of(rows: Iterable[Recorded]) -> Iterator[list[msgspec.Raw]]:
    """Rows of history as many requests take them."""
    portion: list[msgspec.Raw] = []
    size = 0
    for row in rows:
        fields = {name: value for name, value in row._asdict().items() if name != "place"}  # which is this file's
        features = None if row.features is None else msgspec.Raw(row.features.encode())
        text = msgspec.json.encode(fields | {"option": msgspec.Raw(row.option.encode()), "features": features})
        if len(portion) == MOST_ROWS or size + len(text) > MOST_BYTES:
            yield portion
            portion, size = [], 0
        portion.append(msgspec.Raw(text))
        size += len(text)
    if portion:
        yield portion
