"""Stores as earlier versions left them: tables and rows that their code has written, in tests/golden."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import apsw
import psycopg

from worthwhile.live.stores import postgres, sqlite

VERSIONS = (1, 2, 3, 4, 5)


def content(version: int) -> dict[str, Any]:
    path = Path(__file__).parent / "golden" / f"store-version-{version}.json"
    read: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return read


def install(url: str, version: int) -> list[float]:
    """Make a store of that version; what its scheduler `old` said: ratio, tasks, reports, reward, cost."""
    stored, on_file = content(version), url.startswith("sqlite")
    words = sqlite.WORDS if on_file else postgres.WORDS
    todo: list[tuple[str, list[Any]]] = [(sql.format(**words), []) for sql in stored["tables"]]
    todo += [
        ("create table worthwhile (version bigint not null)", []),
        (f"insert into worthwhile values ({version})", []),
    ]
    for table, rows in stored["rows"].items():
        for row in rows:
            marks = ", ".join(["?" if on_file else "%s"] * len(row))
            values = [bytes.fromhex(value["hex"]) if isinstance(value, dict) else value for value in row.values()]
            todo.append((f"insert into {table} ({', '.join(row)}) values ({marks})", values))
    if on_file:
        connection = apsw.Connection(url.removeprefix("sqlite:///"))
        for sql, values in todo:
            connection.execute(sql, values).fetchall()
        connection.close()
    else:
        with psycopg.connect(url, autocommit=True) as server:
            for sql, values in todo:
                server.execute(sql.encode(), values)
    said: list[float] = stored["said"]
    return said
