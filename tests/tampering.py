"""Changing a store behind its back."""

from __future__ import annotations

import apsw
import psycopg


def execute(url: str, sql: str) -> None:
    """Run a statement in a SQLite file or on a PostgreSQL server."""
    if url.startswith("sqlite"):
        connection = apsw.Connection(url.removeprefix("sqlite:///"))
        connection.execute(sql)
        connection.close()
    else:
        with psycopg.connect(url, autocommit=True) as other:
            other.execute(sql.encode())
