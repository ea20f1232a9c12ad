"""Stores of their own on one PostgreSQL server: a schema each."""

from __future__ import annotations

import itertools
import os
from typing import Any

import psycopg

schemas = itertools.count()


def new_schema(server: Any) -> str:
    """Another one, for as long as the server runs."""
    name = f"test_{os.getpid()}_{next(schemas)}"
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        connection.execute(f"create schema {name}")
    return f"{server.get_uri()}&options=-csearch_path%3D{name}"
