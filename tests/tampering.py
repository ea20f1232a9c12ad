"""Changing a store behind its back."""

from __future__ import annotations

import apsw
import psycopg
import pytest

from worthwhile.live.stores.base import Header, Store


def execute(url: str, sql: str) -> None:
    """Run a statement in a SQLite file or on a PostgreSQL server."""
    if url.startswith("sqlite"):
        connection = apsw.Connection(url.removeprefix("sqlite:///"))
        connection.execute(sql)
        connection.close()
    else:
        with psycopg.connect(url, autocommit=True) as other:
            other.execute(sql.encode())


def move_clock(patch: pytest.MonkeyPatch, store: Store, seconds: float) -> None:
    """Let the clock of a store be ahead, for everyone who uses its kind of store."""
    kind, real = type(store), type(store).open

    def ahead(store: Store, name: str) -> Header | None:
        header = real(store, name)
        if header is not None:
            header.now += seconds
        return header

    patch.setattr(kind, "open", ahead)
